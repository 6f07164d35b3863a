"""The fusions of the paper on one cell: by what they are learned from, by loss, norm and solver."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accuracy.context import Context, recipe
from benchmarks.accuracy.definition import key
from benchmarks.accuracy.measures import Measures, Scores, measure
from ocfuse.compare import System
from ocfuse.ensemble.fit import Learned, Table
from ocfuse.fusion import LeastSquaresFusion, LocalLpFusion, LpFusion, SumRule
from ocfuse.fusion.crossfit import ScoredRows, fit_fusion
from ocfuse.scores import MinMax
from ocfuse.tuning.search import PAPER_P

#: What the weights are learned from.
MODES = ("normals", "made-up", "labels")
FUSIONS: dict[str, type[Any]] = {
    "global hinge": LpFusion,
    "global squares": LeastSquaresFusion,
    "local hinge": LocalLpFusion,
}
#: Norms at which the local problems are solved by Frank-Wolfe, too.
BY_BOTH = (32 / 31, 2.0, 8.0)
SUM = "sum rule"


def system() -> System:
    """Return everything that is run on a cell, as one system with many results."""
    return System("questions", "fusion", key("ours", f"questions {PAPER_P}"), _run)


def _run(context: Context) -> dict[str, Measures]:
    split = context.split
    settings = replace(recipe(context.seed), members="paper")
    learned = Learned(Table(split.train, np.asarray(split.y), None), settings)
    encoded = learned.encoder.transform(context.rows)
    S = learned.pool.score_samples(encoded)
    found = {}
    for mode in MODES:
        rows = _learned_from(learned.scored, mode)
        fusions = {
            system_name(kind, mode, p): make(p) for kind, make in FUSIONS.items() for p in PAPER_P
        }
        for p in BY_BOTH:
            fusions[system_name("local hinge", mode, p, "interior point")] = LocalLpFusion(
                p, solver="interior-point"
            )
            fusions[system_name("local hinge", mode, p, "Frank-Wolfe")] = LocalLpFusion(
                p, solver="frank-wolfe"
            )
        if mode == "normals":
            fusions[SUM] = SumRule()
        for name, fusion in fusions.items():
            begin = time.process_time()
            normaliser, fitted = fit_fusion(rows, MinMax(), fusion)
            taken = time.process_time() - begin
            fused = fitted.fuse(normaliser.transform(S), encoded)
            n = len(split.validation)
            found[name] = measure(Scores(fused[:n], fused[n:], taken, 0.0), split)
    return found


def _learned_from(rows: ScoredRows, mode: str) -> ScoredRows:
    """Return what the weights are learned from: normals, and made-up or known anomalies."""
    chosen = {"normals": rows.y > 0, "made-up": ~rows.known, "labels": rows.kind < 0}[mode]
    return replace(rows.take(chosen), learns_pseudo=mode == "made-up")


def system_name(kind: str, mode: str, p: float, solver: str = "") -> str:
    return f"{kind}, {mode}, p = {p:.4g}" + (f", {solver}" if solver else "")
