"""The registry: to add a system is one line in one of the tables below."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy import rivals
from benchmarks.accuracy.context import Context, recipe
from benchmarks.accuracy.definition import key
from benchmarks.accuracy.measures import Measures, Scores, measure
from benchmarks.accuracy.sets import fold
from ocfuse import FusedDetector
from ocfuse.compare import System
from ocfuse.fusion import LocalLpFusion, LpFusion, TrustFusion
from ocfuse.tuning import Search

#: Coefficients of `TrustFusion` that were learned without the families of a fold.
FOLDS = Path(__file__).parent / "trust"

#: Names that the tables and the targets refer to.
DEFAULT, SUM, MEMBERS = "FusedDetector()", "sum", "members"
PURE_DEFAULT = "FusedDetector(), no labels"

#: Fixed rules and learned fusions of the members of the default detector, fitted once.
RULES: dict[str, Any] = {
    name: name for name in ("sum", "product", "max", "min", "median", "vote", "trimmed-mean", "aom")
}
FUSIONS: dict[str, Any] = {
    "lp 8/7": LpFusion(p=8 / 7),
    "local-lp 8/7": LocalLpFusion(p=8 / 7),
    "competence": "competence",
    "cascade": "cascade",
    "stacking": "stacking",
    "single-best": "single-best",
}
#: Searches over the nine norms of the paper, on the same members: fusion and criterion.
TUNED: dict[str, tuple[Any, str]] = {
    "local-lp, p by pseudo-negatives": ("local-lp", "pseudo-negatives"),
    "local-lp, p by rpau": ("local-lp", "rpau"),
    "local-lp, p by stability": ("local-lp", "stability"),
    "competence, p by pseudo-negatives": ("competence", "pseudo-negatives"),
}
#: Whole detectors, as a user calls them.
DETECTORS: dict[str, FusedDetector] = {
    DEFAULT: FusedDetector(),
}


def pure() -> list[System]:
    """Return everything that learns from normals only."""
    ours = [*_fused("rule", RULES), *_fused("fusion", FUSIONS), *_tuned(), *_ours()]
    return [_members(), *ours, *_rivals()]


def families(name: str) -> list[System]:
    """Return the same without the searches, and trust learned without the family of a set."""
    path = FOLDS / f"fold-{fold(name)}.json"
    trust = TrustFusion(coefficients=str(path))
    learned = _alone(
        "trust",
        "fusion",
        key("ours", path.read_text(encoding="utf-8")),
        lambda context: context.fuse(trust),
    )
    return [*(s for s in pure() if s.group != "tuned"), learned]


def dirty() -> list[System]:
    """Return the same without LSCP and the searches, whose cost would be most of the whole."""
    return [s for s in pure() if s.name != "PyOD LSCP" and s.group != "tuned"]


def labelled() -> list[System]:
    """Return everything that learns from labelled anomalies too, and the pure default."""
    fusions = {name: FUSIONS[name] for name in ("lp 8/7", "local-lp 8/7", "competence")}
    return [
        *_ours(),
        _alone(PURE_DEFAULT, "pure", key("ours", repr(FusedDetector())), _without_labels),
        *_fused("fusion", fusions),
        *(_alone(name, "rival", key("both", name), run) for name, run in rivals.LABELLED.items()),
    ]


def _members() -> System:
    def run(context: Context) -> dict[str, Measures]:
        fitted = context.fitted
        names = fitted.learned.pool.names_
        share = fitted.fit / len(names), fitted.score / len(names)
        scores = (context.scores(column, *share) for column in fitted.S.T)
        return {name: measure(s, context.split) for name, s in zip(names, scores, strict=True)}

    return System(MEMBERS, "member", key("members", repr(recipe(0).pool())), run)


def _fused(group: str, fusions: dict[str, Any]) -> list[System]:
    return [
        _alone(name, group, key("ours", repr(fusion)), lambda context, f=fusion: context.fuse(f))
        for name, fusion in fusions.items()
    ]


def _tuned() -> list[System]:
    return [
        _alone(name, "tuned", key("ours", repr(what)), lambda context, w=what: _search(context, *w))
        for name, what in TUNED.items()
    ]


def _search(context: Context, fusion: Any, criterion: str) -> Scores:
    learned = context.fitted.learned
    begin = time.process_time()
    parts = replace(learned.recipe, fusion=fusion).parts(learned.scored)
    search = Search(criterion).fit(learned.scored, *parts, learned.pool.names_, context.seed)
    taken = time.process_time() - begin
    scores = context.fuse(search.best_fusion_)
    return replace(scores, fit=scores.fit + taken)


def _ours() -> list[System]:
    def run(context: Context, detector: FusedDetector) -> Scores:
        seeded = FusedDetector(**detector.get_params(deep=False) | {"random_state": context.seed})
        return context.run(seeded, scaled=False, y=context.split.y)

    return [
        _alone(name, "detector", key("ours", repr(detector)), lambda c, d=detector: run(c, d))
        for name, detector in DETECTORS.items()
    ]


def _rivals() -> list[System]:
    return [_alone(name, "rival", key("rival", name), run) for name, run in rivals.PURE.items()]


def _without_labels(context: Context) -> Scores:
    return context.run(FusedDetector(random_state=context.seed), scaled=False)


def _alone(name: str, group: str, digest: str, run: Callable[..., Scores]) -> System:
    return System(name, group, digest, lambda c: {name: measure(run(c), c.split)})
