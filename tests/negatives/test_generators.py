"""Laws of every generator of pseudo-anomalies, of each one, and of several together."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.base import BaseEstimator, clone

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.negatives import (
    Gauss,
    Generator,
    Mirror,
    Mixture,
    PCShuffle,
    Shuffle,
    Swap,
    Uniform,
    make_negatives,
)
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


MANY = 40000
second_order = pytest.mark.parametrize(
    "generator", [Gauss(), PCShuffle()], ids=lambda generator: generator.labels[0]
)


def skewed(n, m):
    """Return correlated rows, far from Gaussian, off the origin and in different units."""
    rng = np.random.default_rng(3)
    tied = rng.exponential(size=(n, m)) @ rng.standard_normal((m, m))
    return (tied + 10.0) * np.geomspace(0.1, 10.0, m)


def whitened(X, at):
    """Return the rows `at` in the coordinates in which X has mean 0 and covariance I."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(X.T, bias=True)))
    kept = values > 1e-9 * values[-1]
    return (at - X.mean(axis=0)) @ vectors[:, kept] / np.sqrt(values[kept])


@second_order
@pytest.mark.parametrize(("n", "m"), [(300, 1), (300, 5), (12, 5), (8, 20)])
def test_mean_and_covariance_are_kept(generator, n, m):
    X = skewed(n, m)
    drawn = whitened(X, generator.sample(X, MANY, 0))
    r = drawn.shape[1]
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5.0 / MANY**0.5)
    np.testing.assert_allclose(np.cov(drawn.T).reshape(r, r), np.eye(r), atol=0.1)


@second_order
def test_rows_stay_in_the_span_of_the_normals(generator):
    X = skewed(6, 15)
    left_over = generator.sample(X, 50, 0) - X.mean(axis=0)
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    left_over -= left_over @ basis.T @ basis
    assert np.abs(left_over).max() < 1e-9 * np.abs(X).max()


def test_gauss_is_gaussian():
    X = skewed(500, 3)
    drawn = whitened(X, Gauss().sample(X, 2000, 0))
    assert min(kstest(column, "norm").pvalue for column in drawn.T) > 0.001
    assert kstest((drawn**2).sum(axis=1), "chi2", args=(3,)).pvalue > 0.001


def test_pcshuffle_takes_every_coordinate_from_a_row():
    X = normals(30, 3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    U = np.linalg.svd(Z, full_matrices=False)[2].T
    drawn = (PCShuffle().sample(X, 200, 0) - X.mean(axis=0)) / X.std(axis=0) @ U
    nearest = np.abs(drawn[:, np.newaxis] - Z @ U)
    assert nearest.min(axis=1).max() < 1e-9
    rows = nearest.argmin(axis=1)
    assert np.mean(rows[:, 0] == rows[:, 1]) < 0.1


@second_order
def test_directions_of_next_to_no_spread_are_left_out(generator):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(200)
    X = np.column_stack([x, x + 1e-5 * rng.standard_normal(200)])
    drawn = generator.sample(X, 100, 0)
    gap = np.diff((drawn - X.mean(axis=0)) / X.std(axis=0), axis=1)
    assert np.abs(gap).max() < 1e-9


@second_order
def test_one_row_gives_itself(generator):
    np.testing.assert_array_equal(generator.sample([[1.5, -2.0]], 3, 0), [[1.5, -2.0]] * 3)


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_twice_the_mean_minus_a_row(X, n):
    drawn = Mirror().sample(X, n, 0)
    mirrored = 2.0 * X.mean(axis=0) - X
    tol = 1e-12 * max(1.0, np.abs(X).max())
    distance = np.abs(drawn[:, np.newaxis] - mirrored).max(axis=2)
    assert distance.min(axis=1).max() <= tol


def test_all_rows_are_used_before_one_is_repeated():
    X = normals(20)
    mirrored = 2.0 * X.mean(axis=0) - X
    drawn = Mirror().sample(X, 50, 0)
    source = np.abs(drawn[:, np.newaxis] - mirrored).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(np.sort(source[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(source[20:40]), np.arange(20))
    assert len(set(source[40:])) == 10
    assert not np.array_equal(source[:20], source[20:40])


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_keeps_the_values_of_each_column(X, n):
    drawn = Shuffle().sample(X, n, 0)
    assert all(set(drawn[:, j]) <= set(X[:, j]) for j in range(X.shape[1]))


def test_keeps_marginals_and_unties_the_columns():
    x = np.random.default_rng(1).standard_normal(500)
    X = np.column_stack([x, x, -x])
    drawn = Shuffle().sample(X, 5000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), atol=0.05)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.06


def test_a_category_is_one_feature_with_its_shares_kept():
    levels = np.repeat([0, 1, 2], [50, 30, 20])
    X = np.column_stack([levels, np.eye(3)[levels]])
    drawn = Shuffle().sample(X, 5000, 0, source=[1, 0, 0, 0])
    np.testing.assert_array_equal(drawn[:, 1:].sum(axis=1), 1.0)
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), [0.5, 0.3, 0.2], atol=0.03)
    tied = np.mean(drawn[:, 0] == drawn[:, 1:].argmax(axis=1))
    np.testing.assert_allclose(tied, 0.5**2 + 0.3**2 + 0.2**2, atol=0.03)


