"""One cluster of two processes for all tests here."""

import pytest

from ocfuse.distributed import connected
from tests.cli.cases import plant
from tests.distributed.cases import make_model, write
from tests.forks import start_forks


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("distributed", reason="extra distributed is not installed")
    import dask  # noqa: PLC0415

    start_forks()
    forks = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(forks), connected(workers=2) as client:
        yield client


@pytest.fixture
def client(cluster):
    """Return the cluster, complete: a test before may have ended a worker."""
    cluster.wait_for_workers(2, timeout=120)
    return cluster


@pytest.fixture
def impatient(client):
    """Let a task end one worker only, instead of four, before it is given up."""
    scheduler = client.cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    yield
    scheduler.allowed_failures = before


@pytest.fixture(scope="session")
def model():
    return make_model(id="part").fit(plant(400, 0))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return 3000 rows in six files."""
    return write(plant(3000, 1), tmp_path_factory.mktemp("data") / "rows", 6)
