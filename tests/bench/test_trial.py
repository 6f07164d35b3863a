"""Rows of a repetition: filled and scaled by training normals, the test apart."""

import numpy as np
import pytest

from ocfuse.bench.splits import draw
from ocfuse.bench.trial import fill, prepare, standardise
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
