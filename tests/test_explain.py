"""Attributions by features, what is usual, and words and sums that people can check."""

import importlib.util
import re
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import FusedDetector
from ocfuse.encoder import FeatureEncoder
from ocfuse.exceptions import InvalidInputError, MissingPackageError, OcfuseWarning
from ocfuse.explain import (
    Explanation,
    UsualValues,
    attribute_features,
    range_texts,
    readable,
    rounded_parts,
    share_text,
    values_of,
)

TRAIN = np.random.default_rng(0).normal(size=(41, 3))


def curved(X):
    return -np.sum(X**2, axis=1) + X[:, 0] * X[:, -1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_shares_add_up(seed, m):
    rng = np.random.default_rng(seed)
    X, reference = rng.normal(size=(2, 3, m))
    shares = attribute_features(curved, X, reference, np.arange(m))
    np.testing.assert_allclose(shares.sum(1), curved(reference) - curved(X), atol=1e-12)


def test_a_sum_over_features_is_shared_exactly():
    rng = np.random.default_rng(0)
    X, reference = rng.normal(size=(2, 4, 3))
    shares = attribute_features(lambda X: -np.sum(X**2, axis=1), X, reference, np.arange(3))
    np.testing.assert_allclose(shares, X**2 - reference**2)


def test_a_feature_that_does_not_differ_has_no_share():
    rng = np.random.default_rng(1)
    X, reference = rng.normal(size=(2, 4, 3))
    reference[:, 1] = X[:, 1]
    shares = attribute_features(curved, X, reference, np.arange(3))
    np.testing.assert_array_equal(shares[:, 1], 0.0)
    assert np.abs(shares[:, [0, 2]]).min() > 0


def test_an_interaction_is_shared_equally():
    shares = attribute_features(
        lambda X: X[:, 0] * X[:, 1], np.zeros((1, 2)), np.ones((1, 2)), np.arange(2)
    )
    np.testing.assert_allclose(shares, [[0.5, 0.5]])


def test_the_columns_of_a_category_go_together():
    X, reference = np.array([[1.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 1.0]])
    seen = []

    def score(rows):
        seen.append(rows.copy())
        return rows @ np.array([1.0, 2.0, 4.0])

    shares = attribute_features(score, X, reference, np.array([1, 1, 0]))
    np.testing.assert_allclose(shares, [[0.0, 1.0]])
    assert all((rows[:, 0] + rows[:, 1] == 1).all() for rows in seen)


def test_equal_rows():
    X = np.ones((2, 3))
    assert not attribute_features(curved, X, X, np.arange(3)).any()


@pytest.mark.slow
@pytest.mark.parametrize("m", [5000])
def test_many_features_in_chunks(m):
    X, reference = np.ones((1, m)), np.zeros((1, m))
    shares = attribute_features(lambda X: -X.sum(axis=1), X, reference, np.arange(m))
    np.testing.assert_allclose(shares, 1.0)


def explanation(n, name):
    """Rows that differ in nothing but the number of their kind."""
    return Explanation(
        score=np.linspace(-1.0, 1.0, n),
        offset=0.0,
        p_value=np.full(n, 0.5),
        member_names=[name, "other"],
        member_scores=np.zeros((n, 2)),
        normalised_scores=np.zeros((n, 2)),
        weights=np.tile([0.25, 0.75], (n, 1)),
        base=np.zeros(n),
        contributions=np.zeros((n, 2)),
        local_p=np.full(n, np.nan),
        nearest_rows=np.zeros((n, 1), dtype=np.intp),
        nearest_distances=np.ones((n, 1)),
        feature_names=[name],
        attributions=np.full((n, 1), 2.0),
    )


def test_notebooks_show_a_table_of_few_rows():
    html = explanation(30, "a")._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "and 10 more rows" in html
    assert "other (+0.75), a (+0.25)" in html
    assert html.count("<b>anomaly</b>") == 15


def test_names_in_a_notebook_are_no_markup():
    html = explanation(2, "<script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "(+2)" in html


def test_a_feature_that_costs_nothing_is_not_called_unusual():
    why = explanation(1, "a")
    assert re.search(r"^a +-2\.000$", why.describe(), re.MULTILINE)
    for cost in (0.0, -1.0):
        harmless = replace(why, attributions=np.full((1, 1), cost))
        assert "no single column" in harmless.describe()
        assert harmless.reason() == "no single column"
        assert "(+0)" not in harmless._repr_html_()


def test_rows_together_have_the_shares_that_they_have_alone():
    rng = np.random.default_rng(2)
    X, reference = rng.normal(size=(2, 50, 40))
    reference[::3, ::2] = X[::3, ::2]
    reference[7] = X[7]
    together = attribute_features(curved, X, reference, np.arange(40))
    for i in range(50):
        rows = slice(i, i + 1)
        alone = attribute_features(curved, X[rows], reference[rows], np.arange(40))
        np.testing.assert_allclose(together[rows], alone, atol=1e-12)


def test_a_row_takes_two_scored_rows_per_feature_that_differs():
    scored = []

    def score(rows):
        scored.append(len(rows))
        return curved(rows)

    X, reference = np.ones((2, 30, 12))
    reference[:, :5] = 0.0
    attribute_features(score, X, reference, np.arange(12))
    assert sum(scored) == 30 * 2 * 5
    assert len(scored) == 1


def test_columns_of_no_feature_stay_as_they_are():
    X, reference = np.zeros((1, 3)), np.ones((1, 3))
    shares = attribute_features(
        lambda rows: rows @ [1.0, 2.0, 4.0], X, reference, np.array([0, -1, 2]), 4
    )
    np.testing.assert_allclose(shares, [[1.0, 0.0, 4.0, 0.0]])


# -- what is usual ---------------------------------------------------------


def thyroid(n=200):
    """Return rows with a number, a rare category, and gaps."""
    return pd.DataFrame(
        {
            "TSH": np.linspace(0.2, 6.3, n),
            "surgery": ["t", "t", *["f"] * (n - 2)],
            "sex": (["F", "M", None, "F"] * n)[:n],
            "age": [np.nan, *np.arange(1.0, n)],
        }
    )


@pytest.fixture
def usual():
    frame = thyroid()
    return UsualValues.of(frame, FeatureEncoder().fit(frame))


def test_the_usual_range_is_the_middle_of_the_training_rows(usual):
    judged = usual.judge(0, 530.0)
    assert (judged.usual, judged.remark) == ("0.353 to 6.15", "above all training rows")
    assert judged.is_unusual
    assert usual.judge(0, -1.0).remark == "below all training rows"
    rim = usual.judge(0, 6.2)
    assert (rim.remark, rim.is_unusual) == ("", True)
    assert not usual.judge(0, 3.0).is_unusual
    assert judged.facts == {"low": thyroid()["TSH"][5], "high": thyroid()["TSH"][194]}


def test_one_extreme_training_row_does_not_widen_the_usual_range():
    frame = pd.DataFrame({"TSH": [*np.linspace(0.4, 6.0, 99), 530.0]})
    usual = UsualValues.of(frame, FeatureEncoder().fit(frame))
    assert usual.judge(0, 400.0).is_unusual
    assert usual.judge(0, 400.0).remark == ""


def test_a_category_is_unusual_only_if_few_rows_are_as_rare(usual):
    common, rare, new = (usual.judge(1, text) for text in ("f", "t", "x"))
    assert not common.is_unusual
    assert (rare.is_unusual, rare.is_new, rare.remark) == (True, False, "1 % of training rows")
    assert (new.is_unusual, new.is_new, new.remark) == (True, True, "never seen in training")
    assert new.usual == "f (99 %)"
    levels = pd.DataFrame({"a": [f"v{i}" for i in range(50)] * 2, "b": np.arange(100.0)})
    even = UsualValues.of(levels, FeatureEncoder().fit(levels))
    assert not even.judge(0, "v3").is_unusual  # every other one is as rare


def test_gaps_are_judged_too(usual):
    assert usual.judge(2, "W").usual == "F (50 %), missing (25 %) or M (25 %)"
    assert not usual.judge(2, None).is_unusual
    once = usual.judge(3, None)
    assert (once.is_unusual, once.is_new) == (True, False)
    assert once.remark == "missing in 0.5 % of training rows"
    assert usual.judge(0, None).is_new
    assert not usual.judge(3, 50.0).is_new


def test_values_are_those_of_the_table():
    frame = thyroid(4)
    encoder = FeatureEncoder().fit(frame)
    assert values_of(frame, encoder)[2] == [frame["TSH"][2], "f", None, 2.0]
    assert values_of(frame, encoder)[0][3] is None
    assert values_of(np.array([[1.0, np.nan]]), FeatureEncoder().fit(np.eye(2))) == [[1.0, None]]


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(-1e9, 1e9))
def test_a_value_looks_inside_its_range_if_and_only_if_it_is(low, width, value):
    low, high, value = float(low), float(low + width), float(value)
    texts = [float(text) for text in range_texts(low, high, value)]
    assert (texts[2] < texts[0]) == (value < low)
    assert (texts[2] > texts[1]) == (value > high)


def test_texts_of_values_and_shares():
    assert [readable(cell) for cell in (None, np.nan, 1 / 3, 123456.0, "ab")] == [
        "missing",
        "missing",
        "0.3333",
        "123456",
        "ab",
    ]
    assert len(readable("x" * 100)) == 60
    assert [share_text(share) for share in (0.98912, 0.99999, 1.0, 0.00123)] == [
        "98.9 %",
        "99.9 %",
        "100 %",
        "0.123 %",
    ]


# -- words and sums --------------------------------------------------------


def told(costs, values, usual):
    """Return the explanation of one row of the table of `thyroid`."""
    return replace(
        explanation(2, "knn"),
        feature_names=["TSH", "surgery", "sex", "age"],
        attributions=np.array([costs, costs]),
        values=[values, values],
        usual=usual,
        contributions=np.array([[-1.25, 0.25], [-1.25, 0.25]]),
    )


def test_the_reason_has_the_usual_range_beside_the_value(usual):
    why = told([3.0, 0.0, 0.0, 0.0], [530.0, "f", "F", 40.0], usual)
    assert why.reason() == "TSH 530, usually 0.353 to 6.15, above all training rows"
    assert "TSH 530, usually 0.353 to 6.15, above all training rows" in why.describe()


def test_a_common_value_is_never_called_unusual(usual):
    why = told([1.0, 2.0, 0.5, 0.0], [6.2, "f", "F", 40.0], usual)
    assert why.reason() == "TSH 6.2, usually 0.353 to 6.15; together with surgery f, sex F"
    assert "surgery f, usual alone, unusual together with the others" in why.describe()
    usual_alone = told([0.0, 2.0, 0.0, 1.0], [3.0, "f", "F", 40.0], usual)
    expected = "no value is unusual alone, but together: surgery f, age 40"
    assert usual_alone.reason() == expected


def test_what_training_never_had_is_named_first(usual):
    why = told([3.0, -0.5, 0.0, 0.0], [530.0, "x", "F", 40.0], usual)
    first = why.readings(0)[0]
    assert (first.name, first.words) == ("surgery", "x, never seen in training, usually f (99 %)")
    assert why.reason().startswith("surgery x, never seen in training, usually f (99 %); TSH 530")


def test_a_gap_that_costs_nothing_is_no_reason(usual):
    why = told([0.0, 2.0, 0.0, 0.0], [None, "t", "F", 40.0], usual)
    assert why.reason() == "surgery t, 1 % of training rows, usually f (99 %)"


def ends(lines):
    return [float(line.split()[-1]) for line in lines]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 7), st.floats(-6, 6))
