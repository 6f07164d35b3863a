"""What we are compared with: PyOD, scikit-learn, and supervised learners on few labels."""

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pyod.models.combination import aom, average, moa
from pyod.utils.utility import standardizer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.accuracy.context import Context
from benchmarks.accuracy.measures import Scores
from benchmarks.estimator.systems import lscp, suod
from benchmarks.estimator.tables import FloatArray

#: PyOD prints that xgboost is missing, so it is not even asked.
if importlib.util.find_spec("xgboost"):
    from pyod.models.xgbod import XGBOD
else:
    XGBOD = None

#: The five detectors of the study, and the buckets of AOM and MOA: these must be of equal
#: size, so they get a sixth detector.
FIVE, BUCKETS = slice(5), 3

Run = Callable[[Context], Scores]


def combined(combine: Callable[[FloatArray], FloatArray], chosen: slice = slice(None)) -> Run:
    """Combine the standardised scores of PyOD's detectors, as its examples do."""

    def run(context: Context) -> Scores:
        standard = context.standard
        begin = time.process_time()
        training, scores = standard.training[:, chosen], standard.scores[:, chosen]
        fused = -combine(standardizer(training, scores)[1])
        return context.scores(fused, standard.fit, standard.score + time.process_time() - begin)

    return run


def whole(make: Callable[[int], Any]) -> Run:
    """Fit a detector that learns from normals, on standardised rows."""
    return lambda context: context.run(make(context.seed), scaled=True)


PURE: dict[str, Run] = {
    "PyOD LSCP": whole(lscp),
    "PyOD SUOD": whole(suod),
    "PyOD average": combined(average, FIVE),
    "PyOD AOM": combined(lambda scores: aom(scores, BUCKETS, random_state=0)),
    "PyOD MOA": combined(lambda scores: moa(scores, BUCKETS, random_state=0)),
    "IsolationForest": whole(lambda seed: IsolationForest(random_state=seed)),
    "LOF 20": whole(lambda seed: LocalOutlierFactor(20, novelty=True)),
    "OneClassSVM": whole(lambda seed: OneClassSVM()),
}


class Classifier:
    """A classifier as a detector: the score is the log-odds of "normal"."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: FloatArray, y: Any) -> "Classifier":
        self.classifier.fit(X, y)
        return self

    def score_samples(self, X: FloatArray) -> FloatArray:
        scores: FloatArray = self.classifier.decision_function(X)
        return scores


def boosting(seed: int) -> HistGradientBoostingClassifier:
    """Return the strongest of ten boosted or random forests tried with 5, 10 and 20 labels."""
    return HistGradientBoostingClassifier(min_samples_leaf=10, random_state=seed)


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced"))


def on_features(context: Context) -> Scores:
    """Gradient boosting on the features alone."""
    return context.run(Classifier(boosting(context.seed)), scaled=True, y=context.split.y)


def on_scores(make: Callable[[int], Any], *, with_features: bool) -> Run:
    """Fit a classifier on out-of-fold member scores, and on the features if wanted."""

    def run(context: Context) -> Scores:
        fitted, scored = context.fitted, context.fitted.learned.scored
        real = scored.fold >= 0
        train, rows = scored.S[real], fitted.S
        if with_features:
            train = np.hstack([scored.X[real], train])
            rows = np.hstack([fitted.encoded, rows])
        begin = time.process_time()
        classifier = make(context.seed).fit(train, scored.y[real])
        middle = time.process_time()
        scores = classifier.decision_function(rows)
        end = time.process_time()
        return context.scores(scores, fitted.fit + middle - begin, fitted.score + end - middle)

    return run


def xgbod(context: Context) -> Scores:
    """Run PyOD's own, which wants 1 for an anomaly and scores anomalies high."""

    class Turned(Classifier):
        def score_samples(self, X: FloatArray) -> FloatArray:
            return -super().score_samples(X)

    labels = (np.asarray(context.split.y) < 0).astype(int)
    return context.run(Turned(XGBOD(random_state=context.seed)), scaled=True, y=labels)


LABELLED: dict[str, Run] = {
    "XGBOD-like": on_scores(boosting, with_features=True),
    "boosting on features": on_features,
    "logistic on scores": on_scores(lambda seed: logistic(), with_features=False),
}
if XGBOD is not None:
    LABELLED["PyOD XGBOD"] = xgbod
