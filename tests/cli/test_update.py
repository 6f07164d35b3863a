"""`ocfuse update`, and `ocfuse watch --adaptive --change`."""

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import RollingThreshold
from ocfuse.streaming import StreamTable
from ocfuse.tables import TableDetector
from tests.cli.cases import plant


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Return the file of more normal rows."""
    path = tmp_path_factory.mktemp("update") / "new.csv"
    plant(60, seed=7).to_csv(path, index=False)
    return path


def test_rows_come_into_a_model_and_inspect_tells(plant_folder, fresh, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "updated.ocf"
    before = model.read_bytes()
    code, text, err = run_command("update", model, fresh, "-o", out)
    assert (code, err) == (0, "")
    for words in ("60 rows added in 1 update", "rows learned  300 before, 360 now", "updated.ocf"):
        assert " ".join(words.split()) in " ".join(text.split())
    assert model.read_bytes() == before
    code, text, _ = run_command("inspect", out)
    assert "60 rows added in 1 update; the last 60 at 20" in " ".join(text.split())
    assert len(load(out).detector_.training_) == 360
    code, text, _ = run_command("inspect", model)
    assert "rows added" not in text


def test_the_old_model_is_kept_and_the_oldest_rows_are_forgotten(
    plant_folder, fresh, tmp_path, run_command
):
    model = tmp_path / "model.ocf"
    shutil.copy(plant_folder / "model.ocf", model)
    assert run_command("update", model, fresh, "-o", model)[0] == 2  # without --force
    before = model.read_bytes()
    told = json.loads(
        run_command("update", model, fresh, "-o", model, "--force", "--memory", 300, "--json")[1]
    )
    assert (tmp_path / "model.ocf.1").read_bytes() == before
    assert told["rows_learned"] == {"before": 300, "after": 300}
    assert told["updates"]["last_rows"] == {"given": 60, "added": 60, "forgotten": 60}
    assert told["updates"]["members_kept_as_they_were"] == []
    # once more: they are copies now
    again = json.loads(run_command("update", model, fresh, "-o", model, "--force", "--json")[1])
    assert again["updates"]["number"] == 2
    assert again["updates"]["last_rows"]["added"] == 0
    assert (tmp_path / "model.ocf.2").exists()


def test_rows_that_cannot_be_learned_from(plant_folder, fresh, tmp_path, run_command):
    model, table = plant_folder / "model.ocf", pd.read_csv(fresh)
    for rows, words in (
        (table.assign(temperature=table["temperature"] + 500), "60 of 60 rows are far outside"),
        (table.drop(columns="pressure"), "pressure"),
        (table.assign(pressure="high"), "pressure"),
    ):
        rows.to_csv(tmp_path / "bad.csv", index=False)
        code, text, err = run_command("update", model, tmp_path / "bad.csv", "-o", tmp_path / "c")
        assert (code, text) == (3, "")
        assert words in err
    assert not (tmp_path / "c").exists()
    table.loc[3, "temperature"] = 300.0
    table.to_csv(tmp_path / "odd.csv", index=False)
    code, _, err = run_command("update", model, tmp_path / "odd.csv", "-o", tmp_path / "c")
    assert code == 0
    assert "1 of 60 rows are far outside and were not learned from" in err
    assert run_command("update", model, fresh, "-o", tmp_path / "d", "--memory", 5)[0] == 2


def test_a_stream_is_refused():
    with pytest.raises(InvalidInputError, match="update is for rows that stand alone"):
        StreamTable().update(plant(50, seed=0))


@pytest.fixture(scope="module")
def drifting(tmp_path_factory):
    """Return the file of rows whose temperature has risen a little for good."""
    table = plant(2600, seed=3)
    table.loc[600:, "temperature"] += 0.5
    path = tmp_path_factory.mktemp("drift") / "rows.csv"
    table.to_csv(path, index=False)
    return path


def test_watch_follows_rows_that_stand_alone_and_says_that_they_have_changed(
    plant_folder, drifting, run_command
):
    model = plant_folder / "model.ocf"
    code, text, _ = run_command("watch", model, drifting, "--all", "--json")
    assert code == 0
    plain = [json.loads(line) for line in text.splitlines()]
    code, text, _ = run_command(
        *("watch", model, drifting, "--all", "--json", "--adaptive", "--change", 0.01)
    )
    assert code == 0
    records = [json.loads(line) for line in text.splitlines()]
    (change,) = [record for record in records if record.get("kind") == "changed"]
    assert 600 < change["row"] < 900
    rows = [record for record in records if "kind" not in record]
    assert len(rows) == len(plain) == 2600
    assert rows[-1]["shift"] < 0
    np.testing.assert_allclose(
        [row["score"] + row["shift"] for row in rows], [row["score"] for row in plain], atol=1e-9
    )
    alarms = [sum(row["is_anomaly"] for row in some) for some in (rows, plain)]
    assert alarms[0] <= alarms[1]
    code, text, _ = run_command("watch", model, drifting, "--change", 0.01, "--quiet")
    assert "the source has changed: rows are stranger than before" in text


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the file of a model of rows that stand alone, at 5 %."""
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    model = TableDetector(FusedDetector("light", random_state=0))
    folder = tmp_path_factory.mktemp("alone")
    return model.fit(pd.DataFrame(rows, columns=list("abc"))).save(folder / "model.ocf")


