"""Rows measured from what is usual for whom: `by` of FusedDetector."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FeatureEncoder, FusedDetector, load
from ocfuse.ensemble.report import report_data
from ocfuse.exceptions import (
    CellsWarning,
    CopiedRowsWarning,
    InvalidInputError,
    InvalidTypeError,
    SuspectInputWarning,
)
from ocfuse.streaming.channels import row_readings

N_MACHINES = 40


def rows_of_machines(n, seed, n_machines=N_MACHINES, n_columns=2):
    """Return n rows of each machine, whose levels and spreads differ."""
    known = np.random.default_rng(17)
    level = 100.0 * known.normal(size=(n_machines, n_columns))
    spread = np.exp(known.normal(size=(n_machines, n_columns)))
    machine = np.repeat(np.arange(n_machines), n)
    noise = np.random.default_rng(seed).normal(size=(len(machine), n_columns))
    table = pd.DataFrame(level[machine] + spread[machine] * noise, columns=["flow", "current"])
    return table.assign(machine=[f"m{i}" for i in machine]), spread[machine]


@pytest.fixture(scope="module")
def detector():
    rows, _ = rows_of_machines(20, 1)
    return FusedDetector("light", by="machine", false_alarm_rate=0.1, random_state=0).fit(rows)


def test_the_false_alarm_rate_holds_within_groups(detector):
    rows, _ = rows_of_machines(200, 2)
    is_alarm = detector.predict(rows) < 0
    rates = is_alarm.reshape(N_MACHINES, -1).mean(axis=1)
    assert 0.07 <= is_alarm.mean() <= 0.13
    # twenty rows tell mean and spread of a machine to a quarter of a spread
    assert np.mean((rates > 0.015) & (rates < 0.25)) >= 0.9
    plain, _ = rows_of_machines(20, 1)
    without = FusedDetector("light", false_alarm_rate=0.1, random_state=0)
    without.fit(plain.drop(columns="machine"))
    other = without.predict(rows.drop(columns="machine")) < 0
    assert rates.std() < 0.7 * other.reshape(N_MACHINES, -1).mean(axis=1).std()


def test_a_shift_is_found_by_the_spread_of_its_machine(detector):
    rows, spread = rows_of_machines(20, 3)
    rows["flow"] += 8.0 * spread[:, 0]
    assert (detector.predict(rows) < 0).mean() > 0.95


def test_machines_at_a_fifth_of_their_usual_volume_are_found():
    level = np.exp(np.random.default_rng(0).normal(size=90) * 1.5 + 7.0)

    def days(n, seed, broken=()):
        rng = np.random.default_rng(seed)
        share = np.where(np.isin(np.arange(90), broken), 0.2, 1.0)
        volume = np.round(level * share * np.exp(0.15 * rng.normal(size=(n, 90))))
        names = [f"m{i:02}" for i in range(90)] * n
        return pd.DataFrame({"machine": names, "volume": volume.ravel()})

    with warnings.catch_warnings():
        warnings.simplefilter("error", CopiedRowsWarning)  # whole numbers may come twice
        detector = FusedDetector("light", by="machine", random_state=0).fit(days(30, 1))
    is_broken = np.isin(np.arange(90), np.arange(0, 90, 9))
    is_alarm = np.array(
        [detector.predict(days(1, seed, np.flatnonzero(is_broken))) < 0 for seed in range(2, 12)]
    )
    assert is_alarm[:, is_broken].sum(axis=1).min() >= 9
    assert is_alarm[:, ~is_broken].mean() <= 0.065


def test_rows_of_many_groups_are_one_model():
    rows, _ = rows_of_machines(4, 1, n_machines=1500)
    encoder = FeatureEncoder(by="machine").fit(rows)
    arrays = [value for value in vars(encoder.usual_.groups_).values() if hasattr(value, "nbytes")]
    assert sum(array.nbytes for array in arrays) < 1500 * 200
    assert encoder.transform(rows).shape == (6000, 2)


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(detector):
    rows, _ = rows_of_machines(20, 1)
    fresh, _ = rows_of_machines(3, 5)
    expected = detector.score_samples(fresh)
    shuffled = rows.sample(frac=1.0, random_state=0)
    other = FusedDetector("light", by="machine", false_alarm_rate=0.1, random_state=0)
    assert np.array_equal(other.fit(shuffled).score_samples(fresh), expected)
    renamed = {f"m{i}": f"{97 * (i + 1) % 41}" for i in range(N_MACHINES)}
    other.fit(rows.replace({"machine": renamed}))
    found = other.score_samples(fresh.replace({"machine": renamed}))
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_the_level_of_a_machine_does_not_matter(detector):
    rows, _ = rows_of_machines(20, 1)
    fresh, _ = rows_of_machines(20, 5)
    moved = [table.copy() for table in (rows, fresh)]
    for table in moved:
        table.loc[table["machine"] == "m3", "flow"] += 5000.0
    other = FusedDetector("light", by="machine", false_alarm_rate=0.1, random_state=0)
    found = other.fit(moved[0]).predict(moved[1])
    # centres are drawn to each other by less than a hundredth of their spread
    assert np.mean(found != detector.predict(fresh)) < 0.02


def test_a_new_machine_is_judged_by_all_and_said_so(detector):
    rows, _ = rows_of_machines(1, 3)
    rows["machine"] = "m999"
    with pytest.warns(CellsWarning, match="judged by what is usual for all"):
        is_alarm = detector.predict(rows) < 0
    assert is_alarm.mean() < 0.2
    rows["flow"] += 5000.0
    with pytest.warns(CellsWarning):
        assert (detector.predict(rows) < 0).all()


@pytest.mark.parametrize("is_skewed", [False, True])
def test_the_false_alarm_rate_about_holds_for_new_machines(is_skewed):
    rates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def machines(prefix, n_machines, n, rng=rng):
            level = rng.normal(size=n_machines)
            level = np.exp(1.5 * level + 5.0) if is_skewed else 3.0 * level
            spread = 0.1 * level if is_skewed else np.ones(n_machines)
            at = np.repeat(np.arange(n_machines), n)
            values = level[at] + spread[at] * rng.normal(size=len(at))
            names = [f"{prefix}{i}" for i in at]
            return pd.DataFrame(
                {"machine": names, "flow": values, "other": rng.normal(size=len(at))}
            )

        known = FusedDetector("light", by="machine", random_state=0).fit(machines("a", 100, 20))
        with pytest.warns(CellsWarning):
            rates.append((known.predict(machines("b", 400, 3)) < 0).mean())
    assert np.mean(rates) < 0.09
    assert np.mean(rates) > 0.02


def test_a_gap_in_the_group_is_judged_by_all_too(detector):
    rows, _ = rows_of_machines(1, 3)
    rows["machine"] = None
    with pytest.warns(CellsWarning, match="no value"):
        scores = detector.score_samples(rows)
    assert np.isfinite(scores).all()


def test_gaps_of_numbers_and_categories_stand_beside_groups():
    rows, _ = rows_of_machines(20, 1)
    rng = np.random.default_rng(0)
    rows["mode"] = rng.choice(["a", "b"], size=len(rows))
    rows.loc[rng.random(len(rows)) < 0.1, "current"] = np.nan
    detector = FusedDetector("light", by="machine", random_state=0).fit(rows)
    fresh, _ = rows_of_machines(5, 2)
    scores = detector.score_samples(fresh.assign(mode="a", current=np.nan))
    assert np.isfinite(scores).all()


def test_an_explanation_says_what_is_usual_for_the_machine(detector):
    rows, spread = rows_of_machines(20, 1)
    row = rows.iloc[[60]].copy()
    row["flow"] += 30.0 * spread[60, 0]
    reading = detector.explain(row).readings(0, 1)[0]
    assert ", high for machine m3, usually " in reading.words
    theirs = rows[rows["machine"] == "m3"]["flow"]
    middle, width = theirs.median(), theirs.max() - theirs.min()
    low, high = reading.judgement.facts["low"], reading.judgement.facts["high"]
    assert low < middle < high
    assert 0.7 * width < high - low < 1.6 * width
    assert reading.judgement.facts["of"] == "for machine m3"
    assert reading.judgement.facts["level"] == "high"
    assert "for machine m3" in detector.explain(row).reason()


def test_the_usual_range_holds_most_fresh_rows_of_each_machine(detector):
    rows, _ = rows_of_machines(100, 4)
    encoder = detector.encoder_
    low, high, _, _ = encoder.ranges(encoder.read(rows))
    inside = (rows["flow"] >= low[:, 0]) & (rows["flow"] <= high[:, 0])
    assert 0.93 <= inside.mean() <= 0.97
    assert np.isnan(low[:, 2]).all()


def test_a_report_counts_alarms_by_group(detector):
    rows, spread = rows_of_machines(20, 6)
    theirs = rows["machine"] == "m7"
    rows.loc[theirs, "flow"] += 30.0 * spread[theirs, 0]
    page = detector.report(rows).html
    table = page.split('id="groups"')[1].split("</table>")[0]
    first = table.split("<tbody>")[1].split("</tr>")[0]
    assert "machine m7" in first
    assert first.count(">20<") == 2
    assert "100 %" in first
    assert "measured by machine: 40 groups of 20 rows" in page


def test_a_report_of_the_training_rows_counts_held_out_alarms_by_group(detector):
    rows, _ = rows_of_machines(20, 1)
    found = report_data(detector, rows, title="").by_group
    held_out = detector.training_scores_ < detector.offset_
    assert sum(group.n_alarms for group in found) == held_out.sum()
    assert held_out.sum() > (detector.predict(rows) < 0).sum()


def test_a_report_says_how_many_groups_have_more_alarms_than_by_chance(detector):
    rows, spread = rows_of_machines(20, 6)
    before = report_data(detector, rows, title="").n_groups_above
    assert before <= 2  # of 40, one in 100 each
    theirs = rows["machine"].isin(["m7", "m9", "m11"])
    rows.loc[theirs, "flow"] += 30.0 * spread[theirs, 0]
    after = report_data(detector, rows, title="").n_groups_above
    assert after == before + 3
    assert f"as high as {after} groups of 40 have" in detector.report(rows).html


def test_a_report_without_groups_has_no_table_of_them():
    X = np.random.default_rng(0).normal(size=(100, 2))
    assert 'id="groups"' not in FusedDetector("light", random_state=0).fit(X).report(X).html


def test_a_model_file_keeps_what_is_usual(detector, tmp_path):
    fresh, _ = rows_of_machines(3, 5)
    loaded = load(detector.save(tmp_path / "m.ocf"))
    assert np.array_equal(loaded.score_samples(fresh), detector.score_samples(fresh))
    assert loaded.explain(fresh[:1]).reason() == detector.explain(fresh[:1]).reason()


def test_nested_groups_and_positions_of_arrays():
    rng = np.random.default_rng(0)
    plant, machine = np.repeat([0, 1, 2, 3], 60), np.tile(np.repeat(np.arange(6), 10), 4)
    X = np.column_stack([plant, machine, 50.0 * plant + 5.0 * machine + rng.normal(size=240)])
    X[:, 2] += rng.normal(size=240)
    detector = FusedDetector("light", by=[0, 1], random_state=0).fit(X)
    assert detector.encoder_.roles_ == ["by", "by", "number"]
    assert (detector.predict([[2, 3, 115.0]]) == 1).all()
    assert (detector.predict([[2, 3, 50.0]]) == -1).all()
    frame = pd.DataFrame(X, columns=["plant", "machine", "flow"])
    named = FusedDetector("light", by=["plant", "machine"], random_state=0).fit(frame)
    with pytest.warns(CellsWarning, match="machine: new values, whose rows"):
        reason = named.explain(pd.DataFrame({"plant": [2], "machine": [9], "flow": [500.0]}))
    assert "for plant 2" in reason.reason()


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("mashine", "must name columns of X.*Did you mean 'machine'"),
        ("number", "another value in every row"),
        (["machine", "position"], "other values together in every row"),
        (7, "0 to 4"),
    ],
)
def test_columns_that_name_no_groups_are_refused(by, words):
    rows, _ = rows_of_machines(5, 1)
    rows["number"] = [f"row {i}" for i in range(len(rows))]
    rows["position"] = [str(i % 5) for i in range(len(rows))]
    with pytest.raises(InvalidInputError, match=words):
        FusedDetector("light", by=by).fit(rows)


def test_dates_name_no_groups():
    rows, _ = rows_of_machines(5, 1)
    rows["day"] = pd.Timestamp("2026-01-01")
    with pytest.raises(InvalidTypeError, match="named in time"):
        FusedDetector("light", by="day").fit(rows)


def test_a_table_of_groups_alone_is_refused():
    rows, _ = rows_of_machines(5, 1)
    with pytest.raises(InvalidInputError, match="no column to learn from"):
        FusedDetector("light", by="machine").fit(rows[["machine"]])


def test_channels_behind_a_row_read_what_is_usual_for_its_machine(detector):
    rows, spread = rows_of_machines(20, 1)
    row = rows.iloc[[60]].copy()
    row["flow"] += 30.0 * spread[60, 0]
    (reading,) = row_readings(detector.explain(row), detector, 0, 1)
    theirs = rows[rows["machine"] == "m3"]["flow"]
    assert reading.value == row["flow"].iloc[0]
    assert abs(reading.usual - theirs.median()) < 2.0 * theirs.std()
    assert 0.3 * theirs.std() < reading.spread < 2.0 * theirs.std()


def test_a_report_knows_the_rows_that_were_learned(detector):
    rows, _ = rows_of_machines(20, 1)
    assert "These are the rows that the members learned from" in detector.report(rows).html
    others, _ = rows_of_machines(20, 2)
    assert "These are the rows that the members learned from" not in detector.report(others).html


def test_groups_named_in_the_wrong_order_are_said_so():
    rows, _ = rows_of_machines(10, 1)
    rows = rows.assign(plant=rows["machine"].str[-1])
    detector = FusedDetector("light", by=["machine", "plant"], random_state=0)
    words = r"'plant' divides none of the \d+ groups .* by=\['plant', 'machine'\]"
    with pytest.warns(SuspectInputWarning, match=words):
        detector.fit(rows)
    FusedDetector("light", by=["plant", "machine"], random_state=0).fit(rows)  # says nothing


def test_groups_of_single_rows_are_said_so():
    rows, _ = rows_of_machines(10, 1)
    for n_pairs, is_odd in ((50, True), (150, False)):
        place = np.arange(len(rows))
        lot = np.where(place < 2 * n_pairs, place // 2, place)
        detector = FusedDetector("light", by="lot", random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            detector.fit(rows.drop(columns="machine").assign(lot=[f"l{i}" for i in lot]))
        said = [str(one.message) for one in caught]
        assert any("350 groups, and 300 of them have a single row" in one for one in said) == is_odd
        assert any("have a single row" in one for one in said) == is_odd


def test_machines_that_come_with_an_update_have_their_own_level(tmp_path):
    def rows(n, seed, machines, off=0.0):
        table, spread = rows_of_machines(n, seed, n_machines=70)
        table["flow"] += off * spread[:, 0]
        return table[table["machine"].isin([f"m{i}" for i in machines])]

    known, new = range(50), range(50, 70)
    detector = FusedDetector("light", by="machine", random_state=0).fit(rows(30, 1, known))
    before = detector.encoder_.usual_.groups_.usual(np.arange(50.0)[:, np.newaxis])
    names = detector.encoder_.by_codes_[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CellsWarning)  # they are not judged by all
        detector.update(rows(30, 2, new))
    assert detector.n_added_ > 590
    both = pd.concat([rows(30, 1, known), rows(30, 2, new)])
    refit = FusedDetector("light", by="machine", random_state=0).fit(both)
    fresh = rows(40, 3, new)
    false = [np.mean(one.predict(fresh) < 0) for one in (detector, refit)]
    assert abs(false[0] - false[1]) < 0.025
    assert np.mean(detector.predict(rows(20, 4, new, 5.0)) < 0) > 0.9
    assert np.mean(detector.predict(rows(40, 5, known)) < 0) == pytest.approx(0.05, abs=0.02)
    assert {name: detector.encoder_.by_codes_[0][name] for name in names} == names
    after = detector.encoder_.usual_.groups_.usual(np.arange(50.0)[:, np.newaxis])
    np.testing.assert_array_equal(after, before)
    again = load(detector.save(tmp_path / "m.ocf"))
    np.testing.assert_array_equal(again.score_samples(fresh), detector.score_samples(fresh))
    # once more: they are known now
    usual = detector.encoder_.usual_
    detector.update(rows(5, 6, new))
    assert detector.encoder_.usual_ is usual


def test_an_update_that_is_refused_takes_up_no_groups(detector):
    rows, spread = rows_of_machines(20, 7)
    rows["flow"] += 30.0 * spread[:, 0]
    other = rows[:20].assign(machine="m999")
    encoder = detector.encoder_
    with pytest.raises(InvalidInputError, match="far outside"):
        detector.update(pd.concat([rows, other]))
    assert detector.encoder_ is encoder
