"""Laws of the normalisers, and the lowest of several detectors' scores."""

import joblib
import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.scores import MinMax, RobustZ, TailProbability, ZScore, join_lowest, make_normaliser

AFFINE = [ZScore(), MinMax(), MinMax(rho=0), MinMax(rho=49.0), RobustZ()]
ALL = [*AFFINE, TailProbability()]
every = pytest.mark.parametrize("normaliser", ALL, ids=repr)
LAW = settings(deadline=None, max_examples=30)

#: Whole numbers, so that ties and constant columns are frequent.
COARSE = st.integers(-6, 6).map(float)
#: Multiples of 1/1024 up to 1000: differences are exact.
FINE = st.integers(-(2**20), 2**20).map(lambda k: k / 1024.0)
SCORES = st.one_of(COARSE, FINE)


def tables(elements=SCORES, max_rows=30):
    shape = st.tuples(st.integers(1, max_rows), st.integers(1, 3))
    return shape.flatmap(lambda size: hnp.arrays(np.float64, size, elements=elements))


def gaussian_and_skewed(n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.standard_normal(n), -rng.gamma(1.0, 3.0, n), rng.random(n) ** 3])


# -- what each of them is ------------------------------------------------------------------


def test_z_score_has_mean_zero_and_deviation_one():
    S = gaussian_and_skewed(200, 0)
    Z = ZScore().fit(S).transform(S)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)


@pytest.mark.parametrize("rho", [0.0, 1.0, 5.0, 10.0, 25.0])
def test_min_max_maps_the_percentiles_to_zero_and_one(rho):
    S = gaussian_and_skewed(400, 1)
    Z = MinMax(rho=rho).fit(S).transform(S)
    ends = np.percentile(Z, [rho, 100.0 - rho], axis=0, method="hazen")
    np.testing.assert_allclose(ends, [[0.0] * 3, [1.0] * 3], atol=1e-12)


def test_robust_z_is_scipys_scaled_mad():
    S = gaussian_and_skewed(201, 2)
    fitted = RobustZ().fit(S)
    np.testing.assert_allclose(fitted.shift_, np.median(S, axis=0))
    np.testing.assert_allclose(fitted.scale_, stats.median_abs_deviation(S, scale="normal"))


def test_robust_z_ignores_a_spoilt_minority():
    S = gaussian_and_skewed(200, 3)
    spoilt = S.copy()
    spoilt[:20] = -1e9
    clean, robust = RobustZ().fit(S), RobustZ().fit(spoilt)
    assert np.all(np.abs(robust.shift_ - clean.shift_) < 0.5 * clean.scale_)
    assert np.all(np.abs(np.log(robust.scale_ / clean.scale_)) < np.log(2.0))
    # the law can fail: the z-score loses all resolution
    assert np.all(ZScore().fit(spoilt).scale_ > 1e6 * ZScore().fit(S).scale_)


@pytest.mark.parametrize(
    ("column", "scale"),
    [
        ([0.0] * 6 + [-1.0] * 4 + [1.0], stats.iqr([0.0] * 6 + [-1.0] * 4 + [1.0]) * 0.7413011),
        ([0.0] * 9 + [-1.0], 0.3),
        ([-3.0] * 5, 3.0),
        ([0.25] * 5, 1.0),
    ],
    ids=["iqr", "sd", "magnitude", "one"],
)
def test_robust_z_falls_back_when_most_normals_tie(column, scale):
    fitted = RobustZ().fit(np.array(column)[:, np.newaxis])
    assert fitted.scale_[0] == pytest.approx(scale)


def test_tail_probability_is_uniform_on_fresh_normals():
    fitted = TailProbability().fit(gaussian_and_skewed(4000, 4))
    for column in fitted.transform(gaussian_and_skewed(4000, 5)).T:
        # the distance of two samples of 4,000; 0.043 has probability 0.1 %
        assert stats.kstest(column, "uniform").statistic < 0.043


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 10, 40])
def test_tail_probability_has_the_right_mass_below_the_lowest_normal(n):
    rng = np.random.default_rng(n)
    # One column per trial: columns are independent.
    normals, fresh = rng.standard_normal((n, 2000)), rng.standard_normal((1, 2000))
    below = TailProbability().fit(normals).transform(fresh)[0]
    level = 1.0 / (n + 1)
    # extrapolated levels are right to a third of themselves, and 4 standard errors
    assert abs(np.mean(below < level) - level) < level / 3 + 4 * np.sqrt(level / 2000)
    assert np.mean(below) == pytest.approx(0.5, abs=0.03)