def numbered(n, m):
    """Return rows that tell which row each of their values is from."""
    return np.tile(np.arange(float(n))[:, np.newaxis], (1, m))


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_keeps_the_values_of_each_column_and_changes_every_row(X, n):
    drawn = Swap().sample(X, n, 0)
    assert all(set(drawn[:, j]) <= set(X[:, j]) for j in range(X.shape[1]))
    if n <= len(X) and (X[0] != X).any():
        rows = np.random.RandomState(0).permutation(len(X))[:n]
        assert (drawn != X[rows]).any(axis=1).all()


@pytest.mark.parametrize(("m", "share"), [(1, 1.0), (2, 0.75), (4, 0.375), (5, 0.3), (40, 0.3)])
def test_share_of_the_features_that_is_swapped(m, share):
    n = 4000
    drawn = Swap().sample(numbered(n, m), n, 0)
    rows = np.random.RandomState(0).permutation(n)
    swapped = drawn != rows[:, np.newaxis]
    at_least_one = share + (1.0 - share) ** m / m  # a row without any gets one
    np.testing.assert_allclose(swapped.mean(), at_least_one, atol=0.015)
    assert swapped.any(axis=1).all()


def test_constant_columns_do_not_count():
    X = np.column_stack([numbered(4000, 2), np.ones((4000, 50))])
    drawn = Swap().sample(X, 4000, 0)
    rows = np.random.RandomState(0).permutation(4000)
    swapped = (drawn != X[rows])[:, :2]
    np.testing.assert_allclose(swapped.mean(), 0.75 + 0.25**2 / 2, atol=0.015)


def test_no_row_swaps_with_itself():
    X = numbered(3, 50)
    swapped = []
    for seed in range(40):
        rows = np.random.RandomState(seed).permutation(3)
        swapped.append(Swap().sample(X, 3, seed) != X[rows])
    np.testing.assert_allclose(np.mean(swapped), 0.3, atol=0.03)


def test_swapped_features_come_from_different_rows():
    drawn = Swap().sample(numbered(100, 20), 500, 0)
    assert np.mean([len(set(row)) for row in drawn]) > 6.0


def test_keeps_marginals():
    X = np.random.default_rng(2).exponential(size=(800, 6))
    drawn = Swap().sample(X, 8000, 0)
    for q in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(
            np.quantile(drawn, q, axis=0), np.quantile(X, q, axis=0), rtol=0.05, atol=0.02
        )


def test_a_category_is_one_feature():
    levels = np.arange(3).repeat(200)
    X = np.column_stack([levels, np.eye(3)[levels]])
    drawn = Swap().sample(X, 600, 0, source=[1, 0, 0, 0])
    rows = np.random.RandomState(0).permutation(600)
    np.testing.assert_array_equal(drawn[:, 1:].sum(axis=1), 1.0)
    # two features: 0.75 of either come from another row, which has another level in 400 of 599
    changed = np.mean(drawn[:, 1:].argmax(axis=1) != levels[rows])
    forced = (1.0 - 0.75 * 400 / 599) ** 2 / 2
    np.testing.assert_allclose(changed, 0.75 * 400 / 599 + forced, atol=0.05)


@given(X=TABLES, n=COUNTS, margin=st.sampled_from([0.0, 0.25, 2.0]))
@settings(deadline=None, max_examples=50)
def test_within_the_widened_box(X, n, margin):
    drawn = Uniform(margin=margin).sample(X, n, 0)
    low, high = X.min(axis=0), X.max(axis=0)
    room = margin * (high - low) + 1e-12 * np.abs(X).max()
    assert np.all(drawn >= low - room)
    assert np.all(drawn <= high + room)


