"""What is fitted to a table: ocfuse as it can be imported, and PyOD as its users prepare it."""

import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from pyod.models.combination import average
from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.lof import LOF
from pyod.models.ocsvm import OCSVM
from pyod.utils.utility import standardizer
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.estimator.tables import FloatArray
from benchmarks.ordinary.sources import Frame, text_columns
from benchmarks.ordinary.troubles import Case
from ocfuse import FusedDetector, load

RATE = 0.05
#: Rows that are explained, and rows whose scores are compared after loading.
EXPLAINED, COMPARED = 20, 100
LONGEST_REASON = 160

Measures = dict[str, Any]


class Judge(Protocol):
    """What learns from a table, and judges rows: higher scores are more normal."""

    def fit(self, frame: Frame, y: Any) -> None:
        """Learn from rows of which some may be labelled as anomalies, -1."""

    def scores(self, frame: Frame) -> FloatArray:
        """Return a score for every row."""

    def alarms(self, frame: Frame) -> Any:
        """Tell which rows raise an alarm."""


class Ours:
    """FusedDetector with its defaults, given the data frame as it is."""

    def fit(self, frame: Frame, y: Any) -> None:
        self.detector = FusedDetector(false_alarm_rate=RATE, random_state=0).fit(frame, y)

    def scores(self, frame: Frame) -> FloatArray:
        return np.asarray(self.detector.score_samples(frame))

    def alarms(self, frame: Frame) -> Any:
        return self.detector.predict(frame) == -1


class PyOD:
    """The ten lines: impute, one-hot, standardise, average five detectors, cut at 5 %."""

    def fit(self, frame: Frame, y: Any) -> None:
        frame = frame if y is None else frame[y != -1]
        text = text_columns(frame)
        self.prepare = make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"),
                           OneHotEncoder(handle_unknown="ignore", sparse_output=False)), text),
            (SimpleImputer(strategy="median"), [name for name in frame if name not in text]),
        )  # fmt: skip
        self.scale = StandardScaler()
        X = self.scale.fit_transform(self.prepare.fit_transform(_plain(frame)))
        kinds = (ECOD, IForest, KNN, LOF, OCSVM)
        self.members = [
            kind(contamination=RATE, **({"random_state": 0} if kind is IForest else {})).fit(X)
            for kind in kinds
        ]
        self.training = np.column_stack([member.decision_scores_ for member in self.members])
        self.threshold = np.quantile(average(standardizer(self.training)), 1 - RATE)

    def scores(self, frame: Frame) -> FloatArray:
        X = self.scale.transform(self.prepare.transform(_plain(frame)))
        given = np.column_stack([member.decision_function(X) for member in self.members])
        return -np.asarray(average(standardizer(self.training, given)[1]))

    def alarms(self, frame: Frame) -> Any:
        return -self.scores(frame) > self.threshold


def _plain(frame: Frame) -> Frame:
    """Return text as plain objects with NaN for gaps: SimpleImputer takes no other kind."""
    text = text_columns(frame)
    columns = {name: frame[name].astype(object) for name in text}
    return frame.assign(
        **{name: cells.where(cells.notna(), np.nan) for name, cells in columns.items()}
    )


JUDGES: dict[str, type[Judge]] = {"ocfuse": Ours, "PyOD": PyOD}


def measured(name: str, case: Case) -> Measures:
    """Fit one system to a case, and return what came of it."""
    judge = JUDGES[name]()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        begin = time.process_time()
        judge.fit(case.train, case.y)
        fit_seconds = time.process_time() - begin
    found: Measures = {"fit": fit_seconds, "told": sorted({w.category.__name__ for w in told})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found |= _judged(judge, case)
        if isinstance(judge, Ours):
            found["saved"] = _saved(judge, case)
            found |= _explained(judge, case)
    return found


def _judged(judge: Judge, case: Case) -> Measures:
    """Return alarms and AUC; rows that are refused are counted, and the others judged."""
    begin = time.process_time()
    fresh, its_alarms, refused = _asked(judge, case, case.fresh)
    others, their_alarms, refused_too = _asked(judge, case, case.anomalies)
    found: Measures = {
        "score": time.process_time() - begin,
        "refused": refused or refused_too,
        "unscored": float(np.mean(np.isnan(np.append(fresh, others)))),
        "false_alarms": _mean(its_alarms),
        "hits": _mean(their_alarms),
        "auc": _auc(fresh, others),
    }
    if case.planted is not None:
        planted, planted_alarms, _ = _asked(judge, case, case.planted)
        before, alarms_before, _ = _asked(judge, case, case.unplanted)
        found["planted_hits"] = _mean(planted_alarms)
        found["unplanted_alarms"] = _mean(alarms_before)
        found["planted_risen"] = _mean(
            np.where(np.isnan(planted - before), np.nan, planted > before)
        )
    return found


def _asked(judge: Judge, case: Case, frame: Frame) -> tuple[FloatArray, FloatArray, str]:
    """Return scores and alarms, NaN for rows that were refused, and why."""
    try:
        return judge.scores(frame), judge.alarms(frame).astype(float), ""
    except ValueError as error:
        reason = _reason(error)
    complete = [name for name in case.train if case.train[name].notna().all()]
    usable = frame[complete].notna().all(axis=1).to_numpy()
    scores, alarms = np.full((2, len(frame)), np.nan)
    try:
        scores[usable] = judge.scores(frame[usable])
        alarms[usable] = judge.alarms(frame[usable])
    except ValueError as error:
        reason = _reason(error)
    return scores, alarms, reason


def _saved(judge: Ours, case: Case) -> str:
    """Return "equal" if a saved and loaded model gives the same scores, or what happened."""
    complete = [name for name in case.train if case.train[name].notna().all()]
    rows = case.fresh[case.fresh[complete].notna().all(axis=1)][:COMPARED]
    with TemporaryDirectory() as folder:
        try:
            path = judge.detector.save(Path(folder) / "model.ocf")
            same = np.array_equal(load(path).score_samples(rows), judge.scores(rows))
        except (ValueError, TypeError) as error:
            return _reason(error)
    return "equal" if same else "other scores"


def _explained(judge: Ours, case: Case) -> Measures:
    """Return the share of planted values that are named first."""
    if case.planted is None:
        return {}
    rows, columns = case.planted[:EXPLAINED], case.planted_in[:EXPLAINED]
    complete = [name for name in case.train if case.train[name].notna().all()]
    usable = rows[complete].notna().all(axis=1).to_numpy()
    try:
        found = judge.detector.explain(rows[usable])
    except (ValueError, TypeError) as error:
        return {"not_explained": _reason(error)}
    first = [found.feature_names[j] for j in np.argmax(found.attributions, axis=1)]
    wanted = [name for name, is_usable in zip(columns, usable, strict=True) if is_usable]
    return {"named_first": float(np.mean([a == b for a, b in zip(first, wanted, strict=True)]))}


def _mean(values: FloatArray) -> float | None:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else None


def _auc(fresh: FloatArray, others: FloatArray) -> float | None:
    fresh, others = fresh[~np.isnan(fresh)], others[~np.isnan(others)]
    if not (len(fresh) and len(others)):
        return None
    is_normal = np.arange(len(fresh) + len(others)) < len(fresh)
    return float(100 * roc_auc_score(is_normal, np.append(fresh, others)))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:LONGEST_REASON]