def test_the_numbers_that_are_shown_add_up(seed, n_features, n_members, size):
    rng = np.random.default_rng(seed)
    costs, shares = 10.0**size * rng.normal(size=(2, 1, 7))
    base = 10.0**size * rng.normal(size=1)
    names = [f"n{j}" for j in range(7)]
    why = Explanation(
        score=base + shares.sum(axis=1),
        offset=0.0,
        p_value=np.ones(1),
        member_names=names,
        member_scores=shares,
        normalised_scores=shares,
        weights=rng.random((1, 7)),
        base=base,
        contributions=shares,
        local_p=base,
        nearest_rows=np.zeros((1, 1), dtype=np.intp),
        nearest_distances=np.ones((1, 1)),
        feature_names=names,
        attributions=costs,
    )
    lines = why.describe(n_features=n_features, n_members=n_members).splitlines()
    score = float(re.search(r"score (\S+),", lines[0])[1])
    heads = next(i for i, line in enumerate(lines) if line.startswith("member"))
    for block in (lines[1:heads], lines[heads + 1 : -1]):
        if "no single column" not in block[0]:
            *parts, total = ends(block)
            assert total == score
            assert sum(parts) == pytest.approx(total, abs=1e-9 * max(1, abs(score)))
    assert score == pytest.approx(why.score[0], rel=1e-2, abs=1e-9)


