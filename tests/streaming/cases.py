"""A stream that is quick to learn."""

import warnings

import numpy as np

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.exceptions import FewSamplesWarning
from ocfuse.streaming import StreamDetector

MEMBERS = [("gmm", GMM(1)), ("knn", KNN(3))]


def normal(n, seed, c=3):
    """Autocorrelated noise around a level, correlated channels."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n + 20, c)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])[:c, :c]
    kernel = np.ones(4) / 2
    return np.column_stack([np.convolve(x, kernel, "valid")[:n] for x in noise.T]) + 10


def quick(false_alarm_rate=0.02, fusion=None, windows=(5,), **params):
    detector = FusedDetector(
        MEMBERS, fusion=fusion, false_alarm_rate=false_alarm_rate, random_state=0
    )
    return StreamDetector(detector, windows=windows, **params)


def learned(stream, X, *args, **given):
    """Fit a stream detector, which may tell that one run says nothing of others."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 run tells", FewSamplesWarning)
        return stream.fit(X, *args, **given)


def fitted(n=400, time=None, context=None, **params):
    stream = quick(**{"windows": (5, 12)} | params)
    return learned(stream, normal(n, 0), np.ones(n), time=time, context=context)
