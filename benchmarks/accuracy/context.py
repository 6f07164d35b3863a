"""What the systems of one cell share: the split, the fitted pool, PyOD's detectors."""

import time
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from pyod.models.lof import LOF
from sklearn.utils import check_random_state

from benchmarks.accuracy.measures import Scores
from benchmarks.accuracy.splits import Split
from benchmarks.estimator.systems import pyod_members
from benchmarks.estimator.tables import FloatArray
from ocfuse import FusedDetector
from ocfuse.ensemble.fit import Learned, Recipe, Table
from ocfuse.fusion.crossfit import fit_fusion
from ocfuse.system.progress import silent


@dataclass(frozen=True)
class Fitted:
    """The pool, fitted once, with what it says of the validation and test rows."""

    learned: Learned
    encoded: FloatArray
    S: FloatArray
    fit: float
    score: float


@dataclass(frozen=True)
class Standard:
    """Scores of PyOD's detectors on standardised rows, higher = more anomalous."""

    training: FloatArray
    scores: FloatArray
    fit: float
    score: float


class Context:
    """One cell: nothing is fitted before it is asked for, and nothing twice."""

    def __init__(self, split: Split, seed: int) -> None:
        self.split, self.seed = split, seed
        self.rows = np.vstack([split.validation, split.test])

    @cached_property
    def scaled(self) -> Split:
        return self.split.scaled()

    @cached_property
    def fitted(self) -> Fitted:
        """Fit the members of the default detector as it does, on the same rows."""
        y = self.split.y
        labels = np.zeros(len(self.split.train), dtype=np.int64) if y is None else y
        begin = time.process_time()
        learned = Learned(Table(self.split.train, labels, None), recipe(self.seed))
        middle = time.process_time()
        encoded = learned.encoder.transform(self.rows)
        S = learned.pool.score_samples(encoded)
        return Fitted(learned, encoded, S, middle - begin, time.process_time() - middle)

    @cached_property
    def standard(self) -> Standard:
        begin = time.process_time()
        members = [*pyod_members(self.seed), LOF(n_neighbors=20)]
        for member in members:
            member.fit(self.scaled.train)
        training = np.column_stack([member.decision_scores_ for member in members])
        middle = time.process_time()
        rows = np.vstack([self.scaled.validation, self.scaled.test])
        scores = np.column_stack([member.decision_function(rows) for member in members])
        return Standard(training, scores, middle - begin, time.process_time() - middle)

    def fuse(self, fusion: Any) -> Scores:
        """Fit a normaliser and a fusion on the shared pool; seconds include the pool's."""
        fitted = self.fitted
        scored = fitted.learned.scored
        begin = time.process_time()
        parts = replace(fitted.learned.recipe, fusion=fusion).parts(scored)
        normaliser, fitted_fusion = fit_fusion(scored, *parts)
        middle = time.process_time()
        fused = fitted_fusion.fuse(normaliser.transform(fitted.S), fitted.encoded)
        end = time.process_time()
        return self.scores(fused, fitted.fit + middle - begin, fitted.score + end - middle)

    def run(self, system: Any, *, scaled: bool, y: Any = None) -> Scores:
        """Fit a whole system and score the rows; y only if it takes labels."""
        split = self.scaled if scaled else self.split
        train = split.train if y is not None or split.y is None else split.train[split.y > 0]
        begin = time.process_time()
        system.fit(train) if y is None else system.fit(train, y)
        middle = time.process_time()
        scores = system.score_samples(np.vstack([split.validation, split.test]))
        return self.scores(scores, middle - begin, time.process_time() - middle)

    def scores(self, scores: FloatArray, fit: float, score: float) -> Scores:
        """Part the scores of validation and test rows again."""
        n = len(self.split.validation)
        return Scores(scores[:n], scores[n:], fit, score)


def recipe(seed: int) -> Recipe:
    """Return the recipe of `FusedDetector(fusion="sum")`: the cheapest way to its members."""
    params = FusedDetector(fusion="sum").get_params(deep=False)
    known: dict[str, Any] = {f.name: params[f.name] for f in fields(Recipe) if f.name in params}
    drawn = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    return Recipe(**known, seed=drawn, progress=silent)
