"""Samples: the same however rows are cut up, whole groups, and what is rare is there."""

import numpy as np
import pandas as pd
import pytest

from ocfuse.distributed import sample
from ocfuse.distributed.sampling import Question, RowSurvey, make_plan, row_keys, survey
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, TableError
from tests.cli.cases import plant
from tests.distributed.cases import grouped, write


def drawn(frame, n, cuts, question):
    """Draw rows of a table that is cut up, without a cluster."""
    parts = np.split(np.arange(len(frame)), cuts)
    known = RowSurvey()
    for rows in reversed(parts):  # whoever is first, it does not matter
        known.add(survey([frame.iloc[rows]], int(rows[0]) if len(rows) else 0, question))
    plan = make_plan(known, question, n)
    fetched = [plan.fetch([frame.iloc[rows]], int(rows[0])) for rows in parts if len(rows)]
    return plan.cut(pd.concat(fetched))


def test_keys_are_even_and_depend_on_the_number_and_the_seed():
    keys = row_keys(0, 100_000, 0)
    shares = np.histogram(keys.astype(float) / 2**64, 20, (0, 1))[0] / len(keys)
    assert np.abs(shares - 0.05).max() < 0.005
    np.testing.assert_array_equal(row_keys(777, 10, 0), keys[777:787])
    assert not np.isin(row_keys(0, 1000, 1), keys).any()
    # neighbours know nothing of each other
    assert abs(np.corrcoef(keys[1:].astype(float), keys[:-1].astype(float))[0, 1]) < 0.02


@pytest.mark.parametrize("group", [None, "run"])
@pytest.mark.parametrize("cuts", [[], [1500], [1, 2, 2, 700, 2999], range(50, 3000, 50)])
def test_cuts_do_not_matter(group, cuts):
    frame = grouped().assign(when="x")
    question = Question(5, group, None, ("when",))
    expected = drawn(frame, 300, [999], question)
    pd.testing.assert_frame_equal(drawn(frame, 300, cuts, question), expected)
    assert 300 - len(frame["run"].unique()) <= len(expected) <= 310
    other = drawn(frame, 300, cuts, Question(6, group, None, ("when",)))
    assert not expected.index.equals(other.index)


def test_every_row_has_the_same_chance():
    frame = pd.DataFrame({"x": np.arange(200.0)})
    counts = np.zeros(200)
    for seed in range(200):
        rows = drawn(frame, 50, [70], Question(seed)).index
        assert len(rows) == 50
        counts[rows] += 1
    # binomial, 50 +- 6.1
    assert np.abs(counts - 50).max() < 5 * 6.1


def test_small_groups_are_whole_and_large_ones_thinned_alike():
    frame = grouped()
    counts = drawn(frame, 1600, [], Question(0, "run"))["run"].value_counts()
    assert set(counts.index) == set(frame["run"])
    assert (counts.drop(["r0", "r1"]) == 8).all()
    assert abs(counts["r0"] - counts["r1"]) <= 2  # words and labels of witnesses aside
    assert 1590 <= counts.sum() <= 1605


def test_of_too_many_groups_some_are_drawn():
    run = np.repeat([f"r{i}" for i in range(100)], 50)
    frame = pd.DataFrame({"x": np.arange(5000.0), "run": run})
    counts = drawn(frame, 640, [1234], Question(0, "run"))["run"].value_counts()
    assert (counts == 32).all()
    assert len(counts) == 640 // 32


def test_what_is_rare_is_there():
    frame = plant(5000, 0)
    frame.loc[4711, "pressure"] = np.nan
    frame.loc[17, "mode"] = "standby"
    frame.loc[18, "temperature"] = np.inf
    frame["fault"] = 0
    frame.loc[3000:3009, "fault"] = 1
    found = drawn(frame, 100, [50, 4000], Question(0, None, "fault"))
    assert {17, 18, 4711, *range(3000, 3010)} <= set(found.index)
    assert len(found) <= 100 + 200 + 10 + 5


def test_files_and_partitions_give_the_same(client, folder, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame = plant(3000, 1)
    expected = sample(folder, 200, client=client, seed=1)
    assert list(expected["file"].unique()) == [f"part.{i}.parquet" for i in range(6)]
    more = write(frame, tmp_path / "more", 17, row_group_size=30)
    for data in (more, dd.from_pandas(frame, npartitions=5)):
        found = sample(data, 200, client=client, seed=1)
        pd.testing.assert_frame_equal(
            found[["pressure", "temperature"]], expected[["pressure", "temperature"]]
        )
    pd.testing.assert_frame_equal(
        expected[["pressure"]], frame.loc[expected.index, ["pressure"]], check_index_type=False
    )


def test_what_cannot_be_sampled(client, tmp_path):
    with pytest.raises(InvalidInputError, match="at least 2"):
        sample(tmp_path, 1, client=client)
    with pytest.raises(TableError, match=r"must hold files that end in \.parquet; .* Got nothing"):
        sample(tmp_path, 10, client=client)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(TableError, match=r"bad\.parquet cannot be read"):
        sample(tmp_path, 10, client=client)
    with pytest.raises(TableError, match="must be a folder"):
        sample(tmp_path / "bad.parquet", 10, client=client)
    with pytest.raises(InvalidInputError, match=r"whole number of rows, .* Got n=10\.0"):
        sample(tmp_path, 10.0, client=client)
    with pytest.raises(InvalidTypeError, match=r"data frame of Dask\. Got DataFrame"):
        sample(plant(20, 0), 10, client=client)


@pytest.mark.parametrize("what", ["group", "label", "ignore"])
def test_names_of_no_column_are_refused_by_the_first_rows(what):
    asked = {what: ("nope",) if what == "ignore" else "nope"}
    with pytest.raises(InvalidInputError, match=rf"{what} must name a column .* Got {what}='nope'"):
        survey(iter([plant(20, 0)]), 0, Question(0, **asked))


def test_other_columns_are_refused_as_on_one_machine(client, tmp_path):
    data = write(plant(60, 0), tmp_path / "data", 3)
    plant(20, 1).drop(columns="pressure").to_parquet(data / "part.2.parquet", index=False)
    with pytest.raises(TableError, match=r"part\.2\.parquet has other .* missing are pressure"):
        sample(data, 10, client=client)


def test_lists_are_no_words():
    frame = pd.DataFrame({"x": np.arange(4.0), "l": [[1], [2], None, [1]]})
    assert ("gap", "l") in survey([frame], 0, Question(0)).drawn
