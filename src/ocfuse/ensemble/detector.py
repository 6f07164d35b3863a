"""FusedDetector: an ensemble of one-class detectors whose scores are fused."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.members import is_shared
from ocfuse.detectors.pool import Pool
from ocfuse.encoder import (
    FeatureEncoder,
    check_table,
    make_encoder,
    positions_of,
    read_numbers,
    warn_of_cells,
)
from ocfuse.ensemble.adapt import adapted_fusion, require_adaptable
from ocfuse.ensemble.copies import find_copies, merged_groups, warn_of_copies, without_copies
from ocfuse.ensemble.fit import (
    Learned,
    Recipe,
    Table,
    held_out_scores,
    read_table,
    warn_of_ignored,
    warn_of_settings,
)
from ocfuse.ensemble.plan import Plan, job_of, make_plan, require_memory
from ocfuse.ensemble.prune import pruned_pool
from ocfuse.ensemble.score import ContextScale, ScoreChain, Trace
from ocfuse.ensemble.update import OF_UPDATES, Start, update
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation, UsualValues
from ocfuse.frame_columns import in_memory, native_frame
from ocfuse.groups import check_groups
from ocfuse.limits import ValueLimits, check_limits, make_limits, warn_of_broken
from ocfuse.scores import ConformalCalibrator, LabelCalibrator, TailCalibrator, gmean_threshold
from ocfuse.scores.threshold import AlarmMixin, check_rate, warn_if_many_left_out
from ocfuse.system.cache import caching
from ocfuse.system.log import logged, logger
from ocfuse.system.packages import slow
from ocfuse.system.progress import current_progress
from ocfuse.system.threads import few_threads
from ocfuse.tuning.search import Search, make_search
from ocfuse.usual.groups import warn_of_groups
from ocfuse.usual.seasons import warn_of_seasons
from ocfuse.validation import ANOMALY, NORMAL, check_training_labels, require_fitted

if TYPE_CHECKING:
    from ocfuse.report import Report

#: Scores that differ by no more are the same.
SAME_SCORE = 1e-9

_log = logger(__name__)


class FusedDetector(AlarmMixin, TransformerMixin, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Ensemble of one-class detectors with a fusion that learns how far to trust each.

    `fit` trains the members on normal rows and computes out-of-fold scores: each member scores
    rows that it has not seen. These scores are normalised to one scale. From them the fusion
    learns how far to trust each member, also depending on where a row lies, and combines the
    scores of the members to one fused score per row. Higher scores are more normal.

    The threshold of the fused score is set with held-out scores, so that about a share
    `false_alarm_rate` of fresh normal rows raises an alarm. After `calibrate` the rate
    holds on average (split conformal). If groups are given, such as runs, the threshold counts
    groups, and the rate holds for rows of fresh groups.

    Parameters
    ----------
    members : str, list, dict or Pool, default="default"
        The detectors to fuse: the name of a pool ("default", "large", "light", "wide", "paper",
        "paper-all"), a list of estimators or of ``(name, estimator)`` pairs, a dict
        ``{name: estimator}``, or a `Pool`, which also defines what happens when a member fails. An
        estimator needs `fit` and `score_samples` or `decision_function`. "default" has 16 members;
        for more than 2,000 training rows it is replaced by the 12 members of "large"
        (``pool_.pool_name_`` is the pool used). ``make_pool("default")`` has 16 at any size.
    fusion : str or fusion, default=None
        How member scores are combined: a name such as "sum", or an object such as `LpFusion(p=2)`.
        None is `LabelledFusion(CompetenceFusion())` with at least 3 labelled anomalies that are
        not all of one group; else `CompetenceFusion()` with groups or with `tune`; else
        `TrustFusion()`.
    normaliser : str or normaliser, default="min-max"
        How member scores are brought to one scale: "min-max", "z-score", "robust-z", "tail", or an
        object of `ocfuse.scores`.
    negatives : str, list, generator or None, default="mixture"
        Generator of pseudo-negatives, that is, artificial anomalies: "gauss", "pcshuffle",
        "mirror", "swap", "uniform", "shuffle", several of them, or "mixture" for the first five.
        The competence of members is measured with them; with fewer than 3 labelled anomalies,
        other fusions learn from them as well. None generates none: weights are then learned from
        normal rows and labelled anomalies alone.
    false_alarm_rate : float, default=0.05
        Share of fresh normal rows that may raise an alarm.
    random_state : int, RandomState instance or None, default=None
        Seed of random members and of the pseudo-negatives. None draws a new seed for each fit: give
        a number for equal fits.
    n_jobs : int, default=None
        Number of threads: for fitting members of other packages, and for scoring many rows if all
        members are of this package. None is 1 for fitting; for scoring it is the number that the
        linear algebra library may use (all cores, or OMP_NUM_THREADS). Results do not depend on
        it.
    encoder : str, FeatureEncoder or None, default=None
        How columns become numbers on one scale: "standard", "robust" or "none" to choose the scale
        only, or a `FeatureEncoder`, which also defines columns of categories and the treatment of
        gaps. None is `FeatureEncoder()`.
    tune : str, Criterion, Search or None, default=None
        Choose settings with held-out scores of the training rows: the name of a criterion
        ("pseudo-negatives", "labels", "rpau", "stability") to choose p of the fusion, or a
        `Search` (`ocfuse.tuning`) to choose other settings too, or to use pseudo-negatives for the
        choice but not for learning (``learn_negatives=False``). The choice uses all training rows,
        also those that set the threshold.
    by : str, int or sequence of them, default=None
        Columns of X, by name or position, that name what a row belongs to, such as "machine", or
        from the widest to the narrowest ``["plant", "machine"]``. Numbers are compared with the
        usual values of the same machine. These columns are not features. They differ from `groups`
        of `fit`, which are rows that are held out together.
    time : str or int, default=None
        Column of X with the time of each row: dates, or seconds since 1970. It is not a feature,
        and has no other effect without `season`.
    season : str or sequence of str, default=()
        Compare numbers with the usual values at the same local time of the "day", "week", "month"
        or "year", in those columns where this predicts held-out rows better. Needs `time`.
    holidays : str or sequence of str, default=()
        Days, such as "2026-12-25", that are treated as Sundays unless their training rows differ.
        Needs ``season="week"``.
    zone : str, default=None
        Time zone in which days begin, such as "Europe/Berlin". None is the zone of the times;
        times without a zone are local.
    direction : dict, default=None
        Columns in which only high or only low values are bad: ``{"errors": "high"}`` or "low".
    limits : dict, default=None
        Lowest and highest allowed value of columns, None for no limit: ``{"temp": (None, 90)}``.
        `predict` returns -1 for a row beyond a limit, whatever its score, and `broken_limits`
        returns which limit it breaks. Scores, p-values and the threshold do not change.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X was a data frame whose column names are all text.
    limits_ : ValueLimits or None
        The limits, with the positions of their columns.
    encoder_ : FeatureEncoder
        The fitted encoder; its `ignored_` lists the columns that are not used.
    pool_ : Pool
        The fitted members.
    fusion_ : fusion
        The fitted fusion.
    normaliser_ : normaliser
        The fitted normaliser.
    search_ : Search or None
        The settings that `tune` tried and chose; None without `tune`.
    offset_ : float
        Threshold: rows with a lower fused score raise an alarm.
    threshold_rate_ : float
        False-alarm rate of the threshold: after `calibrate` it holds on average (split
        conformal), after `fit` approximately.
    training_scores_ : ndarray of shape (n_samples,)
        Held-out fused scores of the training rows: from members and fusions that have not seen
        these rows.
    normal_scores_ : ndarray of shape (n_normal,)
        The scores of normal rows that set the threshold, sorted.
    n_groups_ : int or None
        Number of groups that the threshold counts; None if it counts rows.
    usual_ : UsualValues
        The usual values of each column in the training rows that are not labelled anomalies.
    trimmed_rows_ : ndarray
        Unlabelled rows of X that are too far outside to be learned. They may be normal, so the
        threshold counts them as alarms, but they take up at most half of those that
        `false_alarm_rate` allows.
    training_place_ : ndarray of shape (n_samples,)
        For each row of X, its position among the learned rows; -1 if it was not learned.
    calibration_rows_ : ndarray of shape (n_normal,) or None
        For each of `normal_scores_`, the position of its row among the learned rows; None after
        `calibrate`, and if probabilities were fitted to labels.
    n_updates_, n_added_, n_dropped_ : int
        Number of updates since `fit`, of rows added by them, and of rows forgotten.
    unchanged_members_ : list of str
        Members that the last update did not change.
    refit_reason_ : str
        Why a new fit is better than further updates; empty if it is not.
    pruned_change_ : float
        Largest change of the score of a training row that `prune` caused.
    copied_rows_ : ndarray
        Rows of X that are accidental copies of other rows (see `ocfuse.ensemble.copies`). Copies
        are learned once, and count once when the threshold is set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse import FusedDetector
    >>> X, species = load_iris(return_X_y=True)
    >>> detector = FusedDetector("light", random_state=0).fit(X[species == 0])
    >>> detector.predict(X[[25, 60, 120]])
    array([ 1, -1, -1])
    """

    encoder_: FeatureEncoder
    pool_: Pool
    search_: Search | None
    context_scale_: ContextScale | None = None
    training_context_: FloatArray | None = None
    pruned_change_: float = 0.0
    start_: Start | None = None
    n_updates_: int = 0
    n_added_: int = 0
    n_dropped_: int = 0
    unchanged_members_: Sequence[str] = ()
    refit_reason_: str = ""
    calibration_numbers_: NDArray[np.intp] | None = None
    # of models that were saved before there were these
    usual_: UsualValues | None = None
    by: Any = None
    time: Any = None
    season: Any = ()
    holidays: Any = ()
    zone: str | None = None
    direction: Any = None
    limits: Any = None
    limits_: ValueLimits | None = None

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
        encoder: Any = None,
        tune: Any = None,
        by: Any = None,
        time: Any = None,
        season: Any = (),
        holidays: Any = (),
        zone: str | None = None,
        direction: Any = None,
        limits: Any = None,
    ) -> None:
        self.members = members
        self.fusion = fusion
        self.normaliser = normaliser
        self.negatives = negatives
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.tune = tune
        self.by = by
        self.time = time
        self.season = season
        self.holidays = holidays
        self.zone = zone
        self.direction = direction
        self.limits = limits

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, also the members and their parameters, by name."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep and not isinstance(self.members, Pool):
            # what cannot be members is refused by `fit`, as any other parameter
            with suppress(InvalidInputError):
                pool = Pool(self.members)
                theirs = pool.get_params(deep=True)
                own = pool.get_params(deep=False)
                params |= {key: theirs[key] for key in theirs if key not in own}
        return params

    def set_params(self, **params: Any) -> "FusedDetector":
        """Set parameters, also of members by name: ``knn__n_neighbors=7``.

        Members are then stored as a list of pairs. The estimators that were given do not change.
        """
        own = {
            key: params[key] for key in params if key.partition("__")[0] in self._get_param_names()
        }
        super().set_params(**own)
        theirs = {key: params[key] for key in params if key not in own}
        known = self.get_params(deep=True)
        unknown = sorted(key for key in theirs if key.partition("__")[0] not in known)
        if unknown:
            names = ", ".join(key for key in known if "__" not in key)
            raise InvalidInputError(
                f"FusedDetector has no parameter {', '.join(unknown)}. It has {names}; members of "
                "a Pool object are reached by members__name__parameter."
            )
        if theirs:
            self.members = Pool(self.members).set_params(**theirs).members
        return self

    # -- learning ---------------------------------------------------------

    def plan(self, X: Any, y: Any = None, groups: Any = None) -> Plan:
        """Predict memory and time of `fit`, without fitting.

        `fit` makes the same plan first, and raises a `NotEnoughMemoryError` with advice if there
        is too little free memory.

        Parameters
        ----------
        X : array-like, data frame or tuple of int
            Training rows, or the numbers of rows and columns.
        y : array-like of shape (n_samples,), default=None
            Labels as in `fit`. Members do not learn from anomalies.
        groups : array-like of shape (n_samples,), Groups or int, default=None
            Groups as in `fit`, or their number. With groups all members are fitted fold by fold,
            which takes more time and memory.

        Returns
        -------
        Plan
            Bytes and seconds, by part of the fit: ``print(detector.plan(X))``.
        """
        job = job_of(X, y, groups, self.tune, self._make_encoder())
        return make_plan(self.members, job, self.fusion)

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, context: Any = None
    ) -> "FusedDetector":
        """Learn from normal rows, and from labelled anomalies if there are any.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. Without y they should be normal, or mostly so. Rows far outside are not
            learned (`trimmed_rows_`).
        y : array-like of shape (n_samples,), default=None
            +1 normal, -1 anomaly, 0 or NaN unknown; boolean with True = normal, at least half of
            them True. Rows labelled +1 are always learned.
        groups : array-like of shape (n_samples,) or Groups, default=None
            Group of each row, such as its run or part. Rows of one group are held out together,
            and the threshold counts groups: with K groups, the lowest rate that can be promised
            for rows of a fresh group is ``1 / (K + 1)``. `ocfuse.streaming.blocks` cuts one long
            run into groups and leaves out the rows next to a held-out group; then the threshold
            counts rows.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Further coordinates of the rows, such as time or the progress of a task. Members do not
            see them. A fusion whose weights depend on the position of a row adds them to the
            squared distance between rows; the default fusion does so only if that improves its
            prediction of the scores of normal rows. Scoring then needs `context` too.

        Returns
        -------
        FusedDetector
            The fitted detector.
        """
        check_rate(self.false_alarm_rate)
        table = read_table(X, y, groups, context)
        limits = self._settled_limits(table)
        require_memory(self.plan(table.X, y if table.y.any() else None, table.groups))
        fresh = copy(self)  # a fit that fails leaves this detector as it was
        validate_data(fresh, native_frame(table.X), skip_check_array=True)
        n_anomalies = int((table.y == ANOMALY).sum())
        _log.info("fit: %d rows, %d labelled anomalies", len(table), n_anomalies)
        fresh._fit(table)
        fresh.limits_ = limits
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        _log.info(
            "fitted: members %s; %s; rows left out: %d; threshold %.6g for a rate of %.3g",
            *(", ".join(self.pool_.names_), type(self.fusion_).__name__, len(self.trimmed_rows_)),
            *(self.offset_, self.threshold_rate_),
        )
        return self

    def fit_predict(
        self, X: Any, y: Any = None, groups: Any = None, context: Any = None
    ) -> NDArray[np.int64]:
        """Fit, and return +1 or -1 for the training rows from their held-out scores.

        `fit(X).predict(X)` would score them with members that have learned them.
        """
        rows = in_memory(X)  # a query is run once
        self.fit(rows, y, groups, context)
        is_normal = self.training_scores_ >= self.offset_
        return np.where(is_normal & (self.broken_limits(rows) == ""), NORMAL, ANOMALY)

    def _settled_limits(self, table: Table) -> ValueLimits | None:
        """Return the limits of the columns of a training table; warn of rows that break them."""
        given = check_limits(self.limits)
        if not given:
            return None
        names = [*map(str, table.X.columns)] if hasattr(table.X, "columns") else None
        places = positions_of(list(given), names, table.X.shape[1], "limits")
        shown = [f"x{j}" if names is None else names[j] for j in places]
        limits = make_limits(given, np.array(places), shown)
        if limits is not None:
            known = table.take(np.flatnonzero(table.y != ANOMALY))
            warn_of_broken(limits.broken(read_numbers(known.X, places, "limits")))
        return limits

    def broken_limits(self, X: Any) -> NDArray[np.object_]:
        """Return which of the `limits` each row breaks.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Texts such as "temp above 90" or "temp above 90; level below 2"; empty if the row
            breaks no limit.
        """
        if self.limits_ is None:
            return super().broken_limits(check_table(X))
        values = read_numbers(self._checked(X), self.limits_.places.tolist(), "limits")
        return np.array(self.limits_.broken(values), dtype=object)

    def _make_encoder(self) -> FeatureEncoder:
        """Return the encoder that the parameters describe, not fitted."""
        settings = ("by", "time", "season", "holidays", "zone", "direction")
        return make_encoder(self.encoder, **{name: getattr(self, name) for name in settings})

    def _fit(self, table: Table) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        encoder = self._make_encoder().settle(table.X)
        recipe = Recipe(
            self.members,
            self.fusion,
            self.normaliser,
            self.negatives,
            seed,
            self.n_jobs,
            logged(current_progress(), _log),
            None if self.tune is None else make_search(self.tune),
            encoder,
        )
        distinct = without_copies(table, encoder)
        named = recipe.pool().chosen(len(distinct.table))[1]
        is_own = all(is_shared(member) for _, member in named)
        # Kept: what candidates, folds and the final fit have in common. Threads of BLAS wait busily
        # for each other; ours, of views and of compiled loops, do not, and change no bit.
        with caching(), few_threads(0) if is_own else nullcontext():
            learned = Learned(distinct.table, recipe)
            held_out = held_out_scores(distinct.table, learned)
        for name in OF_UPDATES:  # of a fit before this one
            self.__dict__.pop(name, None)
        self.encoder_, self.pool_ = learned.encoder, learned.pool
        self.pruned_change_ = 0.0
        warn_of_ignored(self.encoder_.ignored(table.X))
        warn_of_settings(self.encoder_, table.X)
        if self.encoder_.usual_ is not None:
            warn_of_seasons(self.encoder_.usual_.seasons)
            names = [*getattr(self, "feature_names_in_", range(self.n_features_in_))]
            warn_of_groups(self.encoder_.usual_.groups_, [str(names[j]) for j in self.encoder_.by_])
        self.normaliser_, self.fusion_ = learned.normaliser, learned.fusion
        self.training_, self.training_rows_ = learned.training, distinct.rows[learned.rows]
        self.training_context_, self.context_scale_ = learned.context, learned.scale
        self.training_scores_ = held_out[distinct.place]
        self.trimmed_rows_ = np.flatnonzero(np.isin(distinct.place, learned.trimmed))
        self.copied_rows_ = distinct.copied
        known = table.take(np.flatnonzero(table.y != ANOMALY))
        self.usual_ = UsualValues.of(known.X, learned.encoder)
        self.search_ = learned.search
        # Of few discrete patterns one may score lower in the end than when it was held out,
        # and all its rows would raise alarms: the lower score of the two counts.
        scores = held_out.copy()
        scores[learned.rows] = np.fmin(scores[learned.rows], learned.seen_scores())
        warn_of_copies(len(distinct.copied), len(table))
        position = np.full(len(distinct.table), -1)
        position[learned.rows] = np.arange(len(learned.rows))
        self.training_place_ = position[distinct.place]
        chosen = self._fit_calibration(scores, distinct.table, learned)
        self.calibration_rows_ = None if chosen is None else position[chosen]

    def _fit_calibration(
        self, scores: FloatArray, table: Table, learned: Learned
    ) -> NDArray[np.intp] | None:
        """Set threshold, p-values and probabilities from held-out fused scores.

        Return the rows that they rest on, from the lowest score to the highest; None if
        probabilities rest on labels too.
        """
        y = table.y
        normal = np.zeros(len(y), dtype=bool)
        normal[learned.rows] = True
        n_left_out = len(learned.trimmed)
        vouched = y == NORMAL
        runs = None if table.groups is None else table.groups.counted
        n_vouched = int(vouched.sum()) if runs is None else len(np.unique(runs[vouched]))
        if n_vouched + 1 >= 1 / self.false_alarm_rate:
            # enough rows that are known to be normal: the unknown ones need not count
            normal, n_left_out = vouched, 0
        theirs = None if runs is None else runs[normal]
        name = "group" if table.groups is None else table.groups.name
        self.conformal_ = ConformalCalibrator(name).fit(
            *(scores[normal], n_left_out, theirs),
            is_out_of_fold=True,
            are_alike=table.groups is not None and runs is None,
        )
        self.normal_scores_ = self.conformal_.scores_
        anomalous = y == ANOMALY
        by_labels = anomalous.sum() >= 5  # enough to fit probabilities to the labels
        if by_labels:
            chosen = normal | anomalous
            labels = np.where(anomalous[chosen], ANOMALY, NORMAL)
            self.calibrator_ = LabelCalibrator().fit(scores[chosen], labels)
        else:
            self.calibrator_ = TailCalibrator().fit(self.normal_scores_)
        self.set_threshold(self.false_alarm_rate)
        warn_if_many_left_out(n_left_out, len(self.normal_scores_), self.false_alarm_rate)
        if by_labels:
            return None
        rows = np.flatnonzero(normal)
        return rows[np.argsort(scores[normal], kind="stable")]

    # -- the threshold ----------------------------------------------------

    def set_gaps(self, gaps: str) -> "FusedDetector":
        """Change the treatment of gaps in columns that had none in training, without a new fit.

        Parameters
        ----------
        gaps : str
            "judge", "refuse" or "alarm"; see `FeatureEncoder`.

        Returns
        -------
        FusedDetector
            The detector.
        """
        check_is_fitted(self, "encoder_")
        self.encoder_ = copy(self.encoder_).set_gaps(gaps)
        return self

    def calibrate(self, X: Any, context: Any = None, groups: Any = None) -> "FusedDetector":
        """Set the threshold from fresh normal rows that `fit` has not seen.

        The false-alarm rate then holds exactly, for any members and any fusion (split conformal
        prediction): on average over samples of these rows and of the new row, if both come from
        the same source. Copies count once. If rows of one run or part are alike, give `groups`.
        The rate then holds for rows of a fresh group, on average over groups; without `groups` the
        rate may be several times higher.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Normal rows.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.
        groups : array-like of shape (n_samples,) or Groups, default=None
            Run, part or tile of each row, as in `fit`.

        Returns
        -------
        FusedDetector
            The detector, with the threshold at `false_alarm_rate`.
        """
        codes = self._read(X)  # once: what is odd about the rows is reported once, too
        scores = ScoreChain.of(self).score(codes, context)
        runs = None if groups is None else check_groups(groups, len(scores)).counted
        label = find_copies(*self.encoder_.comparable(codes))
        if runs is None:
            once = np.unique(label, return_index=True)[1]
            warn_of_copies(len(scores) - len(once), len(scores))
            scores = scores[once]
        else:
            runs = merged_groups(label, runs)
        before, self.calibration_rows_ = self.conformal_, None
        self.__dict__.pop("calibration_numbers_", None)
        are_alike = runs is None and (before.are_alike_ or before.n_groups_ is not None)
        conformal = ConformalCalibrator(before.group)
        return self._rest_on(conformal.fit(scores, groups=runs, are_alike=are_alike))

    def _rest_on(self, conformal: ConformalCalibrator) -> "FusedDetector":
        """Set threshold and p-values by scores of normals, and probabilities not set by labels."""
        self.conformal_, self.normal_scores_ = conformal, conformal.scores_
        _log.info("threshold: rests on %d scores of normal rows", len(conformal.scores_))
        if not isinstance(getattr(self, "calibrator_", None), LabelCalibrator):
            self.calibrator_ = TailCalibrator().fit(self.normal_scores_)
        return self.set_threshold(self.false_alarm_rate)

    def adapt(self, X: Any, context: Any = None) -> "FusedDetector":
        """Learn from unlabelled rows how far to trust each member.

        The rows should come from the process as it is: mostly normal, with some unknown anomalies.
        At equal false-alarm rates, members that raise more alarms on these rows find more of the
        anomalies, and are trusted more. How much more depends on how certain the difference is
        (see `TrustFusion.adapted`). Without anomalies in the rows nothing changes. The members
        stay as `fit` trained them, and the threshold is set again from the training rows, at
        `false_alarm_rate`. Each call starts from the trust that `fit` learned.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            At least 30 different rows, better 300. If most of them are unlike the training rows,
            the source has drifted, and they are refused.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.

        Returns
        -------
        FusedDetector
            The detector. ``fusion_.sureness_`` is how certain the result is, and
            ``fusion_.reasons()`` explains the trust in each member.
        """
        fusion, rows = require_adaptable(self)
        fusion, change = adapted_fusion(self, fusion, self._trace(X, context))
        self.fusion_ = fusion
        return self._move_scores(change, rows)

    def update(
        self, X: Any, y: Any = None, context: Any = None, *, memory: int | None = None
    ) -> "FusedDetector":
        """Learn more normal rows, without a new fit.

        The rows are scored before they are learned, and these scores are added to those that set
        the threshold. Then most members and the local scale of the fusion learn the rows:
        neighbours, means and covariances, tails, mixtures, a share of the trees, and kernels on
        the old landmarks. Encoding, coordinates, landmarks and trust stay as `fit` learned them;
        ``refit_reason_`` is not empty when they are out of date. Members of other packages, and
        some of this package, do not change (``unchanged_members_``). Groups of `by` that are new
        are taken up: their rows are measured from the other rows of their group.

        Left out are rows far outside, as in `fit`, and rows that score lower than any row in 99 of
        100 batches of normal rows. If more than a fifth of the rows are left out, the update is
        refused. Rows that break a limit and copies of learned rows are left out, too.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Normal rows, or mostly so.
        y : array-like of shape (n_samples,), default=None
            Labels as in `fit`. Rows labelled +1 are always learned, rows labelled -1 never.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.
        memory : int, default=None
            Most rows to keep; the oldest ones are forgotten. None keeps all.

        Returns
        -------
        FusedDetector
            The detector, with the threshold at `false_alarm_rate`. Attributes with an entry per
            training row have the rows of `fit` first, then those of each update, without the
            forgotten ones.
        """
        with few_threads(0):  # as in a fit: the bits do not depend on the number of threads
            state = update(self, X, y, context, memory)
        if not state:
            return self
        conformal = state.pop("conformal_")
        fresh = copy(self)  # an update that fails leaves this detector as it was
        fresh.__dict__.update(state)
        fresh._rest_on(conformal)
        self.__dict__.update(fresh.__dict__)
        return self

    def prune(self, tol: float = 1e-9) -> "FusedDetector":
        """Remove members that change no score by more than a tolerance.

        The scores of a removed member are replaced by the median of its out-of-fold scores.
        Members are removed, those with the least effect first, as long as together they change no
        fused score of a training row by more than `tol`. The same must hold if their scores lie
        beyond those of training by the range of the training scores. For a row still further out
        the change may be larger. With the default `tol` only members without effect are removed,
        such as all but one of `SingleBest`; with `TrustFusion` each has some effect.

        If a score changes by more than 1e-9, the threshold is set again from the training rows, at
        `false_alarm_rate`. ``pool_.constants_`` names the removed members. Only a new fit brings
        them back.

        Parameters
        ----------
        tol : float, default=1e-9
            Largest allowed change, in units of the fused score.

        Returns
        -------
        FusedDetector
            The detector; `pruned_change_` is the largest change of the score of a training row.
        """
        pool, change = pruned_pool(self, tol)
        largest = float(np.abs(change).max())
        rows = getattr(self, "calibration_rows_", None)
        if largest > SAME_SCORE and rows is None:
            raise InvalidInputError(
                f"prune(tol={tol:g}) would change scores by up to {largest:.2g}, and the "
                "threshold, which rests on the rows that calibrate was given or on labels, would "
                "be wrong. Fit again, prune, and then call calibrate, or keep tol=1e-9."
            )
        self.pool_ = pool
        self.pruned_change_ = max(self.pruned_change_, largest)
        return self if rows is None or largest <= SAME_SCORE else self._move_scores(change, rows)

    def _move_scores(self, change: FloatArray, rows: NDArray[np.intp]) -> "FusedDetector":
        """Add a change to the scores of the rows learned from, and set the threshold by `rows`."""
        scores = self.normal_scores_ + change[rows]
        self.calibration_rows_ = rows[np.argsort(scores, kind="stable")]
        known = self.training_place_ >= 0
        self.training_scores_ = self.training_scores_.copy()
        self.training_scores_[known] += change[self.training_place_[known]]
        return self._rest_on(self.conformal_.rescored(scores))

    def fit_threshold(self, X: Any, y: Any, context: Any = None) -> "FusedDetector":
        """Set the threshold that separates labelled rows best, measured by G-mean.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that `fit` has not seen.
        y : array-like of shape (n_samples,)
            Their labels, +1 and -1, both present.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.

        Returns
        -------
        FusedDetector
            The detector.
        """
        scores = self.score_samples(X, context)
        return self.set_threshold(
            offset=gmean_threshold(scores, check_training_labels(y, len(scores)))
        )

    @property
    def n_groups_(self) -> int | None:
        """Number of groups that the threshold counts; None if it counts rows."""
        return self.conformal_.n_groups_

    # -- scoring ----------------------------------------------------------

    def score_samples(self, X: Any, context: Any = None) -> FloatArray:
        """Return the fused score of every row: higher is more normal.

        More than 1,000 rows are scored in chunks, `n_jobs` of them in parallel.
        """
        codes = self._read(X)
        return ScoreChain.of(self).score_rows(X, codes, context)

    def predict_proba(self, X: Any, context: Any = None) -> FloatArray:
        """Return the probabilities of anomaly and of normal, in this order.

        Without labels, the probability of normal is the share of normal rows that score lower.
        With at least 5 labelled anomalies it is fitted to the labels, and holds for the shares of
        the two classes in training.
        """
        scores = self.score_samples(X, context)
        return self.calibrator_.predict_proba(scores)

    @property
    def classes_(self) -> NDArray[np.int64]:
        """Labels of the columns of `predict_proba`."""
        return np.array([ANOMALY, NORMAL])

    def discoveries(self, X: Any, fdr: float = 0.1, context: Any = None) -> NDArray[np.bool_]:
        """Select anomalies of a batch with a bounded share of false ones.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The batch. Unlike scores, the selection depends on all its rows.
        fdr : float, default=0.1
            False discovery rate: expected share of normal rows among those selected.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.

        Returns
        -------
        ndarray of shape (n_samples,)
            True for the rows selected.
        """
        scores = self.score_samples(X, context)
        return self.conformal_.select(scores, fdr)

    def transform(self, X: Any) -> FloatArray:
        """Return the scores of all members, on one scale: higher is more normal."""
        codes = self._read(X)
        return ScoreChain.of(self).normalised_scores(codes)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: the members."""
        check_is_fitted(self)
        return np.array(self.pool_.names_, dtype=object)

    def weights(self, X: Any, context: Any = None) -> FloatArray:
        """Return the weight of each member for every row."""
        E = self.encoder_.encode(self._read(X))
        return self.fusion_.weights(E, ScoreChain.of(self).scaled(context, len(E)))

    def explain(self, X: Any, context: Any = None) -> Explanation:
        """Explain the score of every row by its features and members.

        Each feature is compared with its usual values in normal training rows. Its attribution is
        how much it lowers the score: features are replaced, one after another, by values of the
        most similar normal rows (see `Explanation`).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to explain. To explain a row takes about as long as to score two rows per feature.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Their context, if the detector was fitted with context.

        Returns
        -------
        Explanation
            One entry per row.
        """
        found: Explanation = slow("ocfuse.ensemble.report").explanation(
            self, self._trace(X, context)
        )
        return found

    def report(
        self,
        X: Any,
        y: Any = None,
        *,
        time: Any = None,
        ids: Any = None,
        feature_names: Sequence[str] | None = None,
        title: str = "Anomaly report",
        card: Mapping[str, str] | None = None,
        context: Any = None,
        trace: Trace | None = None,
        events: list[IntArray] | None = None,
    ) -> "Report":
        """Report the alarms of rows, and their reasons, as one HTML page.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows. All are scored; at most 200, those with the lowest scores, are explained.
        y : array-like of shape (n_samples,), default=None
            Labels as in `fit`, if known. The page then counts anomalies found and false alarms.
        time : array-like of shape (n_samples,), default=None
            Numbers or dates. Then scores are shown over time, and alarms are joined to events.
        ids : array-like of shape (n_samples,), default=None
            Names of the rows; None takes the index of a data frame, or row numbers.
        feature_names : sequence of str, default=None
            Names of the columns; None takes those of training.
        title : str, default="Anomaly report"
            Title of the page.
        card : mapping of str, default=None
            Further lines of the data and model card, such as ``{"file": "new.csv"}``.
        context : array-like of shape (n_samples,) or (n_samples, k), default=None
            Context of the rows, if the detector was fitted with context.
        trace : Trace, default=None
            What was recorded when the rows were scored (`ocfuse.ensemble.score`); None scores
            them.
        events : list of ndarray, default=None
            Rows of each event, if `time` is given; None joins consecutive alarms.

        Returns
        -------
        Report
            The page: ``detector.report(X).save("report.html")``.
        """
        data = slow("ocfuse.ensemble.report").report_data(
            self,
            X,
            y,
            time=time,
            ids=ids,
            feature_names=feature_names,
            title=title,
            card=card,
            context=context,
            trace=trace,
            events=events,
        )
        page: Report = slow("ocfuse.report").make_report(data)
        return page

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the detector to one file, which `ocfuse.load` reads."""
        check_is_fitted(self)
        written: Path = slow("ocfuse.persistence").save(self, path)
        return written

    def _trace(self, X: Any, context: Any) -> Trace:
        """Return what every step of the chain makes of rows."""
        table = check_table(X)
        return ScoreChain.of(self).trace(table, self._read(table), context)

    def _read(self, X: Any) -> FloatArray:
        """Return the rows as the encoder reads them, and warn of cells unlike training."""
        table = self._checked(X)
        codes = self.encoder_.read(table)
        warn_of_cells(self.encoder_.changes(table, codes))
        return codes

    def _checked(self, X: Any) -> Any:
        """Return the rows as a table of as many columns as in fit."""
        require_fitted(self, "pool_")
        checked = check_table(X)
        # The full check takes a tenth of the time of one row; an array has no names to compare.
        is_plain = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if not is_plain or checked.shape[1] != self.n_features_in_:
            validate_data(self, native_frame(checked), skip_check_array=True, reset=False)
        return checked

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that gaps are allowed; only data frames may hold categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        return tags
