"""The systems of the paper's tables, how each learns, and how it is run on one cell.

No system sees the test rows while it learns.

The criterion that chooses members and the norm p also chooses the percentile rho of the min-max,
from 1 to 10, as in the paper. How many components its mixture has is not said; here one to five,
by the criterion.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from ocfuse.arrays import FloatArray
from ocfuse.compare import Results
from ocfuse.detectors.members import seeded
from ocfuse.detectors.neighbours import ALP
from ocfuse.ensemble import FusedDetector
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.lp import LeastSquaresFusion, LpFusion
from ocfuse.lab.paper.repetitions import Repetition, Split, prepare
from ocfuse.lab.paper.runner import PACKAGE, code_digest, definition_key, measure, package_sources
from ocfuse.lab.rivals import (
    BoostedSVM,
    DynamicEnsemble,
    FilteredEnsemble,
    GeneticAverage,
    SwarmAverage,
)
from ocfuse.paper import RULES, Candidates, Chosen, learn_fusion, mirrored
from ocfuse.solvers.native import is_available
from ocfuse.solvers.solution import Status
from ocfuse.tuning.search import Search
from ocfuse.tuning.splits import middle_best

FAMILIES = {"GMM": "gmm", "SVDD": "svdd", "GP": "gp", "KPCA": "kpca"}
#: Criteria by the words that the paper's tables have for them.
CRITERIA = {"RPAU": "rpau", "pseudo-negative": "pseudo-negatives", "Non-pure": "labels"}

#: Whole detectors.
DETECTORS = {
    "LOF": LocalOutlierFactor(20, novelty=True),
    "IF": IsolationForest(),
    "ALP": ALP(),
}


@dataclass(frozen=True)
class SystemModel:
    """What was learned: a score of rows, higher = more normal, and what was chosen on the way.

    The choices, as JSON, are settings, what the criterion said of them, how many others were level
    ("ties"), and how well problems were solved.
    """

    score: Callable[[FloatArray], FloatArray]
    choices: dict[str, Any] = field(default_factory=dict)


class SystemRecipe(Protocol):
    """A way to learn; its representation is its definition."""

    def learn(self, candidates: Candidates) -> SystemModel:
        """Learn from what is known."""


@dataclass(frozen=True)
class TunedMember:
    """The member of a family that a criterion has chosen."""

    family: str
    criterion: str

    def learn(self, candidates: Candidates) -> SystemModel:
        """Take the member."""
        chosen = candidates.chosen(self.criterion)
        column = chosen.column(self.family)
        return _single(chosen, column, chosen.ties[column])


@dataclass(frozen=True)
class BestMember:
    """The one member, of all families, that a criterion thinks best."""

    criterion: str

    def learn(self, candidates: Candidates) -> SystemModel:
        """Take the member; of equal ones the middle, in the order of the families."""
        chosen = candidates.chosen(self.criterion)
        column = middle_best(chosen.verdicts)
        rivals = zip(chosen.verdicts, chosen.ties, strict=True)
        level = sum(1 + ties for verdict, ties in rivals if verdict == chosen.verdicts[column])
        return _single(chosen, column, level - 1)


@dataclass(frozen=True)
class Fused:
    """A fusion of the four members that a criterion has chosen.

    The percentile rho of the min-max, and the norm p if the fusion has one, are chosen by the same
    criterion.
    """

    fusion: BaseFusion
    criterion: str

    def learn(self, candidates: Candidates) -> SystemModel:
        """Choose p and rho on the validation rows; learn the weights from the training rows."""
        found = learn_fusion(candidates, self.criterion, self.fusion)
        chosen = found.chosen
        choices: dict[str, Any] = {
            "members": chosen.names,
            "values": chosen.values,
            "ties": chosen.ties,
            "candidates": chosen.spread,
        }
        choices["rho"] = found.normaliser.rho
        if hasattr(found.fusion, "p"):
            choices |= {"p": found.fusion.p, **_chosen_p(found.search)}
        return SystemModel(found.score, choices | certificate(found.fusion))


@dataclass(frozen=True)
class Detector:
    """A whole detector, as a user calls it, on the training rows.

    With `takes_labels` it is given all known anomalies too, those for validation included.
    """

    detector: Any
    takes_labels: bool = False

    def learn(self, candidates: Candidates) -> SystemModel:
        """Fit it."""
        known = candidates.known
        detector = seeded(self.detector, known.seed)
        if not self.takes_labels:
            return SystemModel(detector.fit(known.train).score_samples)
        parts = known.train, known.train_anomalies, known.validation_anomalies
        y = np.repeat([1, -1, -1], [len(part) for part in parts])
        return SystemModel(detector.fit(np.vstack(parts), y).score_samples)


def certificate(fusion: BaseFusion) -> dict[str, float | None]:
    """Return how well the problems of a fitted fusion were solved, if it has any.

    "gap" is the largest certified one (None if it is not finite), "solved" the share of problems
    that reached their tolerance.
    """
    gaps = np.atleast_1d(getattr(fusion, "gap_", []))
    if not len(gaps):
        return {}
    largest = float(np.max(gaps))
    status = np.atleast_1d(fusion.status_)
    return {
        "gap": float(f"{largest:.3g}") if np.isfinite(largest) else None,
        "solved": round(float(np.mean(status == str(Status.SOLVED))), 6),
    }


def _chosen_p(search: Search) -> dict[str, Any]:
    """Return what the criterion said of norms and percentiles: of the best, the worst, and ties.

    "p_ties" are the other norms that are level with the best, at one percentile or another.
    """
    results = search.results_
    is_level = results["value"] == search.best_value_
    norms = {p for p, level in zip(results["param_fusion__p"], is_level, strict=True) if level}
    return {
        "p_value": search.best_value_ + 0.0,
        "p_lowest": float(results["value"].min()) + 0.0,
        "p_ties": len(norms) - 1,
    }


def _single(chosen: Chosen, column: int, ties: int) -> SystemModel:
    choices = {
        "member": chosen.names[column],
        "value": chosen.values[column],
        "ties": ties,
        "candidates": chosen.spread,
    }
    return SystemModel(lambda X: chosen.scores(X)[:, column], choices)


@dataclass(frozen=True)
class Entry:
    """A system of the registry: its group and how it learns.

    Groups are "local", "global", "member", "rule", "single", "detector", "rival" and "ours".
    """

    group: str
    recipe: SystemRecipe

    @property
    def key(self) -> str:
        """Change with the recipe, and with any code that it may run."""
        return definition_key(_code(self.group == "rival"), repr(self.recipe))


def _tuned(words: str) -> dict[str, Entry]:
    """Return the systems that are tuned by a criterion.

    Local weights are by the paper's two solvers, global ones those of the work before. The
    paper does not say that weights are not negative, as is the default here; the rows "signed"
    have its whole ball, so that both readings can be seen.
    """
    by = CRITERIA[words]
    is_pure = words != "Non-pure"
    first, second = (f"Pure1 {words}", f"Pure2 {words}") if is_pure else ("Non-pure1", "Non-pure2")
    signed = LocalLpFusion(nonneg=False, solver="interior-point")
    return {
        first: Entry("local", Fused(LocalLpFusion(solver="frank-wolfe"), by)),
        second: Entry("local", Fused(LocalLpFusion(solver="interior-point"), by)),
        f"{second}, signed": Entry("local", Fused(signed, by)),
        f"Previous {words}": Entry("global", Fused(LpFusion(), by)),
        f"Least squares {words}": Entry("global", Fused(LeastSquaresFusion(), by)),
        f"Previous {words}, signed": Entry("global", Fused(LpFusion(nonneg=False), by)),
        **{f"{n} {words}": Entry("member", TunedMember(f, by)) for n, f in FAMILIES.items()},
        **{f"{name} {words}": Entry("rule", Fused(rule, by)) for name, rule in RULES.items()},
        f"Single-best {words}": Entry("single", BestMember(by)),
    }


#: Fusions of the same members, or whole detectors.
RIVALS: dict[str, SystemRecipe] = {
    "Fatemifar 2022": Fused(SwarmAverage(), "rpau"),
    "Fatemifar 2022, genetic": Fused(GeneticAverage(), "rpau"),
    "DEOD homogeneous": Detector(DynamicEnsemble("homogeneous")),
    "DEOD heterogeneous": Detector(DynamicEnsemble("heterogeneous")),
    "FNDF": Detector(FilteredEnsemble()),
    "RAEOCSVM": Detector(BoostedSVM()),
}


@cache
def _code(is_rival: bool) -> str:
    """Return a digest of the code, and the versions, that results depend on."""
    lab = PACKAGE / "lab"
    # how rows are drawn, prepared, learned from and measured
    frame = ("repetitions.py", "runner.py", "systems.py")
    paths = [*package_sources(), *(lab / "paper" / name for name in frame)]
    if is_rival:
        paths += (lab / "rivals").glob("*.py")
    kernel = "C++" if is_available() else "NumPy"
    packages = ("numpy", "scipy", "scikit-learn")
    return definition_key(code_digest(paths), kernel, *map(version, packages))


#: Systems of the two protocols, by name.
SYSTEMS: dict[str, dict[str, Entry]] = {
    "pure": {
        **_tuned("RPAU"),
        **_tuned("pseudo-negative"),
        **{name: Entry("detector", Detector(found)) for name, found in DETECTORS.items()},
        **{name: Entry("rival", recipe) for name, recipe in RIVALS.items()},
        "FusedDetector()": Entry("ours", Detector(FusedDetector())),
    },
    "non-pure": {
        **_tuned("Non-pure"),
        "FusedDetector() with labels": Entry("ours", Detector(FusedDetector(), takes_labels=True)),
    },
}


def _tuned_table(words: str) -> dict[str, str]:
    names = {name: f"{name} {words}" for name in (*FAMILIES, *RULES, "Single-best")}
    local = {"Pure1 (Frank-Wolfe)": "Pure1", "Pure2 (interior point)": "Pure2"}
    return {
        **{row: f"{system} {words}" for row, system in local.items()},
        **names,
        **{name: name for name in (*DETECTORS, "FusedDetector()")},
    }


#: Tables of the paper, by the names of `published_table`: which system is in which row.
#: Rows that the paper does not have are ours.
TABLES: dict[str, dict[str, str]] = {
    "rpau": _tuned_table("RPAU"),
    "pseudo-negative": _tuned_table("pseudo-negative"),
    "comparison": {
        name: name
        for name in (
            "Pure1 RPAU",
            "Pure1 pseudo-negative",
            "Non-pure1",
            "Pure2 RPAU",
            "Pure2 pseudo-negative",
            "Non-pure2",
            "Previous RPAU",
            "Previous pseudo-negative",
            "Previous Non-pure",
            "Least squares RPAU",
            "Least squares pseudo-negative",
            "Least squares Non-pure",
            "Pure2 RPAU, signed",
            "Pure2 pseudo-negative, signed",
            "Non-pure2, signed",
            "Previous RPAU, signed",
            "Previous pseudo-negative, signed",
            "Previous Non-pure, signed",
            *RIVALS,
            "FusedDetector()",
            "FusedDetector() with labels",
            *(f"{name} Non-pure" for name in (*FAMILIES, *RULES, "Single-best")),
        )
    },
}


@dataclass(frozen=True)
class Context:
    """What the systems of one cell share; only the measuring looks at the trial."""

    trial: Repetition
    candidates: Candidates

    @cached_property
    def negatives(self) -> FloatArray:
        """What a threshold may be set by, beside validation normals.

        Known anomalies for validation; in the pure protocol validation rows mirrored at the mean.
        """
        known = self.trial.known
        return known.validation_anomalies if len(known.validation_anomalies) else mirrored(known)


def make_context(X: FloatArray, split: Split) -> Context:
    """Prepare the rows of a split."""
    trial = prepare(X, split)
    return Context(trial, Candidates(trial.known))


def run_recipe(name: str, recipe: SystemRecipe) -> Callable[[Context], Results]:
    """Return what learns by a recipe and measures the result, under a name."""

    def run(context: Context) -> Results:
        """Learn from what is known, and measure on the test."""
        trial = context.trial
        # the recipe is not given the test, and what it has learned only its rows
        score = (model := recipe.learn(context.candidates)).score
        found = measure(
            score(trial.known.validation),
            score(trial.test),
            trial.is_normal,
            negatives=score(context.negatives),
        )
        return {name: {**found, "choices": model.choices}}

    return run
