"""Clusters: whom to reach, and what is said if nobody is there."""

import gc
import re
import socket
import sys

import pytest

from ocfuse.distributed import cluster as module
from ocfuse.distributed import connected, sample, score
from ocfuse.exceptions import ClusterError, InvalidInputError, MissingPackageError
from ocfuse.system.packages import install_line


def test_what_cannot_be_connected(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    with (
        pytest.raises(InvalidInputError, match="workers=2 and a scheduler"),
        connected("tcp://x", 2),
    ):
        pass
    with pytest.raises(InvalidInputError, match="at least 1"), connected(workers=0):
        pass
    # a client of Dask would wait for longer than its patience, some for ever
    monkeypatch.setattr(module, "dask", lambda name: pytest.fail("a client was made"))
    for address in ("tcp://127.0.0.1:9", "tcp://nowhere", ""):
        with (
            pytest.raises(ClusterError, match=rf"no scheduler at {address}\. Expected"),
            connected(address),
        ):
            pass
    gc.collect()  # nobody may wait for an answer now


@pytest.fixture(scope="module")
def deserted():
    """Return the client of a scheduler without workers."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=0, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_without_workers_it_is_said_after_a_while(
    deserted, model, folder, tmp_path, monkeypatch, run_command
):
    address = deserted.scheduler.address
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with (
        pytest.raises(ClusterError, match=r"no workers for 0\.5 sec.*dask worker"),
        connected(address),
    ):
        pass
    saved, engine = model.save(tmp_path / "m.ocf"), ("--engine", "dask", "--scheduler", address)
    code, _, err = run_command("score", saved, folder, "-o", tmp_path / "out", *engine)
    assert code == 3
    assert "has had no workers" in err
    # they were there, and have left
    monkeypatch.setattr(module, "DESERTED", 0.5)
    mine = deserted.submit(sum, [1, 2])
    with pytest.raises(ClusterError, match=r"no worker for 0\.5 seconds.*Start again"):
        sample(folder, 10, client=deserted)
    with pytest.raises(ClusterError, match=r"no worker for 0\.5 seconds.*the same call goes on"):
        score(model, folder, tmp_path / "out", client=deserted)
    assert list((tmp_path / "out").iterdir()) == []
    assert mine.status == "pending"  # what others have asked for is not touched


def test_it_listens_here_alone(client):
    addresses = [client.scheduler.address, *client.scheduler_info()["workers"]]
    assert len(addresses) == 3
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)
    assert set(client.nthreads().values()) == {1}


def test_a_scheduler_that_runs(client):
    with connected(client.scheduler.address) as other:
        assert other.submit(sum, [1, 2]).result() == 3
    assert client.submit(sum, [1, 2]).result() == 3  # it is somebody else's, and goes on


def test_workers_of_another_version_are_refused(client, monkeypatch):
    monkeypatch.setattr(module, "__version__", "9.9")
    with (
        pytest.raises(ClusterError, match=r"tcp://127.*has ocfuse 0.*this is ocfuse 9\.9"),
        connected(client.scheduler.address),
    ):
        pass


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(MissingPackageError, match=re.escape(install_line("distributed"))),
        connected(),
    ):
        pass


def test_what_listens_but_is_no_scheduler_is_an_error(monkeypatch):
    pytest.importorskip("distributed", reason="extra distributed is not installed")
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match="There is no scheduler at"), connected(address):
            pass
