"""`ocfuse adapt`: a model and unlabelled rows in, another model out."""

import json

import pandas as pd
import pytest

from ocfuse import load
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import StreamTable
from tests.cli.cases import plant


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory):
    """Fresh rows, every eighth of them too hot for its pressure."""
    table = plant(300, seed=2)
    table.loc[::8, "temperature"] += 1.2
    path = tmp_path_factory.mktemp("adapt") / "new.csv"
    table.to_csv(path, index=False)
    return path


def test_trust_before_and_after(plant_folder, unlabelled, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "adapted.ocf"
    code, text, err = run_command("adapt", model, unlabelled, "-o", out)
    assert (code, err) == (0, "")
    for words in ("trust before", "unlabelled rows, with sureness", "adapted.ocf"):
        assert words in text
    assert "different unlabelled rows" in run_command("inspect", out)[1]
    assert load(model).detector_.fusion_.n_adapted_ == 0


def test_json(plant_folder, unlabelled, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "adapted.ocf"
    told = json.loads(run_command("adapt", model, unlabelled, "-o", out, "--json")[1])
    written = load(out).detector_
    assert told["adapted"] == {"rows": 300, "sureness": written.fusion_.sureness_}
    assert told["threshold"] == {
        "before": load(model).detector_.offset_,
        "after": written.offset_,
    }
    assert sum(one["weight"] for one in told["trust"]) == pytest.approx(1)
    assert sum(one["weight_before"] for one in told["trust"]) == pytest.approx(1)
    assert run_command("adapt", model, unlabelled, "-o", tmp_path / "b.ocf", "--quiet") == (
        0,
        "",
        "",
    )


def test_the_model_is_never_overwritten(plant_folder, unlabelled, tmp_path, run_command):
    model = plant_folder / "model.ocf"
    before = model.read_bytes()
    code, _, err = run_command("adapt", model, unlabelled, "-o", model, "--force")
    assert code == 2
    assert "would be overwritten" in " ".join(err.split())
    assert model.read_bytes() == before
    taken = tmp_path / "taken.ocf"
    taken.write_bytes(b"something")
    assert run_command("adapt", model, unlabelled, "-o", taken)[0] == 2
    assert taken.read_bytes() == b"something"


def test_rows_that_cannot_be_learned_from(plant_folder, unlabelled, tmp_path, run_command):
    model, table = plant_folder / "model.ocf", pd.read_csv(unlabelled)
    for rows, words in (
        (table.head(10), "at least 30 different rows"),
        (table.assign(temperature=table["temperature"] + 500), "drifted as a whole"),
        (table.drop(columns="pressure"), "pressure"),
    ):
        rows.to_csv(tmp_path / "bad.csv", index=False)
        code, text, err = run_command("adapt", model, tmp_path / "bad.csv", "-o", tmp_path / "c")
        assert (code, text) == (3, "")
        assert words in err
    assert not (tmp_path / "c").exists()


def test_a_stream_is_refused():
    with pytest.raises(InvalidInputError, match="adapt is for rows that stand alone"):
        StreamTable().adapt(plant(50, seed=0))
