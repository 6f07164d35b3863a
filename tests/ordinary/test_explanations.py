"""Explanations of ordinary tables: what was planted is named first, in words that are true."""

import numpy as np
import pandas as pd
import pytest

import ocfuse
from ocfuse import FusedDetector

# what is new in a row is told, too
pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

N_ROWS, N_PLANTED = 150, 20


def clinic(n, seed):
    """Return rows with numbers of several kinds, a rare category, a gap here and there."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n)
    frame = pd.DataFrame(
        {
            "age": age.round(),
            "weight": 40 + 0.6 * age + rng.normal(0, 6, n),
            "TSH": rng.lognormal(0.6, 0.6, n),
            "visits": rng.poisson(3, n).astype(float),
            "surgery": np.where(rng.random(n) < 0.02, "t", "f"),
            "ward": rng.choice(["north", "south", "east"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "visits"] = np.nan
    return frame


NUMBERS, TEXTS = ("age", "weight", "TSH", "visits"), ("surgery", "ward")


@pytest.fixture(scope="module")
def train():
    return clinic(N_ROWS, 0)


@pytest.fixture(scope="module")
def detector(train):
    return FusedDetector(random_state=0).fit(train, np.ones(N_ROWS))


def planted(columns, change):
    """Return fresh rows with one cell changed each, and the columns of these cells."""
    rows = clinic(N_PLANTED, 1)
    which = [columns[i % len(columns)] for i in range(N_PLANTED)]
    for i, name in enumerate(which):
        rows.loc[i, name] = change(rows, i, name)
    return rows, which


def named_first(why):
    return [why.readings(i, 1)[0].name for i in range(len(why))]


@pytest.mark.parametrize(("size", "fewest"), [(6.0, 0.95), (3.0, 0.8)])
def test_a_shifted_column_is_named_first(detector, train, size, fewest):
    def shift(rows, i, name):
        spread = train[name].std()
        start = rows[name].fillna(train[name].median())[i]
        return start + (-1) ** i * size * spread

    rows, which = planted(NUMBERS, shift)
    hits = np.equal(named_first(detector.explain(rows)), which)
    assert hits.mean() >= fewest


def test_a_category_that_training_never_had_is_named_first_and_called_so(detector):
    rows, which = planted(TEXTS, lambda *_: "elsewhere")
    why = detector.explain(rows)
    assert named_first(why) == which
    for i, name in enumerate(which):
        assert why.reason(i).startswith(f"{name} elsewhere, never seen in training, usually ")


def test_a_value_of_many_training_rows_is_never_called_unusual(detector, train):
    rows, _ = planted(NUMBERS, lambda rows, i, name: 10 * train[name].max())
    why = detector.explain(rows)
    found = [one for i in range(len(why)) for one in why.readings(i) if one.cell is not None]
    for one in found:
        known = train[one.name].dropna()
        if one.name in TEXTS:
            share = (known == one.cell).mean()
        else:
            share = min((known <= one.cell).mean(), (known >= one.cell).mean())
        assert not one.is_unusual or share <= 0.05
    assert any(one.is_unusual for one in found)
    words = "\n".join(why.describe(i) for i in range(len(why)))
    assert "surgery f, usually" not in words
    assert "surgery f, 98" not in words


def test_the_usual_range_is_that_of_normal_rows_not_of_one_neighbour(detector, train):
    rows = clinic(1, 2).assign(TSH=530.0)
    first = detector.explain(rows).readings(0, 1)[0]
    low, high = np.quantile(train["TSH"], [0.025, 0.975])
    assert first.name == "TSH"
    assert first.judgement.facts["low"] == pytest.approx(low, rel=0.1)
    assert first.judgement.facts["high"] == pytest.approx(high, rel=0.1)
    assert first.words.startswith("530, usually ")


def test_a_row_that_is_odd_only_in_combination_is_not_blamed_on_one_value(detector):
    rows = clinic(1, 3).assign(age=30.0, weight=82.0, TSH=1.8, visits=3.0, surgery="f", ward="east")
    why = detector.explain(rows)
    assert not any(reading.is_unusual for reading in why.readings(0))
    assert why.reason().startswith("no value is unusual alone, but together: ")
    assert {"age", "weight"} & {reading.name for reading in why.readings(0, 2)}


def test_explanations_do_not_depend_on_the_other_rows(detector):
    rows = clinic(8, 4)
    together = detector.explain(rows)
    for i in range(len(rows)):
        alone = detector.explain(rows.iloc[[i]])
        np.testing.assert_allclose(
            alone.attributions[0], together.attributions[i], rtol=1e-6, atol=1e-9
        )
        assert alone.describe() == together.describe(i)


@pytest.mark.slow
def test_a_saved_model_knows_what_is_usual(detector, tmp_path):
    rows = clinic(3, 5).assign(TSH=530.0)
    loaded = ocfuse.load(detector.save(tmp_path / "model.ocf"))
    expected = detector.explain(rows)
    found = loaded.explain(rows)
    assert [found.reason(i) for i in range(3)] == [expected.reason(i) for i in range(3)]


def test_a_model_without_usual_values_still_explains(detector):
    old = FusedDetector(random_state=0)
    old.__dict__.update(detector.__dict__)
    del old.__dict__["usual_"]
    why = old.explain(clinic(2, 6).assign(TSH=530.0))
    assert why.reason() == "TSH 530"
    assert "TSH 530" in why.describe()


@pytest.mark.slow
def test_labelled_anomalies_do_not_widen_the_usual_range(train):
    both = pd.concat([train, clinic(20, 7).assign(TSH=530.0)], ignore_index=True)
    y = np.where(np.arange(len(both)) < len(train), 1, -1)
    detector = FusedDetector("light", random_state=0).fit(both, y)
    assert detector.usual_.most[2] == train["TSH"].max()
