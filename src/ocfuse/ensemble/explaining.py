"""Gather what lies behind the scores of a fitted detector."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ocfuse.explain import Explanation, attribute_features

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: Nearest normal rows that an explanation names.
N_NEAREST = 3


def explanation(detector: "FusedDetector", X: Any, context: Any) -> Explanation:
    """Return what lies behind the scores of rows; see `FusedDetector.explain`."""
    E = detector._encode(X)
    S = detector.pool_.score_samples(E)
    Z = detector.normaliser_.transform(S)
    C = detector._situation(context, len(E))
    base, contributions = detector.fusion_.contributions(Z, E, C)
    score = detector.fusion_.fuse(Z, E, C)
    distances, nearest = _nearest(detector.training_, E)
    return Explanation(
        score=score,
        offset=detector.offset_,
        p_value=detector.conformal_.p_values(score),
        member_names=list(detector.pool_.names_),
        member_scores=S,
        normalised_scores=Z,
        weights=detector.fusion_.weights(E, C),
        base=base,
        contributions=contributions,
        local_p=detector.fusion_.local_p(E, C),
        nearest_rows=detector.training_rows_[nearest],
        nearest_distances=distances,
        feature_names=_feature_names(detector),
        attributions=_attributions(detector, E, C, detector.training_[nearest[:, 0]]),
    )


def _nearest(training: FloatArray, E: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return distances to the nearest training rows, and their positions."""
    index = NearestNeighbors(n_neighbors=min(N_NEAREST, len(training)))
    distances, nearest = index.fit(training).kneighbors(E)
    return distances, nearest


def _attributions(
    detector: "FusedDetector", E: FloatArray, C: FloatArray | None, reference: FloatArray
) -> FloatArray:
    """Share every score among the features; the context of a row stays as it is."""
    shares = []
    for i in range(len(E)):
        here = None if C is None else C[i]

        def score(rows: FloatArray, here: FloatArray | None = here) -> FloatArray:
            context = None if here is None else np.tile(here, (len(rows), 1))
            return detector._score(rows, context)

        row = slice(i, i + 1)
        source = detector.encoder_.source_
        shares.append(attribute_features(score, E[row], reference[row], source))
    return np.vstack(shares)


def _feature_names(detector: "FusedDetector") -> list[str]:
    names = getattr(detector, "feature_names_in_", None)
    return [f"x{j}" for j in range(detector.n_features_in_)] if names is None else list(names)
