"""Too little memory: it is told, and nothing is half-written."""

import time

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from ocfuse import FusedDetector
from ocfuse.detectors import KNN
from ocfuse.exceptions import MemberError, TableError
from tests.cli.cases import plant
from tests.distributed.cases import is_worker, make_model, names, write
from tests.faults.cases import run_told
from tests.forks import process, start_forks


def test_fit_refuses_what_does_not_fit_into_memory(tmp_path):
    plant(3000, seed=0).to_csv(tmp_path / "normal.csv", index=False)
    (tmp_path / "m.ocf").write_text("of yesterday")
    arguments = ("fit", tmp_path / "normal.csv", "-o", tmp_path / "m.ocf", "--force")
    arguments += ("--members", "paper-all")
    with process(run_told, arguments, tmp_path, 200 * 2**20) as child:
        child.join()
        assert child.exitcode == 3
    told = (tmp_path / "err").read_text()
    assert told.startswith("Error: A fit of 3,000 rows of 4 columns after encoding by 10 members")
    assert told.count("\n") == 1
    assert (tmp_path / "out").read_text() == ""
    assert (tmp_path / "m.ocf").read_text() == "of yesterday"
    assert names(tmp_path) == ["err", "m.ocf", "normal.csv", "out"]


class Hungry(IsolationForest):
    """A member that takes memory when it scores: more than there is, or some for a while.

    Parameters
    ----------
    n_bytes : int
        How much.
    """

    def __init__(self, n_bytes=2**50, n_estimators=5, random_state=None):
        super().__init__(n_estimators=n_estimators, random_state=random_state)
        self.n_bytes = n_bytes

    def score_samples(self, X):
        if self.n_bytes > 2**40 or is_worker():
            taken = np.ones(self.n_bytes, dtype=np.int8)
            time.sleep(600)  # the worker is ended long before
            del taken
        return super().score_samples(X)


def test_a_member_without_memory_is_named():
    with pytest.raises(MemberError, match="hungry") as caught:
        FusedDetector([("hungry", Hungry()), ("knn", KNN(3))]).fit(np.eye(40, 3))
    assert isinstance(caught.value.__cause__, MemoryError)


def test_a_worker_beyond_its_limit_is_ended_and_its_file_named(tmp_path):
    distributed = pytest.importorskip("distributed", reason="extra distributed is not installed")
    import dask  # noqa: PLC0415

    from ocfuse.distributed import score  # noqa: PLC0415

    model = make_model([("hungry", Hungry(2**29)), ("knn", KNN(3))], id="part")
    model.fit(plant(200, 0))
    data, out = write(plant(300, 1), tmp_path / "data", 2), tmp_path / "out"
    start_forks()
    options = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.scheduler.allowed-failures": 0,
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit=600 * 2**20,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(TableError, match=r"part\.\d\.parquet ended every worker"),
    ):
        score(model, data, out, client=client)
    assert names(out) == []
