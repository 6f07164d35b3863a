"""The rows of one repetition: what may be learned from, and the test apart from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.splits import Split

FloatArray = NDArray[np.float64]

#: Largest deviation, relative to the values, that rounding may leave of equal ones.
ROUNDING = 10.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Known:
    """All that a system may learn, choose and set its threshold from: no test row.

    Parameters
    ----------
    train, validation : ndarray of shape (n, m) and (v, m)
        Normals, gaps filled, standardised on `train`.
    train_anomalies, validation_anomalies : ndarray of shape (k, m)
        Known anomalies; none in the pure protocol.
    seed : int
        For everything random.
    """

    train: FloatArray
    validation: FloatArray
    train_anomalies: FloatArray
    validation_anomalies: FloatArray
    seed: int


@dataclass(frozen=True, eq=False)
class Trial:
    """What is known, and the rows to be told apart.

    Parameters
    ----------
    known : Known
        What systems are given.
    test : ndarray of shape (t, m)
        Rows to be scored.
    is_normal : ndarray of shape (t,)
        The truth about them, for the measuring only.
    """

    known: Known
    test: FloatArray
    is_normal: NDArray[np.bool_]


def prepare(X: FloatArray, split: Split) -> Trial:
    """Fill gaps by medians of the training normals, and standardise by them.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        The rows of the set, with NaN for gaps.
    split : Split
        Which row is for what.

    Returns
    -------
    Trial
        The rows.
    """
    complete = fill(X, X[split.train])
    scaled = standardise(complete, complete[split.train])
    known = Known(
        scaled[split.train],
        scaled[split.validation],
        scaled[split.train_anomalies],
        scaled[split.validation_anomalies],
        split.seed,
    )
    test = scaled[[*split.test, *split.test_anomalies]]
    return Trial(known, test, np.arange(len(test)) < len(split.test))


def fill(X: FloatArray, known: FloatArray) -> FloatArray:
    """Fill gaps by the medians of known rows, or by 0 in a column that they lack."""
    empty = np.isnan(known).all(axis=0)
    median = np.nanmedian(np.where(empty, 0.0, known), axis=0)
    return np.where(np.isnan(X), median, X)


def standardise(X: FloatArray, known: FloatArray) -> FloatArray:
    """Bring known rows to mean 0 and variance 1; a constant column is only shifted.

    The mean of equal values may be off in the last bits, so that their deviation is
    not 0: what is not above rounding counts as none.
    """
    centre, scale = known.mean(axis=0), known.std(axis=0)
    noise = ROUNDING * np.abs(known).max(axis=0)
    return np.asarray((X - centre) / np.where(scale > noise, scale, 1.0))


def repeated(trial: Trial) -> dict[str, float]:
    """Return how many test rows, in %, equal a training normal in all columns.

    Parameters
    ----------
    trial : Trial
        The rows.

    Returns
    -------
    dict
        Of the "normals" and of the "anomalies" of the test.
    """
    # the sum turns -0 into 0, which has other bytes
    train = {row.tobytes() for row in trial.known.train + 0.0}
    is_known = np.array([row.tobytes() in train for row in trial.test + 0.0])
    parts = {"normals": trial.is_normal, "anomalies": ~trial.is_normal}
    return {name: round(100.0 * float(is_known[part].mean()), 4) for name, part in parts.items()}
