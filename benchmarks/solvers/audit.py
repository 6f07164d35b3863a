"""Part "audit": recompute every certificate, written apart from the solver's own.

A certificate is false when a problem is called solved and the gap of what was
returned, recomputed in plain NumPy from the data alone, is larger than the
tolerance, or when w leaves the ball or its sign, or alpha its box. A failure is
declared when the solver says by itself that it did not get there.
"""

import time
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.solvers.hostile import Array, Batch
from ocfuse.exceptions import ConvergenceWarning
from ocfuse.solvers import Status, solve, solve_batch

PROBLEMS = 130_000
BALL_SLACK = 1e-9
PRIMAL_FLOOR = 1e-3


@dataclass
class Answers:
    """What a solver returned for a batch."""

    W: Array
    alpha: Array
    solved: NDArray[np.bool_]


def answers_of(batch: Batch) -> Answers:
    """Solve a batch through the door that it asks for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a stray floating-point warning is an error
        warnings.simplefilter("ignore", ConvergenceWarning)
        if batch.door == "single":
            return _one_by_one(batch)
        S, y, index = batch.as_table()
        answer = solve_batch(
            S, y, index, batch.c, batch.p, batch.nonneg, batch.tol, batch.solver,
            n_threads=1, backend="numpy" if batch.door == "numpy" else "auto",
        )  # fmt: skip
    return Answers(answer.W, answer.alpha, answer.status == Status.SOLVED)


def _one_by_one(batch: Batch) -> Answers:
    each = [
        solve(S, y, p, c, batch.nonneg, batch.tol, batch.solver)
        for S, y, p, c in zip(batch.S, batch.y, batch.p, batch.c, strict=True)
    ]
    return Answers(
        np.array([answer.w for answer in each]),
        np.array([answer.alpha for answer in each]),
        np.array([answer.status is Status.SOLVED for answer in each]),
    )


def norm(x: Array, p: Array) -> Array:
    """Return the lp norm of every row, p from 1 to inf, by way of the largest entry."""
    x = np.abs(x)
    top = x.max(axis=1)
    unit = x / np.where(top > 0, top, 1)[:, np.newaxis]
    finite = np.where(np.isinf(p), 1, p).astype(x.dtype)
    sums = (unit ** finite[:, np.newaxis]).sum(axis=1) ** (1 / finite)
    return top * np.where(np.isinf(p), 1, sums)


def recomputed_gap(batch: Batch, found: Answers, dtype: type = np.float64) -> Array:
    """Return the relative gap of every answer, from the data alone."""
    A, c, p = (x.astype(dtype) for x in (batch.A, batch.c, batch.p))
    W, alpha = found.W.astype(dtype), found.alpha.astype(dtype)
    margins = (A @ W[:, :, np.newaxis])[:, :, 0]
    v = (alpha[:, np.newaxis, :] @ A)[:, 0, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(p == 1, np.inf, np.where(np.isinf(p), 1, p / (p - 1)))
    primal = (c * np.maximum(0, 1 - margins)).sum(axis=1)
    dual = alpha.sum(axis=1) - norm(np.maximum(v, 0) if batch.nonneg else v, q)
    scale = np.maximum(primal, dtype(PRIMAL_FLOOR) * c.sum(axis=1))
    return (primal - dual) / np.where(scale > 0, scale, 1)


def outside(batch: Batch, found: Answers) -> NDArray[np.bool_]:
    """Tell which answers leave the ball, the sign of w or the box of alpha."""
    far = ~(norm(found.W, batch.p) <= 1.0 + BALL_SLACK)
    box = ~((found.alpha >= 0) & (found.alpha <= batch.c)).all(axis=1)
    sign = (found.W < 0).any(axis=1) if batch.nonneg else np.zeros(len(far), dtype=bool)
    return far | box | sign


@dataclass
class Tally:
    """Counts of one family."""

    n: int = 0
    failed: int = 0
    false: int = 0
    false_extended: int = 0
    errors: int = 0
    seeds: list[dict] = field(default_factory=list)
    by_tol: Counter = field(default_factory=Counter)
    failed_by_tol: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, batch: Batch) -> None:
        begin = time.process_time()
        try:
            found = answers_of(batch)
        except Exception as error:
            self.errors += 1
            self.note(batch, "error", -1, np.nan, np.nan, repr(error))
            return
        self.seconds += time.process_time() - begin
        gap, exact = recomputed_gap(batch, found), recomputed_gap(batch, found, np.longdouble)
        wrong = found.solved & (~(gap <= batch.tol) | outside(batch, found))
        subtle = found.solved & ~(exact <= batch.tol) & ~wrong
        self.n += len(gap)
        self.by_tol[batch.tol] += len(gap)
        self.failed += int((~found.solved).sum())
        self.failed_by_tol[batch.tol] += int((~found.solved).sum())
        self.false += int(wrong.sum())
        self.false_extended += int(subtle.sum())
        for kind, which in (("failed", ~found.solved), ("false", wrong), ("subtle", subtle)):
            for row in np.flatnonzero(which):
                self.note(batch, kind, int(row), gap[row], exact[row], "")

    def note(self, batch, kind, row, gap, exact, text) -> None:
        m, k, d = batch.S.shape
        self.seeds.append(
            dict(kind=kind, family=batch.family, seed=batch.seed, row=row, k=k, d=d,
                 p=float(batch.p[row]), nonneg=batch.nonneg, tol=batch.tol, solver=batch.solver,
                 door=batch.door, gap=float(gap), exact=float(exact), text=text)
        )
