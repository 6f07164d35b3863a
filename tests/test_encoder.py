"""Tables as users have them become standardised numbers, by the stated policy."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import config_context

from ocfuse.encoder import (
    FARTHEST,
    FeatureEncoder,
    NumberScaler,
    check_table,
    make_encoder,
    take_rows,
)
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from tests.counting import count_calls


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "speed": [1.0, 2.0, 3.0, 4.0],
            "state": ["on", "off", "on", "on"],
            "ok": [True, False, True, True],
            "kind": pd.Categorical(["a", "b", "a", "c"]),
        }
    )


def test_numbers_are_standardised():
    X = np.random.default_rng(0).normal(5, 3, (50, 3))
    Z = FeatureEncoder().fit(X).transform(X)
    np.testing.assert_allclose(Z, (X - X.mean(0)) / X.std(0))


@pytest.mark.parametrize("value", [0.0, 7.0, 1e9, 0.1])
def test_a_constant_column_is_centred_and_a_deviation_still_shows(value):
    X = np.full((10, 1), value)
    encoder = FeatureEncoder().fit(X)
    np.testing.assert_allclose(encoder.transform(X), 0, atol=1e-6)
    np.testing.assert_allclose(encoder.transform(X + 2.0), 2.0, atol=1e-6)


def test_row_order_changes_no_bit():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(101, 4)) * 1e3
    order = rng.permutation(len(X))
    first, second = FeatureEncoder().fit(X), FeatureEncoder().fit(X[order])
    np.testing.assert_array_equal(first.transform(X), second.transform(X))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_any_finite_column_comes_out_finite(values):
    X = np.array(values)[:, np.newaxis]
    Z = FeatureEncoder().fit(X).transform(X)
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= FARTHEST


@pytest.mark.parametrize("values", [[0.0, 5e-324], [1e308, -1e308], [5e-324, 1e308]])
def test_the_smallest_and_largest_numbers(values):
    X = np.array(values)[:, np.newaxis]
    assert np.isfinite(FeatureEncoder().fit(X).transform(X)).all()


def test_far_values_stay_where_digits_are_left():
    assert FARTHEST == 1e6
    encoder = FeatureEncoder().fit([[0.0], [2.0]])
    np.testing.assert_array_equal(encoder.transform([[1e300], [-1e300]]), [[1e6], [-1e6]])


def test_columns_learned_together_or_apart_are_the_same(monkeypatch):
    X = np.random.default_rng(0).exponential(size=(70, 9))
    X[::7, 4] = np.nan
    together = FeatureEncoder().fit(X).transform(X)
    monkeypatch.setattr(NumberScaler, "values_at_once", 150)
    np.testing.assert_array_equal(FeatureEncoder().fit(X).transform(X), together)


def test_memory_layout_changes_no_bit():
    X = np.random.default_rng(3).normal(size=(101, 5)) * 1e3
    X[::7, 2] = np.nan
    other = np.asfortranarray(X)
    first, second = FeatureEncoder().fit(X), FeatureEncoder().fit(other)
    np.testing.assert_array_equal(first.transform(X), second.transform(other))
    assert second.transform(other).flags.c_contiguous


def test_gaps_are_filled_where_training_had_gaps():
    X = np.array([[1.0, 1.0], [2.0, np.nan], [3.0, 3.0], [4.0, 8.0]])
    encoder = FeatureEncoder().fit(X)
    filled = encoder.transform([[1.0, np.nan]])
    np.testing.assert_array_equal(filled, encoder.transform([[1.0, 3.0]]))


def test_gaps_do_not_squeeze_a_column():
    values = np.random.default_rng(4).gamma(1.0, size=100)
    X = np.column_stack([np.append(values, np.full(300, np.nan)), np.arange(400.0)])
    expected = FeatureEncoder().fit(values[:, np.newaxis]).transform(values[:, np.newaxis])
    np.testing.assert_array_equal(FeatureEncoder().fit(X).transform(X)[:100, :1], expected)


def test_a_gap_in_a_complete_column_is_refused_if_asked_for():
    encoder = FeatureEncoder(gaps="refuse").fit(np.arange(8.0).reshape(4, 2))
    with pytest.raises(InvalidInputError, match=r"training: 1 \(row 0\)\. gaps='judge'"):
        encoder.transform([[0.0, np.nan]])


def test_a_gap_takes_the_value_of_the_rows_that_are_near_in_the_other_columns():
    x = np.linspace(0, 1, 100)
    encoder = FeatureEncoder().fit(np.column_stack([x, x**2]))
    filled = encoder.transform([[0.9, np.nan], [np.nan, 0.25]])
    expected = encoder.transform([[0.9, 0.81], [0.5, 0.25]])
    np.testing.assert_allclose(filled, expected, atol=0.1)
    np.testing.assert_array_equal(filled[0, 0], expected[0, 0])


def test_a_gap_that_is_an_alarm_lies_far_outside(frame):
    encoder = FeatureEncoder(gaps="alarm").fit(frame)
    Z = encoder.transform(frame.assign(speed=[np.nan, 2.0, 3.0, 4.0], state=[*"aaa", None]))
    assert Z[0, 0] == FARTHEST
    assert (Z[3, encoder.source_ == 1] == FARTHEST).all()
    assert np.abs(Z[1]).max() < 10


def test_a_row_without_any_value_has_nothing_to_be_judged_by():
    X = np.random.default_rng(0).normal(size=(50, 3))
    encoder = FeatureEncoder().fit(X)
    Z = encoder.transform([[np.nan] * 3, [np.nan, np.nan, 0.0]])
    np.testing.assert_array_equal(Z[0], [FARTHEST] * 3)
    assert np.abs(Z[1]).max() < 3
    X[3] = np.nan  # training had such a row
    assert np.abs(FeatureEncoder().fit(X).transform([[np.nan] * 3])).max() < 1


def test_an_empty_column_is_left_out_and_a_value_there_later_shows():
    encoder = FeatureEncoder().fit([[np.nan, 1.0], [np.nan, 2.0], [np.nan, 3.0]])
    np.testing.assert_array_equal(encoder.ignored_, [True, False])
    assert encoder.reasons_ == ["no value in any row", ""]
    np.testing.assert_array_equal(encoder.source_, [1, 0])
    np.testing.assert_allclose(
        encoder.transform([[np.nan, 2.0], [7.0, 2.0]]), [[0, 0], [0, np.sqrt(8)]]
    )


def test_a_table_of_nothing_but_gaps_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"no column to learn from: 0 \(no value in any row"
    ):
        FeatureEncoder().fit([[np.nan], [np.nan]])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    with pytest.raises(ValueError, match="infinity"):
        FeatureEncoder().fit([[value], [1.0]])
    encoder = FeatureEncoder().fit([[1.0, 2.0], [2.0, 3.0]])
    with pytest.raises(InvalidInputError, match=r"hold infinity: 1\."):
        encoder.transform(np.array([[0.0, value]]))
    with pytest.raises(InvalidInputError, match=r"hold infinity: b\."):
        encoder.transform(pd.DataFrame({"a": [0.0], "b": [value]}))


def test_other_widths_are_refused():
    encoder = FeatureEncoder().fit(np.eye(3))
    with pytest.raises(InvalidInputError, match=r"X has 2 features\. Expected 3"):
        encoder.transform(np.zeros((1, 2)))


def test_one_checked_row_takes_few_calls():
    X = np.random.default_rng(5).normal(size=(100, 20))
    encoder, row = FeatureEncoder().fit(X), X[:1]
    assert check_table(row) is row
    assert count_calls(lambda: encoder.transform(check_table(row))) < 150  # about 50


def test_masked_values_are_missing():
    X = np.ma.masked_array(np.arange(12).reshape(4, 3), mask=False)
    X[1, 2] = np.ma.masked
    expected = np.where(X.mask, np.nan, X.data)
    np.testing.assert_array_equal(check_table(X), expected)
    np.testing.assert_array_equal(check_table(X.astype(object)), expected)
    encoder = FeatureEncoder().fit(X)
    np.testing.assert_array_equal(encoder.transform(X), encoder.transform(expected))


def test_object_arrays_of_numbers():
    X = np.array([[1, None], [True, pd.NA], [2.5, np.nan], [decimal.Decimal(3), 4]], dtype=object)
    expected = [[1, np.nan], [1, np.nan], [2.5, np.nan], [3, 4]]
    np.testing.assert_array_equal(check_table(X), expected)
    np.testing.assert_array_equal(check_table(X.tolist()), expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["1", "2"]]), "text"),
        ([["a", 2.0]], "text"),
        (np.array([["1", 2.0]], dtype=object), "text"),
        (np.array([[b"1"]]), "bytes"),
        (np.array([[b"1", 2.0]], dtype=object), "bytes"),
        (np.array([["2026-01-01"]], dtype="M8[D]"), "dates"),
        (np.array([[3]], dtype="m8[s]"), "dates"),
        (np.ma.masked_array([["2026-01-01"]], dtype="M8[D]"), "dates"),
        (np.array([[pd.Timestamp("2026-01-01")]], dtype=object), "dates"),
    ],
)
def test_arrays_of_no_numbers_are_refused(X, message):
    with pytest.raises(InvalidTypeError, match=rf"Got an array of {message}.*give a data frame"):
        check_table(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr_array(np.eye(2)), "[Ss]parse"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (np.ones(3), "Reshape your data"),
        (np.ones((2, 2, 2)), "dim 3"),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        (np.array([[{}]], dtype=object), "argument must be .* string.* number"),
    ],
)
def test_other_arrays_meet_the_words_of_scikit_learn(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_table(X)


def test_categories_become_columns():
    table = pd.DataFrame({"x": np.arange(9.0) ** 2, "c": [*"aaaabbbcc"]})
    encoder = FeatureEncoder().fit(table)
    Z = encoder.transform(table)
    np.testing.assert_array_equal(encoder.source_, [0, 1, 1, 1])
    np.testing.assert_allclose(Z.mean(0), 0, atol=1e-12)
    a, b, c = Z[0, 1:], Z[4, 1:], Z[7, 1:]
    # half way to the chi-squared distance: the rarer, the further out
    assert ((a - b) ** 2).sum() == pytest.approx((9 / 4) ** 0.5 + (9 / 3) ** 0.5)
    assert ((a - c) ** 2).sum() == pytest.approx((9 / 4) ** 0.5 + (9 / 2) ** 0.5)


def test_two_categories_take_one_column_beside_that_of_new_ones():
    table = pd.DataFrame({"c": np.repeat(["no", "yes"], [7, 3])})
    encoder = FeatureEncoder().fit(table)
    Z = encoder.transform(table)
    assert Z.shape == (10, 2)
    assert (Z[9, 0] - Z[0, 0]) ** 2 == pytest.approx((10 / 7) ** 0.5 + (10 / 3) ** 0.5)
    np.testing.assert_array_equal(Z[:, 1], 0)
    assert encoder.transform(table.assign(c="perhaps"))[0, 1] > 3


def test_many_levels_take_few_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": [f"v{i}" for i in rng.zipf(1.3, 5000) % 400]})
    assert FeatureEncoder().fit(table).transform(table).shape == (5000, 20 + 1)


@pytest.mark.parametrize("levels", ["aaaabbbb", "aaaabbbbcccc", "aaaaaab", "aaaa", "aaaabbbcd"])
def test_an_unknown_category_is_further_from_every_row_than_the_rarest(levels):
    table = pd.DataFrame({"c": [*levels, "a", "a"]})
    encoder = FeatureEncoder().fit(table)
    seen = np.unique(encoder.transform(table), axis=0)
    new = encoder.transform(pd.DataFrame({"c": ["new"]}))
    among = np.linalg.norm(seen[:, np.newaxis] - seen, axis=2).max()
    assert np.linalg.norm(seen - new, axis=1).min() > among / 2
    assert (
        np.linalg.norm(new - encoder.transform(table).mean(0)) > np.linalg.norm(seen, axis=1).max()
    )


def test_polars_equals_pandas(frame):
    table = pl.DataFrame({name: frame[name].to_list() for name in frame.columns})
    expected = FeatureEncoder().fit(frame).transform(frame)
    np.testing.assert_array_equal(FeatureEncoder().fit(table).transform(table), expected)


#: One column in many guises: three rows of 1, one of 2, one gap.
NUMBERED = [
    pd.Series(["1", "1", "2", None, "1"], dtype=object),
    pd.Series(["1", "1", "2", np.nan, "1"], dtype=object),
    pd.Series(["1", 1, 2.0, pd.NA, 1.0], dtype=object),
    pd.Series([1, "1", 2, None, np.float32(1)], dtype=object),
    pd.Series(["1", "1", "2", pd.NA, "1"], dtype="string"),
    pd.Series(["1", "1", "2", None, "1"], dtype="str"),
    pd.Series(["1", "1", "2", None, "1"], dtype="category"),
    pd.Series([1, 1, 2, None, 1], dtype="category"),
    pl.Series(["1", "1", "2", None, "1"]),
    pl.Series(["1", "1", "2", None, "1"], dtype=pl.Categorical),
    pl.Series(["1", "1", "2", None, "1"], dtype=pl.Enum(["2", "1"])),
    pl.Series(["1", 1, 2.0, None, 1], dtype=pl.Object),
]
#: These hold numbers in training, but may stand for categories afterwards.
SCORED = [
    *NUMBERED,
    pd.Series([1, 1, 2, None, 1], dtype="Int64"),
    pd.Series([1.0, 1.0, 2.0, np.nan, 1.0]),
    pl.Series([1, 1, 2, None, 1]),
    pl.Series([1, 1, 2, None, 1], dtype=pl.Float32),
    pl.Series([1, 1, 2, None, 1], dtype=pl.Decimal(10, 2)),
]


def with_numbers(column):
    library = pd if isinstance(column, pd.Series) else pl
    return library.DataFrame({"c": column, "x": [1.0, 2.0, 3.0, 4.0, 5.0]})


@pytest.mark.parametrize("column", NUMBERED, ids=lambda c: f"{type(c).__module__}-{c.dtype}")
def test_categories_are_compared_as_text(column):
    encoder = FeatureEncoder().fit(with_numbers(column))
    for other in SCORED:
        codes = encoder.read(with_numbers(other))[:, 0]
        np.testing.assert_array_equal(codes, [0, 0, 1, np.nan, 0])


def test_booleans_are_no_numbers_among_categories():
    table = pd.DataFrame({"c": pd.Series([True, 1, "True", "1", 1.5, np.True_], dtype=object)})
    codes = FeatureEncoder().fit(table).read(table)[:, 0]
    np.testing.assert_array_equal(codes, [2, 0, 2, 0, 1, 2])
    declared = pd.DataFrame({"c": pd.Series([True, False, True], dtype="category")})
    scored = pl.DataFrame({"c": [True, None, False]})[[0, 2]]
    np.testing.assert_array_equal(FeatureEncoder().fit(declared).read(scored)[:, 0], [1, 0])


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object"])
def test_booleans_of_a_data_frame_are_categories_as_on_the_command_line(dtype):
    truth = pd.Series([True, False, True, True], dtype=dtype)
    encoder = FeatureEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0], "b": truth}))
    assert encoder.categorical_.tolist() == [False, True]
    assert encoder.codes_ == [{"false": 0, "true": 1}]
    later = pd.DataFrame({"x": [1.0, 2.0], "b": ["true", "False"]})
    np.testing.assert_array_equal(encoder.read(later)[:, 1], [1, 0])
    assert not FeatureEncoder().fit(np.array([[True], [False]])).categorical_.any()


def test_large_codes_keep_their_digits():
    table = pd.DataFrame({"c": pd.Series([2**60, 2**60, 2**60 + 1], dtype="category")})
    codes = FeatureEncoder().fit(table).read(pl.DataFrame({"c": [2**60 + 1]}))
    np.testing.assert_array_equal(codes, [[1]])


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_category_in_a_complete_column_is_refused_if_asked_for(frame, gap):
    encoder = FeatureEncoder(gaps="refuse").fit(frame)
    column = pd.Series([gap, "on", "on", "off"], dtype=object)
    with pytest.raises(InvalidInputError, match=r"complete in training: state \(row 0\)\."):
        encoder.transform(frame.assign(state=column))
    with pytest.raises(InvalidInputError, match=r"complete in training: state \(row 0\)\."):
        encoder.transform(frame.assign(state=pd.Series([gap] * 4, dtype=object)))


def test_only_gaps_at_scoring(frame):
    frame["state"] = ["on", None, "on", "off"]
    encoder = FeatureEncoder().fit(frame)
    columns = encoder.source_ == 1
    gap = encoder.transform(frame)[1, columns]
    for empty in (pd.Series([None] * 4), pd.Series([pd.NA] * 4), pd.Series([np.nan] * 4)):
        np.testing.assert_array_equal(encoder.transform(frame.assign(state=empty))[0, columns], gap)
    table = pl.DataFrame({name: frame[name].to_list() for name in ("speed", "ok", "kind")})
    table = table.select("speed", pl.lit(None).alias("state"), "ok", "kind")
    np.testing.assert_array_equal(encoder.transform(table)[0, columns], gap)


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_a_category_without_values_is_left_out(frame, dtype):
    empty = frame.assign(state=pd.Series([None] * 4, dtype=dtype))
    encoder = FeatureEncoder().fit(empty)
    assert encoder.ignored(empty) == ["state (no value in any row)"]
    Z = encoder.transform(frame)
    np.testing.assert_allclose(Z[:, encoder.source_ == 1], 2 * 5**0.25)


@pytest.mark.parametrize(
    "names", [(1, 0, 2), (10, 20, "text"), (("a", 1), None, 2.5), tuple("abc")]
)
def test_names_of_columns_do_not_matter(names):
    columns = [[1.0, 2.0, 6.0], ["x", "y", "x"], [100.0, 300.0, 200.0]]
    table = pd.DataFrame(dict(enumerate(columns)))
    table.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    encoder = FeatureEncoder().fit(table)
    np.testing.assert_array_equal(encoder.source_, [0, 2, 1])
    np.testing.assert_array_equal(encoder.read(table)[:, 1], [0, 1, 0])
    Z = encoder.transform(table)
    expected = (
        FeatureEncoder().fit(np.column_stack(columns[::2])).transform(np.column_stack(columns[::2]))
    )
    np.testing.assert_array_equal(Z[:, :2], expected)


def test_only_categories():
    table = pl.DataFrame({"a": ["x", "y", "x", "y", "x", "y"], "b": ["u"] * 6})
    encoder = FeatureEncoder().fit(table)
    np.testing.assert_array_equal(encoder.source_, [0, 0, 1])
    np.testing.assert_array_equal(np.sign(encoder.transform(table)[:, 0]), [-1, 1] * 3)


def test_the_output_setting_of_scikit_learn_changes_nothing(frame):
    expected = FeatureEncoder().fit(frame).transform(frame)
    with config_context(transform_output="pandas"):
        Z = FeatureEncoder().fit(frame).transform(frame)
    assert type(Z) is np.ndarray
    np.testing.assert_array_equal(Z, expected)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([None, "a", "1", 1, 1.0, 2.5, "", True]), min_size=4, max_size=12))
def test_row_order_changes_no_category(values):
    values = ["text", "text", *values]
    table = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    back = table.iloc[::-1]
    Z = FeatureEncoder().fit(table).transform(table)
    np.testing.assert_array_equal(FeatureEncoder().fit(back).transform(back), Z[::-1])


def test_numeric_frames_equal_arrays():
    X = np.random.default_rng(2).normal(size=(20, 3))
    expected = FeatureEncoder().fit(X).transform(X)
    for table in (pd.DataFrame(X), pl.DataFrame(X), pd.DataFrame(X).astype(object)):
        np.testing.assert_array_equal(FeatureEncoder().fit(table).transform(table), expected)


def test_nullable_integers_have_gaps():
    table = pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Int64"), "b": [1.0, 2, 3, 4]})
    Z = FeatureEncoder().fit(table).transform(table)
    np.testing.assert_array_equal(Z[2, 0], FeatureEncoder().fit(table).transform(table)[1, 0])


def test_a_missing_category_is_a_category_by_its_rarity():
    values = ["on"] * 6 + ["off"] * 3 + [None] * 3
    table = pd.DataFrame({"state": pd.Series(values, dtype=object)})
    named = table.fillna("zzz")
    expected = FeatureEncoder().fit(named).transform(named)
    np.testing.assert_array_equal(FeatureEncoder().fit(table).transform(table), expected)


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_only_without_a_scale_columns_keep_their_relative_sizes(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1.0, 10.0]
    Z = FeatureEncoder(scale).fit(X).transform(X)
    ratio = Z[:, 1].std() / Z[:, 0].std()
    assert ratio == pytest.approx(10 if scale == "none" else 1, rel=0.15)
    assert np.sqrt((Z**2).mean()) == pytest.approx(1, rel=0.1)


def test_the_robust_scale_does_not_mind_a_few_far_values():
    X = np.random.default_rng(0).normal(size=(200, 1))
    far = X.copy()
    far[:10] = 1e6
    robust = FeatureEncoder("robust").fit(far)
    np.testing.assert_allclose(robust.transform(X), X, atol=0.25)


def test_a_robust_scale_of_a_column_that_is_mostly_0_is_its_standard_deviation():
    X = np.zeros((100, 1))
    X[:20, 0] = np.arange(20)
    Z = FeatureEncoder("robust").fit(X).transform(X)
    np.testing.assert_allclose(Z, X / X.std())


@pytest.mark.parametrize("settings", [{"scale": "log"}, {"gaps": "fill"}, {"categories": ["z"]}])
def test_settings_that_are_unknown_are_refused(settings):
    with pytest.raises(InvalidInputError, match=r"must .* Got"):
        FeatureEncoder(**settings).fit(np.eye(3))


def test_an_encoder_by_name_or_as_an_object():
    assert make_encoder(None).scale == "standard"
    assert make_encoder("robust").scale == "robust"
    given = FeatureEncoder(categories=[1])
    assert make_encoder(given).get_params() == given.get_params()
    with pytest.raises(InvalidTypeError, match="encoder must be"):
        make_encoder(3)


@pytest.mark.parametrize("columns", [["code"], [1], "code"])
def test_numbers_that_are_codes_can_be_categories(columns):
    table = pd.DataFrame({"x": np.arange(6.0) ** 2, "code": [11, 11, 11, 29, 29, 29]})
    encoder = FeatureEncoder(categories=columns).fit(table)
    np.testing.assert_array_equal(encoder.categorical_, [False, True])
    np.testing.assert_array_equal(encoder.read(table.assign(code=20.0))[:, 1], -1)
    array = FeatureEncoder(categories=[1]).fit(table.to_numpy())
    np.testing.assert_array_equal(array.transform(table.to_numpy()), encoder.transform(table))


def test_text_in_a_number_column_is_refused(frame):
    encoder = FeatureEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match=r"were numbers in training: speed\."):
        encoder.transform(frame.assign(speed=["fast"] * 4))


@pytest.mark.parametrize("value", ["fast", "12"])
@pytest.mark.parametrize("library", [pd, pl])
def test_text_after_nothing_but_numbers_is_refused(library, value):
    encoder = FeatureEncoder().fit(library.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}))
    with pytest.raises(InvalidInputError, match=r"were numbers in training: b\."):
        encoder.transform(library.DataFrame({"a": [1.0], "b": [value]}))


def test_numbers_declared_categorical_later_are_still_numbers():
    table = pd.DataFrame({"a": [1, 2, 4]})
    encoder = FeatureEncoder().fit(table)
    expected = encoder.transform(table)
    np.testing.assert_array_equal(encoder.transform(table.astype("category")), expected)


def test_an_array_for_a_frame_with_categories_is_refused(frame):
    with pytest.raises(InvalidTypeError, match=r"must be a data frame.*Got ndarray"):
        FeatureEncoder().fit(frame).transform(np.zeros((1, 4)))


ODD = [
    (pd.Series(pd.date_range("2026-01-01", periods=4)), "dates"),
    (pd.Series(pd.date_range("2026-01-01", periods=4, tz="UTC")), "dates"),
    (pd.Series(pd.date_range("2026-01-01", periods=4)).astype("category"), "dates"),
    (pd.Series(pd.to_timedelta([1, 2, 3, 4])), "dates"),
    (pd.Series([pd.Timestamp("2026-01-01").date()] * 4), "dates"),
    (pd.Series([{}] * 4), "dict objects"),
    (pd.Series([np.zeros(2)] * 4), "ndarray objects"),
    (pd.Series([b"a"] * 4), "bytes"),
    (pd.Series([1j] * 4), "complex128 objects"),
    (pl.Series([pd.Timestamp("2026-01-01")] * 4), "dates"),
    (pl.Series([pd.Timestamp("2026-01-01").date()] * 4), "dates"),
    (pl.Series([pd.Timestamp("2026-01-01").time()] * 4), "dates"),
    (pl.Series([[1], [2], [3], [4, 5]]), "ndarray objects"),
    (pl.Series([[1, 2]] * 4, dtype=pl.Array(pl.Int64, 2)), "nested values"),
    (pl.Series([{"a": 1, "b": 2}] * 4), "nested values"),
    (pl.Series([{"a": 1, "b": "x"}] * 4), ""),
    (pl.Series([b"a"] * 4), "bytes"),
]


@pytest.mark.parametrize(("column", "message"), ODD)
def test_unusable_columns_are_named(column, message):
    library = pd if isinstance(column, pd.Series) else pl
    good = {"speed": [1.0, 2.0, 3.0, 4.0], "state": ["on", "off", "on", "on"]}
    refusal = rf"neither numbers nor categories: {{}} \({message}"
    with pytest.raises(InvalidTypeError, match=refusal.format("when")):
        FeatureEncoder().fit(library.DataFrame({**good, "when": column}))
    for name in good:
        with pytest.raises(InvalidTypeError, match=refusal.format(name)):
            FeatureEncoder().fit(library.DataFrame(good)).transform(
                library.DataFrame({**good, name: column})
            )


def test_all_unusable_columns_are_named():
    table = pd.DataFrame({"a": [{}], "b": [1.0], "c": [pd.Timestamp("2026-01-01")]})
    with pytest.raises(InvalidTypeError, match=r"a \(dict objects\), c \(dates or durations\)\."):
        FeatureEncoder().fit(table)


def test_a_whole_number_beyond_floats_is_infinite():
    with pytest.raises(InvalidInputError, match=r"hold infinity: a\."):
        FeatureEncoder().fit(pd.DataFrame({"a": [10**400, 1], "b": ["x", "y"]}, dtype=object))


def test_repeated_names_are_refused():
    table = pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"])
    with pytest.raises(InvalidInputError, match=r"twice: \['a'\]"):
        FeatureEncoder().fit(table)


def test_check_table_and_take_rows(frame):
    assert check_table(frame) is frame
    with pytest.raises(InvalidInputError, match="at least one row"):
        check_table(frame.iloc[:0])
    for empty in (pd.DataFrame(index=range(3)), pl.DataFrame()):
        with pytest.raises(InvalidInputError, match="at least one row and one column"):
            check_table(empty)
    table = pl.DataFrame({"speed": [1.0, 2.0, 3.0]})
    rows = np.array([2, 0])
    assert take_rows(frame, rows)["speed"].tolist() == [3.0, 1.0]
    assert take_rows(table, rows)["speed"].to_list() == [3.0, 1.0]
    np.testing.assert_array_equal(take_rows(np.arange(3), rows), [2, 0])


def test_many_repeated_names_are_compared_once_each():
    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    names = [Name(f"x{i // 2}") for i in range(2000)]
    table = pd.DataFrame(np.zeros((6, 2000)), columns=pd.Index(names, dtype=object))
    Name.compared = 0
    with pytest.raises(InvalidInputError, match=r"twice: .*'x104'.* and 992 others"):
        check_table(table)
    assert Name.compared < 20_000


def test_a_decimal_that_signals_is_a_gap():
    values = [decimal.Decimal("sNaN"), *(decimal.Decimal(i % 3) for i in range(9))]
    encoder = FeatureEncoder().fit(pd.DataFrame({"x": values}))
    assert not encoder.complete_.any()


def test_a_whole_number_of_any_length_is_a_category():
    table = pd.DataFrame({"x": pd.Series(["a", 10**5000] * 5, dtype=object)})
    assert sorted(map(len, FeatureEncoder().fit(table).codes_[0])) == [1, 4155]


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(InvalidInputError, match="rows of the same length"):
        check_table([[1.0, 2.0], [3.0]])
