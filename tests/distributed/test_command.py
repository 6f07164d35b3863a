"""`--engine dask`: the same commands on many machines."""

import json

import pytest

from ocfuse import FusedDetector, load
from ocfuse.tables import TableDetector
from tests.cli.cases import plant
from tests.distributed.cases import names, read, write


def test_fit_and_score(client, run_command, tmp_path):
    data, out = write(plant(2000, 0), tmp_path / "data", 4), tmp_path / "scores"
    model = tmp_path / "m.ocf"
    engine = ("--engine", "dask", "--scheduler", client.scheduler.address)
    code, text, _ = run_command(
        *("fit", data, "-o", model, "--members", "light", "--id", "part", *engine, "--rows", 300)
    )
    assert code == 0
    assert "written" in text
    assert 300 <= load(model).card_["rows"] <= 310
    code, text, err = run_command("score", model, data, "-o", out, *engine, "--json")
    assert code == 0, err
    told = json.loads(text)
    assert (told["rows"], told["files"], told["resumed"]) == (2000, 4, 0)
    assert names(out) == [f"part.{i}.parquet" for i in range(4)]
    assert list(read(out)["part"]) == list(plant(2000, 0)["part"])
    (data / "part.9.parquet").write_bytes(b"PAR1")
    code, _, err = run_command("score", model, data, "-o", out, *engine)
    assert code == 3
    assert "part.9.parquet cannot be read" in err
    assert "--keep-going" in err
    code, text, err = run_command("score", model, data, "-o", out, *engine, "--keep-going")
    assert code == 3
    assert "no scores of 1 file" in err
    assert text.startswith("2,000 rows")


def test_rows_beyond_a_limit_are_counted_as_on_one_machine(client, run_command, tmp_path):
    rows, normal = (table[table["pressure"] < 2.1] for table in (plant(600, 0), plant(400, 1)))
    rows = rows.reset_index(drop=True)
    rows.loc[5:8, "temperature"] = 60.0  # far off, and beyond the limit
    rows.loc[9, "mode"] = "on"
    rows.loc[9, ["pressure", "temperature"]] = 2.3, 24.6  # beyond the other one only
    data, model = write(rows, tmp_path / "data", 3), tmp_path / "m.ocf"
    TableDetector(
        FusedDetector("light", false_alarm_rate=0.01, random_state=0),
        id="part",
        limits={"temperature": (None, 40), "pressure": (None, 2.2)},
    ).fit(normal).save(model)
    engine = ("--engine", "dask", "--scheduler", client.scheduler.address)
    out = tmp_path / "scores"
    # the second time what is there is counted
    told = [
        json.loads(run_command("score", model, data, "--json", "-o", *where)[1])
        for where in ((tmp_path / "s.csv",), (out, *engine), (out, *engine))
    ]
    assert told[2]["resumed"] == 3
    assert told[0]["by_rule"]["rows"] == 5
    assert told[0]["by_rule"]["only"] == 1
    for name in ("rows", "anomalies", "without_score", "by_rule"):
        assert told[0][name] == told[1][name] == told[2][name]
    assert read(out)["is_anomaly"].sum() == told[0]["anomalies"] + 1
    text = run_command("score", model, data, "-o", out, *engine)[1]
    assert "Limits, counted apart: broken by 5 rows" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "spark"), "must be dask"),
        (("--workers", 2), "only with --engine dask"),
        (("--engine", "dask"), "needs --out"),
        (("--engine", "dask", "-o", "x", "--report", "r.html"), "not with --engine dask"),
    ],
)
def test_wrong_usage(run_command, tmp_path, arguments, words):
    code, _, err = run_command("score", tmp_path / "m.ocf", tmp_path, *arguments)
    assert code == 2
    assert words in " ".join(err.split())
