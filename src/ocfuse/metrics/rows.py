"""Measures of scores and predictions of independent rows."""

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.system.packages import slow


def auc(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve.

    It is the probability that a random normal row scores higher than a random anomaly; ties count
    half. For every threshold it is at least TPR times TNR, the square of `gmean`.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; both classes must occur.
    scores : array_like of shape (n,)
        Higher is more normal.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import auc
    >>> auc([1, 1, -1], [0.9, 0.4, 0.5])
    0.5
    """
    labels = checked_labels(y, needs=(1, -1))
    return float(slow("sklearn.metrics").roc_auc_score(labels, checked_scores(scores, len(labels))))


def average_precision(y: ArrayLike, scores: ArrayLike, positive: int = -1) -> float:
    """Return the average precision of finding one class.

    It depends on the share of that class: random scores get about this share, and with 60 rows of
    the class and 7 others even the worst order gets 0.744. So report the share too.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; both classes must occur.
    scores : array_like of shape (n,)
        Higher is more normal, whichever class is positive.
    positive : {-1, 1}, default=-1
        The class to find: -1 for anomalies (low scores), 1 for normal rows (high scores).

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import average_precision
    >>> average_precision([1, 1, -1], [0.9, 0.4, 0.5])
    0.5
    """
    labels = checked_labels(y, needs=(1, -1))
    if positive not in (1, -1):
        raise InvalidInputError(
            f"positive must be -1 (anomaly) or 1 (normal). Got positive={positive!r}."
        )
    evidence = positive * checked_scores(scores, len(labels))
    return float(slow("sklearn.metrics").average_precision_score(labels == positive, evidence))


def gmean(y: ArrayLike, predictions: ArrayLike) -> float:
    """Return the G-mean, sqrt(TPR TNR): the geometric mean of the hit rates of both classes.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; both classes must occur.
    predictions : array_like of shape (n,)
        Predicted labels.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import gmean
    >>> gmean([1, 1, 1, 1, -1], [1, -1, -1, -1, -1])
    0.5
    """
    checked_labels(y, needs=(1, -1))
    accepted = 1.0 - false_alarm_rate(y, predictions)
    caught = 1.0 - missed_alarm_rate(y, predictions)
    return float(np.sqrt(accepted * caught))


def best_gmean(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the G-mean at the best threshold, chosen with the true labels.

    It is an upper bound: no threshold that is set beforehand has a higher G-mean.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; both classes must occur.
    scores : array_like of shape (n,)
        Higher is more normal.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import best_gmean
    >>> best_gmean([1, 1, -1], [0.9, 0.4, 0.1])
    1.0
    """
    labels = checked_labels(y, needs=(1, -1))
    checked = checked_scores(scores, len(labels))
    # the corners that a plot can do without may hold the best product
    curve = slow("sklearn.metrics").roc_curve(labels, checked, drop_intermediate=False)
    false_normal, true_normal, _ = curve
    return float(np.sqrt(np.max(true_normal * (1.0 - false_normal))))


def false_alarm_rate(y: ArrayLike, predictions: ArrayLike) -> float:
    """Return the share of normal rows that are predicted as anomalies.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; normal rows must occur.
    predictions : array_like of shape (n,)
        Predicted labels.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import false_alarm_rate
    >>> false_alarm_rate([1, 1, 1, 1], [1, 1, 1, -1])
    0.25
    """
    return _error_rate(y, predictions, 1)


def missed_alarm_rate(y: ArrayLike, predictions: ArrayLike) -> float:
    """Return the share of anomalies that are predicted as normal.

    Parameters
    ----------
    y : array_like of shape (n,)
        True labels; anomalies must occur.
    predictions : array_like of shape (n,)
        Predicted labels.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from ocfuse.metrics import missed_alarm_rate
    >>> missed_alarm_rate([1, -1, -1], [1, 1, -1])
    0.5
    """
    return _error_rate(y, predictions, -1)


def _error_rate(y: ArrayLike, predictions: ArrayLike, label: int) -> float:
    labels = checked_labels(y, needs=(label,))
    predicted = _signs(predictions, "predictions")
    if predicted.shape != labels.shape:
        raise InvalidInputError(
            f"predictions must have shape {labels.shape}, one per label. "
            f"Got shape {predicted.shape}."
        )
    return float(np.mean(predicted[labels == label] != label))


def checked_labels(y: ArrayLike, needs: tuple[int, ...], name: str = "y") -> Int64Array:
    """Return labels +1 and -1, of which some must occur."""
    labels = _signs(y, name)
    for label in needs:
        if not np.any(labels == label):
            word = "normal" if label == 1 else "anomaly"
            raise InvalidInputError(
                f"{name} must hold at least one {label:+d} ({word}). Got {len(labels)} labels "
                "without any: the measure does not exist for them."
            )
    return labels


def _signs(labels: ArrayLike, name: str) -> Int64Array:
    signs = _real(labels, name)
    wrong = np.unique(signs[np.abs(signs) != 1.0])
    if len(wrong):
        advice = (
            "Leave out the rows whose label is not known, such as 0 and NaN."
            if np.any(signs == -1.0)
            else "Labels 0/1 with 1 = anomaly become y = 1 - 2 * labels."
        )
        raise InvalidInputError(
            f"{name} must hold +1 (normal) and -1 (anomaly) only. Got {wrong[0]:g}. {advice}"
        )
    return signs.astype(np.int64)


def checked_scores(scores: ArrayLike, n: int) -> FloatArray:
    """Return finite scores, one per label."""
    checked = _real(scores, "scores")
    if checked.shape != (n,):
        raise InvalidInputError(
            f"scores must have shape ({n},), one per label. Got shape {checked.shape}."
        )
    if not np.isfinite(checked).all():
        raise InvalidInputError(
            f"scores must be finite. Got {int((~np.isfinite(checked)).sum())} that are not."
        )
    return checked


def _real(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError) as error:
        advice = "" if name == "scores" else " ocfuse.metrics.as_labels makes labels of words."
        raise InvalidTypeError(f"{name} must hold real numbers. {error}.{advice}") from None
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must have shape (n,). Got shape {array.shape}.")
    return array
