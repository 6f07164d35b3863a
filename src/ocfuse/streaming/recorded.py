"""Scores of recorded runs, each from its beginning, whatever the live stream does."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ocfuse.ensemble.detector import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation
from ocfuse.fusion.inputs import check_context, require_context
from ocfuse.fusion.ranges import warn_if_far
from ocfuse.scores.threshold import InnerThresholdMixin, alarms_of, p_values_of
from ocfuse.streaming.clock import COUNTED
from ocfuse.streaming.times import check_times
from ocfuse.streaming.view import StreamView
from ocfuse.streaming.windows import LARGEST, check_samples, run_slices

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]


class RecordedRuns(InnerThresholdMixin):
    """What a stream detector says of runs that are there as a whole.

    Attributes
    ----------
    view_ : StreamView
        How samples become features.
    detector_ : FusedDetector
        What scores these.
    training_rows_ : ndarray
        Samples of training that it has learned from.
    context_range_ : ndarray of shape (2, k) or None
        Lowest and highest context of training, if it had any.
    channels_, feature_names_ : list of str
        Names of the channels and of the features.
    """

    view_: StreamView
    detector_: FusedDetector
    training_rows_: NDArray[np.intp]
    context_range_: FloatArray | None
    channels_: list[str]
    feature_names_: list[str]

    def score_run(self, X: Any, time: Any = None, context: Any = None) -> FloatArray:
        """Score a whole recorded run, from its beginning; the live stream is not touched.

        Parameters
        ----------
        X, time, context : array-like
            As in `score_chunk`.

        Returns
        -------
        ndarray of shape (n,)
            Scores; NaN where there is none.
        """
        return self.score_samples(X, None, time, context)

    def score_samples(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Score recorded runs, each from its beginning; the live stream is not touched.

        Parameters
        ----------
        X, runs, time, context : array-like
            Samples as in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Scores; NaN where there is none.
        """
        rows, situation = self._recorded(X, runs, time, context)
        return self._scores(rows, situation, np.asarray(~np.isnan(rows).any(axis=1)))

    def decision_function(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return scores of recorded runs less the threshold: negative raises an alarm."""
        return self.score_samples(X, runs, time, context) - self.offset_

    def predict(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> NDArray[np.int64]:
        """Return -1 for the samples of recorded runs that raise an alarm, else +1.

        A sample without a score raises none.
        """
        return alarms_of(self.decision_function(X, runs, time, context))

    def p_values(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return how rarely normal samples score as low as each of recorded runs; NaN as there."""
        scores = self.score_samples(X, runs, time, context)
        return p_values_of(scores, self.conformal_)

    def explain(
        self, X: Any, rows: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> Explanation:
        """Return what lies behind the scores of some samples of recorded runs.

        Parameters
        ----------
        X : array-like
            Samples as in `fit`: whole runs, as windows look back.
        rows : array-like of int or bool
            The samples to explain, by number or as a mask. Each must have a score.
        runs, time, context : array-like
            As in `fit`.

        Returns
        -------
        Explanation
            One entry per chosen sample, in terms of `feature_names_`; `nearest_rows` are
            numbers of samples of `fit`.
        """
        features, situation = self._recorded(X, runs, time, context)
        chosen = np.arange(len(features))[np.asarray(rows)]
        unscored = chosen[np.isnan(features[chosen]).any(axis=1)]
        if len(unscored):
            raise InvalidInputError(
                f"Only samples with a score can be explained. Sample {unscored[0]} has none."
            )
        found = self.detector_.explain(
            features[chosen], None if situation is None else situation[chosen]
        )
        return replace(
            found,
            feature_names=list(self.feature_names_),
            nearest_rows=self.training_rows_[found.nearest_rows],
        )

    def features(
        self, X: Any, runs: Any = None, time: Any = None, context: Any = None
    ) -> FloatArray:
        """Return what `detector_` sees of some runs; NaN rows where there is no score.

        Parameters
        ----------
        X, runs, time, context : array-like
            Samples as in `fit`.

        Returns
        -------
        ndarray of shape (n, number of features)
            Columns as `feature_names_` says.
        """
        return self._recorded(X, runs, time, context)[0]

    def _recorded(
        self, X: Any, runs: Any, time: Any, context: Any
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return features of recorded runs, NaN where there is no score, and their context."""
        check_is_fitted(self, "state_")
        samples = self._check(X)
        times = check_times(time, len(samples))
        situation = self._check_context(context, len(samples))
        self._tell_of_context(situation, 4)
        slices = run_slices(runs, len(samples))
        rows, _ = self._run_rows(self.view_.measured(samples, situation), slices, times)
        rows[unknown_context(situation, len(rows))] = np.nan
        rows[~self.view_.fill_in(rows)] = np.nan
        return rows, situation

    def _run_rows(
        self, samples: FloatArray, slices: list[slice], times: FloatArray | None
    ) -> tuple[FloatArray, dict[str, int]]:
        """Return features of runs, each from its beginning, and what their clocks said."""
        rows, counts = np.empty((len(samples), len(self.feature_names_))), Counter[str]()
        for part in slices:
            state = self.view_.new_state()
            when = None if times is None else times[part]
            rows[part] = self.view_.rows(state, samples[part], when)
            counts.update(state.counts)
        return rows, {name: counts[name] for name in ("seen", *COUNTED)}

    def _scores(
        self, rows: FloatArray, context: FloatArray | None, scored: BoolArray
    ) -> FloatArray:
        scores = np.full(len(rows), np.nan)
        if scored.any():
            chosen = None if context is None else context[scored]
            scores[scored] = self.detector_.score_samples(rows[scored], chosen)
        return scores

    def _check_context(self, context: Any, n: int) -> FloatArray | None:
        """Return the context of n samples, NaN where it is unknown, or refuse it."""
        scale = self.detector_.context_scale_
        table = None if context is None else _known_or_nan(context, n)
        given = 0 if table is None else table.shape[1]
        require_context(given, 0 if scale is None else len(scale.centre))
        return table

    def _tell_of_context(self, context: FloatArray | None, stacklevel: int) -> bool:
        """Tell of context that is far beyond training, if any is."""
        if context is None or self.context_range_ is None:
            return False
        low, high = self.context_range_
        return warn_if_far(context, low, high, stacklevel + 1)

    def _check(self, X: Any) -> FloatArray:
        samples = check_samples(X)
        if samples.shape[1] != len(self.channels_):
            raise InvalidInputError(
                f"Samples must have {len(self.channels_)} channels, as in fit: "
                f"{', '.join(self.channels_)}. Got {samples.shape[1]}."
            )
        return samples


def _known_or_nan(context: Any, n: int) -> FloatArray:
    """Return the context of n samples, in which bad values are allowed: live ones come."""
    values = np.asarray(context)
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # None is a context that is not known
            values = values.astype(np.float64)
    if values.dtype.kind != "f":
        return check_context(values, n)
    bad = ~(np.abs(values) <= LARGEST)
    table = check_context(np.where(bad, 0.0, values), n)
    return np.where(bad.reshape(table.shape), np.nan, table)


def unknown_context(context: FloatArray | None, n: int) -> BoolArray:
    """Tell which of n samples have a context that is not known."""
    return np.zeros(n, dtype=bool) if context is None else np.asarray(np.isnan(context).any(axis=1))
