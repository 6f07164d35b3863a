"""What is compared: detectors with context and without, by hand, of others, one for each group."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyod.models.ecod import ECOD
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from ocfuse import FusedDetector

FloatArray = NDArray[np.float64]
#: Rate that all systems are asked for.
RATE = 0.05
HEADER = ["system", "AUC", "anomalies found", "false alarms"]


@dataclass
class Result:
    """Scores of fresh rows, which are alarms, and CPU seconds."""

    normal: FloatArray  # higher = more normal
    anomalies: FloatArray
    is_false: NDArray[np.bool_]
    is_found: NDArray[np.bool_]
    seconds: float

    @property
    def auc(self) -> float:
        truth = np.repeat([1, 0], [len(self.normal), len(self.anomalies)])
        return float(roc_auc_score(truth, np.concatenate([self.normal, self.anomalies])))

    @property
    def false(self) -> float:
        return float(self.is_false.mean())

    @property
    def found(self) -> float:
        return float(self.is_found.mean())

    def words(self) -> list[str]:
        return [f"{100 * self.auc:.1f}", f"{100 * self.found:.1f} %", f"{100 * self.false:.1f} %"]


@dataclass(frozen=True)
class System:
    """A name, and how to learn from a table and judge two others."""

    name: str
    judge: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], tuple[FloatArray, ...]]

    def run(self, train: pd.DataFrame, normal: pd.DataFrame, anomalies: pd.DataFrame) -> Result:
        begin = time.process_time()
        scores, found, alarms, hits = self.judge(train, normal, anomalies)
        seconds = time.process_time() - begin
        return Result(scores, found, alarms.astype(bool), hits.astype(bool), seconds)


def fused(name: str, drop: Sequence[str] = (), **settings: object) -> System:
    """Return FusedDetector with settings of its own, which does not see some columns."""

    def judge(*tables: pd.DataFrame) -> tuple[FloatArray, ...]:
        train, normal, odd = (table.drop(columns=list(drop)) for table in tables)
        detector = FusedDetector(random_state=0, false_alarm_rate=RATE, **settings).fit(train)
        scores = [detector.score_samples(table) for table in (normal, odd)]
        return (*scores, *(some < detector.offset_ for some in scores))

    return System(name, judge)


def forest(prepare: Callable[[pd.DataFrame], FloatArray], name: str) -> System:
    """Return scikit-learn's isolation forest on what is made of the columns by hand."""

    def judge(*tables: pd.DataFrame) -> tuple[FloatArray, ...]:
        train, normal, odd = map(prepare, tables)
        model = IsolationForest(random_state=0).fit(train)
        return _by_quantile(*(model.score_samples(X) for X in (train, normal, odd)))

    return System(name, judge)


def pyod(prepare: Callable[[pd.DataFrame], FloatArray], name: str, kind: str = "KNN") -> System:
    """Return a detector of PyOD on what is made of the columns by hand, in units of spread."""

    def judge(*tables: pd.DataFrame) -> tuple[FloatArray, ...]:
        train, normal, odd = map(prepare, tables)
        scaler = StandardScaler().fit(train)
        train, normal, odd = map(scaler.transform, (train, normal, odd))
        model = (KNN if kind == "KNN" else ECOD)(contamination=RATE).fit(train)
        scores = [-model.decision_function(X) for X in (normal, odd)]
        return (*scores, *(some < -model.threshold_ for some in scores))

    return System(name, judge)


def one_each(group: str, name: str, make: Callable[[], object], drop: Sequence[str] = ()) -> System:
    """Return a model for each group, each with its own threshold."""

    def judge(*tables: pd.DataFrame) -> tuple[FloatArray, ...]:
        train, normal, odd = tables
        groups = {key: rows.drop(columns=[group, *drop]) for key, rows in train.groupby(group)}
        models = {key: make().fit(rows.to_numpy()) for key, rows in groups.items()}  # type: ignore[attr-defined]
        scores, alarms = [], []
        for table in (normal, odd):
            some = np.empty(len(table))
            for key, rows in table.groupby(group):
                X = rows.drop(columns=[group, *drop]).to_numpy()
                places = table.index.get_indexer(rows.index)
                some[places] = models[key].score_samples(X) - models[key].offset_
            scores.append(some)
            alarms.append(some < 0)
        return (*scores, *alarms)

    return System(name, judge)


def _by_quantile(train: FloatArray, normal: FloatArray, odd: FloatArray) -> tuple[FloatArray, ...]:
    """Return scores and alarms by the quantile of the training scores."""
    offset = np.quantile(train, RATE)
    return normal, odd, normal < offset, odd < offset
