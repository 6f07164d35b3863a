"""Gather what lies behind the scores of a fitted detector."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.ensemble.score import ScoreChain, Trace
from ocfuse.explain import Explanation, attribute_features, values_of

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: Nearest normal rows that an explanation names, and rows most like a row that it is compared with.
N_NEAREST = 3
#: How far a feature may count, in standard deviations, when rows most like a row are looked for:
#: what is far off in one feature is then compared with rows that agree with it in the others.
FARTHEST = 1.0
#: Numbers that are compared at a time.
NUMBERS_AT_ONCE = 2**22


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
