"""Splits, and the rows of a repetition: filled and scaled by training normals, the test apart."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.repetitions import (
    PROTOCOLS,
    Repetition,
    Split,
    draw,
    fill,
    prepare,
    repeated,
    standardise,
)
from ocfuse.paper import KnownRows
from tests.lab.paper.cases import load_toy

PARTS = (
    "train",
    "validation",
    "test",
    "train_anomalies",
    "validation_anomalies",
    "test_anomalies",
)


def labels(n, m):
    return np.random.default_rng(n + m).permutation(np.repeat([1, -1], [n, m]))


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(10, 400),
    m=st.integers(8, 300),
    seed=st.integers(0, 10**6),
    protocol=st.sampled_from(PROTOCOLS),
)
def test_every_row_is_in_one_part(n, m, seed, protocol):
    y = labels(n, m)
    split = draw(y, "any", protocol, seed)
    rows = [row for part in PARTS for row in getattr(split, part)]
    assert sorted(rows) == list(range(n + m))
    for part in PARTS:
        assert (y[getattr(split, part)] == (-1 if "anomalies" in part else 1)).all()
    assert len(split.train) == round(0.7 * n)
    assert abs(len(split.validation) - 0.2 * n) <= 1
    known = 0 if protocol == "pure" else round(0.2 * m)
    assert len(split.train_anomalies) == known // 2
    assert len(split.train_anomalies) + len(split.validation_anomalies) == known


def test_protocols_share_their_normals():
    y = labels(100, 50)
    pure, other = (draw(y, "any", protocol, 3) for protocol in PROTOCOLS)
    assert (pure.train, pure.validation, pure.test) == (other.train, other.validation, other.test)


def test_split_depends_on_seed_and_set_only():
    y = labels(100, 50)
    assert draw(y, "any", "pure", 3) == draw(y, "any", "pure", 3)
    assert draw(y, "any", "pure", 3).train != draw(y, "any", "pure", 4).train
    assert draw(y, "any", "pure", 3).train != draw(y, "other", "pure", 3).train


def test_split_is_the_same_for_ever():
    split = draw([1] * 10 + [-1] * 10, "toy", "non-pure", 0)
    assert split.train == [9, 4, 2, 3, 5, 6, 8]
    assert split.train_anomalies == [16]


def test_record_is_read_again():
    split = draw(labels(30, 20), "any", "non-pure", 1)
    assert Split.read(json.loads(json.dumps(split.record()))) == split


def test_unknown_protocol():
    with pytest.raises(InvalidInputError, match="protocol must be one of"):
        draw([1, -1], "any", "dirty", 0)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([[1, -1]], "the shape"),
        ([1, 0, 1, 0], r"Got \[0\] too"),
        ([1.5, -1], "1.5"),
        (["normal", "odd"], "must hold"),
        ([], "Every part"),
        ([1] * 5 + [-1] * 9, "validation"),
        ([1] * 20, "test_anomalies"),
    ],
)
def test_labels_that_cannot_be_split(y, words):
    with pytest.raises(InvalidInputError, match=words):
        draw(y, "any", "pure", 0)


def test_few_anomalies_cannot_be_known():
    y = [1] * 10 + [-1] * 7
    with pytest.raises(InvalidInputError, match="none for train_anomalies"):
        draw(y, "any", "non-pure", 0)
    assert len(draw(y, "any", "pure", 0).test_anomalies) == 7
    assert len(draw([*y, -1], "any", "non-pure", 0).train_anomalies) == 1
    assert len(draw(y[4:], "any", "pure", 0).validation) == 1


@pytest.mark.parametrize("seed", [-1, 1.5, "3", None, True])
def test_seed_must_be_a_count(seed):
    with pytest.raises(InvalidInputError, match="seed must be"):
        draw(labels(20, 10), "any", "pure", seed)


def test_seed_of_numpy_is_stored_as_a_number():
    split = draw(labels(20, 10), "any", "pure", np.int64(3))
    assert split == draw(labels(20, 10), "any", "pure", 3)
    json.dumps(split.record())


@pytest.mark.parametrize(
    "change", [{"train": 3}, {"train": ["a"]}, {"test": [-1]}, {"seed": "0"}, {"name": None}]
)
def test_what_is_no_split_is_not_read(change):
    record = draw(labels(20, 10), "any", "pure", 0).record()
    for wrong in (record | change, {}, [], None):
        with pytest.raises(InvalidInputError, match="must be a split"):
            Split.read(wrong)


@pytest.mark.parametrize("change", [{"train": []}, {"test_anomalies": []}, {"protocol": "dirty"}])
def test_impossible_split_is_not_read(change):
    record = draw(labels(20, 10), "any", "pure", 0).record()
    assert Split.read(record).train_anomalies == []
    with pytest.raises(InvalidInputError, match=r"must have rows|protocol must be"):
        Split.read(record | change)


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
