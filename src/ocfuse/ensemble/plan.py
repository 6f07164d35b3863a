"""What a fit will take: bytes and seconds, before anything is learned."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from ocfuse.detectors.pools import Pool
from ocfuse.ensemble import rates
from ocfuse.ensemble.costs import Counts, Job, count_costs
from ocfuse.ensemble.labels import ANOMALY, check_labels
from ocfuse.ensemble.rows import check_groups
from ocfuse.exceptions import InvalidInputError, NotEnoughMemoryError
from ocfuse.explain import html_table
from ocfuse.features import check_table, make_encoder, take_rows
from ocfuse.system.memory import available_bytes
from ocfuse.tuning.search import make_search

#: Rows that the categories of a data frame are counted in.
ROWS_TO_COUNT = 1000
#: A fit that needs less is never refused.
SMALL = 2**28


@dataclass(frozen=True)
class Plan:
    """What a fit will take, estimated from numbers: of rows, columns, groups, settings tried.

    Bytes are meant to be enough; seconds are those of one thread of the machine
    they were measured on (`ocfuse.ensemble.rates`), of the default fusion, and of rows
    none of which lies so far outside that it is left out: each time some are, the members
    learn again.

    Attributes
    ----------
    job : Job
        What is learned from: rows that are not anomalies, with categories as columns of
        0 and 1.
    pool : str or None
        Name of the pool, if it has one: "default" is "large" where there are many rows.
    members : tuple of str
        Names of the members.
    method : str
        How kernels see the rows: "exact", "landmarks", both, or "" without kernels.
    fit_bytes : int
        Memory that `fit` needs at most beyond what the process has.
    model_bytes : int
        Memory that the fitted detector keeps.
    fit_seconds : float
        Time of `fit`.
    score_seconds : float
        Time of scoring 1,000 rows.
    available_bytes : int or None
        Memory that this process can still have; None if the system does not tell.
    possible_rows : int
        How many of the rows there is memory for, about.
    unknown : tuple of str
        Members that are not of this package, and whose cost is not in the plan.
    """

    job: Job
    pool: str | None
    members: tuple[str, ...]
    method: str
    fit_bytes: int
    model_bytes: int
    fit_seconds: float
    score_seconds: float
    available_bytes: int | None
    possible_rows: int
    unknown: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return self.job.n_rows

    @property
    def n_columns(self) -> int:
        """Columns, with categories as columns of 0 and 1."""
        return self.job.n_columns

    @property
    def is_possible(self) -> bool:
        """Whether there is memory enough, as far as that is known."""
        room = self.available_bytes
        return room is None or self.fit_bytes <= max(room, SMALL)

    def __str__(self) -> str:
        lines = [f"{name:<10} {value}" for name, value in self._figures().items()]
        return "\n".join([_job_in_words(self.job), *lines])

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return f"<p>{_job_in_words(self.job)}</p>{html_table((), self._figures().items())}"

    def _figures(self) -> dict[str, str]:
        """Return what is told, in words."""
        room = self.available_bytes
        told = {
            "members": _members_in_words(self),
            "kernels": self.method or "none",
            "fit": f"{_seconds(self.fit_seconds)}, {_bytes(self.fit_bytes)} of memory"
            + ("" if room is None else f" of {_bytes(room)} available"),
            "model": _bytes(self.model_bytes),
            "score": f"{_seconds(self.score_seconds)} per 1,000 rows",
        }
        if self.unknown:
            told["unknown"] = f"{', '.join(self.unknown)}: not in these figures"
        if not self.is_possible:
            told["impossible"] = advice(self)
        return told


def make_plan(members: Any, job: Job) -> Plan:
    """Return the plan of a fit.

    Parameters
    ----------
    members : str, list, dict or Pool
        Members as `FusedDetector` takes them.
    job : Job
        What they learn from.

    Returns
    -------
    Plan
        The plan.
    """
    pool = members if isinstance(members, Pool) else Pool(members)
    pool._check_parameters()
    plan = _plan(pool, job, available_bytes())
    if plan.is_possible:
        return plan
    # fewer rows never need more, but for the switch at some thousand
    few, many = 0, plan.n_rows
    while many - few > max(1, few // 100):
        middle = (few + many) // 2
        less = _plan(pool, replace(job, n_rows=middle), plan.available_bytes)
        few, many = (middle, many) if less.is_possible else (few, middle)
    return replace(plan, possible_rows=few)


def _plan(pool: Pool, job: Job, room: int | None) -> Plan:
    name, members = pool.chosen(job.n_rows)
    counts = count_costs(members, job, pool.n_folds)
    return Plan(
        job=job,
        pool=name,
        members=tuple(name for name, _ in members),
        method=_method(counts),
        fit_bytes=int(_cost(counts.peak, rates.PEAK)),
        model_bytes=int(_cost(counts.model, rates.MODEL)),
        fit_seconds=_cost(counts.fit, rates.FIT),
        score_seconds=1000 * _cost(counts.score, rates.SCORE),
        available_bytes=room,
        possible_rows=job.n_rows,
        unknown=tuple(counts.unknown),
    )


def job_of(X: Any, y: Any = None, groups: Any = None, tune: Any = None, encoder: Any = None) -> Job:
    """Return what a fit learns from.

    Parameters
    ----------
    X : array-like, data frame or tuple of two int
        Training rows, or their shape.
    y : array-like of shape (n,), optional
        Labels, as `FusedDetector.fit` takes them.
    groups : array-like of shape (n,), Groups or int, optional
        Groups, as `FusedDetector.fit` takes them, or their number.
    tune : str, Criterion, Search or None, optional
        As `FusedDetector` takes it.
    encoder : str, FeatureEncoder or None, optional
        As `FusedDetector` takes it.

    Returns
    -------
    Job
        The numbers of all of them.
    """
    n, m = shape_of(X, encoder)
    n_anomalies = int(np.sum(check_labels(y, n) == ANOMALY))
    search = make_search(tune)
    return Job(
        n_rows=n - n_anomalies,
        n_columns=m,
        n_anomalies=n_anomalies,
        n_groups=_number_of(groups, n),
        n_tried=0 if search is None else search.n_candidates,
    )


def _number_of(groups: Any, n: int) -> int | None:
    if isinstance(groups, Integral):
        n_groups = int(groups)
        if not 2 <= n_groups <= n:
            raise InvalidInputError(
                f"groups must be their number, from 2 to the {n:,} rows, or hold the label of "
                f"every row. Got {groups}."
            )
        return n_groups
    checked = check_groups(groups, n)
    return None if checked is None else len(np.unique(checked.label))


def shape_of(X: Any, encoder: Any = None) -> tuple[int, int]:
    """Return rows and columns of a table, or of a shape, with categories as columns.

    Parameters
    ----------
    X : array-like, data frame or tuple of two int
        A table, or its shape.
    encoder : str, FeatureEncoder or None, optional
        As `FusedDetector` takes it.

    Returns
    -------
    tuple of int
        Rows, and columns as members will see them. Categories are counted in 1,000
        rows.
    """
    if isinstance(X, tuple) and len(X) == 2 and all(isinstance(size, Integral) for size in X):
        if min(X) < 1:
            raise InvalidInputError(f"A shape must have rows and columns. Got {X}.")
        return int(X[0]), int(X[1])
    table = check_table(X)
    n, m = table.shape
    if not hasattr(table, "columns"):
        return n, m
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS_TO_COUNT)).astype(np.intp))
    asked = make_encoder(encoder)
    try:
        return n, len(asked.fit(take_rows(table, rows)).source_)
    except InvalidInputError:  # perhaps these rows alone hold gaps only
        return n, m


def require_room(plan: Plan) -> None:
    """Refuse a fit for which there is not enough memory, and say what to do."""
    if not plan.is_possible:
        raise NotEnoughMemoryError(
            f"A fit of {_job_in_words(plan.job)} by {_members_in_words(plan)} needs "
            f"about {_bytes(plan.fit_bytes)} of memory. "
            f"Got {_bytes(plan.available_bytes or 0)}. {advice(plan)}"
        )


def advice(plan: Plan) -> str:
    """Say how to do with the memory there is."""
    rows, ways = plan.possible_rows, ["fewer columns"]
    if rows:
        ways.insert(0, f"at most {rows:,} rows, such as X[::{-(-plan.n_rows // rows)}]")
    if _plan(Pool("light"), plan.job, plan.available_bytes).is_possible:
        ways.append("the pool 'light'")
    return f"Use {', '.join(ways)}, or a machine with more memory."


def _cost(counts: Mapping[str, float], rate: Mapping[str, float]) -> float:
    return sum(amount * rate[name] for name, amount in counts.items())


def _method(counts: Counts) -> str:
    return " and ".join(sorted(counts.methods))


def _job_in_words(job: Job) -> str:
    words = f"{job.n_rows:,} rows of {job.n_columns:,} columns"
    if job.n_groups is not None:
        words += f" in {job.n_groups:,} groups"
    return words + (f" with {job.n_tried:,} settings tried" if job.n_tried else "")


def _members_in_words(plan: Plan) -> str:
    pool = "" if plan.pool is None else f" of pool {plan.pool!r}"
    return f"{len(plan.members)} members{pool}"


def _bytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


def _seconds(seconds: float) -> str:
    if seconds >= 120:
        return f"{seconds / 60:,.0f} minutes"
    return f"{seconds:.2g} s" if seconds >= 0.01 else f"{1e3 * seconds:.2g} ms"
