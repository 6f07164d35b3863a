"""FusedDetector on any table: a clear refusal, or scores that keep every promise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocfuse import FusedDetector, load
from ocfuse.exceptions import InvalidInputError, OcfuseError, OcfuseWarning
from tests.hardening.tables import arrays, frames

FEW = ((0, 3), (2, 2), (12, 3), (30, 2), (6, 100))


def profile(n):
    return settings(
        max_examples=n, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def fitted(members, X, y=None):
    """Return a detector, or None if the table is refused in words."""
    refusal = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, refusal = FusedDetector(members, random_state=0), None
        try:
            model.fit(X, y)
        except OcfuseError as error:
            model, refusal = None, error
    strange = [w for w in caught if not issubclass(w.category, OcfuseWarning)]
    assert not strange, strange[0]
    assert refusal is None or (isinstance(refusal, ValueError) and len(str(refusal).split()) > 4)
    return model


def take(X, rows):
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


def check_promises(model, X, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OcfuseWarning)
        scores = model.score_samples(X)
        order = np.random.default_rng(0).permutation(len(scores))
        shuffled = model.score_samples(take(X, order))
        single = np.concatenate([model.score_samples(take(X, [i])) for i in order[:3]])
        again = model.score_samples(X)
        loaded = load(model.save(folder / "model.ocf")).score_samples(X)
        predicted, chances, values = model.predict(X), model.predict_proba(X), model.p_values(X)
    assert np.isfinite(scores).all()
    assert np.isfinite(model.offset_)
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(loaded, scores)
    np.testing.assert_allclose(shuffled, scores[order], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(single, scores[order[:3]], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(predicted, np.where(scores >= model.offset_, 1, -1))
    assert ((chances >= 0) & (chances <= 1)).all()
    assert ((values > 0) & (values <= 1)).all()


def check(members, X, folder, y=None, *, is_repeated=False):
    model = fitted(members, X, y)
    if model is None:
        return
    check_promises(model, X, folder)
    if is_repeated:
        twin = fitted(members, X, y)
        np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@profile(20)
@given(X=arrays())
def test_arrays_with_the_light_pool(folder, X):
    check("light", X, folder, is_repeated=True)


@profile(15)
@given(X=frames())
def test_frames_with_the_light_pool(folder, X):
    check("light", X, folder)


@profile(5)
@given(X=arrays(FEW))
def test_arrays_with_the_default_pool(folder, X):
    check("default", X, folder)


@profile(3)
@given(X=arrays(((12, 3), (30, 2))), seed=st.integers(0, 100))
def test_labels(folder, X, seed):
    labels = np.random.default_rng(seed).choice([1, 1, 1, 0, -1], size=len(X))
    check("light", X, folder, labels)


def test_many_more_columns_than_rows(folder):
    """Rows of two kinds lie in the directions of a mixture, all but for rounding errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 1000))[rng.integers(2, size=6)]
    check_promises(fitted("light", X), X, folder)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        ([[1.0], [np.inf]], "infinity"),
        (np.array([[np.inf], [-np.inf]], dtype="f4"), "infinity"),
        ([[1j], [2j]], "Complex data not supported. Give real and imaginary parts"),
        ([1.0, 2.0], "Reshape your data"),
    ],
)
def test_what_is_no_table_of_numbers(X, message):
    with pytest.raises(InvalidInputError, match=message):
        FusedDetector("light").fit(X)
