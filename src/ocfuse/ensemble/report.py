"""Data of a report and of explanations, gathered from a fitted detector and new rows."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ocfuse.arrays import FloatArray, Int64Array, IntArray
from ocfuse.detectors.base import core_rows
from ocfuse.encoder import check_table
from ocfuse.ensemble.outliers import LARGEST_GROUP, remote_groups
from ocfuse.ensemble.score import ScoreChain, Trace
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation, attribute_features, values_of
from ocfuse.report.data import Embedding, ReportData
from ocfuse.report.timeline import to_times
from ocfuse.stats.ranks import rank_correlation
from ocfuse.system.packages import slow
from ocfuse.validation import check_training_labels

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

#: Rows that are listed and explained, at most, and at least if there are as many.
MOST_EXPLAINED, FEWEST_EXPLAINED = 200, 10
#: Rows that may be scored to explain them; every row takes two per feature.
MOST_SCORED = 40_000
#: Features listed for each of them.
N_READINGS = 8
#: Training rows, and rows of the report, on the map.
MOST_POINTS = 2500
#: Fewest rows on which members are compared.
FEWEST_COMPARED = 10
#: Rows left out of learning that are listed.
MOST_LISTED = 20

#: Nearest normal rows that an explanation names, and rows most like a row that it is compared with.
N_NEAREST = 3
#: How far a feature may count, in standard deviations, when rows most like a row are looked for:
#: what is far off in one feature is then compared with rows that agree with it in the others.
FARTHEST = 1.0
#: Numbers that are compared at a time.
NUMBERS_AT_ONCE = 2**22


def report_data(
    detector: "FusedDetector",
    X: Any,
    y: Any = None,
    *,
    time: Any = None,
    ids: Any = None,
    feature_names: Sequence[str] | None = None,
    title: str,
    card: Mapping[str, str] | None = None,
    context: Any = None,
    trace: Trace | None = None,
) -> ReportData:
    """Return all that a report shows; `FusedDetector.report` says what the arguments are."""
    table = check_table(X)
    n = len(table)
    (labels, no_labels), (times, is_date, no_times) = _labels(y, n), _times(time, n)
    trace = detector._trace(X, context) if trace is None else trace
    rows = _rows_to_explain(trace.score, detector.offset_, detector.n_features_in_)
    further = {str(name): str(line) for name, line in (card or {}).items()}
    return ReportData(
        title=str(title),
        scores=trace.score,
        ids=_ids(ids, table, n),
        rows=rows,
        embedding=_embedding(detector, trace, rows),
        agreement=rank_correlation(trace.member_scores) if n >= FEWEST_COMPARED else None,
        card=_card(detector, trace.encoded) | further,
        remarks=[*_remarks(detector, trace.encoded), *no_labels, *no_times],
        labels=labels,
        times=times,
        is_date=is_date,
        **_alarms(detector),
        **_reasons(detector, trace.take(rows), feature_names),
    )


def _labels(y: Any, n: int) -> tuple[Int64Array | None, list[str]]:
    """Return the labels if one of them says something, and a remark if none does."""
    labels = None if y is None else check_training_labels(y, n)
    if labels is None or labels.any():
        return labels, []
    return None, ["No row has a label that says normal or anomaly: hits are not counted."]


def _times(time: Any, n: int) -> tuple[FloatArray | None, bool, list[str]]:
    """Return the times, whether they are dates, and a remark if no row has one."""
    if time is None:
        return None, False, []
    times, is_date = to_times(time, n)
    if np.isfinite(times).any():
        return times, is_date, []
    return None, False, ["No row has a time that can be read: scores over time are not drawn."]


def _alarms(detector: "FusedDetector") -> dict[str, Any]:
    """Return where the threshold is, and what it rests on."""
    return {
        "offset": detector.offset_,
        "wanted_rate": detector.false_alarm_rate,
        "calibrator": detector.conformal_,
        "held_out_scores": detector.training_scores_[np.sort(detector.training_rows_)],
    }


def _reasons(
    detector: "FusedDetector", shown: Trace, feature_names: Sequence[str] | None
) -> dict[str, Any]:
    """Explain some rows, with the names that the user gave."""
    why = explanation(detector, shown)
    names = _names(feature_names, why.feature_names)
    why = replace(why, feature_names=names)
    return {"explanation": why, "readings": [why.readings(i, N_READINGS) for i in range(len(why))]}


def _rows_to_explain(scores: FloatArray, offset: float, n_features: int) -> IntArray:
    """Return the rows that raise an alarm, the lowest first, within what may be spent."""
    affordable = max(MOST_SCORED // (2 * n_features), FEWEST_EXPLAINED)
    n_alarms = int(np.sum(scores < offset))
    count = min(max(n_alarms, FEWEST_EXPLAINED), MOST_EXPLAINED, affordable)
    lowest: IntArray = np.argsort(scores, kind="stable")[:count]
    return lowest


def _names(given: Sequence[str] | None, known: list[str]) -> list[str]:
    names = [str(name) for name in (known if given is None else given)]
    if len(names) != len(known):
        raise InvalidInputError(
            f"feature_names must name all {len(known)} columns. Got {len(names)} names."
        )
    return names


def _ids(ids: Any, table: Any, n: int) -> list[str]:
    """Return what to call the rows: the names given, those of a data frame, or numbers."""
    if ids is None:
        index = getattr(table, "index", None)
        return [str(i) for i in (range(n) if index is None else index)]
    names = [str(i) for i in ids]
    if len(names) != n:
        raise InvalidInputError(f"ids must name all {n} rows. Got {len(names)} names.")
    return names


def _embedding(detector: "FusedDetector", trace: Trace, rows: IntArray) -> Embedding:
    """Put some training rows and some new ones, the explained among them, on a plane."""
    E, C = trace.encoded, trace.context
    known = core_rows(len(detector.training_), MOST_POINTS)
    fresh = np.union1d(core_rows(len(E), MOST_POINTS - len(rows)), rows)
    positions = detector.training_rows_[known]
    encoded = np.vstack([detector.training_[known], E[fresh]])
    theirs = detector.training_context_
    context = None if C is None or theirs is None else np.vstack([theirs[known], C[fresh]])
    return Embedding(
        points=_plane(encoded),
        is_new=np.repeat([False, True], [len(known), len(fresh)]),
        rows=np.concatenate([positions, fresh]),
        scores=np.concatenate([detector.training_scores_[positions], trace.score[fresh]]),
        weights=detector.fusion_.weights(encoded, context),
        local_p=detector.fusion_.local_p(encoded, context),
    )


def _plane(encoded: FloatArray) -> FloatArray:
    """Return the first two principal components, of rows whose far values are pulled in."""
    near = np.arcsinh(encoded)
    count = min(2, *near.shape)
    points = np.zeros((len(near), 2))
    pca = slow("sklearn.decomposition").PCA(count, random_state=0)
    points[:, :count] = pca.fit_transform(near)
    return points


def _card(detector: "FusedDetector", E: FloatArray) -> dict[str, str]:
    """Return the lines of the data and model card."""
    packages = ("ocfuse", "numpy", "scipy", "scikit-learn")
    versions = [f"{name} {version(name)}" for name in packages]
    probabilities = type(detector.calibrator_).__name__
    return {
        "Report made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "Versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "Rows in this report": f"{len(E):,}",
        "Columns": f"{detector.n_features_in_:,}",
        "Training rows learned from": f"{len(detector.training_):,}",
        "Training rows left out, too far outside": _listed(detector.trimmed_rows_),
        "Pool": detector.pool_.pool_name_ or "none: the members were given",
        "Members": ", ".join(detector.pool_.names_),
        "Settings": str(detector),
        "Fusion": str(detector.fusion_),
        "Threshold": f"{detector.offset_:.6g}",
        "False-alarm rate asked for in training": f"{detector.false_alarm_rate:g}",
        "Probabilities from": "labels" if probabilities == "LabelCalibrator" else "normal rows",
        "SHA-256 of the rows of this report, as the members see them": _checksum(E),
        "SHA-256 of the rows learned from, as the members see them": _checksum(detector.training_),
    }


def _listed(rows: IntArray) -> str:
    """Return such as "3 (rows 4, 17, 30 of the training table, counted from 0)"."""
    if not len(rows):
        return "none"
    more = ", ..." if len(rows) > MOST_LISTED else ""
    names = ", ".join(map(str, rows[:MOST_LISTED].tolist()))
    return f"{len(rows):,} (of the training table, counted from 0: {names}{more})"


def _remarks(detector: "FusedDetector", E: FloatArray) -> list[str]:
    """Return what the user should know about the training rows and the members."""
    remarks = [
        f"Member {name} failed in training and is not used: {reason}"
        for name, reason in detector.pool_.dropped_.items()
    ]
    n = len(detector.training_)
    n_remote = int(remote_groups(detector.training_).sum())
    if n_remote > LARGEST_GROUP * n:  # as `fit` warns: a smaller group is left out
        remarks.append(
            f"{n_remote:,} of {n:,} training rows lie far from the others and were learned as "
            "normal, as so many may be a rare mode. Rows like them raise no alarm: if they are "
            "anomalies, label them -1 or leave them out, and fit again."
        )
    if len(E) == len(detector.training_scores_) and np.array_equal(
        E[detector.training_rows_], detector.training_
    ):
        remarks.append(
            "These are the rows that the members learned from: they score higher than fresh rows."
        )
    return remarks


def _checksum(array: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def explanation(detector: "FusedDetector", trace: Trace) -> Explanation:
    """Return what lies behind the scores of rows; see `FusedDetector.explain`."""
    E, C, Z = trace.encoded, trace.context, trace.normalised
    base, contributions = detector.fusion_.contributions(Z, E, C)
    near = [_near(detector, row) for row in E]
    nearest = np.array([rows for rows, _, _ in near])
    return Explanation(
        score=trace.score,
        offset=detector.offset_,
        p_value=detector.conformal_.p_values(trace.score),
        member_names=list(detector.pool_.names_),
        member_scores=trace.member_scores,
        normalised_scores=Z,
        weights=detector.fusion_.weights(E, C),
        base=base,
        contributions=contributions,
        local_p=detector.fusion_.local_p(E, C),
        nearest_rows=detector.training_rows_[nearest],
        nearest_distances=np.array([distances for _, distances, _ in near]),
        feature_names=_feature_names(detector),
        attributions=_attributions(detector, E, C, np.array([reference for *_, reference in near])),
        values=values_of(trace.X, detector.encoder_),
        usual=detector.usual_,
    )


def _near(detector: "FusedDetector", x: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nearest training rows, their distances, and what the row is compared with."""
    training, source = detector.training_, detector.encoder_.source_
    order = np.argsort(source, kind="stable")
    starts = np.flatnonzero(np.diff(source[order], prepend=-1))
    distances, unlike = np.empty((2, len(training)))
    step = max(1, NUMBERS_AT_ONCE // len(x))
    for begin in range(0, len(training), step):
        some = slice(begin, begin + step)
        squares = np.square(training[some] - x)
        distances[some] = squares.sum(axis=1)
        if len(starts) < len(x):
            squares = np.add.reduceat(squares[:, order], starts, axis=1)
        unlike[some] = np.minimum(squares, FARTHEST**2).sum(axis=1)
    nearest = _lowest(distances)
    most_alike = training[_lowest(unlike)]
    return nearest, np.sqrt(distances[nearest]), _reference(detector, x, most_alike)


def _lowest(values: FloatArray) -> IntArray:
    """Return where the lowest values are, the first ones if some are equal."""
    count = min(N_NEAREST, len(values))
    candidates = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    lowest: IntArray = candidates[np.argsort(values[candidates], kind="stable")[:count]]
    return lowest


def _reference(detector: "FusedDetector", x: FloatArray, alike: FloatArray) -> FloatArray:
    """Return the row with every feature that no row like it has brought to the nearest that has.

    A number is brought into their range. A category that none of them has becomes that
    of most of them, of the most alike if there are several.
    """
    reference = np.clip(x, alike.min(axis=0), alike.max(axis=0))
    source, categorical = detector.encoder_.source_, detector.encoder_.categorical_
    width = np.bincount(source, minlength=len(categorical))
    for j in np.flatnonzero(categorical | (width > 1)).tolist():
        columns = source == j
        theirs = alike[:, columns]
        if (theirs == x[columns]).all(axis=1).any():
            reference[columns] = x[columns]
        else:
            agree = (theirs[:, np.newaxis] == theirs).all(axis=2).sum(axis=1)
            reference[columns] = theirs[int(np.argmax(agree))]
    return reference


def _attributions(
    detector: "FusedDetector", E: FloatArray, C: FloatArray | None, reference: FloatArray
) -> FloatArray:
    """Share every score among the features; the context of a row stays as it is."""
    source, n_columns = detector.encoder_.source_, E.shape[1]
    chain = ScoreChain.of(detector)
    if C is not None:
        E, reference = np.hstack([E, C]), np.hstack([reference, C])
        source = np.append(source, np.full(C.shape[1], -1))

    def score(rows: FloatArray) -> FloatArray:
        theirs = None if C is None else rows[:, n_columns:]
        return chain.score_encoded(rows[:, :n_columns], theirs)

    return attribute_features(score, E, reference, source, detector.n_features_in_)


def _feature_names(detector: "FusedDetector") -> list[str]:
    names = getattr(detector, "feature_names_in_", None)
    return [f"x{j}" for j in range(detector.n_features_in_)] if names is None else list(names)