def test_tail_probability_keeps_far_anomalies_apart():
    fitted = TailProbability().fit(gaussian_and_skewed(300, 6))
    far = -np.logspace(1, 100, 200)[:, np.newaxis] * np.ones(3)
    tails = fitted.transform(far)
    assert np.all(np.diff(tails, axis=0) < 0)
    assert np.all(tails > 0)
    near_one = fitted.transform(np.logspace(1, 5, 50)[:, np.newaxis] * np.ones(3))
    assert np.all(np.diff(near_one, axis=0) > 0)
    assert np.all(near_one < 1)


@pytest.mark.parametrize("value", [1e308, -1e308])
@pytest.mark.parametrize("lowest", [-1e308, -1.0, -1e-100])
def test_tail_probability_stays_inside_the_open_interval(value, lowest):
    tails = TailProbability().fit([[lowest], [0.0], [1e-100]]).transform([[value]])
    assert np.all((tails > 0) & (tails < 1))
    assert TailProbability().fit([[-value]] * 3).transform([[value]]) != 0.5


def test_tail_probability_keeps_the_order_of_neighbouring_floats():
    normals = np.random.default_rng(14).standard_normal((999, 1))
    fitted = TailProbability().fit(normals)
    knots = np.sort(normals[:, 0])
    for _ in range(3):
        below = np.nextafter(knots, -np.inf)
        assert np.all(fitted.transform(below[:, None]) <= fitted.transform(knots[:, None]))
        knots = below


# -- laws of all of them -------------------------------------------------------------------


@pytest.mark.slow
@every
@given(S=tables(), Q=hnp.arrays(np.float64, (8, 1), elements=SCORES))
@LAW
def test_monotone_and_finite(normaliser, S, Q):
    rows = np.sort(np.vstack([S[:, :1], Q]), axis=0)
    Z = clone(normaliser).fit(S[:, :1]).transform(rows)
    assert np.isfinite(Z).all()
    rises, is_higher = np.diff(Z[:, 0]), np.diff(rows[:, 0]) > 0
    assert np.all(rises[~is_higher] == 0)
    assert np.all(rises[is_higher] > 0)


@pytest.mark.slow
@every
@given(S=tables(), scale=st.sampled_from([0.25, 3.0, 1024.0]), shift=st.sampled_from([-7.0, 64.0]))
@LAW
def test_increasing_affine_maps_change_nothing(normaliser, S, scale, shift):
    if np.any(np.ptp(S, axis=0) == 0):
        return  # a constant column has no scale of its own
    rows = np.vstack([S, S - 10.0, S + 0.5])
    Z = clone(normaliser).fit(S).transform(rows)
    moved = clone(normaliser).fit(scale * S + shift).transform(scale * rows + shift)
    np.testing.assert_allclose(moved, Z, rtol=1e-8, atol=1e-8)


@given(S=tables(), rho=st.floats(0.0, 49.0))
@LAW
def test_z_score_before_min_max_changes_nothing(S, rho):
    if np.any(np.ptp(S, axis=0) == 0):
        return
    standard = ZScore().fit(S).transform(S)
    two_steps = MinMax(rho=rho).fit(standard).transform(standard)
    np.testing.assert_allclose(two_steps, MinMax(rho=rho).fit(S).transform(S), rtol=1e-7, atol=1e-7)


@every
@given(data=st.data(), S=tables(max_rows=12))
@LAW
def test_whole_weights_repeat_rows(normaliser, data, S):
    weights = data.draw(hnp.arrays(np.int64, len(S), elements=st.integers(0, 4)))
    if not weights.any():
        return
    rows = np.vstack([S, S - 0.5])
    repeated = clone(normaliser).fit(np.repeat(S, weights, axis=0)).transform(rows)
    for factor in (1.0, 0.1):
        weighted = clone(normaliser).fit(S, sample_weight=factor * weights).transform(rows)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normaliser", [ZScore(), MinMax(), RobustZ(), TailProbability()])
def test_weights_matter(normaliser):
    S = gaussian_and_skewed(50, 7)
    weighted = clone(normaliser).fit(S, sample_weight=np.arange(50.0)).transform(S)
    assert np.abs(weighted - clone(normaliser).fit(S).transform(S)).max() > 1e-3


@every
def test_batch_is_one_by_one_and_state_is_kept(normaliser):
    fitted = clone(normaliser).fit(gaussian_and_skewed(100, 8))
    rows = gaussian_and_skewed(37, 9) * 5
    before = joblib.hash(fitted)
    batch = fitted.transform(rows)
    single = np.vstack([fitted.transform(row[np.newaxis]) for row in rows])
    np.testing.assert_allclose(batch, single, rtol=1e-13, atol=0)
    np.testing.assert_allclose(fitted.transform(rows[::-1])[::-1], batch, rtol=1e-13, atol=0)
    assert joblib.hash(fitted) == before


