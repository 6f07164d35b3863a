"""FusedDetector: members, scores, pseudo-negatives and fusion joined."""

import os
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, TransformerMixin, clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.detectors.pools import Pool
from ocfuse.ensemble.crossfit import ScoredRows, crossfitted_scores, default_fusion, fit_fusion
from ocfuse.ensemble.labels import ANOMALY, NORMAL, UNKNOWN, LabelArray, check_labels
from ocfuse.ensemble.progress import ProgressBar, silent
from ocfuse.ensemble.rows import canonical_order, check_groups
from ocfuse.ensemble.trimming import outlying_rows
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError
from ocfuse.explain import Explanation, attribute_features
from ocfuse.features import FeatureEncoder, check_table, take_rows
from ocfuse.fusion import make_fusion
from ocfuse.negatives import make_negatives
from ocfuse.persistence import save
from ocfuse.scores import (
    ConformalCalibrator,
    LabelCalibrator,
    TailCalibrator,
    gmean_threshold,
    make_normaliser,
)

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: Fewest normal rows that anything can be learned from.
FEWEST_ROWS = 5
#: Passes of leaving out far rows: the farthest may hide others.
MOST_PASSES = 3
#: Pseudo-negatives: as many as there are normals, within these bounds.
FEWEST_NEGATIVES, MOST_NEGATIVES = 300, 1000
#: Labelled anomalies from which on probabilities are fitted to the labels.
FEWEST_ANOMALIES = 5
#: Nearest normal rows that an explanation names.
N_NEAREST = 3