@pytest.mark.parametrize(
    "what",
    [
        "as it was",
        pytest.param("drifts", marks=pytest.mark.slow),
        pytest.param("calmer", marks=pytest.mark.slow),
        pytest.param("fault", marks=pytest.mark.slow),
    ],
)
def test_a_threshold_that_follows_holds_its_rate_for_rows_that_stand_alone(
    alone, tmp_path, run_command, what
):
    n = 20_000
    rows = np.random.default_rng(1).normal(size=(n, 3)) * (0.9 if what == "calmer" else 1.0)
    if what == "drifts":
        rows += np.linspace(0.0, 0.5, n)[:, np.newaxis]
    if what == "fault":
        rows[n // 2 :, 0] += 6.0
    table = pd.DataFrame(rows, columns=list("abc"))
    table.to_csv(tmp_path / "rows.csv", index=False)
    line = ("watch", alone, tmp_path / "rows.csv", "--adaptive", "--all", "--json")
    records = [json.loads(text) for text in run_command(*line)[1].splitlines()]
    late = slice(-n // 4, None)
    rate = np.mean([record["is_anomaly"] for record in records[late]])
    model = load(alone)
    with warnings.catch_warnings(action="ignore"):
        plain = np.mean(model.score(table)["is_anomaly"][late])
    rolling = RollingThreshold(model.detector_.conformal_, model.detector_.offset_)
    shift = records[-1]["shift"] / rolling.unit
    if what == "as it was":
        assert abs(rate - 0.05) < 0.015
        assert abs(shift) < 0.1
    elif what == "drifts":
        assert plain > 0.085
        assert rate < 0.5 * (plain + 0.05)
        assert shift < -0.1
    elif what == "calmer":
        assert plain < 0.04
        assert rate < 0.055
        assert shift > 0.1
    else:
        assert rate > 0.97
        assert abs(shift) < 0.1


def test_a_column_may_be_called_shift(plant_folder, tmp_path, run_command):
    table = plant(20, seed=4).rename(columns={"part": "part"}).assign(shift="early")
    table.to_csv(tmp_path / "rows.csv", index=False)
    code, _, _ = run_command(
        *("watch", plant_folder / "model.ocf", tmp_path / "rows.csv", "--adaptive", "--all")
    )
    assert code == 0


@pytest.mark.parametrize("chance", [0, 0.6, "often"])
def test_the_chance_is_checked(plant_folder, drifting, run_command, chance):
    code, _, err = run_command("watch", plant_folder / "model.ocf", drifting, "--change", chance)
    assert code == 2
    assert "--change" in err
