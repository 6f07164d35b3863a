"""PaperDetector: the system of the paper, with its choice of members and norm.

Four families of members are fitted to training normals, on the grids that the paper prints. A
criterion on validation rows keeps the best member of each family and chooses the norm p; the
weights are learned from the training rows alone. `PaperDetector` is that as an estimator, and the
tables of `ocfuse.lab.paper` are computed by the same code.
"""

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.arrays import FloatArray, Int64Array, IntArray
from ocfuse.detectors.base import seed_of
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.members import Members, seeded
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.pool import WIDTHS, Pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.encoder import FeatureEncoder, check_table
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.fit import Table, read_table, warn_of_ignored
from ocfuse.ensemble.plan import Plan, job_of, make_plan, require_memory
from ocfuse.exceptions import InvalidInputError, NotEnoughMemoryError
from ocfuse.explain import UsualValues
from ocfuse.frame_columns import native_frame
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.crossfit import Ballot, ScoredRows, fit_fusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.lp import LpFusion
from ocfuse.fusion.rules import MajorityVote, MaxRule, MedianRule, MinRule, ProductRule, SumRule
from ocfuse.scores import ConformalCalibrator, MinMax
from ocfuse.scores.threshold import check_rate
from ocfuse.system.cache import caching
from ocfuse.system.memory import available_bytes
from ocfuse.tuning.criteria import DIGITS, Criterion, Verdict, judge_members, make_criterion
from ocfuse.tuning.search import PAPER_P, PAPER_RHO, Search
from ocfuse.tuning.splits import (
    Judged,
    JudgedSplit,
    best_of_each,
    family,
    keep_columns,
    keep_members,
    middle_best,
)
from ocfuse.validation import ANOMALY, check_choice, check_number, check_training_labels

#: The fixed rules that the paper compares with, by its names.
RULES: dict[str, BaseFusion] = {
    "Sum rule": SumRule(),
    "Product rule": ProductRule(),
    "Max rule": MaxRule(),
    "Min rule": MinRule(),
    "Median rule": MedianRule(),
    "Majority vote": MajorityVote(),
}


