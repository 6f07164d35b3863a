"""The systems of the paper's tables, how each learns, and how it is run on one cell.

No system sees the test rows while it learns.

The paper searches the percentile rho of the min-max from 1 to 10 too. That is not
done: rho is 5 everywhere, so that the criteria choose members and p alone. How many
components its mixture has is not said; here one to five, by the criterion.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from statistics import median
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from ocfuse.arrays import FloatArray
from ocfuse.compare import Results
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.members import Members, seeded
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.neighbours import ALP
from ocfuse.detectors.pool import WIDTHS, Pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.ensemble import FusedDetector
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.crossfit import Ballot, ScoredRows, fit_fusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.lp import LpFusion
from ocfuse.fusion.rules import MajorityVote, MaxRule, MedianRule, MinRule, ProductRule, SumRule
from ocfuse.lab.paper.repetitions import KnownRows, Repetition, Split, prepare
from ocfuse.lab.paper.runner import PACKAGE, code_digest, definition_key, measure, package_sources
from ocfuse.lab.rivals import (
    BoostedSVM,
    DynamicEnsemble,
    FilteredEnsemble,
    GeneticAverage,
    SwarmAverage,
)
from ocfuse.scores import MinMax
from ocfuse.solvers.native import is_available
from ocfuse.solvers.solution import Status
from ocfuse.system.cache import caching
from ocfuse.tuning.criteria import DIGITS, Criterion, Verdict, judge_members, make_criterion
from ocfuse.tuning.search import PAPER_P, Search
from ocfuse.tuning.splits import (
    Judged,
    JudgedSplit,
    best_of_each,
    family,
    keep_columns,
    keep_members,
    middle_best,
)

RULES: dict[str, BaseFusion] = {
    "Sum rule": SumRule(),
    "Product rule": ProductRule(),
    "Max rule": MaxRule(),
    "Min rule": MinRule(),
    "Median rule": MedianRule(),
    "Majority vote": MajorityVote(),
}
FAMILIES = {"GMM": "gmm", "SVDD": "svdd", "GP": "gp", "KPCA": "kpca"}
#: Criteria by the words that the paper's tables have for them.
CRITERIA = {"RPAU": "rpau", "pseudo-negative": "pseudo-negatives", "Non-pure": "labels"}

#: Whole detectors.
DETECTORS = {
    "LOF": LocalOutlierFactor(20, novelty=True),
    "IF": IsolationForest(),
    "ALP": ALP(),
}

#: Fold of the rows that are learned from. Rows to judge by have 1, and pseudo-negatives -1.
LEARNED = 0


class OnValidation(Criterion):
    """Judge on the validation rows by a criterion, after learning from the others."""

    def __init__(self, criterion: str | Criterion) -> None:
        self.criterion = criterion

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows that say nothing to the criterion."""
        make_criterion(self.criterion).check(rows)

    def splits(self, rows: ScoredRows) -> list[JudgedSplit]:
        """Return one split: the rows to learn from, and the others."""
        learned = rows.fold == LEARNED
        return [JudgedSplit(rows.take(learned), rows.take(~learned))]

    def judge(self, parts: list[Judged]) -> Verdict:
        """Return what the criterion says."""
        return make_criterion(self.criterion).judge(parts)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Fitted members, one of each family, and the rows to learn a fusion from.

    `verdicts` are those of the criterion on each member, higher is better; `ties` counts candidates
    of the same family with the same verdict; `spread` are the lowest, median and highest value of
    the criterion of all candidates.
    """

    pool: Pool
    rows: ScoredRows
    verdicts: list[Verdict]
    ties: list[int]
    spread: list[float]
    _scored: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the members, such as "kpca-0.5x6"."""
        return list(self.pool.names_)

    @property
    def values(self) -> list[float]:
        """What the criterion says of each, without what it breaks ties by."""
        return [value + 0.0 for value, _ in self.verdicts]  # 0 rather than -0

    @property
    def learned(self) -> ScoredRows:
        """The rows that are learned from, not those that judge."""
        return self.rows.take(self.rows.fold == LEARNED)

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the scores of all members; the same table is scored once."""
        for table, S in self._scored:
            if table is X:
                return S
        S = self.pool.score_samples(X)
        self._scored.append((X, S))
        return S

    def column(self, name: str) -> int:
        """Return the place of the member of a family."""
        return [family(member) for member in self.names].index(name)


class Candidates:
    """All candidates, fitted once to the training normals, from which criteria choose."""

    def __init__(self, known: KnownRows) -> None:
        self.known = known
        self._chosen: dict[str, Chosen] = {}

    def chosen(self, criterion: str) -> Chosen:
        """Return the best member of every family by a criterion, searched for once."""
        if criterion not in self._chosen:
            self._chosen[criterion] = self._choose(criterion)
        return self._chosen[criterion]

    @cached_property
    def pool(self) -> Pool:
        """The fitted candidates."""
        train = self.known.train
        return Pool(candidates(len(train))).fit(train, random_state=self.known.seed)

    @cached_property
    def rows(self) -> ScoredRows:
        """Everything that is known, scored by members that have not seen it."""
        known, pool = self.known, self.pool
        others = [known.train_anomalies, known.validation, known.validation_anomalies]
        X = np.vstack([*others, mirrored(known)])
        S = np.vstack([pool.out_of_fold_scores_, pool.score_samples(X)])
        counts = [len(known.train), *map(len, others)]
        counts.append(len(S) - sum(counts))
        return ScoredRows(
            S=S,
            y=np.repeat([1, -1, 1, -1, -1], counts),
            X=np.vstack([known.train, X]),
            fold=np.repeat([LEARNED, LEARNED, 1, 1, -1], counts),
            kind=np.repeat([-1, -1, -1, -1, 0], counts),
            seen=np.full_like(S, np.nan),
            ballot=Ballot({"mirror": 1.0}),
        )

    def _choose(self, criterion: str) -> Chosen:
        names = self.pool.names_
        with caching():
            verdicts = judge_members(self.rows, OnValidation(criterion), MinMax())
        kept = best_of_each(names, verdicts)
        judged = list(zip(map(family, names), verdicts, strict=True))
        own = [judged[names.index(name)] for name in kept]
        values = [value + 0.0 for value, _ in verdicts]
        return Chosen(
            keep_members(self.pool, kept),
            keep_columns(self.rows, names, kept),
            [verdict for _, verdict in own],
            [judged.count(entry) - 1 for entry in own],
            [min(values), round(median(values), DIGITS), max(values)],
        )


def candidates(n: int) -> Members:
    """Return the candidates for n training rows, family by family.

    SVDD and GP of three widths, KPCA of three widths and 2, 6, 10, ... directions
    (at most the rank), mixtures of one to five Gaussians. What comes before the
    "-" of a name is the family.

    Examples
    --------
    >>> from ocfuse.lab.paper.systems import candidates
    >>> [name for name, _ in candidates(8)][-8:]
    ['kpca-0.5x6', 'kpca-1x2', 'kpca-1x6', 'gmm-1', 'gmm-2', 'gmm-3', 'gmm-4', 'gmm-5']
    """
    directions = range(2, max(n, 3), 4)
    return [
        *((f"svdd-{w:g}", SVDD(width=w)) for w in WIDTHS),
        *((f"gp-{w:g}", OneClassGP(width=w)) for w in WIDTHS),
        *((f"kpca-{w:g}x{r}", KPCA(r, width=w)) for w in WIDTHS for r in directions),
        *((f"gmm-{c}", GMM(c)) for c in range(1, 6)),
    ]


def mirrored(known: KnownRows) -> FloatArray:
    """Return the negatives -x of a random half of the validation rows (Roth 2006).

    The rows are standardised, so that it is about the mean of the training normals.
    """
    n = len(known.validation)
    rng = np.random.default_rng(known.seed)
    return -known.validation[rng.permutation(n)[: max(1, round(0.5 * n))]]


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

    If the fusion has a norm p, it is chosen by the same criterion.
    """

    fusion: BaseFusion
    criterion: str

    def learn(self, candidates: Candidates) -> SystemModel:
        """Choose p on the validation rows; learn the weights from the training rows."""
        chosen = candidates.chosen(self.criterion)
        fusion = seeded(self.fusion, candidates.known.seed)
        choices: dict[str, Any] = {
            "members": chosen.names,
            "values": chosen.values,
            "ties": chosen.ties,
            "candidates": chosen.spread,
        }
        if "p" in fusion.get_params(deep=False):
            search = Search(OnValidation(self.criterion), grid={"p": PAPER_P})
            search.fit(chosen.rows, MinMax(), fusion, chosen.names, candidates.known.seed)
            fusion = search.best_fusion_
            choices |= {"p": fusion.p, **_chosen_p(search)}
        normaliser, fitted = fit_fusion(chosen.learned, MinMax(), fusion)
        choices |= certificate(fitted)
        return SystemModel(
            lambda X: fitted.fuse(normaliser.transform(chosen.scores(X)), X), choices
        )


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
    """Return what the criterion said of the norms: of the best, of the worst, and how many tied."""
    results, best = search.results_, search.best_index_
    is_level = (results["value"] == results["value"][best]) & (
        results["tie_break"] == results["tie_break"][best]
    )
    return {
        "p_value": search.best_value_ + 0.0,
        "p_lowest": float(results["value"].min()) + 0.0,
        "p_ties": int(is_level.sum()) - 1,
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
        model = recipe.learn(context.candidates)
        scores = model.score(trial.known.validation), model.score(trial.test)
        return {name: {**measure(*scores, trial.is_normal), "choices": model.choices}}

    return run
