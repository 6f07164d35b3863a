"""`--engine dask`: the same commands on many machines."""

import json

import pytest

from ocfuse import load
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
