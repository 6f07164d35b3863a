"""Part "audit": recompute every certificate, written apart from the solver's own.

A certificate is false when a problem is called solved and the gap of what was
returned, recomputed in plain NumPy from the data alone, is larger than the
tolerance, or when w leaves the ball or its sign, or alpha its box. The gap is
recomputed in extended precision: where scores are huge, double precision rounds
by more than the tolerance, and its verdict is counted apart. A failure is
declared when the solver says by itself that it did not get there.

Replay one problem:  ``python -m benchmarks.solvers.audit "huge rows" 218 29``
"""

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Table, Target
from benchmarks.solvers.hostile import FAMILIES, Array, Batch, draw
from ocfuse.exceptions import ConvergenceWarning
from ocfuse.solvers import Status, solve, solve_batch

PROBLEMS, PROBLEMS_QUICK = 500_000, 20_000
FAILURES_ALLOWED = 1 / 5000
BALL_SLACK = 1e-9
PRIMAL_FLOOR = 1e-3
#: One batch in so many is solved again, a problem alone and with two threads.
RETRY_EVERY = 10


@dataclass
class Answers:
    """What a solver returned for a batch."""

    W: Array
    alpha: Array
    solved: NDArray[np.bool_]


def answers_of(batch: Batch) -> Answers:
    """Solve a batch through the door that it asks for."""
    if batch.door == "single":
        return one_by_one(batch)
    return by_batch(batch, slice(None), 1)


def by_batch(batch: Batch, rows: slice, n_threads: int) -> Answers:
    S, y, index = batch.as_table()
    answer = solve_batch(
        S, y, index[rows], batch.c[rows], batch.p[rows], batch.nonneg, batch.tol, batch.solver,
        n_threads=n_threads, backend="numpy" if batch.door == "numpy" else "auto",
    )  # fmt: skip
    return Answers(answer.W, answer.alpha, answer.status == Status.SOLVED)


def one_by_one(batch: Batch) -> Answers:
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
    A, c, p = (x.astype(dtype) for x in (batch.margins, batch.c, batch.p))
    W, alpha = found.W.astype(dtype), found.alpha.astype(dtype)
    # Powers of two change nothing but keep tiny weights out of the denormals.
    _, exponent = np.frexp(batch.c.max(axis=1, keepdims=True))
    c, alpha = np.ldexp(c, -exponent), np.ldexp(alpha, -exponent)
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


def depends_on_company(batch: Batch, found: Answers) -> NDArray[np.bool_]:
    """Tell which answers change, in any bit, with the batch or the threads around them."""
    alone = [by_batch(batch, slice(row, row + 1), 1) for row in range(len(batch.p))]
    two = by_batch(batch, slice(None), 2)
    return np.array(
        [
            not (np.array_equal(one.W[0], w) and np.array_equal(two.W[row], w))
            for row, (one, w) in enumerate(zip(alone, found.W, strict=True))
        ]
    )


@dataclass
class Tally:
    """Counts of one family; `cases` names every problem that is not in order."""

    family: str
    count: Counter[str] = field(default_factory=Counter)
    by_tol: Counter[float] = field(default_factory=Counter)
    failed_by_tol: Counter[float] = field(default_factory=Counter)
    cases: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, batch: Batch) -> None:
        """Solve a batch and judge every answer."""
        begin = time.process_time()
        try:
            found = answers_of(batch)
        except Exception as error:  # whatever it is, it is a finding
            self.note(batch, "error", np.zeros(1, dtype=np.intp), np.full(1, np.nan), repr(error))
            return
        self.seconds += time.process_time() - begin
        gap, exact = recomputed_gap(batch, found), recomputed_gap(batch, found, np.longdouble)
        failed = ~found.solved
        self.count["problems"] += len(gap)
        self.count[batch.door] += len(gap)
        self.by_tol[batch.tol] += len(gap)
        self.failed_by_tol[batch.tol] += int(failed.sum())
        self.note(batch, "failed", np.flatnonzero(failed), exact)
        self.note(batch, "useless", np.flatnonzero(failed & (exact > 1 + 1e-6)), exact)
        wrong = ~(exact <= batch.tol) | outside(batch, found)
        self.note(batch, "false", np.flatnonzero(found.solved & wrong), exact)
        rounded = ~(gap <= batch.tol) & ~wrong
        self.note(batch, "unconfirmed", np.flatnonzero(found.solved & rounded), exact)
        if batch.door == "batch" and batch.seed % RETRY_EVERY == 0:
            self.count["retried"] += len(gap)
            self.note(batch, "dependent", np.flatnonzero(depends_on_company(batch, found)), exact)

    def note(
        self, batch: Batch, kind: str, rows: NDArray[np.intp], gap: Array, text: str = ""
    ) -> None:
        """Remember how to draw a problem again."""
        self.count[kind] += len(rows)
        _, k, d = batch.S.shape
        self.cases += [
            {
                "kind": kind, "family": batch.family, "seed": batch.seed, "row": int(row),
                "k": k, "d": d, "p": float(batch.p[row]), "nonneg": batch.nonneg,
                "tol": batch.tol, "solver": batch.solver, "door": batch.door,
                "gap": float(gap[row]), "text": text,
            }
            for row in rows
        ]  # fmt: skip


