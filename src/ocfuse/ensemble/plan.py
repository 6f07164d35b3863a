"""Prediction of memory and time of a fit.

Members and fusion return their work and their bytes by kind (`ocfuse.cost`), and what is done
around them is counted here. `RATES` has what one of each kind takes, as it was measured.
"""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from ocfuse.cost import NUMBER, Amounts, Cost, Shape
from ocfuse.detectors.base import N_FOLDS
from ocfuse.detectors.members import Members
from ocfuse.detectors.pool import Pool
from ocfuse.detectors.training import cost_of
from ocfuse.encoder import check_table, make_encoder, take_rows
from ocfuse.ensemble.fit import N_REFITS, is_refitted
from ocfuse.exceptions import InvalidInputError, NotEnoughMemoryError
from ocfuse.explain import html_table
from ocfuse.fusion import make_fusion
from ocfuse.fusion.base import BaseFusion
from ocfuse.groups import check_groups
from ocfuse.system.memory import available_bytes
from ocfuse.tuning.search import make_search
from ocfuse.validation import ANOMALY, labels_to_learn_from

#: A fit that needs less is never refused.
SMALL = 2**28

#: Seconds of a fit and of scoring a row, bytes of a fit and of a model, by kind. Written by
#: ``python -m benchmarks.scale.rates`` from what ``python -m benchmarks.scale plan`` measured
#: on 2026-11-19, one thread of AMD EPYC; do not edit.
RATES: dict[str, dict[str, float]] = {
    "fit": {
        "cell": 4.82e-07,
        "directions": 1.45e-10,
        "factor": 7.84e-12,
        "fusion": 2.41e-10,
        "fusion of many": 0,
        "gaussian": 0,
        "gaussians": 1.06e-09,
        "landmark cube": 1.38e-10,
        "landmark distances": 0,
        "landmark products": 3.72e-11,
        "member": 0,
        "paths": 0,
        "score": 7.35e-06,
        "search": 6.91e-12,
        "spectrum": 5.34e-11,
        "sphere": 0,
        "square": 3.31e-11,
        "start": 0.142,
        "tails": 0,
        "trees": 0,
        "tried": 1.87e-06,
        "view": 6.06e-08,
        "whitening": 6.96e-11,
    },
    "score": {
        "cell": 0,
        "cells": 8.6e-05,
        "fusion": 5.3e-11,
        "fusion of many": 5.99e-12,
        "gaussians": 6.18e-11,
        "kernel": 2.37e-11,
        "landmark distances": 4.47e-11,
        "landmark products": 2.84e-11,
        "member": 4.25e-07,
        "neighbour": 0,
        "row": 9.9e-06,
        "search": 3.18e-11,
        "square": 5.31e-11,
        "tails": 4.51e-09,
        "trees": 0,
        "view": 0,
        "whitening": 1.46e-10,
    },
    "peak": {
        "cell": 3.97,
        "column": 6.52,
        "factor": 1,
        "kernel": 3.21,
        "landmark work": 1.61,
        "landmarks": 3.54,
        "neighbours": 1,
        "outside": 1,
        "reference": 1,
        "rows": 1,
        "score": 1,
        "search": 1.57,
        "spectrum": 10.9,
        "sphere": 1,
        "splits": 1,
        "square": 1,
        "start": 1.9e07,
        "tails": 2.02,
        "trees": 9.64e06,
        "view": 1,
        "wide": 4.3,
    },
    "model": {
        "cell": 1.68,
        "kernel": 1.18,
        "landmarks": 1.27,
        "reference": 1.89,
        "score": 4.38,
        "start": 3.4e05,
        "tails": 1,
        "trees": 2.03e05,
        "view": 1,
        "wide": 1.94,
    },
}


@dataclass(frozen=True)
class Job:
    """Size of a fit: rows, columns, groups and settings.

    Attributes
    ----------
    n_rows, n_columns : int
        Number of rows that are not anomalies, and of columns.
    n_anomalies : int
        Number of anomalies.
    n_groups : int or None
        Number of groups; with groups all members are fitted fold by fold. None without groups.
    n_tried : int
        Number of settings that a search tries.
    is_encoded : bool
        Whether the table has another number of columns, before categories are encoded.
    """

    n_rows: int
    n_columns: int
    n_anomalies: int = 0
    n_groups: int | None = None
    n_tried: int = 0
    is_encoded: bool = False


