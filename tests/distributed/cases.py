"""Folders of Parquet files, and members that end the process they run in."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest

from ocfuse import FusedDetector
from ocfuse.cli import main
from ocfuse.tables import TableDetector
from tests.cli.cases import plant


def write(frame, folder, n_files, **options):
    """Write rows to files of about the same length; return the folder."""
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"part.{i}.parquet", index=False, **options)
    return folder


def read(folder):
    """Return the scores of a folder in the order of the rows."""
    return pd.concat([pd.read_parquet(path) for path in folder.iterdir()]).sort_values("row")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def make_model(members="light", **options):
    return TableDetector(FusedDetector(members, random_state=0), **options)


def grouped(n=3000):
    """Return rows of few large groups and many small ones."""
    sizes = [n // 3, n // 3, *[8] * (n // 24)]
    sizes[1] += n - sum(sizes)
    run = np.repeat([f"r{i}" for i in range(len(sizes))], sizes)
    return plant(n, 0).drop(columns="part").assign(run=run)


class Mortal(IsolationForest):
    """A member that ends the first worker in which it is fitted, or has scored a while.

    Parameters
    ----------
    marker : str
        File that is made before; where it is, nobody dies.
    when : str
        "fit" or "score".
    patience : int
        Calls that are survived.
    """

    def __init__(self, marker="", when="fit", patience=0, n_estimators=10, random_state=None):
        super().__init__(n_estimators=n_estimators, random_state=random_state)
        self.marker = marker
        self.when = when
        self.patience = patience

    def fit(self, X, y=None):
        self._dare("fit")
        return super().fit(X)

    def score_samples(self, X):
        self._dare("score")
        return super().score_samples(X)

    def _dare(self, what):
        if what != self.when or not is_worker():
            return
        self.patience -= 1
        if self.patience < 0:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


class Allergic(IsolationForest):
    """A member that ends every worker in which it meets a large value.

    Parameters
    ----------
    diary : str
        File with a letter for every death.
    limit : float
        How large.
    """

    def __init__(self, diary="", limit=1e3, n_estimators=10, random_state=None):
        super().__init__(n_estimators=n_estimators, random_state=random_state)
        self.diary = diary
        self.limit = limit

    def fit(self, X, y=None):
        self._dare(X)
        return super().fit(X)

    def score_samples(self, X):
        self._dare(X)
        return super().score_samples(X)

    def _dare(self, X):
        if is_worker() and np.max(X) >= self.limit:
            with Path(self.diary).open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)


class Waiting(IsolationForest):
    """A member that waits on workers until a file is there.

    Parameters
    ----------
    gate : str
        The file.
    ahead : int
        First calls that need not wait.
    """

    def __init__(self, gate="", ahead=0, n_estimators=5, random_state=None):
        super().__init__(n_estimators=n_estimators, random_state=random_state)
        self.gate = gate
        self.ahead = ahead

    def fit(self, X, y=None):
        self._wait()
        return super().fit(X)

    def score_samples(self, X):
        self._wait()
        return super().score_samples(X)

    def _wait(self):
        if not is_worker() or any(self._goes_ahead(i) for i in range(self.ahead)):
            return
        end = time.monotonic() + 120
        while not Path(self.gate).exists() and time.monotonic() < end:
            time.sleep(0.01)

    def _goes_ahead(self, i):
        try:
            os.close(os.open(f"{self.gate}.{i}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def run_command_line(arguments):
    """Be the command `ocfuse`."""
    sys.argv = ["ocfuse", *arguments]
    main()


def serve_cluster(pipe):
    """Be a scheduler with a worker, and tell the address."""
    from distributed import LocalCluster  # noqa: PLC0415

    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        pipe.send(cluster.scheduler_address)
        pipe.poll(None)


def is_worker():
    """Tell whether this is a process of a cluster, and not that of the tests."""
    from distributed import get_worker  # noqa: PLC0415

    try:
        get_worker()
    except ValueError:
        return False
    return True
