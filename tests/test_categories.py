"""Categories of many values: described by what goes with them, in a few columns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import FeatureEncoder, FusedDetector, load
from ocfuse.categories import MOST_COLUMNS, are_many, profiles
from ocfuse.column_kinds import about_rare, counted, is_few
from ocfuse.exceptions import InvalidInputError, SuspectInputWarning
from ocfuse.tables import TableDetector


def history(n_days=14, seed=0, n_machines=90, share=None):
    rng = np.random.default_rng(seed)
    machines = np.random.default_rng(99)
    volume = np.exp(machines.normal(5, 0.3, n_machines))
    seconds = machines.uniform(20, 60, n_machines)
    which = np.tile(np.arange(n_machines), n_days)
    noise = rng.normal(0, 0.1, (2, len(which)))
    return pd.DataFrame(
        {
            "machine": [f"m{i:04d}" for i in which],
            "volume": volume[which] * np.exp(noise[0]) * (1.0 if share is None else share[which]),
            "seconds": seconds[which] * np.exp(noise[1]),
        }
    )


@given(st.integers(0, 10**6), st.randoms())
@settings(max_examples=15)
def test_the_order_of_the_rows_changes_no_bit(seed, random):
    rng = np.random.default_rng(seed)
    codes, others = rng.integers(0, 30, 200).astype(float), rng.normal(size=(200, 11))
    order = list(range(200))
    random.shuffle(order)
    encoding, own = profiles(codes, 30, others)
    again, theirs = profiles(codes[order], 30, others[order])
    np.testing.assert_array_equal(again, encoding)
    np.testing.assert_allclose(theirs, own[order], atol=1e-12)
    assert encoding.shape[1] == MOST_COLUMNS + 1


def test_a_training_row_is_described_by_the_others_of_its_value():
    rng = np.random.default_rng(0)
    codes, others = np.repeat(np.arange(30.0), 8), rng.normal(size=(240, 2))
    others[:, 0] += codes / 5
    before = profiles(codes, 30, others)[1][17, :-1]
    others[17] += 0.05  # its own numbers say nothing of it, but for the mean and spreads of all
    np.testing.assert_allclose(profiles(codes, 30, others)[1][17, :-1], before, atol=0.01)
    others[18, 0] += 2.0
    assert profiles(codes, 30, others)[1][17, 0] > before[0] + 0.1


def test_values_lie_where_their_rows_are_drawn_to_the_mean_by_how_few_they_are():
    rng = np.random.default_rng(1)
    codes = np.concatenate([np.repeat(np.arange(25.0), 40), np.repeat(np.arange(25.0, 50.0), 3)])
    level = rng.normal(size=50)
    others = (level[codes.astype(int)] + rng.normal(size=len(codes)))[:, np.newaxis]
    found = profiles(codes, 50, others)[0][:50, 0]
    means = np.array([others[codes == c, 0].mean() for c in range(50)]) - others.mean()
    drawn = found / means
    assert 0.95 < np.median(drawn[:25]) <= 1.0
    assert 0.5 < np.median(drawn[25:]) < 0.9


def test_rare_values_are_one_and_new_ones_lie_further_out():
    codes = np.concatenate([np.repeat(np.arange(25.0), 10), [25.0, 26.0, 27.0, 27.0]])
    others = np.random.default_rng(0).normal(size=(len(codes), 3))
    found = profiles(codes, 28, others)[0]
    np.testing.assert_array_equal(found[25], found[27])
    assert found[-1, -1] > found[25, -1] > found[0, -1]
    assert np.isnan(found[28]).all()  # training had no gaps


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([1] * 60, False),
        ([3] * 90, True),
        ([3] * 1000, True),
        ([3] * 60 + [1] * 40, True),
        ([3] * 60 + [1] * 60, False),
        ([2] * 60, False),
        ([2] * 50, True),
        ([2] + [1] * 8, True),
    ],
)
def test_how_many_values_there_may_be_depends_on_the_rows(counts, expected):
    texts = counted(f"v{i}" for i, n in enumerate(counts) for _ in range(n))
    assert is_few(texts) is expected


def test_rare_values_are_told():
    texts = counted([f"v{i % 60}" for i in range(600)] + ["x", "y", "z", "z"])
    assert about_rare(texts) == "3 of them, in 4 rows, are rare and count as one: other"
    rows = history(8).assign(
        machine=lambda t: t["machine"].where(t.index > 3, "once " + t["machine"])
    )
    model = TableDetector(FusedDetector("light", random_state=0)).fit(rows)
    assert (
        "4 of them, in 4 rows, are rare and count as one: other" in model.schema_.columns[0].reason
    )


def test_a_thousand_values_take_few_columns_and_a_saved_model_agrees(tmp_path):
    rows = history(4, n_machines=1000)
    detector = FusedDetector("light", random_state=0).fit(rows)
    assert len(detector.encoder_.source_) == 2 + 2 + 1
    assert detector.encoder_.profiled_ == [True, False, False]
    fresh = history(1, seed=5, n_machines=1000).head(50)
    again = load(detector.save(tmp_path / "model.ocf"))
    np.testing.assert_array_equal(again.score_samples(fresh), detector.score_samples(fresh))


def test_up_to_twenty_values_have_a_column_each_as_ever():
    rows = history(10, n_machines=20)
    encoder = FeatureEncoder().fit(rows)
    assert not any(encoder.profiled_)
    assert len(encoder.source_) == 2 + 20 + 1 or len(encoder.source_) == 2 + 21
    codes = np.repeat(np.arange(20.0), 3)
    assert not are_many(codes, 20)
    assert are_many(np.append(codes, [np.nan] * 3), 20)


def test_a_table_of_many_categories_alone_keeps_columns():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 30, 300).astype(str)})
    rows["a"] = "v" + rows["a"]
    encoder = FeatureEncoder().fit(rows)
    assert not any(encoder.profiled_)
    assert np.isfinite(encoder.transform(rows)).all()


def test_the_false_alarm_rate_holds_with_few_rows_of_each_value():
    detector = FusedDetector("light", random_state=0).fit(history(5, n_machines=300))
    rate = (detector.predict(history(4, seed=7, n_machines=300)) < 0).mean()
    assert 0.025 < rate < 0.085


def test_machines_at_a_fifth_are_found_in_python_and_on_the_command_line(run_command, tmp_path):
    bad = np.zeros(90, dtype=bool)
    bad[np.random.default_rng(3).choice(90, 10, replace=False)] = True
    today = history(6, seed=8, share=np.where(bad, 0.2, 1.0))
    rows = history(14)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    today.to_csv(tmp_path / "today.csv", index=False)
    alarms = FusedDetector(random_state=0).fit(rows).predict(today) < 0
    model, out = tmp_path / "m.ocf", tmp_path / "scores.csv"
    for flags in ([], ["--category", "machine"]):
        code, _, error = run_command("fit", tmp_path / "rows.csv", "-o", model, "--force", *flags)
        assert code == 0, error
        code, _, error = run_command("score", model, tmp_path / "today.csv", "-o", out)
        assert code == 0, error
        found = pd.read_csv(out)["is_anomaly"].to_numpy(dtype=bool)
        np.testing.assert_array_equal(found, alarms)
    is_bad = np.tile(bad, 6)
    assert alarms[is_bad].sum() >= 54  # 9 of 10 a day
    assert alarms[~is_bad].mean() <= 0.05


def test_categories_that_hardly_repeat_are_told():
    rows = history(5, n_machines=20).assign(code=[f"k{i}" for i in range(100)])
    detector = FusedDetector("light", encoder=FeatureEncoder(categories=["code"]), random_state=0)
    with pytest.warns(SuspectInputWarning, match="Column 'code' is a category, but its values"):
        detector.fit(rows)


def test_categories_and_numbers_that_contradict_are_refused():
    rows = history(5, n_machines=20).assign(count=np.arange(100))
    with pytest.raises(InvalidInputError, match="cannot be both"):
        TableDetector(categories="count", numbers="count").fit(rows)
    with pytest.raises(InvalidInputError, match="named in categories and in numbers"):
        FeatureEncoder(categories=["count"], numbers=["count"]).fit(rows)
    assert FeatureEncoder().fit(rows).roles_[3] == "left out"
    assert FeatureEncoder(numbers=["count"]).fit(rows).roles_[3] == "number"
    assert FeatureEncoder(categories=["count"]).fit(rows).roles_[3] == "category"
