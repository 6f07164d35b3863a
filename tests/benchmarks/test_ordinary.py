"""Troubles of the benchmark of ordinary tables, put into a small table; what is told of them."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.ordinary.sources import Rows
from benchmarks.ordinary.tables import targets
from benchmarks.ordinary.troubles import BLANK_COLUMNS, NEVER_SEEN, ONE_IN, SHIFT, TROUBLES


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 600
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "count": rng.poisson(5, n),
            "y": rng.normal(size=n),
            "z": rng.normal(size=n),
            "colour": rng.choice(np.array(["red", "blue"], dtype=object), n),
        }
    )
    return Rows(*(table[i : i + 200].reset_index(drop=True) for i in (0, 200, 400)))


@pytest.fixture
def put(rows):
    return lambda trouble: TROUBLES[trouble](rows, np.random.default_rng(0))


def test_blanks_are_in_three_columns_one_of_text_and_later_in_a_fourth(put, rows):
    case = put("blanks")
    in_training = set(case.train.columns[case.train.isna().any()])
    assert len(in_training) == BLANK_COLUMNS
    assert "colour" in in_training
    assert set(case.fresh.columns[case.fresh.isna().any()]) > in_training
    assert case.train[sorted(in_training)].isna().to_numpy().mean() == pytest.approx(0.05, abs=0.03)
    assert not rows.train.isna().to_numpy().any()


@pytest.mark.parametrize(
    ("trouble", "length", "different"),
    [
        ("rows twice", 400, 200),
        ("rows three times", 600, 200),
        ("half of the rows twice", 300, 200),
        ("copies with noise 1e-9", 400, 400),
    ],
)
def test_copies_are_in_the_training_rows_alone(put, rows, trouble, length, different):
    case = put(trouble)
    assert len(case.train) == length
    assert len(case.train.drop_duplicates()) == different
    assert case.fresh.equals(rows.fresh)


def test_copies_with_noise_are_as_near_as_stated(put):
    pairs = put("copies with noise 1e-9").train["x"].to_numpy().reshape(-1, 2)
    assert 0 < np.abs(np.diff(pairs)).max() < 1e-8


def test_every_tenth_fresh_row_has_a_category_never_seen(put, rows):
    case = put("new categories")
    places = np.arange(0, 200, ONE_IN)
    assert (case.planted["colour"] == NEVER_SEEN).all()
    assert case.planted.drop(columns="colour").equals(
        rows.fresh.iloc[places].drop(columns="colour")
    )
    assert case.unplanted.equals(rows.fresh.iloc[places])
    # false alarms are counted on the others
    assert case.fresh.equals(rows.fresh.drop(index=places).reset_index(drop=True))
    assert set(case.planted_in) == {"colour"}


def test_a_table_of_numbers_has_no_new_categories(rows):
    numbers = Rows(*(frame.drop(columns="colour") for frame in vars(rows).values()))
    assert TROUBLES["new categories"](numbers, np.random.default_rng(0)) is None


def test_ids_and_texts_are_different_in_every_row(put):
    case = put("ids and free text")
    assert case.train["record_id"].is_unique
    assert case.train["remark"].is_unique
    assert not {"record_id", "remark"} & set(case.planted_in)


def test_a_planted_shift_moves_one_number_away_from_the_mean(put, rows):
    case = put("none")
    for i, name in enumerate(case.planted_in):
        old, new = case.unplanted.iloc[i], case.planted.iloc[i]
        assert list(old.index[old != new]) == [name]
        assert abs(new[name] - old[name]) == pytest.approx(SHIFT * rows.train[name].std())
        assert abs(new[name] - rows.train[name].mean()) > abs(old[name] - rows.train[name].mean())


def test_few_anomalies_are_labelled_and_not_judged(put, rows):
    case = put("five labels")
    assert case.y.tolist() == [0] * 200 + [-1] * 5
    assert case.train[200:].reset_index(drop=True).equals(rows.anomalies[:5])
    assert len(case.anomalies) == len(rows.anomalies) - 5


def test_a_table_that_was_refused_or_not_saved_misses_its_target():
    good = {"false_alarms": 0.05, "auc": 90.0, "saved": "equal", "refused": "", "named_first": 1.0}
    bad = good | {"saved": "InvalidTypeError: no", "refused": "InvalidInputError: gaps"}
    assert all(target.met for target in targets({"none": {"a": good, "b": good}}))
    missed = [t.promise for t in targets({"none": {"a": good, "b": bad}}) if not t.met]
    expected = ["every model is saved", "every table is fitted"]
    assert [promise.split(",")[0] for promise in missed] == expected
