"""One fit of the members, shared by everything that fuses them."""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ocfuse.bench.draws import Rows
from ocfuse.detectors.groups import Groups
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.ensemble.learning import Learned, Recipe, Table
from ocfuse.features import take_rows
from ocfuse.progress import silent
from ocfuse.tuning.crossfit import fit_fusion, fuse_scores

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Scores of the validation and of the test rows, and the CPU seconds that they took."""

    validation: FloatArray
    test: FloatArray
    seconds: float


class SharedFit:
    """The members of a detector, fitted once on the training rows of a split.

    Parameters
    ----------
    X : array or data frame
        All rows.
    rows : Rows
        Which of them is for what.
    detector : FusedDetector
        Whose members, normaliser and pseudo-anomalies are used; it is not changed.
    groups : Groups, default=None
        Number of the group of each row.
    """

    def __init__(
        self,
        X: Any,
        rows: Rows,
        detector: FusedDetector,
        groups: Groups | None = None,
    ) -> None:
        self.rows, self.detector = rows, detector
        self.groups = None if groups is None else groups.take(rows.train)
        self.train = take_rows(X, rows.train)
        self.asked = take_rows(X, np.concatenate([rows.validation, rows.test]))

    @cached_property
    def _members(self) -> tuple[Learned, FloatArray, FloatArray, float]:
        """Learned members, the encoded rows, what the members say of them, and seconds."""
        begin = time.process_time()
        y = np.zeros(len(self.rows.train), dtype=np.int64)
        learned = Learned(Table(self.train, y, self.groups), _recipe(self.detector))
        encoded = learned.encoder.transform(self.asked)
        S = learned.pool.score_samples(encoded)
        return learned, encoded, S, time.process_time() - begin

    def members(self) -> dict[str, Scored]:
        """Return what every member says; of the seconds each has an equal share."""
        learned, _, S, seconds = self._members
        names = learned.pool.names_
        share = seconds / len(names)
        return {name: self._parted(S[:, j], share) for j, name in enumerate(names)}

    def fuse(self, fusion: Any) -> Scored:
        """Return what a rule or a fusion makes of the members, their seconds included."""
        learned, encoded, S, seconds = self._members
        begin = time.process_time()
        parts = replace(learned.recipe, fusion=fusion).parts(learned.scored)
        _, fused = fuse_scores(S, encoded, None, *fit_fusion(learned.scored, *parts))
        return self._parted(fused, seconds + time.process_time() - begin)

    def whole(self) -> tuple[Scored, float]:
        """Fit the detector as a user would; return its scores and its own threshold."""
        detector = clone(self.detector)
        begin = time.process_time()
        scores = detector.fit(self.train, groups=self.groups).score_samples(self.asked)
        return self._parted(scores, time.process_time() - begin), detector.offset_

    def _parted(self, scores: FloatArray, seconds: float) -> Scored:
        n = len(self.rows.validation)
        return Scored(scores[:n], scores[n:], seconds)


def _recipe(detector: FusedDetector) -> Recipe:
    """Return how the detector would learn, with the rule that costs least in place of a fusion."""
    seed = int(check_random_state(detector.random_state).randint(np.iinfo(np.int32).max))
    return Recipe(
        detector.members,
        "sum",
        detector.normaliser,
        detector.negatives,
        seed,
        detector.n_jobs,
        silent,
    )
