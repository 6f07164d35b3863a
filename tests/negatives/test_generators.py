"""Laws that hold for every generator of pseudo-anomalies."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives import Gauss, Generator, Mirror, Mixture, PCShuffle, Shuffle, Swap, Uniform
from tests.negatives.cases import COUNTS, TABLES, normals, one_hot_table

LAW = settings(deadline=None, max_examples=25)
ALL = [
    Gauss(),
    PCShuffle(),
    Mirror(),
    Swap(),
    Uniform(),
    Uniform(margin=0.0),
    Shuffle(),
    Mixture(),
    Mixture(["shuffle"]),
]
every = pytest.mark.parametrize("generator", ALL, ids=repr)


@pytest.mark.slow
@every
@given(X=TABLES, n=COUNTS, seed=st.integers(0, 1000))
@LAW
def test_shape_seed_kinds_and_constant_columns(generator, X, n, seed):
    before = X.copy()
    drawn = generator.sample(X, n, seed)
    assert drawn.shape == (n, X.shape[1])
    assert drawn.dtype == np.float64
    assert np.isfinite(drawn).all()
    assert generator.kinds(n).shape == (n,)
    np.testing.assert_array_equal(drawn, clone(generator).sample(X, n, random_state=seed))
    np.testing.assert_array_equal(X, before)
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_array_equal(drawn[:, constant], np.tile(X[0, constant], (n, 1)))


@every
def test_constant_columns_are_not_moved_by_rounding(generator):
    X = np.column_stack([normals(30, 2), np.full((30, 2), [0.1, 1e17 / 3.0])])
    drawn = generator.sample(X, 50, 0)
    np.testing.assert_array_equal(drawn[:, 2:], np.tile(X[0, 2:], (50, 1)))


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


@every
def test_units_and_origin_of_the_columns_do_not_matter(generator):
    X = normals()
    units = np.array([1e-200, 1e-6, 1.0, 1e250])
    expected = generator.sample(X, 40, 0)
    np.testing.assert_allclose(generator.sample(X * units, 40, 0) / units, expected, atol=1e-8)
    np.testing.assert_allclose(generator.sample(X + 50.0, 40, 0) - 50.0, expected, atol=1e-8)


@every
@given(seed=st.integers(0, 1000), n=COUNTS)
@LAW
def test_blocks_hold_patterns_that_occur(generator, seed, n):
    X, source = one_hot_table(seed)
    drawn = generator.sample(X, n, seed, source)
    assert drawn.shape == (n, len(source))
    for number in np.unique(source):
        block = source == number
        if block.sum() > 1:
            patterns = set(map(tuple, X[:, block]))
            assert set(map(tuple, drawn[:, block])) <= patterns


@every
def test_columns_without_company_are_no_block(generator):
    X = normals()
    expected = generator.sample(X, 20, 0)
    np.testing.assert_array_equal(generator.sample(X, 20, 0, source=[3, 0, 2, 9]), expected)


@every
def test_kinds_of_a_single_generator(generator):
    if isinstance(generator, Mixture):
        return
    np.testing.assert_array_equal(generator.kinds(3), [0, 0, 0])
    assert generator.labels == [type(generator).__name__.lower()]


class Ones(Generator):
    """A generator of a user: it knows nothing of blocks."""

    def _draw(self, X, n, random):
        return [[1.0] * X.shape[1]] * n


def test_own_generator_is_moved_to_the_first_of_the_nearest_patterns():
    X = [[0.0, 1.0, 0.0, 5.0], [1.0, 0.0, 0.0, 6.0]]
    np.testing.assert_array_equal(Ones().sample(X, 2), np.ones((2, 4)))
    drawn = Ones().sample(X, 2, source=[7, 7, 7, 1])
    np.testing.assert_array_equal(drawn, [[0.0, 1.0, 0.0, 1.0]] * 2)
    assert Ones().labels == ["ones"]


@pytest.mark.parametrize("rows", [np.ones((2, 4)), np.ones(3), np.full((3, 4), np.nan)])
def test_rows_of_ones_own_are_checked(rows):
    class Wrong(Generator):
        def _draw(self, X, n, random):
            return rows

    with pytest.raises(InvalidInputError, match=r"wrong must draw finite rows of shape \(3, 4\)"):
        Wrong().sample(normals(), 3)


@every
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "shape"),
        (np.empty((0, 2)), "shape"),
        (np.empty((2, 0)), "shape"),
        ([[np.nan]], "finite"),
        ([[-1e301]], "within"),
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
    with pytest.raises(InvalidInputError, match="n must be a positive integer"):
        generator.kinds(n)


@every
@pytest.mark.parametrize("source", [[0, 1], [[0, 1, 2, 3]], 1])
def test_wrong_sources(generator, source):
    with pytest.raises(InvalidInputError, match="one number for each of the 4 columns"):
        generator.sample(normals(), 3, 0, source)


@every
def test_saved_and_loaded(generator):
    data = skops.io.dumps(generator)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(
        loaded.sample(normals(), 20, 3), generator.sample(normals(), 20, 3)
    )