class FusedDetector(TransformerMixin, OutlierMixin, _BaseComposition):  # type: ignore[misc]
    """Fuse one-class detectors, trusting each of them where it deserves it.

    The members learn from the normal rows. Scores that they give to rows they
    have not seen are brought to one scale, and a fusion learns weights w(x)
    from them::

        score(x) = sum_j w_j(x) z_j(x) / sum_j |w_j(x)|

    The threshold is set on the fused score, from rows that neither their
    members nor their fusion has seen, so that at most a share
    `false_alarm_rate` of fresh normal rows raises an alarm.

    Parameters
    ----------
    members : str, list, dict or Pool, default="default"
        The detectors: the name of a pool ("default", "light", "paper",
        "paper-all"), estimators, ``(name, estimator)`` pairs, or a `Pool`,
        which also says what to do when a member fails. Any estimator with
        `fit` and `score_samples` or `decision_function` will do.
    fusion : str or fusion, default=None
        Name of a rule such as "sum", or an object such as `LpFusion(p=2)`.
        None is `LocalLpFusion(p=8/7)`, mixed with the sum rule: one half of
        each without labels, less of the sum rule the more anomalies are known.
    normaliser : str or normaliser, default="min-max"
        How member scores are brought to one scale: "min-max", "z-score",
        "robust-z", "tail", or an object.
    negatives : str, list, generator or None, default="mixture"
        Pseudo-anomalies that stand in for real ones: "mirror", "uniform",
        "shuffle", several of them, or "mixture" for all three. None for none.
    false_alarm_rate : float, default=0.05
        Share of fresh normal rows that may raise an alarm.
    random_state : int, RandomState instance or None, default=None
        Seed of the members that use chance and of the pseudo-anomalies.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    verbose : bool, default=False
        Show a progress bar with stage and member.

    Attributes
    ----------
    pool_ : Pool
        The fitted members.
    fusion_ : fusion
        The fitted fusion.
    normaliser_ : normaliser
        The fitted normaliser.
    offset_ : float
        Threshold of the fused score.
    guaranteed_rate_ : float
        False-alarm rate that the threshold stands for.
    normal_scores_ : ndarray of shape (n_normal,)
        Fused scores of the normal training rows, from members and fusions that
        have not seen them.
    trimmed_rows_ : ndarray
        Rows of X without a label that were too far out to be learned from. They
        still count where the threshold is set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse import FusedDetector
    >>> X, species = load_iris(return_X_y=True)
    >>> detector = FusedDetector("light", random_state=0).fit(X[species == 0])
    >>> detector.predict(X[[25, 60, 120]])
    array([ 1, -1, -1])
    """

    pool_: Pool
    offset_: float

    def __init__(
        self,
        members: Any = "default",
        *,
        fusion: Any = None,
        normaliser: Any = "min-max",
        negatives: Any = "mixture",
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.members = members
        self.fusion = fusion
        self.normaliser = normaliser
        self.negatives = negatives
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of named members."""
        return self._get_params("members", deep=deep)  # type: ignore[no-any-return]

    def set_params(self, **params: Any) -> "FusedDetector":
        """Set parameters, also of named members: ``knn__n_neighbors=7``."""
        self._set_params("members", **params)
        return self

    # -- learning ---------------------------------------------------------

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "FusedDetector":
        """Learn from normal rows, and from anomalies if there are some.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. Without y they should be normal, or mostly so: rows
            that are far outside are left out (`trimmed_rows_`).
        y : array-like of shape (n_samples,), default=None
            +1 normal, -1 anomaly, 0 or NaN unknown; boolean with True = normal.
            Rows labelled +1 are never left out.
        groups : array-like of shape (n_samples,), default=None
            Run, part or tile of each row. Rows of one group stay together
            whenever rows are held out.

        Returns
        -------
        FusedDetector
            The fitted detector.
        """
        self._check_parameters()
        checked = check_table(X)
        validate_data(self, X, skip_check_array=True)
        X = checked
        labels = check_labels(y, len(X))
        numbers = check_groups(groups, len(X))
        _require_rows(labels)
        progress = ProgressBar() if self.verbose else silent
        try:
            self._fit(X, labels, numbers, progress)
        finally:
            if isinstance(progress, ProgressBar):
                progress.close()
        return self

    def _check_parameters(self) -> None:
        rate = self.false_alarm_rate
        if not (isinstance(rate, int | float | np.number) and 0 < rate < 1):
            raise InvalidInputError(
                f"false_alarm_rate must be in (0, 1), such as 0.01. Got {rate!r}."
            )

    def _fit(self, X: Any, labels: LabelArray, groups: Any, progress: Any) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        kept = labels != ANOMALY
        for _ in range(MOST_PASSES):
            self._fit_members(X, labels, groups, kept, seed, progress)
            rows = self.training_rows_[outlying_rows(self.pool_.honest_scores_)]
            outlying = rows[labels[rows] == UNKNOWN]
            if not len(outlying):
                break
            kept[outlying] = False
        else:
            self._fit_members(X, labels, groups, kept, seed, progress)
        self.trimmed_rows_ = np.flatnonzero((labels != ANOMALY) & ~kept)
        anomalies = take_rows(X, np.flatnonzero(labels == ANOMALY))
        fused, y = self._fit_fusion(self._scored_rows(anomalies, seed), seed, progress)
        # Rows left out may be normal after all: the false-alarm rate has to hold for them too.
        strangers = np.empty(0)
        if len(self.trimmed_rows_):
            strangers = self._score(self.encoder_.transform(take_rows(X, self.trimmed_rows_)))
        self._fit_calibration(np.append(fused, strangers), np.append(y, np.ones(len(strangers))))

    def _fit_members(
        self,
        X: Any,
        labels: LabelArray,
        groups: Any,
        kept: NDArray[np.bool_],
        seed: int,
        progress: Any,
    ) -> None:
        """Fit the encoder and the members on the rows kept, in an order of their own."""
        chosen = np.flatnonzero(kept)
        rows = take_rows(X, chosen)
        self.encoder_ = FeatureEncoder().fit(rows)
        encoded = self.encoder_.transform(rows)
        keys = [labels[chosen]] if groups is None else [labels[chosen], groups[chosen]]
        order = canonical_order(encoded, *keys)
        self.training_rows_, self.training_ = chosen[order], encoded[order]
        pool = self.members if isinstance(self.members, Pool) else Pool(self.members)
        self.pool_ = clone(pool).fit(
            self.training_,
            None if groups is None else groups[self.training_rows_],
            random_state=seed,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def _scored_rows(self, anomalies: Any, seed: int) -> ScoredRows:
        """Gather normals, anomalies and pseudo-negatives with honest member scores."""
        real = np.empty((0, self.training_.shape[1]))
        if len(anomalies):
            real = self.encoder_.transform(anomalies)
            real = real[canonical_order(real)]
        generator = make_negatives(self.negatives)
        n_negatives = int(np.clip(len(self.training_), FEWEST_NEGATIVES, MOST_NEGATIVES))
        if generator is None:
            negatives = np.empty((0, self.training_.shape[1]))
        else:
            negatives = generator.sample(self.training_, n_negatives, seed)
        fold = self.pool_.fold_
        strangers = np.vstack([real, negatives])
        d = len(self.pool_.names_)
        S = self.pool_.score_samples(strangers) if len(strangers) else np.empty((0, d))
        return ScoredRows(
            S=np.vstack([self.pool_.honest_scores_, S]),
            y=np.repeat([NORMAL, ANOMALY], [len(fold), len(strangers)]),
            X=np.vstack([self.training_, strangers]),
            fold=np.concatenate(
                [
                    fold,
                    np.arange(len(real)) % (fold.max() + 1),
                    np.full(len(negatives), -1),
                ]
            ),
        )

    def _fit_fusion(
        self, rows: ScoredRows, seed: int, progress: Any
    ) -> tuple[FloatArray, LabelArray]:
        """Learn the fusion; return fused scores that it gives to rows unseen, and their labels."""
        normaliser = make_normaliser(self.normaliser)
        fusion = default_fusion(rows) if self.fusion is None else make_fusion(self.fusion)
        if fusion.needs_anomalies and (rows.y > 0).all():
            raise InvalidInputError(
                f"{type(fusion).__name__} learns from anomalies. Got none: give some in y, "
                "or let pseudo-anomalies stand in with negatives='mixture'."
            )
        if getattr(fusion, "random_state", 0) is None:
            fusion = clone(fusion).set_params(random_state=seed)
        progress("fusion", "held-out scores", 0, 2)
        fused = crossfitted_scores(rows, normaliser, fusion)
        progress("fusion", "weights", 1, 2)
        self.normaliser_, self.fusion_ = fit_fusion(rows, normaliser, fusion)
        progress("fusion", "done", 2, 2)
        real = rows.fold >= 0
        return fused[real], rows.y[real]

    def _fit_calibration(self, fused: FloatArray, y: Any) -> None:
        """Set threshold, p-values and probabilities from held-out fused scores."""
        self.normal_scores_ = np.sort(fused[y > 0])
        self.conformal_ = ConformalCalibrator().fit(self.normal_scores_)
        if (y < 0).sum() >= FEWEST_ANOMALIES:
            self.calibrator_ = LabelCalibrator().fit(fused, y)
        else:
            self.calibrator_ = TailCalibrator().fit(self.normal_scores_)
        self.set_threshold(self.false_alarm_rate)

    # -- the threshold ----------------------------------------------------

    def set_threshold(
        self, false_alarm_rate: float | None = None, *, offset: float | None = None
    ) -> "FusedDetector":
        """Move the threshold of a fitted detector, without learning again.

        Parameters
        ----------
        false_alarm_rate : float, default=None
            Share of fresh normal rows that may raise an alarm.
        offset : float, default=None
            The threshold itself, instead of a rate.

        Returns
        -------
        FusedDetector
            The detector.
        """
        check_is_fitted(self, "conformal_")
        if (false_alarm_rate is None) == (offset is None):
            raise InvalidInputError("Give either false_alarm_rate or offset.")
        if false_alarm_rate is not None:
            self.offset_, self.guaranteed_rate_ = self.conformal_.threshold(false_alarm_rate)
            _warn_if_too_few(false_alarm_rate, self.guaranteed_rate_)
        if offset is not None:
            self.offset_ = float(offset)
            n = len(self.conformal_.scores_)
            self.guaranteed_rate_ = float(
                (1 + np.searchsorted(self.conformal_.scores_, offset)) / (n + 1)
            )
        return self

    def calibrate(self, X: Any) -> "FusedDetector":
        """Set the threshold from fresh normal rows that `fit` has not seen.

        With these the false-alarm rate holds exactly, whatever the members and
        the fusion are (split conformal): on average over draws of these rows and
        of the new row, which must come from the same source.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Normal rows.

        Returns
        -------
        FusedDetector
            The detector, with the threshold at `false_alarm_rate`.
        """
        self.normal_scores_ = np.sort(self.score_samples(X))
        self.conformal_ = ConformalCalibrator().fit(self.normal_scores_)
        if isinstance(self.calibrator_, TailCalibrator):
            self.calibrator_ = TailCalibrator().fit(self.normal_scores_)
        return self.set_threshold(self.false_alarm_rate)

    def fit_threshold(self, X: Any, y: Any) -> "FusedDetector":
        """Move the threshold to where labelled rows are told apart best, by G-mean.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that `fit` has not seen.
        y : array-like of shape (n_samples,)
            Their labels, +1 and -1, both present.

        Returns
        -------
        FusedDetector
            The detector.
        """
        scores = self.score_samples(X)
        return self.set_threshold(offset=gmean_threshold(scores, check_labels(y, len(scores))))

    # -- scoring ----------------------------------------------------------

    def score_samples(self, X: Any) -> FloatArray:
        """Return the fused score of every row: higher is more normal."""
        E = self._encode(X)
        return self._score(E)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score minus the threshold: negative raises an alarm."""
        scores = self.score_samples(X)
        return scores - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for alarms."""
        return np.where(self.decision_function(X) >= 0, NORMAL, ANOMALY)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of anomaly and of normal, in this order.

        Without labels "normal" is a tail probability: the share of normal rows
        that score lower. With at least 5 labelled anomalies it is fitted to the
        labels, and holds for the shares of the two classes in training.
        """
        scores = self.score_samples(X)
        return self.calibrator_.predict_proba(scores)

    @property
    def classes_(self) -> NDArray[np.int64]:
        """Labels of the columns of `predict_proba`."""
        return np.array([ANOMALY, NORMAL])

    def p_values(self, X: Any) -> FloatArray:
        """Return conformal p-values: how rarely a normal row scores this low."""
        scores = self.score_samples(X)
        return self.conformal_.p_values(scores)

    def discoveries(self, X: Any, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Pick the anomalies of a batch so that few of the picked are normal.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The batch. Unlike scores, the choice depends on all its rows.
        fdr : float, default=0.1
            Expected share of normal rows among those picked.

        Returns
        -------
        ndarray of shape (n_samples,)
            True for the rows picked.
        """
        scores = self.score_samples(X)
        return self.conformal_.select(scores, fdr)

    def transform(self, X: Any) -> FloatArray:
        """Return what the members say of every row, on one scale, higher = more normal."""
        E = self._encode(X)
        Z: FloatArray = self.normaliser_.transform(self.pool_.score_samples(E))
        return Z

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: the members."""
        check_is_fitted(self)
        return np.array(self.pool_.names_, dtype=object)

    def weights(self, X: Any) -> FloatArray:
        """Return how far each member is trusted at every row."""
        E = self._encode(X)
        return self.fusion_.weights(E)

    def explain(self, X: Any) -> Explanation:
        """Return what lies behind the score of every row.

        Features are attributed by letting them go over, one after another, to
        their values in the nearest normal training row (see `Explanation`).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to explain. One row costs about two scored rows per feature.

        Returns
        -------
        Explanation
            One entry per row.
        """
        E = self._encode(X)
        S = self.pool_.score_samples(E)
        Z = self.normaliser_.transform(S)
        base, contributions = self.fusion_.contributions(Z, E)
        score = self.fusion_.fuse(Z, E)
        distances, nearest = self._nearest(E)
        reference = self.training_[nearest[:, 0]]
        return Explanation(
            score=score,
            offset=self.offset_,
            p_value=self.conformal_.p_values(score),
            member_names=list(self.pool_.names_),
            member_scores=S,
            normalised_scores=Z,
            weights=self.fusion_.weights(E),
            base=base,
            contributions=contributions,
            local_p=self.fusion_.local_p(E),
            nearest_rows=self.training_rows_[nearest],
            nearest_distances=distances,
            feature_names=self._feature_names(),
            attributions=attribute_features(self._score, E, reference, self.encoder_.source_),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the detector to one file that `ocfuse.load` reads."""
        check_is_fitted(self)
        return save(self, path)

    def _encode(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        checked = check_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self.encoder_.transform(checked)

    def _score(self, E: FloatArray) -> FloatArray:
        Z = self.normaliser_.transform(self.pool_.score_samples(E))
        return self.fusion_.fuse(Z, E)

    def _nearest(self, E: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return distances to the nearest training rows, and their positions."""
        index = NearestNeighbors(n_neighbors=min(N_NEAREST, len(self.training_)))
        distances, nearest = index.fit(self.training_).kneighbors(E)
        return distances, nearest

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that gaps and categories are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        return tags


def _warn_if_too_few(rate: float, guaranteed: float) -> None:
    if guaranteed > rate:
        warnings.warn(
            f"{round(1 / guaranteed) - 1} normal rows cannot guarantee false_alarm_rate={rate:g}: "
            f"the threshold is at their lowest score, which stands for {guaranteed:.3g}. "
            f"Use at least {int(np.ceil(1 / rate)) - 1} rows.",
            FewSamplesWarning,
            stacklevel=4,
        )


def _require_rows(labels: NDArray[np.int64]) -> None:
    n = int((labels != ANOMALY).sum())
    if n < FEWEST_ROWS:
        raise InvalidInputError(
            f"At least {FEWEST_ROWS} rows that are not anomalies are needed to learn from. "
            f"Got n_samples = {n}."
        )
