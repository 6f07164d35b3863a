"""Rows of a repetition: filled and scaled by training normals, the test apart."""

import numpy as np
import pytest

from ocfuse.lab.paper.repetitions import (
    KnownRows,
    Repetition,
    draw,
    fill,
    prepare,
    repeated,
    standardise,
)
from tests.bench.cases import load_toy


@pytest.fixture
def data():
    return load_toy("toy")


@pytest.mark.parametrize("protocol", ["pure", "non-pure"])
def test_training_normals_set_the_scale(data, protocol):
    split = draw(data.y, "toy", protocol, 0)
    trial = prepare(data.X, split)
    np.testing.assert_allclose(trial.known.train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(trial.known.train.std(axis=0), 1.0)
    assert trial.is_normal.sum() == len(split.test)
    assert len(trial.test) == len(split.test) + len(split.test_anomalies)
    median = np.nanmedian(data.X[split.train], axis=0)
    filled = np.where(np.isnan(data.X), median, data.X)
    scale = filled[split.train].std(axis=0)
    expected = (filled[split.test_anomalies] - filled[split.train].mean(axis=0)) / scale
    np.testing.assert_allclose(trial.test[~trial.is_normal], expected)


def test_other_rows_do_not_change_what_is_known(data):
    split = draw(data.y, "toy", "non-pure", 0)
    spoilt = data.X.copy()
    spoilt[split.test + split.test_anomalies] = 1e3
    before, after = prepare(data.X, split).known, prepare(spoilt, split).known
    for name in ("train", "validation", "train_anomalies", "validation_anomalies"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_column_without_values_or_spread():
    X = np.array([[np.nan, 2.0], [np.nan, 2.0], [5.0, 3.0], [np.nan, np.nan]])
    filled = fill(X, X[:2])
    np.testing.assert_array_equal(filled, [[0, 2], [0, 2], [5, 3], [0, 2]])
    np.testing.assert_array_equal(standardise(filled, filled[:2])[2], [5.0, 1.0])


@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -1e-9 / 7])
def test_rounding_is_no_spread(value):
    known = np.full((67, 1), value)
    assert known.std() > 0  # the mean is off in the last bits
    other = np.array([[value + 1.0]])
    np.testing.assert_allclose(standardise(other, known), 1.0, rtol=1e-6)


def test_little_spread_is_spread():
    known = 1.0 + 1e-9 * np.arange(10.0)[:, np.newaxis]
    np.testing.assert_allclose(standardise(known, known).std(), 1.0, rtol=1e-5)


def test_rows_that_repeat_training_rows_are_counted():
    train = np.array([[0.0, 1.0], [2.0, 3.0]])
    test = np.array([[-0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 3.5], [2.0, 3.0], [5.0, 5.0]])
    trial = Repetition(KnownRows(train, train, train[:0], train[:0], 0), test, np.arange(6) < 4)
    assert repeated(trial) == {"normals": 50.0, "anomalies": 50.0}