def test_fills_the_widened_box():
    drawn = Uniform(margin=0.25).sample([[0.0, -1.0], [4.0, 1.0]], 4000, 0)
    place = (drawn - [-1.0, -1.5]) / [6.0, 3.0]
    np.testing.assert_allclose(place.min(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(place.max(axis=0), 1.0, atol=0.01)
    np.testing.assert_allclose(place.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(place.var(axis=0), 1.0 / 12.0, atol=0.005)


def test_every_level_of_a_category_is_as_likely():
    X = np.eye(3)[[0] * 97 + [1, 2, 1]]
    counts = Uniform().sample(X, 6000, 0, source=[0, 0, 0]).sum(axis=0)
    np.testing.assert_allclose(counts, 2000, atol=150)


@pytest.mark.parametrize("margin", [-0.1, np.inf, np.nan])
def test_wrong_margin(margin):
    with pytest.raises(InvalidInputError, match="margin"):
        Uniform(margin=margin).sample(normals(), 3, 0)


X = np.random.default_rng(0).standard_normal((30, 3))


class Constant(BaseEstimator):
    """A generator of a user: rows of one value."""

    def __init__(self, value=0.0):
        self.value = value

    def sample(self, X, n, random_state):
        return np.full((n, X.shape[1]), self.value)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100])
def test_shares_are_equal_and_add_up(n):
    drawn = Mixture([Constant(0.0), Constant(1.0), Constant(2.0)]).sample(X, n, 0)
    counts = np.bincount(drawn[:, 0].astype(int), minlength=3)
    assert counts.sum() == n
    assert np.ptp(counts) <= 1
    assert np.all(np.diff(counts) <= 0)
    assert np.all(np.diff(drawn[:, 0]) >= 0)


def test_blocks_come_from_the_named_generators():
    drawn = Mixture(["shuffle", "mirror"]).sample(X, 20, 0)
    random = np.random.RandomState(0)
    np.testing.assert_array_equal(drawn[:10], Shuffle().sample(X, 10, random))
    np.testing.assert_array_equal(drawn[10:], Mirror().sample(X, 10, random))


def test_mixtures_nest_and_clone():
    nested = Mixture([Mixture(["mirror", "shuffle"]), "uniform"])
    assert nested.sample(X, 7, 0).shape == (7, 3)
    np.testing.assert_array_equal(clone(nested).sample(X, 7, 0), nested.sample(X, 7, 0))


@pytest.mark.parametrize("n", [1, 4, 5, 7, 100])
def test_kinds_are_those_of_the_rows(n):
    mixture = Mixture([Constant(0.0), Constant(1.0), Mixture([Constant(2.0), Constant(3.0)])])
    assert mixture.labels == ["constant"] * 4
    np.testing.assert_array_equal(mixture.kinds(n), mixture.sample(X, n, 0)[:, 0])


def test_kinds_of_the_default():
    mixture = Mixture()
    assert mixture.labels == ["gauss", "pcshuffle", "mirror", "swap", "uniform"]
    np.testing.assert_array_equal(mixture.kinds(12), [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4])
    assert len(set(map(tuple, mixture.sample(X, 500, 0)))) > 400


def test_foreign_objects_are_asked_for_rows_only_and_moved_to_patterns():
    table, source = np.column_stack([X[:, 0], np.eye(2)[np.arange(30) % 2]]), [1, 0, 0]
    drawn = Mixture([Constant(0.6), "shuffle"]).sample(table, 6, 0, source)
    np.testing.assert_array_equal(drawn[:3], [[0.6, 0.0, 1.0]] * 3)
    assert set(map(tuple, drawn[:, 1:])) == {(0.0, 1.0), (1.0, 0.0)}


def test_rows_of_foreign_objects_are_checked():
    with pytest.raises(InvalidInputError, match="constant must draw finite rows"):
        Mixture([Constant(np.nan)]).sample(X, 3, 0)


@pytest.mark.parametrize("kind", [Gauss, Mirror, Mixture, PCShuffle, Shuffle, Swap, Uniform])
def test_by_name(kind):
    name = kind.__name__.lower()
    made = make_negatives(name)
    assert type(made) is kind
    assert make_negatives(name) is not made


def test_none_object_and_list():
    assert make_negatives(None) is None
    mine = Uniform(margin=1.0)
    assert make_negatives(mine) is mine
    made = make_negatives(["mirror", mine])
    assert type(made) is Mixture
    assert isinstance(made.generators[0], Mirror)
    assert made.generators[1] is mine
    assert type(make_negatives(("mirror",))) is Mixture


@pytest.mark.parametrize("spec", ["mirrored", ["mirror", "nothing"]])
def test_unknown_name(spec):
    with pytest.raises(InvalidInputError, match="'gauss', 'mirror', 'mixture', "):
        make_negatives(spec)


@pytest.mark.parametrize("spec", [3, Mirror, [None], ["mirror", Uniform]])
def test_unusable_object(spec):
    with pytest.raises(InvalidTypeError, match="with sample"):
        make_negatives(spec)


def test_empty_and_wrong_lists():
    with pytest.raises(InvalidInputError, match="empty"):
        make_negatives([])
    for generators in ([], "mirror"):
        for ask in (lambda mixture: mixture.sample(X, 3, 0), lambda mixture: mixture.kinds(3)):
            with pytest.raises(InvalidInputError, match="at least one name"):
                ask(Mixture(generators))
    with pytest.raises(InvalidInputError, match="Got 'nothing'"):
        Mixture(["nothing"]).sample(X, 3, 0)