@dataclass(frozen=True)
class Plan:
    """Predicted memory and time of a fit.

    Bytes are an upper estimate. Seconds are for one thread of the machine on which `RATES` were
    measured, and for rows of which none is left out as too far outside: each time rows are left
    out, the members are fitted again.

    Attributes
    ----------
    job : Job
        Size of the fit; categories count as columns of 0 and 1.
    pool : str or None
        Name of the pool; None without a name. For many rows "default" is "large".
    members : tuple of str
        Names of the members.
    method : str
        Method of the kernels: "exact", "landmarks", both, or "" without kernels.
    fit_bytes : int
        Largest memory that `fit` needs in addition to that of the process.
    model_bytes : int
        Memory of the fitted detector.
    fit_seconds : float
        Time of `fit`.
    score_seconds : float
        Time of scoring 1,000 rows.
    available_bytes : int or None
        Memory that is free for this process; None if unknown.
    possible_rows : int
        Approximate number of rows for which the memory is enough.
    is_light_possible : bool
        Whether the memory is enough for the pool "light", if it is not for this one.
    unknown : tuple of str
        Members with unknown cost, such as those of other packages. They are counted with the
        memory of the rows and without time.
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
    is_light_possible: bool = False
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
        """Whether the memory is enough, as far as it is known."""
        available = self.available_bytes
        return available is None or self.fit_bytes <= max(available, SMALL)

    def __str__(self) -> str:
        lines = [f"{name:<10} {value}" for name, value in self._figures().items()]
        return "\n".join([_job_in_words(self.job), *lines])

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return f"<p>{_job_in_words(self.job)}</p>{html_table((), self._figures().items())}"

    def _figures(self) -> dict[str, str]:
        """Return what is printed, by name."""
        available = self.available_bytes
        figures = {
            "members": _members_in_words(self),
            "kernels": self.method or "none",
            "fit": f"{_seconds(self.fit_seconds)}, {_bytes(self.fit_bytes)} of memory"
            + ("" if available is None else f" of {_bytes(available)} available"),
            "model": _bytes(self.model_bytes),
            "score": f"{_seconds(self.score_seconds)} per 1,000 rows",
        }
        if self.unknown:
            figures["unknown"] = f"{', '.join(self.unknown)}: counted as a copy of the rows only"
        if not self.is_possible:
            figures["impossible"] = advice(self)
        return figures


def make_plan(members: Any, job: Job, fusion: Any = None) -> Plan:
    """Return the plan of a fit, of members and a fusion as `FusedDetector` takes them."""
    pool = members if isinstance(members, Pool) else Pool(members)
    pool._check_parameters()
    fuse = make_fusion(fusion)
    plan = _plan(pool, fuse, job, available_bytes())
    if plan.is_possible:
        return plan
    # fewer rows never need more, but for the switch at some thousand
    few, many = 0, plan.n_rows
    while many - few > max(1, few // 100):
        middle = (few + many) // 2
        less = _plan(pool, fuse, replace(job, n_rows=middle), plan.available_bytes)
        few, many = (middle, many) if less.is_possible else (few, middle)
    with_light = _plan(Pool("light"), fuse, job, plan.available_bytes)
    return replace(plan, possible_rows=few, is_light_possible=with_light.is_possible)


def _plan(pool: Pool, fusion: BaseFusion, job: Job, available: int | None) -> Plan:
    name, members = pool.chosen(job.n_rows)
    cost, unknown = fit_cost(members, fusion, job, pool.n_folds)
    return Plan(
        job=job,
        pool=name,
        members=tuple(name for name, _ in members),
        method=" and ".join(sorted(cost.methods)),
        fit_bytes=int(_priced(cost.peak_bytes(), "peak")),
        model_bytes=int(_priced(cost.model_bytes, "model")),
        fit_seconds=_priced(cost.fit_work, "fit"),
        score_seconds=1000 * _priced(cost.score_work, "score"),
        available_bytes=available,
        possible_rows=job.n_rows,
        unknown=unknown,
    )


def fit_cost(
    members: Members, fusion: BaseFusion, job: Job, n_folds: int = N_FOLDS
) -> tuple[Cost, tuple[str, ...]]:
    """Return the cost of a fit in which no row is left out, and members whose cost is a guess.

    What members share is counted once.
    """
    costs = _costs(members, fusion, job, n_folds)
    total = sum(costs.values(), Cost()).total()
    n = job.n_rows
    if is_refitted((n, job.n_columns), job.n_anomalies, job.n_groups):
        # everything but the search is learned again in folds
        part = _costs(members, fusion, replace(job, n_rows=n - n // N_REFITS, n_tried=0), n_folds)
        work = sum(part.values(), Cost()).total().fit_work
        total += Cost(fit_work={kind: N_REFITS * amount for kind, amount in work.items()})
    return total, tuple(name for name, _ in members if costs[name].is_guess)


def _costs(members: Members, fusion: BaseFusion, job: Job, n_folds: int) -> dict[str, Cost]:
    """Return the cost of every member by its name, and under no name that of all the rest."""
    n, m = job.n_rows, job.n_columns
    costs = {name: cost_of(member, n, m, n_folds, job.n_groups) for name, member in members}
    return costs | {"": _cost_around(len(members), job) + fusion.cost(Shape(n, m))}


def _cost_around(n_members: int, job: Job) -> Cost:
    """Return the cost of encoding, pseudo-negatives, scores, and a search."""
    n, m = job.n_rows, job.n_columns
    scored = 2000  # pseudo-negatives and training rows that are scored together
    cells, scores = n * m, n * n_members
    held = {"cell": NUMBER * cells, "score": NUMBER * scores}
    # every fold has rows of its own to learn from and to judge by, pseudo-negatives among them
    split = N_FOLDS * (n + scored) * (job.n_tried > 0)
    return Cost(
        fit_work={
            "start": 1,
            "member": n_members,
            "cell": cells,
            "score": scores,
            "tried": job.n_tried * scores,
        },
        score_work={"row": 1, "member": n_members, "cell": m},
        fit_bytes={"start": 1, "wide": NUMBER * m * min(n, m), "splits": NUMBER * split * m} | held,
        scratch_bytes={"column": NUMBER * m * scored},
        model_bytes={"start": 1} | held,
    )


def _priced(amounts: Amounts, what: str) -> float:
    """Return the seconds or bytes of amounts by kind."""
    rates = RATES[what]
    unknown = sorted(amounts.keys() - rates.keys() - {"seconds", "bytes"})
    if unknown:
        raise InvalidInputError(
            f"A cost must be told in kinds that have a rate, or in 'seconds' and 'bytes'. "
            f"Got {', '.join(map(repr, unknown))}."
        )
    return sum(amount * rates.get(kind, 1.0) for kind, amount in amounts.items())


def job_of(X: Any, y: Any = None, groups: Any = None, tune: Any = None, encoder: Any = None) -> Job:
    """Return what a fit learns from; see `FusedDetector.plan`."""
    n, m = shape_of(X, encoder)
    n_anomalies = int(np.sum(labels_to_learn_from(y, n) == ANOMALY))
    n_groups = None
    if isinstance(groups, Integral):
        n_groups = int(groups)
        if not 2 <= n_groups <= n:
            raise InvalidInputError(
                f"groups must be their number, from 2 to the {n:,} rows, or hold the label of "
                f"every row. Got {groups}."
            )
    elif groups is not None:
        n_groups = len(np.unique(check_groups(groups, n).label))
    n_tried = 0 if tune is None else make_search(tune).n_candidates
    is_encoded = hasattr(X, "shape") and X.shape[1:] != (m,)
    return Job(n - n_anomalies, m, n_anomalies, n_groups, n_tried, is_encoded)


def shape_of(X: Any, encoder: Any = None) -> tuple[int, int]:
    """Return rows and columns, as members will see them, of a table, or of a shape.

    Categories are counted in 1,000 rows.
    """
    if isinstance(X, tuple) and len(X) == 2 and all(isinstance(size, Integral) for size in X):
        if min(X) < 1:
            raise InvalidInputError(f"A shape must have rows and columns. Got {X}.")
        return int(X[0]), int(X[1])
    table = check_table(X)
    n, m = table.shape
    if not hasattr(table, "columns"):
        return n, m
    rows = np.unique(np.linspace(0, n - 1, min(n, 1000)).astype(np.intp))
    try:
        return n, len(make_encoder(encoder).fit(take_rows(table, rows)).source_)
    except InvalidInputError:  # perhaps these rows alone hold gaps only
        return n, m


def require_memory(plan: Plan) -> None:
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
    if plan.is_light_possible:
        ways.append("the pool 'light'")
    return f"Use {', '.join(ways)}, or a machine with more memory."


def _job_in_words(job: Job) -> str:
    words = f"{job.n_rows:,} rows of {job.n_columns:,} columns"
    words += " after encoding" if job.is_encoded else ""
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
