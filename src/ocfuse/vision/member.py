"""What all families of members do: learn, and judge pictures that they have not seen."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.detectors.groups import Groups
from ocfuse.vision.defects import Defects
from ocfuse.vision.features import Features, FloatArray, IntArray

#: Held-out pictures whose features are copied together.
TOGETHER = 256


class PictureMember(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of normal pictures: a subclass learns (`learn`) and scores (`score`)."""

    @abstractmethod
    def learn(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        rows: IntArray | None = None,
    ) -> Any:
        """Learn what is normal from some of the pictures, all if `rows` is None."""

    @abstractmethod
    def score(self, features: Features, context: FloatArray | None = None) -> FloatArray:
        """Return one score per picture, higher = more normal."""

    def fit(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        defects: Defects | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Learn, and score pictures and defects by fits that have not seen them.

        Parameters
        ----------
        features : Features
            Normal pictures.
        fold : Groups
            Fold in which each picture is held out, as its label.
        context : ndarray of shape (n,), optional
            Progress of the task, from 0 to 1.
        defects : Defects, optional
            Made up in some of the pictures.

        Returns
        -------
        held_out : ndarray of shape (n,)
            Scores of the pictures, higher = more normal.
        strange : ndarray of shape (q,)
            Scores of the defects, by fits that have not seen the pictures they are in.
        """
        origin = np.empty(0, dtype=np.intp) if defects is None else defects.origin
        held_out, strange = np.empty(len(features)), np.empty(len(origin))
        for f, withheld in enumerate(fold.withheld(fold.label).T):
            self.learn(features, fold, context, np.flatnonzero(~withheld))
            for rows in _in_turn(np.flatnonzero(fold.label == f)):
                held_out[rows] = self._score_unseen(features.take(rows), at(context, rows))
            made = np.flatnonzero(fold.label[origin] == f)
            if defects is not None and len(made):
                strange[made] = self.score(defects.features.take(made), at(context, origin[made]))
        self.learn(features, fold, context)
        return held_out, strange

    def _score_unseen(self, features: Features, context: FloatArray | None) -> FloatArray:
        """Score normal pictures that were held out; a subclass may note more about them."""
        return self.score(features, context)


def at(context: FloatArray | None, rows: Any) -> FloatArray | None:
    """Return the context of some pictures, None if there is none."""
    return None if context is None else context[rows]


def _in_turn(rows: IntArray) -> Iterator[IntArray]:
    for start in range(0, len(rows), TOGETHER):
        yield rows[start : start + TOGETHER]
