"""Members that score a picture as a whole."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.base import core_rows, require_count
from ocfuse.detectors.pool import make_pool
from ocfuse.ensemble import FusedDetector
from ocfuse.exceptions import FewSamplesWarning, PseudoNegativeWarning, ThresholdWarning
from ocfuse.groups import Groups
from ocfuse.vision.features import Features
from ocfuse.vision.patches import PictureMember, at


class PooledMembers(PictureMember):
    """A `FusedDetector` of the principal components of the pooled features.

    Parameters
    ----------
    detector : FusedDetector, default=None
        The detector; a clone of it is fitted. None is `pooled_detector()`.
    n_components : int, default=None
        Number of components. None is 256, but at most one per three pictures.
    max_pictures : int, default=1000
        Most pictures to learn from, evenly spaced.

    Attributes
    ----------
    mean_ : ndarray of shape (c,)
        Mean of the features.
    components_ : ndarray of shape (c, k)
        Principal components.
    detector_ : FusedDetector
        The fitted detector.
    """

    detector_: FusedDetector

    def __init__(
        self,
        detector: FusedDetector | None = None,
        n_components: int | None = None,
        max_pictures: int = 1000,
    ) -> None:
        self.detector = detector
        self.n_components = n_components
        self.max_pictures = max_pictures

    def learn(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        rows: IntArray | None = None,
    ) -> "PooledMembers":
        """Learn what is normal; pictures of one fold do not judge each other."""
        require_count("max_pictures", self.max_pictures, 10, "A thousand is usual.")
        rows = np.arange(len(features)) if rows is None else rows
        rows = rows[core_rows(len(rows), self.max_pictures)]
        X = features.pooled[rows].astype(np.float64)
        self.mean_, self.components_ = _principal(X, self.n_components)
        self.detector_ = clone(pooled_detector() if self.detector is None else self.detector)
        groups = fold.take(rows)
        with warnings.catch_warnings():
            # on the threshold of this detector, which nobody uses, and on its fusion alone
            for kind in (FewSamplesWarning, ThresholdWarning, PseudoNegativeWarning):
                warnings.simplefilter("ignore", kind)
            self.detector_.fit(
                (X - self.mean_) @ self.components_,
                groups=groups if len(set(groups.label.tolist())) > 1 else None,
                **_given(at(context, rows)),
            )
        return self

    def score(self, features: Features, context: FloatArray | None = None) -> FloatArray:
        """Return one score per picture, higher = more normal."""
        X = (features.pooled.astype(np.float64) - self.mean_) @ self.components_
        return np.asarray(self.detector_.score_samples(X, **_given(context)))


def pooled_detector(seed: int = 0) -> FusedDetector:
    """Return the usual detector of pooled features, not fitted.

    Principal components of one scale are white, so that of the default members those that
    whiten first, and the Mahalanobis distance beside a Gaussian, would say the same twice.
    """
    repeated = ("maha", "wknn-5", "wkpca-1")
    members = [pair for pair in make_pool("default") if pair[0] not in repeated]
    return FusedDetector(members, random_state=seed)


def _given(context: FloatArray | None) -> dict[str, Any]:
    return {} if context is None else {"context": context}


def _principal(X: FloatArray, wanted: int | None) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the principal components of rows."""
    n, c = X.shape
    # with fewer than three pictures each, components follow the training pictures themselves
    most = min(256, n // 3) if wanted is None else wanted
    k = max(1, min(most, n - 1, c))
    mean = X.mean(axis=0)
    if n < c:  # a hundredth of the time of what follows, if there are thousands of features
        components = np.linalg.svd(X - mean, full_matrices=False)[2][:k].T
    else:
        components = np.linalg.eigh((X - mean).T @ (X - mean))[1][:, ::-1][:, :k]
    # the sign of an eigenvector is chance
    signs = np.sign(components[np.abs(components).argmax(axis=0), np.arange(k)])
    return mean, components * signs
