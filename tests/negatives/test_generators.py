"""Laws of the generators of pseudo-anomalies."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives import Mirror, Mixture, Shuffle, Uniform

LAW = settings(deadline=None, max_examples=60)
ALL = [Mirror(), Uniform(), Uniform(margin=0.0), Shuffle(), Mixture(), Mixture(["shuffle"])]
every = pytest.mark.parametrize("generator", ALL, ids=repr)
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))
#: One row, one column, fewer rows than columns, constant and discrete columns.
TABLES = st.tuples(st.integers(1, 8), st.integers(1, 12)).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=VALUES)
)
COUNTS = st.integers(1, 25)


def normals(n=60, m=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)) @ rng.standard_normal((m, m))


@every
@given(X=TABLES, n=COUNTS, seed=st.integers(0, 1000))
@LAW
def test_shape_seed_and_constant_columns(generator, X, n, seed):
    before = X.copy()
    drawn = generator.sample(X, n, seed)
    assert drawn.shape == (n, X.shape[1])
    assert drawn.dtype == np.float64
    assert np.isfinite(drawn).all()
    np.testing.assert_array_equal(drawn, clone(generator).sample(X, n, random_state=seed))
    np.testing.assert_array_equal(X, before)
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_array_equal(drawn[:, constant], np.tile(X[0, constant], (n, 1)))


@every
def test_seeds_differ_and_generators_of_numbers_move_on(generator):
    X = normals()
    assert not np.array_equal(generator.sample(X, 30, 0), generator.sample(X, 30, 1))
    random = np.random.RandomState(0)
    first = generator.sample(X, 30, random)
    np.testing.assert_array_equal(first, generator.sample(X, 30, 0))
    assert not np.array_equal(first, generator.sample(X, 30, random))


@every
def test_global_random_numbers_are_left_alone(generator):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    generator.sample(normals(), 10, 0)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@given(X=TABLES, n=COUNTS)
@LAW
def test_mirror_is_twice_the_mean_minus_a_row(X, n):
    drawn = Mirror().sample(X, n, 0)
    mirrored = 2.0 * X.mean(axis=0) - X
    tol = 1e-12 * max(1.0, np.abs(X).max())
    distance = np.abs(drawn[:, np.newaxis] - mirrored).max(axis=2)
    assert distance.min(axis=1).max() <= tol


def test_mirror_uses_all_rows_before_it_repeats_one():
    X = normals(20)
    mirrored = 2.0 * X.mean(axis=0) - X
    drawn = Mirror().sample(X, 50, 0)
    source = np.abs(drawn[:, np.newaxis] - mirrored).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(np.sort(source[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(source[20:40]), np.arange(20))
    assert len(set(source[40:])) == 10
    assert not np.array_equal(source[:20], source[20:40])


@given(X=TABLES, n=COUNTS, margin=st.sampled_from([0.0, 0.25, 2.0]))
@LAW
def test_uniform_is_in_the_widened_box(X, n, margin):
    drawn = Uniform(margin=margin).sample(X, n, 0)
    low, high = X.min(axis=0), X.max(axis=0)
    room = margin * (high - low) + 1e-12 * np.abs(X).max()
    assert np.all(drawn >= low - room)
    assert np.all(drawn <= high + room)


def test_uniform_fills_the_widened_box():
    drawn = Uniform(margin=0.25).sample([[0.0, -1.0], [4.0, 1.0]], 4000, 0)
    place = (drawn - [-1.0, -1.5]) / [6.0, 3.0]
    np.testing.assert_allclose(place.min(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(place.max(axis=0), 1.0, atol=0.01)
    np.testing.assert_allclose(place.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(place.var(axis=0), 1.0 / 12.0, atol=0.005)


@given(X=TABLES, n=COUNTS)
@LAW
def test_shuffle_keeps_the_values_of_each_column(X, n):
    drawn = Shuffle().sample(X, n, 0)
    assert all(set(drawn[:, j]) <= set(X[:, j]) for j in range(X.shape[1]))


def test_shuffle_keeps_marginals_and_unties_the_columns():
    x = np.random.default_rng(1).standard_normal(500)
    X = np.column_stack([x, x, -x])
    drawn = Shuffle().sample(X, 5000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), atol=0.05)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.06


@every
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "shape"),
        (np.empty((0, 2)), "shape"),
        (np.empty((2, 0)), "shape"),
        ([[np.nan]], "finite"),
        ([["a"]], "real numbers"),
    ],
)
def test_wrong_tables(generator, X, message):
    with pytest.raises(InvalidInputError, match=message):
        generator.sample(X, 3, 0)


@every
@pytest.mark.parametrize("n", [0, -1, 2.0, "3", True, None])
def test_wrong_counts(generator, n):
    with pytest.raises(InvalidInputError, match="n must be a positive integer"):
        generator.sample(normals(), n, 0)


@pytest.mark.parametrize("margin", [-0.1, np.inf, np.nan])
def test_wrong_margin(margin):
    with pytest.raises(InvalidInputError, match="margin"):
        Uniform(margin=margin).sample(normals(), 3, 0)


@every
def test_saved_and_loaded(generator):
    data = skops.io.dumps(generator)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(
        loaded.sample(normals(), 20, 3), generator.sample(normals(), 20, 3)
    )