def test_rounding_keeps_the_sum():
    assert rounded_parts([1 / 3, 1 / 3, 1 / 3], 1.0, 2) == [0.34, 0.33, 0.33]
    assert rounded_parts([-0.5, 0.5], 0.0, 0) in ([0.0, 0.0], [-1.0, 1.0])
    assert rounded_parts([np.inf, 1.0], np.inf, 2) == [np.inf, 1.0]


class ShapExplanation:
    """What shap.Explanation takes, where shap is not installed."""

    def __init__(self, *, values, base_values, data, feature_names):
        self.values, self.base_values, self.data = values, base_values, data
        self.feature_names = feature_names


@pytest.fixture
def shap(monkeypatch):
    if importlib.util.find_spec("shap") is None:
        monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=ShapExplanation))
        return None
    return pytest.importorskip("shap")


@pytest.mark.parametrize("of", ["features", "members"])
def test_shares_in_shap_add_up_to_the_score(shap, of):
    why = FusedDetector("light", random_state=0).fit(TRAIN).explain(TRAIN[:5])
    found = why.to_shap(of)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), why.score)
    assert found.values.shape == found.data.shape == (5, len(found.feature_names))
    if of == "features":
        np.testing.assert_array_equal(found.data, TRAIN[:5])
        np.testing.assert_array_equal(found.values, 0.0 - why.attributions)