@dataclass(frozen=True, eq=False)
class KnownRows:
    """All that a system may learn, choose and set its threshold from: no test row.

    Gaps are filled and columns standardised, both by `train`. There are no known anomalies in the
    pure protocol.
    """

    train: FloatArray
    validation: FloatArray
    train_anomalies: FloatArray
    validation_anomalies: FloatArray
    seed: int


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

    def __init__(self, known: KnownRows, n_jobs: int | None = None) -> None:
        self.known = known
        self.n_jobs = n_jobs
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
        return Pool(candidates(len(train))).fit(
            train, random_state=self.known.seed, n_jobs=self.n_jobs
        )

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
    """Return the candidates for members with n training rows, by family.

    SVDD and GP of three widths, KPCA of three widths and 2, 6, 10, ... directions (at most the
    rank), mixtures of one to five Gaussians. The family is the part of a name before the "-".

    Examples
    --------
    >>> from ocfuse.paper import candidates
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


@dataclass(frozen=True, eq=False)
class LearnedFusion:
    """A normaliser and a fusion of the chosen members, fitted, and the search for p and rho."""

    chosen: Chosen
    normaliser: MinMax
    fusion: BaseFusion
    search: Search

    def score(self, X: FloatArray) -> FloatArray:
        """Return the fused scores of encoded rows."""
        fused: FloatArray = self.fusion.fuse(self.normaliser.transform(self.chosen.scores(X)), X)
        return fused


def learn_fusion(
    candidates: Candidates, criterion: str, fusion: BaseFusion, grid: dict[str, Any] | None = None
) -> LearnedFusion:
    """Choose members and settings on validation rows, and learn a fusion from training rows.

    Parameters
    ----------
    candidates : Candidates
        The fitted candidates.
    criterion : str
        "rpau", "pseudo-negatives" or "labels".
    fusion : BaseFusion
        The fusion, not fitted.
    grid : dict, optional
        Settings to search. None is the ten percentages rho of the paper's min-max and, if the
        fusion has a norm p, its nine norms.

    Returns
    -------
    LearnedFusion
        The fusion. Its weights are learned from the training rows only, never from
        pseudo-negatives.
    """
    chosen = candidates.chosen(criterion)
    seed = candidates.known.seed
    fusion = seeded(fusion, seed)
    if grid is None:
        has_norm = "p" in fusion.get_params(deep=False)
        grid = {"p": PAPER_P, "rho": PAPER_RHO} if has_norm else {"rho": PAPER_RHO}
    search = Search(OnValidation(criterion), grid=grid)
    search.fit(chosen.rows, MinMax(), fusion, chosen.names, seed)
    parts = search.best_normaliser_, search.best_fusion_
    return LearnedFusion(chosen, *fit_fusion(chosen.learned, *parts), search)


class PaperDetector(FusedDetector):
    """The system of the paper: locally adaptive fusion with dynamic lp-norm constraints.

    SVDD and Gaussian processes of three widths, KPCA of three widths and 2, 6, 10, ... directions
    and mixtures of one to five Gaussians are fitted to normal training rows. On validation rows a
    criterion chooses the best member of each family, and the norm p among the nine of the paper.
    The weights are learned with the hinge loss and ``||w||_p <= 1`` from the min-max normalised
    scores of the training rows: for each position with its own norm L(x, p) (``scope="local"``,
    arXiv 2411.06406), or once for all rows (``scope="global"``, the earlier work, arXiv
    2312.15769).

    Without anomalies in y this is the paper's Pure1 (``solver="frank-wolfe"``) or Pure2
    (``solver="interior-point"``). With anomalies it is Non-pure1 or Non-pure2: anomalies are
    learned, and those of the validation rows are used for the choice instead of `tuning`. As
    printed, pseudo-negatives are used for the choice only, never for the weights.

    KPCA has n / 4 candidates of each width: 1,000 rows take about 20 s and 1.6 GB, and both grow
    with the cube of the number of rows. Use this class to reproduce the paper; `FusedDetector` is
    more accurate. The page "reproduction" of the documentation has the tables of both, and
    "errata" the corrections.

    Parameters
    ----------
    tuning : {"rpau", "pseudo-negatives"}, default="rpau"
        Criterion for members and p from normal rows alone: the relative percentage above unity, or
        the AUC against the validation rows mirrored at the mean.
    solver : {"interior-point", "frank-wolfe"}, default="interior-point"
        The paper's second or first solver; both reach the same weights.
    scope : {"local", "global"}, default="local"
        Whether weights depend on the position of a row, or not.
    p : float, default=None
        The norm, at least 1; None searches 32/31, 16/15, 8/7, 4/3, 2, 4, 8, 10 and 100.
    rho : float, default=None
        Percentage that min-max trims on either side, below 50; None searches 1, 2, ..., 10.
    validation : float, default=2/9
        Share of the rows that is held out for the choice and the threshold, if `fit` gets no
        validation rows. The paper splits 70/20/10 into training, validation and test, which is 2/9
        of the first two.
    false_alarm_rate : float, default=0.05
        Share of the normal validation rows below the threshold.
    random_state : int, RandomState instance or None, default=None
        Seed of the validation rows and of the members.
    n_jobs : int, default=None
        Number of processes for the members.

    Attributes
    ----------
    criterion_ : str
        The criterion that was used: `tuning`, or "labels".
    p_, rho_ : float
        The chosen norm and percentage.
    search_ : Search
        The search for them.
    rule_rho_ : dict
        The percentage chosen for each of the fixed rules of `compare_`.
    validation_rows_ : ndarray of shape (v,)
        Normal rows of X that were held out; empty if validation rows were given.
    validation_scores_ : ndarray of shape (v, 4)
        Scores of the normal validation rows from the chosen members.
    best_member_ : str
        The best member according to the criterion.
    pool_, normaliser_, fusion_ : Pool, MinMax and BaseFusion
        Members, min-max and fusion. For other attributes see `FusedDetector`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse.paper import PaperDetector
    >>> setosa = load_iris().data[:50]
    >>> detector = PaperDetector(false_alarm_rate=0.1, random_state=0).fit(setosa)
    >>> [name.partition("-")[0] for name in detector.pool_.names_]
    ['svdd', 'gp', 'kpca', 'gmm']
    >>> detector.predict(load_iris().data[[0, 99]])
    array([ 1, -1])
    """

    def __init__(
        self,
        tuning: Literal["rpau", "pseudo-negatives"] = "rpau",
        solver: Literal["interior-point", "frank-wolfe"] = "interior-point",
        scope: Literal["local", "global"] = "local",
        *,
        p: float | None = None,
        rho: float | None = None,
        validation: float = 2 / 9,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.tuning = tuning
        self.solver = solver
        self.scope = scope
        self.p = p
        self.rho = rho
        self.validation = validation
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        params: dict[str, Any] = BaseEstimator.get_params(self, deep=deep)
        return params

    def set_params(self, **params: Any) -> "PaperDetector":
        """Set parameters."""
        return BaseEstimator.set_params(self, **params)  # type: ignore[no-any-return]

    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        context: Any = None,
        *,
        X_validation: Any = None,
        y_validation: Any = None,
    ) -> "PaperDetector":
        """Learn from normal rows, and from labelled anomalies if there are any.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows, including validation rows if `X_validation` is None.
        y : array-like of shape (n_samples,), default=None
            None for the pure mode. For the non-pure mode +1 (normal) and -1 (anomaly), both
            present; 0 counts as normal.
        groups, context : None
            Not supported, as the paper has neither.
        X_validation : array-like or data frame of shape (v, n_features), default=None
            Validation rows. None draws a share `validation` of X at random, with half of the
            anomalies.
        y_validation : array-like of shape (v,), default=None
            Labels of the validation rows. The non-pure mode needs them, with both classes.

        Returns
        -------
        PaperDetector
            The fitted detector.
        """
        unknown = {"groups": groups, "context": context}
        refused = [name for name, value in unknown.items() if value is not None]
        if refused:
            raise InvalidInputError(
                f"PaperDetector takes no {' and no '.join(refused)}: the paper does not know them. "
                "FusedDetector does; or leave them out."
            )
        self._check()
        table = read_table(X, y, None, None)
        _require_both_classes(y, table.y, "y")
        require_memory(self.plan(table.X, y if table.y.any() else None))
        _require_room(int((table.y != ANOMALY).sum()))
        fresh = copy(self)  # a fit that fails leaves this detector as it was
        validate_data(fresh, native_frame(table.X), skip_check_array=True)
        seed = seed_of(self.random_state)
        if X_validation is None:
            held_out = _held_out(table.y, self.validation, seed)
            train = np.setdiff1d(np.arange(len(table)), held_out)
            fresh._learn(table, train, table.take(held_out), seed)
            fresh.validation_rows_ = held_out[table.y[held_out] != ANOMALY]
        else:
            labels = check_training_labels(y_validation, len(check_table(X_validation)))
            _require_both_classes(y_validation, labels, "y_validation")
            given = Table(check_table(X_validation), labels, None)
            _require_same_mode(table.y, given.y)
            fresh._learn(table, np.arange(len(table)), given, seed)
            fresh.validation_rows_ = np.empty(0, dtype=np.intp)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def plan(self, X: Any, y: Any = None, groups: Any = None) -> Plan:
        """Predict memory and time of `fit`, without fitting."""
        job = job_of(X, y, groups, None, None)
        return make_plan(candidates(max(job.n_rows, 2)), job, "local-lp")

    @property
    def compare_(self) -> dict[str, FusedDetector]:
        """The fixed rules and the single best member, as fitted detectors with the same members.

        Each has its own threshold, at `false_alarm_rate` of the same normal validation rows.
        """
        check_is_fitted(self, "fusion_")
        found: dict[str, FusedDetector] = {}
        for name, rule in RULES.items():
            rho = self.rule_rho_[name]
            found[name] = self._with(self.pool_, rule, rho, self.validation_scores_)
        best = self.pool_.names_.index(self.best_member_)
        pool = keep_members(self.pool_, [self.best_member_])
        S = self.validation_scores_[:, [best]]
        found["Single-best"] = self._with(pool, SumRule(), self.rho_, S)
        return found

    def _with(self, pool: Pool, rule: BaseFusion, rho: float, S: FloatArray) -> FusedDetector:
        """Return a copy with other members, a rule, and the threshold that goes with it."""
        fresh = copy(self)
        fresh.pool_ = pool
        normals = pool.out_of_fold_scores_
        fresh.normaliser_ = MinMax(rho).fit(normals)
        fresh.fusion_ = clone(rule).fit(fresh.normaliser_.transform(normals), X=self.training_)
        fresh.validation_scores_ = S
        scores = fresh.fusion_.fuse(fresh.normaliser_.transform(S), self.validation_)
        return fresh._rest_on(ConformalCalibrator("group").fit(scores))

    def _check(self) -> None:
        """Refuse parameters that cannot be used."""
        check_rate(self.false_alarm_rate)
        check_choice(self.tuning, "tuning", ("rpau", "pseudo-negatives"))
        check_choice(self.solver, "solver", ("interior-point", "frank-wolfe"))
        check_choice(self.scope, "scope", ("local", "global"))
        if self.p is not None:
            check_number(self.p, "p", 1.0, np.inf, "None searches the nine norms of the paper.")
        if self.rho is not None:
            check_number(self.rho, "rho", 0.0, 49.0, "None searches 1 to 10.")
        advice = "2 / 9 is the paper's."
        check_number(self.validation, "validation", 0.0, 0.9, advice, open_low=True)

    def _learn(self, table: Table, train: IntArray, validation: Table, seed: int) -> None:
        """Choose on the validation rows, and learn from the others."""
        normal = table.y != ANOMALY
        learned = train[normal[train]]
        known = table.take(learned)
        self.encoder_ = FeatureEncoder().fit(known.X)
        warn_of_ignored(self.encoder_.ignored(table.X))
        every = self.encoder_.transform(table.X)
        judged = self.encoder_.transform(validation.X)
        is_normal = validation.y != ANOMALY
        rows = KnownRows(
            every[learned],
            judged[is_normal],
            every[train[~normal[train]]],
            judged[~is_normal],
            seed,
        )
        candidates = Candidates(rows, self.n_jobs)
        self.criterion_ = self.tuning if normal.all() else "labels"
        with caching():
            grid = self._grid()
            found = learn_fusion(candidates, self.criterion_, self._fusion(), grid)
            own = {"rho": grid["rho"]}
            self.rule_rho_ = {
                name: learn_fusion(candidates, self.criterion_, rule, own).normaliser.rho
                for name, rule in RULES.items()
            }
        self.pool_ = found.chosen.pool
        self.normaliser_, self.fusion_ = found.normaliser, found.fusion
        self.search_, self.p_, self.rho_ = found.search, float(found.fusion.p), found.normaliser.rho
        self.best_member_ = found.chosen.names[middle_best(found.chosen.verdicts)]
        self.validation_ = rows.validation
        self.validation_scores_ = found.chosen.scores(rows.validation)
        self.training_, self.training_rows_ = rows.train, learned
        self.training_context_, self.context_scale_ = None, None
        self.trimmed_rows_ = self.copied_rows_ = np.empty(0, dtype=np.intp)
        self.training_place_ = np.full(len(table), -1)
        self.training_place_[learned] = np.arange(len(learned))
        self.calibration_rows_ = None
        scores = found.score(every)
        held_out = self.normaliser_.transform(self.pool_.out_of_fold_scores_)
        scores[learned] = self.fusion_.fuse(held_out, self.training_)
        self.training_scores_ = scores
        self.usual_ = UsualValues.of(known.X, self.encoder_)
        self._rest_on(ConformalCalibrator("group").fit(found.score(rows.validation)))

    def _fusion(self) -> BaseFusion:
        p = 2.0 if self.p is None else float(self.p)
        if self.scope == "global":
            return LpFusion(p, solver=self.solver)
        return LocalLpFusion(p, solver=self.solver)

    def _grid(self) -> dict[str, Any]:
        grid: dict[str, Any] = {
            "p": PAPER_P if self.p is None else (float(self.p),),
            "rho": PAPER_RHO if self.rho is None else (float(self.rho),),
        }
        return grid


def _require_room(n: int) -> None:
    """Refuse rows for whose KPCA candidates, n / 4 of each of three widths, there is no memory."""
    needed, free = 3 * n**3, available_bytes()
    if free is not None and needed > free:
        raise NotEnoughMemoryError(
            f"The paper's grid has {3 * n // 4:,} candidates of KPCA for {n:,} rows, which take "
            f"about {needed / 1e9:.1f} GB of memory. Got {free / 1e9:.1f} GB. Use at most "
            f"{int((free / 3) ** (1 / 3)):,} rows, or FusedDetector, which learns from any number."
        )


def _held_out(y: Int64Array, share: float, seed: int) -> IntArray:
    """Draw the validation rows: a share of the normals, and half of the anomalies."""
    rng = np.random.default_rng(seed)
    normals = rng.permutation(np.flatnonzero(y != ANOMALY))
    anomalies = rng.permutation(np.flatnonzero(y == ANOMALY))
    n = round(share * len(normals))
    if n < 2 or len(normals) - n < 5:
        raise InvalidInputError(
            "At least 5 normal rows to learn from and 2 to choose by are needed. Got "
            f"{len(normals)} normal rows, of which validation={share:g} holds out {n}. Give more "
            "rows, another share, or X_validation."
        )
    return np.sort(np.append(normals[:n], anomalies[: len(anomalies) // 2]))


def _require_both_classes(y: Any, labels: Int64Array, name: str) -> None:
    """Refuse labels of one class only, and too few anomalies to part."""
    n = int((labels == ANOMALY).sum())
    if y is None or not labels.any():
        return
    least = 2 if name == "y" else 1
    if n < least or n == len(labels):
        raise InvalidInputError(
            f"{name} must hold +1 (normal) and at least {least} -1 (anomaly): with labels the "
            f"non-pure mode learns from both. Got {len(labels) - n} normal rows and {n} anomalies. "
            f"Leave out y for the pure mode, which learns from normals alone."
        )


def _require_same_mode(y: Int64Array, y_validation: Int64Array) -> None:
    """Refuse anomalies in one of the two parts only."""
    counts = [int((labels == ANOMALY).sum()) for labels in (y, y_validation)]
    if min(counts) == 0 < max(counts):
        raise InvalidInputError(
            "Anomalies must be in y and in y_validation, or in neither: the non-pure mode learns "
            f"from the first and chooses by the second. Got {counts[0]} and {counts[1]}."
        )
