"""Categories as ordinary tables have them: rare ones, new ones, many, codes."""

import numpy as np
import pandas as pd
import pytest

from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.exceptions import CellsWarning
from ocfuse.tables import TableDetector


def machines(n=200, seed=0):
    """Two numbers, a column of three modes, one of a few rare makers, one that is always on."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "flow": rng.normal(20, 3, n),
            "current": rng.normal(size=n),
            "mode": rng.choice(["fast", "slow", "idle"], n, p=[0.6, 0.35, 0.05]),
            "maker": rng.choice(["A", "B", *"cdefg"], n, p=[0.55, 0.4, *[0.01] * 5]),
            "state": "on",
        }
    )


def fitted(frame, **settings):
    """Return a detector of rows that are known to be normal: none is left out as a stray."""
    return FusedDetector("light", random_state=0, **settings).fit(frame, np.ones(len(frame)))


@pytest.fixture(scope="module")
def detector():
    return fitted(machines())


@pytest.mark.parametrize("column", ["mode", "maker", "state"])
def test_a_category_never_seen_is_at_least_as_unusual_as_the_rarest_seen(detector, column):
    rows = machines(60, seed=1)
    seen = [detector.score_samples(rows.assign(**{column: v})) for v in machines()[column].unique()]
    with pytest.warns(CellsWarning, match=rf"{column}: new values.*\('never seen'\): 60 rows"):
        new = detector.score_samples(rows.assign(**{column: "never seen"}))
    assert np.mean(new <= np.min(seen, axis=0) + 1e-9) >= 0.98
    assert (new < detector.offset_).mean() >= 0.9


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_explanations_name_a_category_never_seen_first(detector):
    rows = machines(60, seed=2)
    columns = np.array(["mode", "maker", "state"])[np.arange(60) % 3]
    for i, column in enumerate(columns):
        rows.loc[i, column] = "never seen"
    why = detector.explain(rows)
    first = np.array(why.feature_names)[why.attributions.argmax(axis=1)]
    assert (first == columns).mean() >= 0.95


def test_many_rare_values_raise_no_alarms_beyond_the_stated_rate_and_the_new_values():
    rng = np.random.default_rng(0)

    def orders(n):
        return pd.DataFrame(
            {
                "amount": rng.normal(size=n),
                "weight": rng.normal(size=n),
                "town": [f"t{int(x)}" for x in 100 * rng.random(n) ** 4],
            }
        )

    detector = fitted(orders(400), encoder=FeatureEncoder(categories=["town"]))
    rows = orders(2000)
    is_new = detector.encoder_.read(rows)[:, 2] == -1
    assert detector.predict(rows[~is_new]).mean() >= 1 - 2 * 0.05
    with pytest.warns(CellsWarning, match="town: new values"):
        assert (detector.predict(rows[is_new]) < 0).mean() >= 0.9


def test_a_rare_value_is_more_unusual_than_a_common_one(detector):
    rows = machines(60, seed=3)
    common = detector.score_samples(rows.assign(maker="A"))
    assert (detector.score_samples(rows.assign(maker="c")) < common).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.SuspectRowsWarning")
def test_python_and_tables_read_categories_alike():
    """As text, with truth in one spelling and blanks that mean nothing."""
    frame = machines().assign(mode=lambda f: f["mode"].where(f["maker"] != "c", " "))
    spaced = frame.assign(mode=frame["mode"] + " ", state="True")
    named = FusedDetector("light", random_state=0).fit(spaced)
    table = TableDetector(FusedDetector("light", random_state=0))
    with pytest.warns(UserWarning, match="same value in every row: state"):
        table.fit(frame.assign(state="TRUE"))
    rows = spaced.iloc[:20]
    np.testing.assert_array_equal(named.score_samples(rows), table.score(rows)["score"])


@pytest.mark.slow
def test_digits_that_are_codes_can_be_categories():
    """Code 4 lies between 3 and 5 as a number; as a code it has never been there."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "code": rng.choice([1, 2, 3, 5, 6, 7], 200)})
    rows = frame.iloc[:50].assign(code=4)
    as_number = FusedDetector("light", random_state=0).fit(frame)
    assert (as_number.predict(rows) < 0).mean() < 0.5
    coded = FusedDetector("light", random_state=0, encoder=FeatureEncoder(categories=["code"]))
    coded.fit(frame)
    model = TableDetector(FusedDetector("light", random_state=0), categories="code").fit(frame)
    for predicted in (lambda: coded.predict(rows) < 0, lambda: model.score(rows)["is_anomaly"]):
        with pytest.warns(CellsWarning, match=r"code: new values.*\('4'\): 50 rows"):
            assert predicted().mean() >= 0.95


def test_new_values_of_several_columns_are_one_warning(detector):
    rows = machines(10, seed=4).assign(mode="x", maker=[*"xyxyxyxyxy"])
    with pytest.warns(CellsWarning) as told:
        detector.predict(rows)
    assert len(told) == 1
    lines = str(told[0].message).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["mode", "maker"]
    assert "('x', 'y')" in lines[2]


def test_a_missing_category_counts_by_its_rarity():
    """Of training rows 2 % have no maker: less usual than A, and no news."""
    frame = machines(300)
    frame.loc[::50, "maker"] = None
    detector = fitted(frame)
    rows = machines(60, seed=5)
    missing = detector.score_samples(rows.assign(maker=None))
    assert (missing < detector.score_samples(rows.assign(maker="A"))).mean() >= 0.9