def test_categories_and_gaps_in_shap(shap):
    frame = pd.DataFrame(TRAIN, columns=[f"x{j}" for j in range(TRAIN.shape[1])])
    frame["mode"] = ["a", "b"] * (len(frame) // 2) + ["a"] * (len(frame) % 2)
    why = FusedDetector("light", random_state=0).fit(frame).explain(frame[:2])
    assert why.to_shap().data[0, -1] == "a"
    gap = replace(why, values=[[1.0, None], [2.0, 3.0]], attributions=np.zeros((2, 2)))
    assert np.isnan(gap.to_shap().data[0, 1])


def test_plots_of_shap_draw_it(shap):
    if shap is None:
        pytest.skip("shap is not installed")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    why = FusedDetector("light", random_state=0).fit(TRAIN).explain(TRAIN[:5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shap.plots.waterfall(why.to_shap()[0], show=False)
        shap.plots.beeswarm(why.to_shap(), show=False)
    pyplot.close("all")


def test_other_shares_are_refused(shap):
    why = FusedDetector("light", random_state=0).fit(TRAIN).explain(TRAIN[:1])
    with pytest.raises(InvalidInputError, match="of must be"):
        why.to_shap("rows")


def test_the_extra_is_named_where_shap_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    why = FusedDetector("light", random_state=0).fit(TRAIN).explain(TRAIN[:1])
    with pytest.raises(MissingPackageError, match=r"\[shap\]"):
        why.to_shap()


def test_columns_that_say_whose_and_when_a_row_is_are_not_counted():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "machine": np.repeat(["a", "b"], 60),
            "when": pd.date_range("2026-02-02", periods=120, freq="1h"),
            **{name: rng.normal(size=120) for name in ("x", "y", "z")},
        }
    )
    asked = {"by": "machine", "time": "when", "season": "day"}
    detector = FusedDetector("light", **asked, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)  # that no column has a season
        detector.fit(table)
    why = detector.explain(table[:1].assign(x=30.0))
    assert {one.name for one in why.readings(0)} == {"x", "y", "z"}
    text = why.describe()
    assert "2 other columns" in text
    assert "for machine a" in text
