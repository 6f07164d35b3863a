"""Metrics against their definitions; METHOD.md 9.2 items 8 and 12."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.metrics import (
    auc,
    average_precision,
    best_gmean,
    false_alarm_rate,
    gmean,
    missed_alarm_rate,
)

LAW = settings(deadline=None, max_examples=150)
labelled = st.lists(
    st.tuples(st.integers(-8, 8).map(float), st.sampled_from([1, -1])), min_size=2, max_size=30
).filter(lambda rows: len({label for _, label in rows}) == 2)
OF_SCORES = (auc, best_gmean, average_precision)
OF_PREDICTIONS = (gmean, false_alarm_rate, missed_alarm_rate)


def columns(rows):
    scores, y = zip(*rows, strict=True)
    return np.array(scores), np.array(y)


def predictions_of_all_thresholds(scores):
    for offset in [*np.unique(scores), scores.max() + 1.0]:
        yield np.where(scores < offset, -1, 1)


@pytest.mark.slow
@given(rows=labelled)
@LAW
def test_auc_is_the_share_of_pairs_in_order(rows):
    scores, y = columns(rows)
    differences = scores[y > 0][:, np.newaxis] - scores[y < 0]
    assert auc(y, scores) == pytest.approx(np.mean((np.sign(differences) + 1.0) / 2.0))


@pytest.mark.slow
@given(rows=labelled)
@LAW
def test_auc_is_at_least_the_squared_gmean_of_every_threshold(rows):
    scores, y = columns(rows)
    values = [gmean(y, predictions) for predictions in predictions_of_all_thresholds(scores)]
    assert max(values) == pytest.approx(best_gmean(y, scores))
    assert auc(y, scores) >= max(values) ** 2 - 1e-12


def test_the_bound_on_auc_is_reached():
    # the normals that are not above all anomalies are below all of them
    y, scores = [1, 1, -1, -1], [1.0, 0.0, 0.5, 0.5]
    assert auc(y, scores) == 0.5
    assert best_gmean(y, scores) ** 2 == pytest.approx(0.5)


def test_best_gmean_looks_at_every_threshold():
    # the best threshold is no corner of the convex parts of the ROC curve
    y, scores = [1, -1, 1, -1, -1], [0.0, 0.0, 1.0, 1.0, 2.0]
    assert best_gmean(y, scores) == pytest.approx(np.sqrt(1 / 6))


@pytest.mark.slow
@given(rows=labelled, positive=st.sampled_from([-1, 1]))
@LAW
def test_average_precision_by_its_definition(rows, positive):
    scores, y = columns(rows)
    total, before = 0.0, 0.0
    for level in np.unique(positive * scores)[::-1]:
        found = positive * scores >= level
        recall = np.mean(found[y == positive])
        total += (recall - before) * np.mean(y[found] == positive)
        before = recall
    assert average_precision(y, scores, positive) == pytest.approx(total)


def test_average_precision_looks_for_anomalies_in_low_scores():
    y = np.array([1, 1, 1, -1])
    assert average_precision(y, [3.0, 2.0, 1.0, 0.0]) == 1.0
    assert average_precision(y, [0.0, 1.0, 2.0, 3.0]) == 0.25
    assert average_precision(y, [3.0, 2.0, 1.0, 0.0], positive=1) == 1.0


@pytest.mark.slow
def test_worst_order_of_60_positives_and_7_negatives():
    y = np.repeat([-1, 1], [60, 7])
    worst = average_precision(y, np.arange(67.0)[::-1])
    harmonic = np.sum(1.0 / np.arange(8, 68))
    assert worst == pytest.approx(1.0 - 7.0 / 60.0 * harmonic, abs=1e-12)
    assert worst == pytest.approx(0.744, abs=5e-4)
    # the order could not be worse, and the other class sees the same order otherwise
    rng = np.random.default_rng(0)
    assert all(average_precision(y, rng.permutation(67)) >= worst for _ in range(200))
    assert average_precision(y, np.arange(67.0)[::-1], positive=1) < 0.1


def test_rates():
    y = [1, 1, 1, 1, -1, -1]
    predictions = [1, 1, 1, -1, 1, -1]
    assert false_alarm_rate(y, predictions) == 0.25
    assert missed_alarm_rate(y, predictions) == 0.5
    assert gmean(y, predictions) == pytest.approx(np.sqrt(0.75 * 0.5))


def test_a_rate_needs_its_own_class_only():
    assert false_alarm_rate([1, 1], [1, -1]) == 0.5
    assert missed_alarm_rate([-1, -1], [1, -1]) == 0.5


@pytest.mark.parametrize("metric", [*OF_SCORES, *OF_PREDICTIONS], ids=lambda f: f.__name__)
def test_result_is_a_plain_float(metric):
    assert type(metric([1, -1], np.array([1, -1]))) is float


@pytest.mark.parametrize("metric", [*OF_SCORES, gmean], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("y", "absent"), [([1, 1], "-1"), ([-1, -1], "1"), ([], "1")])
def test_absent_class(metric, y, absent):
    with pytest.raises(InvalidInputError, match=rf"at least one [+]?{absent}"):
        metric(y, np.ones(len(y)))


def test_absent_class_of_a_rate():
    with pytest.raises(InvalidInputError, match=r"\+1 \(normal\)"):
        false_alarm_rate([-1], [-1])
    with pytest.raises(InvalidInputError, match=r"-1 \(anomaly\)"):
        missed_alarm_rate([1], [1])


@pytest.mark.parametrize("metric", [*OF_SCORES, *OF_PREDICTIONS], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("y", "other", "message"),
    [
        ([0, 1], [1, -1], "y must hold .* Got 0"),
        ([1, -1], [1, -1, 1], "shape"),
        ([[1], [-1]], [1, -1], "shape"),
        ([0, 1, -1], [1, -1, 1], "Got 0. Leave out the rows whose label is not known"),
        ([np.nan, 1, -1], [1, -1, 1], "Got nan. Leave out the rows"),
        (["a", "b"], [1, -1], "real numbers.*as_labels makes labels of words"),
    ],
)
def test_wrong_arrays(metric, y, other, message):
    with pytest.raises(InvalidInputError, match=message):
        metric(y, other)


def test_wrong_values():
    for metric in OF_SCORES:
        with pytest.raises(InvalidInputError, match="finite"):
            metric([1, -1], [np.nan, 1.0])
    for metric in OF_PREDICTIONS:
        with pytest.raises(InvalidInputError, match="predictions must hold"):
            metric([1, -1], [0.3, 1.0])
    with pytest.raises(InvalidInputError, match="positive"):
        average_precision([1, -1], [1.0, 0.0], positive=0)
