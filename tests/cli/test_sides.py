"""`ocfuse fit --high --low --above --below`: from a table to alarms, on the command line."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli.app import run

FLAGS = ("--high", "errors", "--low", "pressure", "--above", "temp=90", "--below", "level=2")


def rows(n, seed):
    """Return rows of a plant, none of which comes near a limit."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "part": [f"p{i}" for i in range(n)],
            "errors": 20 + 2 * rng.normal(size=n),
            "pressure": 5 + 0.1 * rng.normal(size=n),
            "temp": 60 + 9 * rng.normal(size=n).clip(-3, 3),
            "level": 10 + 2.5 * rng.normal(size=n).clip(-3, 3),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with a model, and rows of which each of the first six is changed."""
    folder, out = tmp_path_factory.mktemp("sides"), io.StringIO()
    rows(400, 1).to_csv(folder / "normal.csv", index=False)
    flags = (*FLAGS, "--members", "light", "--false-alarms", "0.01", "--id", "part")
    with redirect_stdout(out), pytest.raises(SystemExit) as caught:
        run(["fit", str(folder / "normal.csv"), *flags, "-o", str(folder / "m.ocf")])
    assert caught.value.code == 0
    (folder / "fit.txt").write_text(out.getvalue())
    new = rows(60, 2)
    new.loc[0, "errors"], new.loc[1, "errors"] = 60.0, 0.0
    new.loc[2, "pressure"], new.loc[3, "pressure"] = 3.0, 7.0
    new.loc[4, "temp"] = 90.5  # a little above the limit, and usual otherwise
    new.loc[5, "level"], new.loc[5, "temp"] = -90.0, 900.0
    new.to_csv(folder / "new.csv", index=False)
    return folder


def test_fit_and_inspect_name_sides_and_limits(files, run_command):
    _, shown, _ = run_command("inspect", files / "m.ocf")
    for text in ((files / "fit.txt").read_text(), shown):
        assert "errors    number  as asked for: numbers, of which only high ones count" in text
        assert "pressure  number  as asked for: numbers, of which only low ones count" in text
        assert "temp above 90, level below 2: always alarms, counted apart" in text


def test_scores_mark_rules_and_count_them_apart(files, run_command):
    out = files / "scores.csv"
    # so low a threshold that row 4 is only beyond its limit
    score = ("score", files / "m.ocf", files / "new.csv", "--threshold", "-30", "-o", out)
    code, text, err = run_command(*score, "--why")
    assert (code, err) == (0, "")
    table = pd.read_csv(out)
    assert list(table) == ["row", "part", "score", "p_value", "is_anomaly", "rule", "why"]
    assert np.flatnonzero(table["is_anomaly"]).tolist() == [0, 2, 4, 5]
    assert table["score"][4] > -30
    both = "temp above 90; level below 2"
    assert table["rule"].dropna().to_dict() == {4: "temp above 90", 5: both}
    assert table["why"][4] == "limit broken: temp above 90"
    assert table["why"][0].startswith("errors 60, usually up to ")
    assert table["why"][2].startswith("pressure 3, usually 4.")
    assert "60 rows, 3 anomalies (5.00%) below the threshold -30" in text
    apart = "Limits, counted apart: broken by 2 rows (temp above 90: 2; level below 2: 1)"
    assert f"{apart}, 1 of them not below the threshold." in " ".join(text.split())
    told = json.loads(run_command(*score, "--json")[1])
    assert (told["rows"], told["anomalies"]) == (60, 3)
    assert told["by_rule"] == {
        "rows": 2,
        "only": 1,
        "limits": {"temp above 90": 2, "level below 2": 1},
    }


def test_a_limit_alone_is_enough_to_fail(files, run_command, tmp_path):
    pd.read_csv(files / "new.csv").loc[4:4].to_csv(tmp_path / "one.csv", index=False)
    score = ("score", files / "m.ocf", tmp_path / "one.csv", "--threshold", "-1000")
    assert run_command(*score, "-q")[0] == 0
    assert run_command(*score, "-q", "--fail-on-anomaly")[0] == 1


def test_a_row_beyond_a_limit_that_an_update_does_not_learn_has_no_label(
    files, run_command, tmp_path
):
    more = rows(40, 3)
    more.loc[0, "temp"] = 91.0
    more.to_csv(tmp_path / "more.csv", index=False)
    out = tmp_path / "m2.ocf"
    code, _, err = run_command("update", files / "m.ocf", tmp_path / "more.csv", "-o", out)
    assert code == 0
    assert "1 of 40 rows break a limit (temp above 90) and were not learned from" in err
    text = run_command("inspect", out)[1]
    assert "439 learned from as normal, 1 anomaly by a label or a limit" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--high", "part"), "part"),
        (("--high", "eror"), "eror"),
        (("--high", "errors", "--low", "errors"), "errors"),
        (("--above", "temp"), "temp=90"),
        (("--above", "temp=hot"), "hot"),
        (("--above", "tmp=9"), "tmp"),
        (("--above", "temp=1", "--below", "temp=2"), "temp"),
    ],
)
def test_wrong_sides_and_limits_are_refused(flags, words, files, run_command, tmp_path):
    out = tmp_path / "m.ocf"
    code, _, err = run_command("fit", files / "normal.csv", "-o", out, *flags)
    assert code in (2, 3)
    assert words in err
    assert "Traceback" not in err
    assert not out.exists()