def audited(family: str, n_problems: float) -> Tally:
    """Audit batches of one family until there are enough problems."""
    tally = Tally(family)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a stray floating-point warning is a finding
        warnings.simplefilter("ignore", ConvergenceWarning)
        seed = 0
        while tally.count["problems"] < n_problems:
            tally.add(draw(family, seed))
            seed += 1
    return tally


def run(quick: bool) -> Report:
    n_problems = (PROBLEMS_QUICK if quick else PROBLEMS) / len(FAMILIES)
    tallies = [audited(family, n_problems) for family in FAMILIES]
    total = sum((tally.count for tally in tallies), Counter[str]())
    return Report(
        "Audit",
        f"{total['problems']:,} random and hostile problems: d 1 to 64, k 1 to 400, thirteen norms "
        "from 1 to inf, signed and not, pure and not, tolerances 1e-2 to 1e-8, the same number in "
        f"every family. {total['numpy']:,} of them were solved by the NumPy twin and "
        f"{total['single']:,} through `solve`. "
        "Every gap was recomputed from w and alpha in plain NumPy, in extended precision (rounding "
        f"{np.finfo(np.longdouble).eps:.0e}): a certificate is false if it is above the tolerance, "
        f"or if w leaves the ball (by more than {BALL_SLACK:g}) or alpha its box; unconfirmed if "
        "only a recomputation in double precision puts the gap above the tolerance. A failure is "
        "declared by the solver itself; a useless one returns a point worse than w = 0, alpha = 0. "
        "A dependent answer changes in some bit with the other problems of its batch or with a "
        f"second thread ({total['retried']:,} were tried). "
        "The families are in `hostile.py`; the JSON names family, seed and row of every case.",
        targets(total),
        [by_family(tallies), by_tolerance(tallies)],
        {"cases": [case for tally in tallies for case in tally.cases]},
    )


def targets(total: Counter[str]) -> list[Target]:
    n, failed = total["problems"], total["failed"]
    return [
        Target("at least 100,000 problems", f"{n:,}", n >= 100_000),
        Target(
            "no false certificate",
            f"{total['false']} ({total['unconfirmed']} unconfirmed in double precision)",
            total["false"] == total["unconfirmed"] == 0,
        ),
        Target(
            "declared failures below 1 in 5,000", share(failed, n), failed < FAILURES_ALLOWED * n
        ),
        Target("no exception, no stray warning", str(total["error"]), total["error"] == 0),
        Target(
            "no answer depends on its batch or on the threads",
            f"{total['dependent']:,} of {total['retried']:,}",
            total["dependent"] == 0,
        ),
    ]


def share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f", 1 in {whole / part:,.0f}" if part else "")


def by_family(tallies: list[Tally]) -> Table:
    kinds = ("problems", "false", "unconfirmed", "failed", "useless", "error", "dependent")
    rows = [
        [tally.family, *(f"{tally.count[kind]:,}" for kind in kinds), f"{tally.seconds:.1f}"]
        for tally in tallies
    ]
    header = [
        "family", "problems", "false", "unconfirmed", "failed", "of these useless", "errors",
        "dependent", "CPU s",
    ]  # fmt: skip
    return Table("By family", header, rows)


def by_tolerance(tallies: list[Tally]) -> Table:
    n = sum((tally.by_tol for tally in tallies), Counter[float]())
    failed = sum((tally.failed_by_tol for tally in tallies), Counter[float]())
    rows = [[f"{tol:g}", share(failed[tol], n[tol])] for tol in sorted(n, reverse=True)]
    return Table("Declared failures by tolerance", ["tol", "failures"], rows)


def replay(family: str, seed: int, row: int) -> None:
    """Solve one problem of the audit again, by every method, and print what comes out."""
    batch = draw(family, seed)
    _, k, d = batch.S.shape
    print(f"k={k} d={d} p={batch.p[row]:g} nonneg={batch.nonneg} tol={batch.tol:g} {batch.door}")
    print(
        f"largest |A| {np.abs(batch.margins[row]).max():.3g}, weights {batch.c[row].min():.3g} to ",
        end="",
    )
    print(f"{batch.c[row].max():.3g}, asked for {batch.solver}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = answers_of(batch)
    print(f"in its batch: solved={found.solved[row]}, gap {recomputed_gap(batch, found)[row]:.3g}")
    for backend in ("auto", "numpy"):
        for solver in ("auto", "interior-point", "frank-wolfe"):
            one = solve(
                batch.S[row], batch.y[row], batch.p[row], batch.c[row], batch.nonneg, batch.tol,
                solver, backend=backend,
            )  # fmt: skip
            print(f"{backend:6} {solver:15} {one.status!s:18} gap {one.gap:.3g}, {one.n_iter} its")


if __name__ == "__main__":
    replay(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