@given(
    column=hnp.arrays(np.float64, st.integers(2, 60), elements=st.integers(-4, 4).map(float)),
    scale=st.sampled_from([1e-6, 1.0, 1e9]),
    shift=st.sampled_from([0.0, 30.0]),
    seed=st.integers(0, 10),
)
@LAW
def test_rounding_moves_no_normalised_score(column, scale, shift, seed):
    rng = np.random.default_rng(seed)
    # The rounding of values of the size of the largest, as sums in another order have it.
    rounding = 1e-15 * scale * (np.abs(column).max() + shift)
    column = scale * (column + shift)[:, np.newaxis]
    S, rows, again = (column + rounding * rng.uniform(-1, 1, column.shape) for _ in range(3))
    fitted = TailProbability().fit(S)
    np.testing.assert_allclose(fitted.transform(rows), fitted.transform(again), atol=1e-10)
    np.testing.assert_allclose(
        fitted.transform(rows), TailProbability().fit(column).transform(column), atol=1e-10
    )


@every
def test_columns_are_independent(normaliser):
    S = gaussian_and_skewed(60, 10)
    together = clone(normaliser).fit(S).transform(S)
    apart = np.hstack([clone(normaliser).fit(S[:, [j]]).transform(S[:, [j]]) for j in range(3)])
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("normaliser", AFFINE, ids=repr)
def test_nothing_is_clipped(normaliser):
    fitted = clone(normaliser).fit(gaussian_and_skewed(100, 11))
    Z = fitted.transform(np.array([[-1e3], [-2e3], [-3e3]]) * np.ones(3))
    np.testing.assert_allclose(Z[2] - Z[1], Z[1] - Z[0])
    assert np.all(Z < -10)


@every
@pytest.mark.parametrize("constant", [0.0, -3.5, 1e8, -1e-12])
@pytest.mark.parametrize("n", [1, 7])
def test_constant_column(normaliser, constant, n):
    fitted = clone(normaliser).fit(np.full((n, 1), constant))
    step = max(1.0, abs(constant))
    Z = fitted.transform(constant + step * np.array([[-1e6], [-2.0], [-1.0], [0.0], [1.0]]))[:, 0]
    assert np.isfinite(Z).all()
    assert np.all(np.diff(Z) > 0)
    assert Z[3] == {"ZScore": 0.0, "RobustZ": 0.0}.get(type(normaliser).__name__, 0.5)
    if not isinstance(normaliser, TailProbability):
        assert Z[4] - Z[3] == pytest.approx(1.0)


@every
def test_rounding_is_not_taken_for_spread(normaliser):
    noise = 1e6 * (1.0 + np.finfo(float).eps * np.arange(-3, 4))[:, np.newaxis]
    Z = clone(normaliser).fit(noise).transform([[1e6 - 1e-3]])
    middle = 0.0 if isinstance(normaliser, ZScore | RobustZ) else 0.5
    assert Z[0, 0] == pytest.approx(middle, abs=1e-6)


@every
def test_float32_and_lists_are_taken(normaliser):
    S = gaussian_and_skewed(20, 12).astype(np.float32)
    Z = clone(normaliser).fit(S).transform(S)
    assert Z.dtype == np.float64
    np.testing.assert_array_equal(clone(normaliser).fit(S.tolist()).transform(S.tolist()), Z)


@every
def test_no_rows_to_transform(normaliser):
    assert clone(normaliser).fit(np.eye(3)).transform(np.empty((0, 3))).shape == (0, 3)


@every
def test_saved_and_loaded(normaliser):
    S = gaussian_and_skewed(50, 13)
    fitted = clone(normaliser).fit(S)
    data = skops.io.dumps(fitted)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.transform(S * 3), fitted.transform(S * 3))


# -- the door ------------------------------------------------------------------------------


@every
def test_unfitted(normaliser):
    with pytest.raises(NotFittedError):
        clone(normaliser).transform([[1.0]])


@pytest.mark.parametrize(
    ("S", "message"),
    [
        ([1.0, 2.0], "shape"),
        (np.empty((0, 2)), "at least one row"),
        (np.empty((3, 0)), "shape"),
        ([[1.0], [np.nan]], r"position \(1, 0\)"),
        ([[1.0], [-np.inf]], "finite"),
        ([["a"]], "real numbers"),
        ([[1.0], [2.0, 3.0]], "real numbers"),
    ],
)
def test_wrong_scores(S, message):
    with pytest.raises(InvalidInputError, match=message):
        ZScore().fit(S)


