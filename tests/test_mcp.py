"""Assistants: what the official client is told, and what it may not touch."""

import os
import sys

import anyio
import pandas as pd
import pytest

from ocfuse.cli.score_files import to_file
from ocfuse.exceptions import InvalidInputError, MissingPackageError
from ocfuse.mcp import Folders, _in_parameters, _worst, make_server
from tests.cli.cases import plant, with_anomalies


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that is allowed, with a link out of it; a secret is beside it."""
    place = tmp_path_factory.mktemp("mcp")
    allowed = place / "allowed"
    (allowed / "linked").mkdir(parents=True)
    plant(300, seed=0).to_csv(allowed / "normal.csv", index=False)
    with_anomalies().to_csv(allowed / "new.csv", index=False)
    plant(50, seed=1).to_csv(place / "secret.csv", index=False)
    (allowed / "link.csv").symlink_to(place / "secret.csv")
    (allowed / "linked" / "rows.csv").symlink_to(place / "secret.csv")
    (allowed / "round").symlink_to(allowed / "round")
    return allowed


# -- folders ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    ["../secret.csv", "/etc/passwd", "link.csv", "linked", ".", "linked/../../secret.csv", "round"],
)
def test_what_is_outside_is_not_read(folder, given):
    with pytest.raises(InvalidInputError, match=r"outside of the folders|no path that can be used"):
        Folders.of([folder]).existing(given)


def test_what_is_inside_is_found_by_either_name(folder, tmp_path):
    folders = Folders.of([tmp_path, folder])
    assert folders.existing("new.csv") == folder / "new.csv"
    assert folders.existing(str(folder / "new.csv")) == folder / "new.csv"
    with pytest.raises(
        InvalidInputError, match=r"There is no file nothing\.csv in .* addresses are not read"
    ):
        folders.existing("nothing.csv")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("new.csv", "exists, and is not replaced"),
        ("link.csv", "exists, and is not replaced"),
        ("../other.ocf", "outside of the folders"),
        ("nowhere/m.ocf", "There is no folder"),
        ("..", "outside of the folders"),
        ("m\0.ocf", "no path that can be used"),
    ],
)
def test_what_is_written_is_new_and_inside(folder, given, words):
    with pytest.raises(InvalidInputError, match=words):
        Folders.of([folder]).fresh(given)
    assert Folders.of([folder]).fresh("m.ocf") == folder / "m.ocf"


def test_a_folder_that_is_a_link_out_is_not_written_into(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidInputError, match="outside of the folders"):
        Folders.of([tmp_path / "inside"]).fresh("link/m.ocf")


def test_folders_must_be_there(tmp_path):
    with pytest.raises(InvalidInputError, match="is no folder"):
        Folders.of([tmp_path / "nowhere"])
    with pytest.raises(InvalidInputError, match="At least one folder"):
        Folders.of([])


# -- the tools, by the official client ---------------------------------------------


def asked(server, *calls):
    """Return the answers to several calls of tools."""
    client = pytest.importorskip("mcp").Client

    async def ask():
        async with client(server) as session:
            return [await session.call_tool(name, given) for name, given in calls]

    return anyio.run(ask)


def answer_of(result):
    assert not result.is_error, result.content
    return result.structured_content


@pytest.fixture(scope="module")
def server(folder):
    pytest.importorskip("mcp.server.mcpserver", reason="the extra mcp is not installed")
    return make_server([folder])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Got --row 333.", "Got rows 333."),
        ("Invalid value for --members: 'x'", "Invalid value for members: 'x'"),
        ("Raise --false-alarms, or", "Raise false_alarms, or"),
        ("say --threads 2 or --label-x", "say --threads 2 or --label-x"),
        ("no column '--label'", "no column '--label'"),
    ],
)
def test_messages_name_parameters_that_the_tool_has(said, expected):
    flags = {"row": [333], "members": None, "false-alarms": None, "label": None}
    assert _in_parameters(said, flags) == expected


def test_tools_say_what_they_read_and_take_what_fit_takes(server):
    async def tools():
        async with pytest.importorskip("mcp").Client(server) as session:
            return (await session.list_tools()).tools

    schemas = {tool.name: tool.input_schema["properties"] for tool in anyio.run(tools)}
    assert {"category", "number", "anomaly"} <= schemas["fit"].keys()
    assert {"category", "ignore", "normal"} <= schemas["plan"].keys()
    for word in ("Excel", ".gz", ".zst"):
        assert word in schemas["score"]["data"]["description"]


def test_a_row_that_breaks_a_limit_is_an_anomaly_among_the_lowest_too(tmp_path):
    scores = pd.DataFrame(
        {
            "row": [0, 1, 2],
            "score": [-1.0, 0.5, 2.0],
            "p_value": [0.01, 0.4, 0.9],
            "is_anomaly": pd.array([True, True, False], dtype="boolean"),
            "rule": pd.array([None, "temp above 90", None], dtype="string"),
        }
    )
    for name in ("scores.csv", "scores.jsonl"):
        with to_file(tmp_path / name) as write:
            write(scores)
        rows = _worst(tmp_path / name, 3)
        assert [row["is_anomaly"] for row in rows] == [True, True, False]
        assert rows[1]["rule"] == "temp above 90"


@pytest.mark.slow
def test_from_rows_to_reasons(server, folder):
    fit = {"data": "normal.csv", "out": "model.ocf", "members": "light", "id": "part"}
    planned, fitted, scored, explained, shown, reported = map(
        answer_of,
        asked(
            server,
            ("plan", {"data": "normal.csv"}),
            ("fit", fit | {"false_alarms": 0.01, "time": "when"}),
            ("score", {"model": "model.ocf", "data": "new.csv", "worst": 2, "out": "all.csv"}),
            ("explain", {"model": "model.ocf", "data": "new.csv", "worst": 1}),
            ("inspect", {"model": "model.ocf"}),
            ("report", {"model": "model.ocf", "data": "new.csv", "out": "page.html"}),
        ),
    )
    assert planned["rows"] == 300
    kinds = {column["name"]: column["kind"] for column in fitted["columns"]}
    assert kinds["temperature"] == "number"
    scores = pd.read_csv(folder / "all.csv")
    assert scored["rows"] == len(scores) == scored["anomalies"] + (~scores["is_anomaly"]).sum()
    assert [row["score"] for row in scored["worst"]] == pytest.approx(
        sorted(scores["score"])[:2], rel=1e-6
    )
    assert explained["rows"][0]["row"] == scored["worst"][0]["row"]
    assert "usually" in explained["rows"][0]["reason"]
    assert shown["false_alarms"] == 0.01
    assert reported["anomalies"] == scored["anomalies"]
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_refusals_are_those_of_the_command(server, folder):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}
    wrong = (
        (("score", {"model": "normal.csv", "data": "new.csv"}), "normal.csv"),
        (("fit", {"data": "normal.csv", "out": "m.ocf", "members": "lihgt"}), "mean 'light'"),
        (("fit", {"data": "normal.csv", "out": "m.ocf", "label": "--force"}), "'--force'"),
        (("fit", {"data": "normal.csv", "out": "new.csv"}), "not replaced"),
        (("fit", {"data": "../secret.csv", "out": "m.ocf"}), "outside of the folders"),
        (("explain", {"model": "new.csv", "data": "new.csv", "rows": []}), "1 to 20 rows"),
        (("inspect", {}), "model"),
        (("fit", {"data": "normal.csv", "out": "m.ocf", "members": "x"}), "value for members"),
    )
    for (_, words), found in zip(wrong, asked(server, *(call for call, _ in wrong)), strict=True):
        assert found.is_error
        assert words in found.content[0].text
        assert "--members" not in found.content[0].text
        assert "Traceback" not in found.content[0].text
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_rows_are_compared_with_their_group_and_limits_alarm(server, folder):
    rows = plant(200, seed=5).assign(line=["a", "b"] * 100)
    rows.loc[rows["line"] == "b", "temperature"] += 500
    rows.to_csv(folder / "lines.csv", index=False)
    new = rows[:4].copy()
    new.loc[0, "temperature"] += 500  # as in the other line
    new.to_csv(folder / "later.csv", index=False)
    given = {"data": "lines.csv", "out": "lines.ocf", "members": "light", "id": "part"}
    context = {"by": ["line"], "high": ["temperature"], "above": ["temperature=2000"]}
    fitted, scored = map(
        answer_of,
        asked(
            server,
            ("fit", given | context),
            ("score", {"model": "lines.ocf", "data": "later.csv", "worst": 1}),
        ),
    )
    kinds = {column["name"]: column["kind"] for column in fitted["columns"]}
    assert kinds["line"] == "by"
    assert scored["worst"][0]["row"] == 0
    assert scored["worst"][0]["is_anomaly"]


@pytest.mark.slow
def test_compare_by_labels(server, folder):
    bad = plant(30, seed=4).assign(state="bad")
    table = pd.concat([plant(120, seed=3).assign(state="ok"), bad])
    table.loc[table["state"] == "bad", "temperature"] += 9
    table.to_csv(folder / "labelled.csv", index=False)
    given = {"data": "labelled.csv", "label": "state", "normal": ["ok"], "members": "light"}
    (found,) = map(answer_of, asked(server, ("compare", given | {"splits": 1})))
    best = found["summary"][0]
    assert best["auc"] > 0.9
    assert set(best) == {"system", "kind", "auc", "gmean", "false_alarms", "rank", "failure"}


@pytest.mark.slow
def test_the_command_serves_on_stdin_and_stdout(folder):
    mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
    arguments = ["-m", "ocfuse", "mcp", f"--allow={folder}"]
    command = mcp.StdioServerParameters(
        command=sys.executable, args=arguments, env=dict(os.environ), cwd=str(folder)
    )

    async def ask():
        async with mcp.Client(mcp.stdio_client(command)) as session:
            tools = await session.list_tools()
            result = await session.call_tool("inspect", {"model": "../secret.csv"})
            return [tool.name for tool in tools.tools], result

    names, refused = anyio.run(ask)
    assert names == ["inspect", "plan", "fit", "score", "explain", "compare", "report"]
    assert refused.is_error
    assert "outside of the folders" in refused.content[0].text


def test_the_command_needs_a_folder(run_command):
    code, _, err = run_command("mcp")
    assert code == 2
    assert "--allow" in err


def test_without_the_sdk_the_extra_is_named(monkeypatch, run_command, tmp_path):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    code, _, err = run_command("mcp", "--allow", tmp_path)
    assert code == 2
    assert "[mcp]" in err
    with pytest.raises(MissingPackageError):
        make_server([tmp_path])
