"""Fit on a cluster, to more rows than one machine holds."""

from itertools import repeat
from typing import Any

from ocfuse.detectors.training import running_tasks
from ocfuse.distributed.cluster import Client, working
from ocfuse.distributed.sampling import START_AGAIN, sample
from ocfuse.exceptions import InvalidTypeError
from ocfuse.system.threads import few_threads
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RUNS


def fit(
    model: TableDetector, data: Any, *, client: Client, rows: int = 20_000, seed: int = 0
) -> TableDetector:
    """Draw a sample of all rows on a cluster, and fit a model to it.

    Members (those of this package from 2,000 rows on), folds and candidates of a search are fitted
    in parallel on the cluster. The model equals that of ``model.fit(sample(...))`` on one machine
    to 1e-9. For fusions with a solver, such as "lp", this holds if that machine uses one thread
    (``OMP_NUM_THREADS=1``), as workers do; else to the tolerance of the solver.

    Parameters
    ----------
    model : TableDetector
        Model to fit; it is changed.
    data : path-like or dask.dataframe.DataFrame
        A folder of Parquet files, or a Dask data frame. The order of its rows matters.
    client : distributed.Client
        The cluster (see `connected`).
    rows : int, default=20000
        Number of rows to learn from (see `sample`).
    seed : int, default=0
        Seed of the sample.

    Returns
    -------
    TableDetector
        The fitted model.
    """
    if getattr(model, "kind", RUNS) == RUNS:
        raise InvalidTypeError(
            f"model must be a TableDetector. Got {type(model).__name__}. Use "
            "TableDetector(FusedDetector(...)); streams are learned on one machine."
        )
    ignored = (model.ignore,) if isinstance(model.ignore, str) else tuple(model.ignore)
    table = sample(
        data,
        rows,
        client=client,
        seed=seed,
        group=model.group,
        label=model.label,
        ignore=ignored,
    )
    with (
        working(client, START_AGAIN) as tasks,
        running_tasks(lambda calls: tasks.results(calls, repeat("A task of the fit"))),
        few_threads(0),  # as the workers: last bits, and what is solved for, depend on threads
    ):
        return model.fit(table)