def test_wrong_number_of_columns():
    with pytest.raises(InvalidInputError, match="must have 3 columns"):
        ZScore().fit(np.eye(3)).transform(np.eye(2))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], "shape"),
        ([1.0, -1.0, 1.0], "negative"),
        ([0.0, 0.0, 0.0], "positive"),
        ([1.0, np.nan, 1.0], "finite"),
    ],
)
def test_wrong_weights(weights, message):
    with pytest.raises(InvalidInputError, match=message):
        ZScore().fit(np.eye(3), sample_weight=weights)


@pytest.mark.parametrize("rho", [-1.0, 50.0, np.nan, "5", True])
def test_wrong_rho(rho):
    with pytest.raises(InvalidInputError, match="rho"):
        MinMax(rho=rho).fit(np.eye(3))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("z-score", ZScore), ("min-max", MinMax), ("tail", TailProbability), ("robust-z", RobustZ)],
)
def test_make_normaliser_by_name(name, kind):
    made = make_normaliser(name)
    assert type(made) is kind
    assert make_normaliser(name) is not made


def test_make_normaliser_takes_objects():
    mine = MinMax(rho=1.0)
    assert make_normaliser(mine) is mine


def test_make_normaliser_refuses_the_rest():
    with pytest.raises(InvalidInputError, match="'z-score', 'min-max', 'tail', 'robust-z'"):
        make_normaliser("zscore")
    for wrong in (ZScore, None, 3):
        with pytest.raises(InvalidTypeError, match="fit and"):
            make_normaliser(wrong)


RNG = np.random.default_rng(0)
NORMALS = [RNG.normal(size=50), RNG.normal(size=30)]
SEVERAL = RNG.normal(size=(2, 20))


def test_any_increasing_affine_change_of_a_detector_changes_nothing():
    changed = [SEVERAL[0], 1e3 * SEVERAL[1] + 5], [NORMALS[0], 1e3 * NORMALS[1] + 5]
    np.testing.assert_allclose(join_lowest(*changed), join_lowest(SEVERAL, NORMALS))


def test_it_is_the_lower_of_the_two():
    alone = [join_lowest([s], [n]) for s, n in zip(SEVERAL, NORMALS, strict=True)]
    np.testing.assert_array_equal(join_lowest(SEVERAL, NORMALS), np.minimum(*alone))


def test_one_strange_score_is_not_talked_away():
    usual = [normals.mean() + 9 * normals.std() for normals in NORMALS]
    joined = join_lowest([[usual[0]], [NORMALS[1].mean() - 8 * NORMALS[1].std()]], NORMALS)
    assert joined == pytest.approx([-8])


def test_who_has_no_score_leaves_it_to_the_others():
    scores = SEVERAL.copy()
    scores[0, :2] = np.nan
    scores[1, 1] = np.nan
    joined = join_lowest(scores, NORMALS)
    assert joined[0] == join_lowest(SEVERAL[1:], NORMALS[1:])[0]
    assert np.isnan(joined[1])
    np.testing.assert_array_equal(joined[2:], join_lowest(SEVERAL, NORMALS)[2:])


def test_normals_without_a_score_are_left_out():
    """Such as the first ones of a run in `StreamDetector.training_scores_`."""
    normals = [np.r_[np.nan, NORMALS[0], np.nan], NORMALS[1]]
    np.testing.assert_array_equal(join_lowest(SEVERAL, normals), join_lowest(SEVERAL, NORMALS))


def test_a_moment_does_not_depend_on_the_others():
    whole = join_lowest(SEVERAL, NORMALS)
    one_by_one = [join_lowest(SEVERAL[:, [i]], NORMALS)[0] for i in range(20)]
    assert whole.tolist() == one_by_one


@pytest.mark.parametrize(
    ("scores", "normals", "words"),
    [
        ([[1.0]], [[1.0], [2.0]], "one entry for each detector"),
        ([], [], "at least one"),
        ([[1.0], [1.0, 2.0]], [[1.0, 2.0]] * 2, "same moments.*1, 2 scores"),
        ([[[1.0]]], [[1.0]], "shape"),
        ([[np.inf]], [[1.0]], "finite"),
        ([[1.0]], [[np.inf, 1.0]], "normal_scores must be finite"),
        ([[1.0]], [[np.nan]], "normal_scores must hold at least one"),
        ([[1.0]], [[]], "at least one row"),
    ],
)
def test_wrong_input(scores, normals, words):
    with pytest.raises(InvalidInputError, match=words):
        join_lowest(scores, normals)
