"""One side only: what becomes of values on the harmless side, and of scores and explanations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import FeatureEncoder, FusedDetector, load
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.sides import Sides
from ocfuse.tables import TableDetector

NAMES = ["errors", "load", "pressure", "temp"]


def correlated(n, seed):
    """Return rows of four columns, of which the first goes with the second."""
    mix = [[1, 0, 0, 0], [0.9, 0.44, 0, 0], [0.3, 0.2, 0.93, 0], [0, 0, 0.5, 0.87]]
    return np.random.default_rng(seed).standard_normal((n, 4)) @ np.array(mix).T


def fitted(sign, seed=0, n=300):
    return Sides(np.array(sign)).fit(correlated(n, seed))


@pytest.fixture(scope="module")
def detector():
    table = pd.DataFrame(correlated(800, 0), columns=NAMES)
    return FusedDetector("light", random_state=0, direction={"errors": "high"}).fit(table)


rows = st.lists(st.floats(-6, 6), min_size=4, max_size=4)


@given(rows, st.floats(0, 1e6), st.sampled_from([[1, 0, 0, 0], [-1, 0, 0, 0]]))
def test_a_single_harmless_value_is_not_looked_at(row, further, sign):
    sides = fitted(sign)
    Z = np.array([row])
    found = sides.transform(Z)
    if found[0, 0] == Z[0, 0]:
        return  # a harmful one
    lower = Z.copy()
    lower[0, 0] -= sign[0] * further
    np.testing.assert_array_equal(sides.transform(lower), found)


@given(rows, st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4))
def test_values_move_to_the_harmful_side_only_and_others_stay(row, sign):
    sides, Z = fitted(sign), np.array([row])
    found = sides.transform(Z)
    assert (np.array(sign) * (found - Z) >= 0).all()
    np.testing.assert_array_equal(found[:, np.array(sign) == 0], Z[:, np.array(sign) == 0])


@given(rows, st.integers(0, 2), st.floats(0, 10))
def test_with_several_the_row_found_is_never_less_usual_for_a_better_value(row, column, better):
    sides = fitted([1, 1, 1, 0])
    Z = np.array([row, row])
    Z[:, column] = sides._expected(Z)[:, column] - sides.slack_[column]  # no more than usual
    Z[1, column] -= better
    moved = sides.transform(Z)[:, :3] - sides._expected(Z)
    distance = np.einsum("ij,jk,ik->i", moved, sides.precision_, moved)
    assert distance[1] <= distance[0] * (1 + 1e-6) + 1e-9


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4), st.randoms())
@settings(max_examples=20)
def test_the_order_of_the_training_rows_does_not_change_a_bit(sign, random):
    Z, fresh = correlated(120, 1), correlated(20, 2)
    order = list(range(len(Z)))
    random.shuffle(order)
    expected = Sides(np.array(sign)).fit(Z).transform(fresh)
    np.testing.assert_array_equal(Sides(np.array(sign)).fit(Z[order]).transform(fresh), expected)


@given(st.lists(st.sampled_from([0, 1]), min_size=4, max_size=4))
@settings(max_examples=10)
def test_low_is_high_turned_round(sign):
    Z, fresh = correlated(120, 1), correlated(20, 2)
    high = Sides(np.array(sign)).fit(Z).transform(fresh)
    flip = np.where(sign, -1.0, 1.0)
    low = Sides(-np.array(sign)).fit(Z * flip).transform(fresh * flip)
    np.testing.assert_allclose(low, high * flip, atol=1e-9)


def test_what_was_moved_once_is_not_moved_again():
    for sign in ([1, 0, 0, 0], [1, 0, -1, 0]):
        sides = fitted(sign)
        once = sides.transform(correlated(100, 3))
        np.testing.assert_allclose(sides.transform(once), once, atol=1e-9)


def test_expected_follows_the_other_columns_also_along_a_curve():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 1000)
    Z = np.column_stack([x**2 + 0.1 * rng.standard_normal(1000), x])
    found = Sides(np.array([1, 0])).fit(Z).transform(np.array([[-9.0, 1.5], [-9.0, 0.0]]))
    np.testing.assert_allclose(found[:, 0], [2.25, 0.0], atol=0.15)


def test_more_columns_than_rows_and_constant_columns():
    Z = np.hstack([correlated(12, 0)] * 5 + [np.zeros((12, 2))])
    sign = np.zeros(22, dtype=int)
    sign[[0, 5, 21]] = 1
    found = Sides(sign).fit(Z).transform(Z - 3.0 * (sign != 0))
    assert np.isfinite(found).all()
    assert found[:, 21] == pytest.approx(0.0)


def test_other_columns_far_beyond_training_do_not_take_the_harmless_one_along():
    found = fitted([1, 0, 0, 0]).transform(np.array([[0.0, 1e6, 0.0, 0.0]]))
    assert found[0, 0] < 4.0


# -- detectors -------------------------------------------------------------


def test_harmless_deviations_raise_no_alarm_and_harmful_ones_do(detector):
    fresh = pd.DataFrame(correlated(1500, 1), columns=NAMES)
    held = (detector.predict(fresh) < 0).mean()
    assert 0.025 < held < 0.08
    better = fresh.assign(errors=fresh["errors"] - 4.0)
    assert (detector.predict(better) < 0).mean() <= held
    within = fresh.assign(errors=np.minimum(fresh["errors"], -1.9))  # its relation is broken
    assert (detector.predict(within) < 0).mean() <= held
    assert (detector.predict(fresh.assign(errors=fresh["errors"] + 4.0)) < 0).mean() > 0.99


def test_a_fault_elsewhere_is_found_behind_a_harmless_deviation(detector):
    fresh = pd.DataFrame(correlated(500, 1), columns=NAMES)
    fault = fresh.assign(temp=fresh["temp"] + 5.0)
    hidden = fault.assign(errors=fault["errors"] - 8.0)
    assert (detector.predict(hidden) < 0).mean() > 0.97 * (detector.predict(fault) < 0).mean()


def test_the_score_does_not_depend_on_how_harmless_a_value_is(detector):
    row = pd.DataFrame([[-3.0, 0.1, 0.2, 0.3]], columns=NAMES)
    scores = [detector.score_samples(row.assign(errors=e))[0] for e in (-3.0, -30.0, -3e9)]
    assert len(set(scores)) == 1
    assert detector.p_values(row)[0] > 0.05


def test_explanations_do_not_name_harmless_values(detector):
    fault = pd.DataFrame(correlated(60, 1), columns=NAMES)
    fault["temp"] += 6.0
    found = detector.explain(fault.assign(errors=fault["errors"] - 8.0))
    errors = NAMES.index("errors")
    assert (found.attributions[:, errors] == 0).all()
    total = found.reference_score - found.attributions.sum(axis=1)
    np.testing.assert_allclose(total, found.score, rtol=1e-9)
    for i in range(len(found)):
        assert "errors" not in found.reason(i)
        assert "errors" not in found.describe(i)
    reading = next(one for one in found.readings(0) if one.name == "errors")
    assert not reading.is_unusual
    assert "usually up to" in reading.words
    assert "below" not in reading.words


def test_explanations_name_harmful_values_by_their_side(detector):
    row = pd.DataFrame([[9.0, 0.1, 0.2, 0.3]], columns=NAMES)
    found = detector.explain(row)
    assert found.reason().startswith("errors 9, usually up to ")
    assert found.readings()[0].as_dict()["usual"]["low"] is None
    assert found.attributions[0].argmax() == 0


def test_single_rows_batches_arrays_and_saved_models_agree(detector, tmp_path):
    fresh = correlated(40, 5)
    table = pd.DataFrame(fresh, columns=NAMES)
    scores = detector.score_samples(table)
    one_by_one = [detector.score_samples(table.iloc[[i]])[0] for i in range(40)]
    np.testing.assert_allclose(one_by_one, scores, atol=1e-9)
    plain = FusedDetector("light", random_state=0, direction={0: "high"}).fit(correlated(800, 0))
    np.testing.assert_array_equal(plain.score_samples(fresh), scores)
    again = load(detector.save(tmp_path / "model.ocf"))
    np.testing.assert_array_equal(again.score_samples(table), scores)


def test_without_a_direction_no_bit_changes():
    X = correlated(200, 0)
    plain = FusedDetector("light", random_state=0).fit(X)
    empty = FusedDetector("light", random_state=0, direction={}).fit(X)
    np.testing.assert_array_equal(plain.score_samples(X), empty.score_samples(X))


def test_a_gap_that_is_an_alarm_lies_on_the_harmful_side():
    table = pd.DataFrame(correlated(200, 0), columns=NAMES)
    encoder = FeatureEncoder(gaps="alarm", direction={"pressure": "low"}).fit(table)
    row = table.iloc[[0]].assign(pressure=np.nan)
    assert encoder.transform(row)[0, 2] < -1e5


def test_copies_are_rows_as_they_are_not_as_they_become():
    X = np.abs(np.random.default_rng(0).standard_normal((120, 2)))
    detector = FusedDetector("light", random_state=0, direction={0: "high", 1: "high"}).fit(X)
    assert len(detector.copied_rows_) == 0


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"eror": "high"}, InvalidInputError, "Did you mean 'errors'"),
        ({"errors": "up"}, InvalidInputError, "must be one of 'high', 'low'. Got 'up'"),
        (["errors"], InvalidTypeError, "must be a dict"),
        ({"kind": "high"}, InvalidInputError, "'kind', which holds text"),
        ({"is_on": "high"}, InvalidInputError, "'is_on', which holds text or true and false"),
    ],
)
def test_directions_that_make_no_sense_are_refused(given, error, words):
    table = pd.DataFrame(correlated(60, 0), columns=NAMES)
    table["kind"], table["is_on"] = ["a", "b", "c"] * 20, [True, False] * 30
    with pytest.raises(error, match=words):
        FusedDetector("light", direction=given).fit(table)


def test_a_column_is_not_a_category_and_one_sided():
    table = pd.DataFrame(correlated(60, 0), columns=NAMES)
    encoder = FeatureEncoder(categories=["errors"], direction={"errors": "high"})
    with pytest.raises(InvalidInputError, match="named in direction and in categories"):
        encoder.fit(table)


def test_a_column_with_a_side_is_a_number_also_if_it_looks_like_an_id():
    table = pd.DataFrame(correlated(60, 0), columns=NAMES)
    table["error_id"] = np.arange(60)
    assert FeatureEncoder().fit(table).ignored_[4]
    assert not FeatureEncoder(direction={"error_id": "high"}).fit(table).ignored_[4]


def test_tables_know_the_side_of_a_column():
    table = pd.DataFrame(correlated(120, 0), columns=NAMES)
    model = TableDetector(FusedDetector("light", random_state=0), direction={"errors": "high"})
    model.fit(table)
    reasons = {column.name: column.reason for column in model.schema_.columns}
    assert reasons["errors"] == "as asked for: numbers, of which only high ones count"
    found = model.score(table.assign(errors=-50.0), why="all")
    assert not found["why"].str.contains("errors").any()


def test_the_side_is_that_of_what_is_usual_for_the_group():
    rng = np.random.default_rng(0)

    def rows(n, shift=0.0):
        whose = np.arange(n) % 6
        table = pd.DataFrame(correlated(n, int(n + shift)), columns=NAMES)
        table["errors"] += 10.0 * whose + shift
        return table.assign(machine=[f"m{i}" for i in whose], noise=rng.normal(size=n))

    detector = FusedDetector(
        "light", random_state=0, by="machine", direction={"errors": "high"}
    ).fit(rows(600))
    assert (detector.predict(rows(300, -6.0)) < 0).mean() < 0.1
    assert (detector.predict(rows(300, 6.0)) < 0).mean() > 0.9
