"""What is usual for whom: centres and spreads by group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.usual import GroupLevels
from ocfuse.usual import Usual as UsualOfAll


class Usual(UsualOfAll):
    """What is usual for whom, without times."""

    def fit_measured(self, codes, X):
        return super().fit_measured(codes, np.full(len(X), np.nan), X)

    def measure(self, codes, X):
        return super().measure(codes, np.full(len(X), np.nan), X)


def groups_of(n_groups, n_rows, *, between=5.0, spreads=1.0, seed=0):
    """Return codes, and a function that draws rows of groups with centres and spreads."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n_rows)
    centre = between * rng.normal(size=n_groups)
    spread = np.exp(spreads * rng.normal(size=n_groups))

    def draw(seed):
        noise = np.random.default_rng(seed).normal(size=len(group))
        return (centre[group] + spread[group] * noise)[:, np.newaxis]

    return group[:, np.newaxis].astype(float), draw


@pytest.mark.parametrize(("n_groups", "n_rows"), [(500, 20), (50, 6), (1000, 3), (5, 100)])
@pytest.mark.parametrize("between", [0.0, 0.5, 5.0])
def test_held_out_rows_are_as_far_out_as_fresh_ones(n_groups, n_rows, between):
    rates = []
    for seed in range(max(1, 3000 // (n_groups * n_rows))):
        codes, draw = groups_of(n_groups, n_rows, between=between, spreads=0.5, seed=seed)
        usual = Usual()
        limit = np.quantile(np.abs(usual.fit_measured(codes, draw(seed + 1))), 0.95)
        rates.append(np.mean(np.abs(usual.measure(codes, draw(seed + 100))) > limit))
    assert 0.035 <= np.mean(rates) <= 0.065


def test_rows_that_are_not_held_out_would_be_nearer():
    codes, draw = groups_of(500, 5)
    usual = Usual()
    measured = usual.fit_measured(codes, draw(1))
    seen = usual.measure(codes, draw(1))
    assert np.quantile(np.abs(seen), 0.95) < 0.85 * np.quantile(np.abs(measured), 0.95)


def test_a_new_group_is_judged_by_all_with_the_variation_between_groups():
    codes, draw = groups_of(200, 20, spreads=0.3)
    levels = GroupLevels().fit(codes, draw(1))
    _, other = groups_of(200, 20, spreads=0.3, seed=9)
    centre, spread = levels.usual(np.full_like(codes, -1.0))
    distance = np.abs(other(3) - centre) / spread
    assert len(np.unique(centre)) == 1
    assert 0.03 <= np.mean(distance > 1.96) <= 0.08
    assert np.array_equal(levels.usual(np.full_like(codes, np.nan))[0], centre)


def test_a_new_machine_of_a_known_plant_is_judged_by_its_plant():
    rng = np.random.default_rng(0)
    plant, machine = np.repeat(np.arange(20), 80), np.tile(np.repeat(np.arange(10), 8), 20)
    far, near = 10.0 * rng.normal(size=20), rng.normal(size=(20, 10))
    X = (far[plant] + near[plant, machine] + rng.normal(size=len(plant)))[:, np.newaxis]
    levels = GroupLevels().fit(np.column_stack([plant, machine]).astype(float), X)
    centre, spread = levels.usual(np.array([[3.0, -1.0], [-1.0, 2.0], [3.0, 2.0]]))
    assert abs(centre[0, 0] - far[3]) < 1.5
    assert 1.1 < spread[0, 0] < 1.9  # of rows and machines
    assert spread[1, 0] > 5.0
    assert spread[2, 0] < spread[0, 0]
    assert abs(centre[2, 0] - far[3] - near[3, 2]) < 1.2


def test_groups_that_do_not_differ_are_drawn_together_and_others_are_not():
    codes, draw = groups_of(50, 10, between=0.0, spreads=0.0)
    alike = GroupLevels().fit(codes, draw(1))
    codes, draw = groups_of(50, 10, between=10.0, spreads=0.0)
    apart = GroupLevels().fit(codes, draw(1))
    assert alike.own_[0] < 0.3
    assert apart.own_[0] > 0.95
    assert np.std(alike.centre_[1:]) < 0.7 / np.sqrt(10)


def test_what_is_usual_for_an_odd_group_stays_usual():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(50), 20)
    X = rng.normal(size=(1000, 1))
    X[:20] *= 100.0
    X[20:40] += 30.0
    levels = GroupLevels().fit(group[:, np.newaxis].astype(float), X)
    assert levels.spread_[1, 0] > 40.0
    assert abs(levels.centre_[2, 0] - 30.0) < 0.7
    # the others do not notice
    assert abs(levels.centre_[0, 0]) < 0.3
    assert 0.7 < np.median(levels.spread_[3:, 0]) < 1.3


def test_rows_far_out_do_not_move_their_group():
    codes, draw = groups_of(20, 50, spreads=0.0)
    clean, X = draw(1), draw(1)
    X[::12] += 1000.0
    with_them, without = GroupLevels().fit(codes, X), GroupLevels().fit(codes, clean)
    assert np.abs(with_them.centre_ - without.centre_)[1:].max() < 1.0
    assert (with_them.spread_ / without.spread_)[1:].max() < 2.0


def test_a_group_that_never_varies_may_vary_a_little():
    codes, draw = groups_of(50, 20, spreads=0.0)
    X = draw(1)
    X[:20] = 7.0
    levels = GroupLevels().fit(codes, X)
    assert levels.centre_[1, 0] == pytest.approx(7.0, abs=0.3)
    assert 0.05 < levels.spread_[1, 0] < 1.0


@pytest.mark.parametrize("kind", ["constant", "constant by group", "gaps", "single rows"])
def test_odd_columns_give_finite_numbers(kind):
    codes, draw = groups_of(20, 10)
    X = draw(1)
    if kind == "constant":
        X[:] = 3.0
    elif kind == "constant by group":
        X = codes + 1.0
    elif kind == "gaps":
        X[:10], X[15:20] = np.nan, np.nan
        X = np.hstack([X, np.full_like(X, np.nan)])
    else:
        codes = np.arange(200.0)[:, np.newaxis]
    usual = Usual()
    measured = usual.fit_measured(codes, X)
    assert np.array_equal(np.isnan(measured), np.isnan(X))
    assert not np.isinf(measured).any()
    assert np.isfinite(usual.groups_.centre_).all()
    assert (usual.groups_.spread_ > 0).all()


tables = st.integers(2, 6).flatmap(
    lambda n_groups: st.lists(
        st.tuples(st.integers(0, n_groups - 1), st.integers(-1000, 1000)), min_size=8, max_size=60
    )
)


def as_table(rows):
    table = np.array(rows, dtype=float)
    return table[:, :1], table[:, 1:] / 16.0


@given(tables, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_rows_changes_no_bit(rows, random):
    codes, X = as_table(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    measured = Usual().fit_measured(codes, X)
    assert np.array_equal(Usual().fit_measured(codes[order], X[order]), measured[order])


@given(tables)
@settings(max_examples=60, deadline=None)
def test_names_of_groups_do_not_matter(rows):
    codes, X = as_table(rows)
    named = Usual().fit_measured(17.0 - 2.0 * codes, X)
    assert np.allclose(named, Usual().fit_measured(codes, X), rtol=1e-6, atol=1e-7)


@given(tables, st.sampled_from([-64.0, 3.0, 1024.0]), st.sampled_from([0.25, 3.0, 100.0]))
@settings(max_examples=60, deadline=None)
def test_units_do_not_matter(rows, shift, factor):
    codes, X = as_table(rows)
    moved = Usual().fit_measured(codes, factor * X + shift)
    plain = Usual().fit_measured(codes, X)
    if np.ptp(X) > 0:
        assert np.allclose(moved / factor, plain, rtol=1e-4, atol=1e-4)


@given(st.integers(0, 9), st.floats(-1e4, 1e4), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_moving_a_group_that_is_not_drawn_moves_its_centre_alone(group, shift, seed):
    # centres are drawn to each other by less than one standard error, whatever they are
    codes, draw = groups_of(10, 30, between=100.0, spreads=0.0, seed=seed)
    X, moved = draw(seed + 1), draw(seed + 1)
    theirs = codes[:, 0] == group
    moved[theirs] += shift
    before, after = Usual(), Usual()
    before.fit_measured(codes, X)
    after.fit_measured(codes, moved)
    change = (after.groups_.centre_ - before.groups_.centre_)[1:, 0]
    change[group] -= shift
    assert np.abs(change).max() < 2.0 / np.sqrt(30)
    assert np.abs(after.measure(codes, moved) - before.measure(codes, X)).max() < 0.6


def test_rows_of_one_run_are_held_out_together():
    rng = np.random.default_rng(0)
    machine, run = np.repeat(np.arange(20), 60), np.repeat(np.arange(120), 10)
    level = 50.0 * rng.normal(size=20)

    def draw(seed):
        noise = np.random.default_rng(seed)
        of_run = noise.normal(size=120)[run]
        return (level[machine] + of_run + 0.1 * noise.normal(size=1200))[:, np.newaxis]

    codes, X = machine[:, np.newaxis].astype(float), draw(1)
    levels = GroupLevels()
    rates = []
    for together in (None, run):
        centre, spread = levels.fit_held_out(codes, X, together)
        limit = np.quantile(np.abs((X - centre) / spread), 0.95)
        fresh = [(draw(seed) - levels.usual(codes)[0]) for seed in range(2, 12)]
        rates.append(np.mean(np.abs(fresh) / levels.usual(codes)[1] > limit))
    assert rates[0] > 0.075
    assert 0.035 <= rates[1] <= 0.07


# -- groups that come later -----------------------------------------------


def plants_of(n_rows, seed, plants=range(12)):
    """Return codes of plants and machines, and rows; 8 machines of each plant."""
    known = np.random.default_rng(3)
    far, near = 10.0 * known.normal(size=16), known.normal(size=(16, 8))
    plant = np.repeat(np.fromiter(plants, int), 8 * n_rows)
    machine = np.tile(np.repeat(np.arange(8), n_rows), len(plants))
    noise = np.random.default_rng(seed).normal(size=len(plant))
    X = (far[plant] + near[plant, machine] + noise)[:, np.newaxis]
    return np.column_stack([plant, machine]).astype(float), X


def test_groups_that_come_later_have_their_own_level_and_the_others_stay():
    codes, X = plants_of(20, 1)
    # later: another machine of each plant, and a plant
    is_later = (codes[:, 1] == 3) | (codes[:, 0] == 5)
    levels = GroupLevels().fit(codes[~is_later], X[~is_later])
    after, centre, spread = levels.with_groups(codes, X)
    refit = GroupLevels().fit(codes, X)
    known, later = codes[~is_later], codes[is_later]
    np.testing.assert_array_equal(after.usual(known), levels.usual(known))
    np.testing.assert_allclose(after.usual(later)[0], refit.usual(later)[0], atol=0.15)
    np.testing.assert_allclose(after.usual(later)[1], refit.usual(later)[1], rtol=0.15)
    np.testing.assert_array_equal(np.sort(after.counts_), np.sort(refit.counts_))
    for keys, theirs in zip(after.keys_, refit.keys_, strict=True):
        np.testing.assert_array_equal(keys, theirs)
    # rows of new groups are held out: those they are learned from are as far out as fresh ones
    distance = np.abs((X - centre) / spread)[is_later]
    fresh = np.abs((plants_of(20, 2)[1] - after.usual(codes)[0]) / after.usual(codes)[1])[is_later]
    assert np.quantile(distance, 0.9) == pytest.approx(np.quantile(fresh, 0.9), rel=0.1)
    # a machine that is not known, of a plant that came later, is judged by all as before
    unknown = np.array([[5.0, 99.0], [7.0, 99.0], [99.0, 0.0]])
    np.testing.assert_array_equal(after.usual(unknown), levels.usual(unknown))
    assert after.with_groups(codes, X)[0] is after


def test_a_later_group_without_values_is_judged_by_the_wider_one():
    codes, X = plants_of(10, 1)
    X = np.column_stack([X, X, np.full_like(X, np.nan)])
    levels = GroupLevels().fit(codes[:400], X[:400])
    X[400:480, 1] = np.nan
    after, centre, spread = levels.with_groups(codes[400:480], X[400:480])
    where = codes[400:480]
    np.testing.assert_allclose(after.usual(where)[0][:, 1:], levels.usual(where)[0][:, 1:])
    assert np.isfinite(centre).all()
    assert (spread > 0).all()
    assert np.std(centre[:, 0]) > 0.1
