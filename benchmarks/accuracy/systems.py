"""The registry: to add a system is one line in one of the tables below."""

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
#: Rivals that cost more than all others together.
COSTLY = ("PyOD LSCP", "PyOD SUOD")


def families(name: str, seed: int) -> list[System]:
    """Return everything that learns from normals only; LSCP for the first split only."""
    ours = [*_fused("rule", RULES), *_fused("fusion", FUSIONS), _default(name)]
    found = [_members(), *ours, *_rivals()]
    return [s for s in found if seed == 0 or s.name != "PyOD LSCP"]


def dirty(name: str, seed: int) -> list[System]:
    """Return the same without the rivals of the greatest cost."""
    return [s for s in families(name, seed) if s.name not in COSTLY]


def labelled(name: str, seed: int) -> list[System]:
    """Return everything that learns from labelled anomalies too, and the pure default."""
    fusions = {name: FUSIONS[name] for name in ("lp 8/7", "local-lp 8/7", "competence")}
    return [
        _alone(DEFAULT, "detector", key("ours", repr(FusedDetector())), _with_labels),
        replace(_default(name, PURE_DEFAULT), group="pure"),
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


def _default(name: str, called: str = DEFAULT) -> System:
    """Return the default as a user calls it, but with trust learned without the family of a set."""
    path = FOLDS / f"fold-{fold(name)}.json"

    def run(context: Context) -> Scores:
        trust = TrustFusion(coefficients=str(path))
        return context.run(FusedDetector(fusion=trust, random_state=context.seed), scaled=False)

    return _alone(called, "detector", key("ours", path.read_text(encoding="utf-8")), run)


def _rivals() -> list[System]:
    return [_alone(name, "rival", key("rival", name), run) for name, run in rivals.PURE.items()]


def _with_labels(context: Context) -> Scores:
    detector = FusedDetector(random_state=context.seed)
    return context.run(detector, scaled=False, y=context.split.y)


def _alone(name: str, group: str, digest: str, run: Callable[..., Scores]) -> System:
    return System(name, group, digest, lambda c: {name: measure(run(c), c.split)})
