"""Processes that are there in no time: what they need is imported once for all of them."""

import multiprocessing
from contextlib import contextmanager

FORKS = multiprocessing.get_context("forkserver")
#: What workers and commands need; scikit-learn, as it is needed when a model is saved, is slow.
NEEDED = [
    "dask.dataframe",
    "ocfuse.cli.fit",
    "ocfuse.cli.model_card",
    "ocfuse.cli.score",
    "ocfuse.cli.watch",
    "ocfuse.distributed.cluster",
    "pyarrow.parquet",
    "pytest",
    "skops.io",
    "tests.distributed.cases",
    "tests.faults.cases",
]


def start_forks():
    """Start what all processes are forked from, unless it runs: who is first says what it holds."""
    FORKS.set_forkserver_preload(NEEDED)
    multiprocessing.forkserver.ensure_running()


@contextmanager
def process(function, *args):
    """Run a function in a process of its own, which has imported everything; end it."""
    start_forks()
    child = FORKS.Process(target=function, args=args)
    child.start()
    try:
        yield child
    finally:
        child.kill()
        child.join()
        child.close()
