"""A server for assistants: tools of the Model Context Protocol over files in folders allowed.

Every tool runs a command, `ocfuse fit`, `score` and so on, with ``--json`` as a process of its own:
its messages are those of the command, a failure ends no other, and its memory is free afterwards.
Files outside the allowed folders are neither read nor written, links out of them neither, and no
file is replaced.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from ocfuse import __version__
from ocfuse.exceptions import InvalidInputError, OcfuseError
from ocfuse.system.packages import needed
from ocfuse.tables import open_source
from ocfuse.tables.dataframes import pandas

Field = needed("pydantic", "to serve assistants", "mcp").Field

#: Columns that are told of a table, and rows that are explained, at most.
MOST_COLUMNS, MOST_ROWS = 60, 20
#: What is told of a row: columns and members, those that matter most.
MOST_FEATURES, MOST_MEMBERS = 8, 5

Answer: TypeAlias = dict[str, Any]
#: Flags and their values; None and False are left out, a sequence repeats its flag.
Flags: TypeAlias = dict[str, Any]
Tool: TypeAlias = Callable[..., Coroutine[Any, Any, Answer]]

Data = Annotated[
    str,
    Field(
        description="Table: CSV, TSV, JSON lines, Parquet, Feather, Excel, NPY, NPZ, text also as "
        ".gz, .bz2, .xz or .zst, or a folder of them."
    ),
]
Model = Annotated[str, Field(description="Model file that fit wrote, such as model.ocf.")]
Members = Annotated[
    str, Field(description="Pool of detectors: default, or light, which is many times faster.")
]
Label = Annotated[
    str | None, Field(description="Column that tells normal rows from anomalies, if there is one.")
]
Normal = Annotated[
    list[str] | None, Field(description="Values of the label column that mean normal.")
]
Anomaly = Annotated[
    list[str] | None, Field(description="Values of the label column that mean an anomaly.")
]
Category = Annotated[
    list[str] | None,
    Field(description="Columns of categories, even if they look like numbers, such as codes."),
]
Ignore = Annotated[list[str] | None, Field(description="Columns to leave out.")]
Group = Annotated[
    str | None, Field(description="Column that names the run or part that a row belongs to.")
]
FalseAlarms = Annotated[
    float | None, Field(description="Share of normal rows that may raise an alarm, such as 0.01.")
]


@dataclass(frozen=True)
class Folders:
    """The folders in which files may be read and written.

    Parameters
    ----------
    allowed : tuple of Path
        The folders, without links.
    """

    allowed: tuple[Path, ...]

    @classmethod
    def of(cls, folders: Iterable[str | os.PathLike[str]]) -> "Folders":
        """Return the folders of some paths, which must be there."""
        found = []
        for folder in folders:
            if not Path(folder).is_dir():
                raise InvalidInputError(f"{folder} is no folder. Name one that is there.")
            found.append(Path(folder).resolve(strict=True))
        if not found:
            raise InvalidInputError("At least one folder must be allowed: --allow FOLDER.")
        return cls(tuple(found))

    def existing(self, given: str) -> Path:
        """Return a file or folder that may be read, with nothing in it that leads outside."""
        path = self._resolved(given, is_new=False)
        if not path.exists():
            raise InvalidInputError(
                f"There is no file {given} in {self}. Give the path of a file or folder that is "
                "there; addresses are not read."
            )
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                for name in (*folders, *files):
                    self._require(Path(folder, name).resolve(), f"{given}/{name}")
        return path

    def fresh(self, given: str) -> Path:
        """Return a file that may be written: it must not be there."""
        path = self._resolved(given, is_new=True)
        if os.path.lexists(path):
            raise InvalidInputError(f"{given} exists, and is not replaced. Give another name.")
        if not path.parent.is_dir():
            raise InvalidInputError(f"There is no folder {path.parent}. Give one that is there.")
        return path

    def __str__(self) -> str:
        return ", ".join(map(str, self.allowed))

    def _resolved(self, given: str, *, is_new: bool) -> Path:
        """Return where a path leads, from the first folder in which it is there if relative."""
        if "\0" in given:
            raise InvalidInputError(f"{given!r} is no path that can be used.")
        try:
            places = [folder / given for folder in self.allowed]  # an absolute path is only that
            sought = [place.parent if is_new else place for place in places]
            near = next((i for i, place in enumerate(sought) if place.exists()), 0)
            place = places[near]
            path = place.parent.resolve() / place.name if is_new else place.resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise InvalidInputError(f"{given!r} is no path that can be used: {error}.") from None
        self._require(path, given)
        return path

    def _require(self, path: Path, given: str) -> None:
        if path.name == ".." or not any(path.is_relative_to(each) for each in self.allowed):
            raise InvalidInputError(
                f"{given} is, or leads, outside of the folders that may be used: {self}. Give a "
                "path in one of them, or ask the user to start ocfuse mcp with --allow for its "
                "folder."
            )


def make_server(folders: Iterable[str | os.PathLike[str]]) -> Any:
    """Return the server for assistants, an `MCPServer` of the official SDK.

    Parameters
    ----------
    folders : iterable of path-like
        Folders in which files may be read and written; what they hold counts, too.

    Returns
    -------
    MCPServer
        The server; its ``run("stdio")`` answers on stdin and stdout.
    """
    within = Folders.of(folders)
    server = needed("mcp.server.mcpserver", "to serve assistants", "mcp").MCPServer(
        "ocfuse",
        version=__version__,
        instructions="Finds anomalies in tables: plan and fit learn what is normal from rows that "
        "are normal, or mostly so; score judges new rows; explain says why; compare needs labelled "
        f"anomalies; report writes a page. Files are in {within}; paths may be relative to it. "
        "Lower scores are stranger. No file is replaced.",
        log_level="WARNING",
    )
    tools = Tools(within)
    every: list[Tool] = [
        *(tools.inspect, tools.plan, tools.fit, tools.score),
        *(tools.explain, tools.compare, tools.report),
    ]
    for tool in every:
        server.add_tool(_told(tool), name=tool.__name__)
    return server


def _told(tool: Tool) -> Tool:
    """Return a tool whose errors are told as they are; others would be hidden."""
    failed = needed("mcp.server.mcpserver.exceptions", "to serve assistants", "mcp").ToolError

    @functools.wraps(tool)
    async def answered(*args: Any, **named: Any) -> Answer:
        try:
            return await tool(*args, **named)
        except OcfuseError as error:
            raise failed(str(error)) from None

    return answered


class Tools:
    """What assistants may ask for; each returns what the command of its name prints as JSON.

    Parameters
    ----------
    folders : Folders
        Where files may be read and written.
    """

    def __init__(self, folders: Folders) -> None:
        self.folders = folders

    async def inspect(self, model: Model) -> Answer:
        """Show what a model is and what it learned from: columns, members, threshold, rate."""
        return _shorter(await _run("inspect", [self.folders.existing(model)], {}))

    async def plan(
        self,
        data: Data,
        members: Members = "default",
        label: Label = None,
        normal: Normal = None,
        anomaly: Anomaly = None,
        ignore: Ignore = None,
        group: Group = None,
        category: Category = None,
    ) -> Answer:
        """Tell the memory and seconds that fit would take, without learning anything.

        The answer counts columns after encoding: categories become several.
        """
        flags = {
            "members": members,
            "label": label,
            "normal": normal,
            "anomaly": anomaly,
            "ignore": ignore,
            "group": group,
            "category": category,
        }
        answer: Answer = await _run("plan", [self.folders.existing(data)], flags)
        return answer

    async def fit(
        self,
        data: Data,
        out: Annotated[str, Field(description="Model file to write, such as model.ocf.")],
        members: Members = "default",
        false_alarms: FalseAlarms = None,
        label: Label = None,
        normal: Normal = None,
        anomaly: Anomaly = None,
        ignore: Ignore = None,
        category: Category = None,
        number: Annotated[
            list[str] | None,
            Field(description="Columns of numbers, even if they look like ids or counters."),
        ] = None,
        group: Group = None,
        id: Annotated[str | None, Field(description="Column that names the rows.")] = None,
        time: Annotated[str | None, Field(description="Column with the times of rows.")] = None,
        by: Annotated[
            list[str] | None,
            Field(
                description="Columns that name what a row belongs to, such as machine, the widest "
                "first: numbers are compared with the usual values of the same machine."
            ),
        ] = None,
        season: Annotated[
            list[Literal["day", "week", "month", "year"]] | None,
            Field(description="Compare numbers with the usual values at the same time of these."),
        ] = None,
        high: Annotated[
            list[str] | None, Field(description="Columns where only high values are bad.")
        ] = None,
        low: Annotated[
            list[str] | None, Field(description="Columns where only low values are bad.")
        ] = None,
        above: Annotated[
            list[str] | None, Field(description="Always alarm above a value, such as temp=90.")
        ] = None,
        below: Annotated[
            list[str] | None, Field(description="Always alarm below a value, such as level=2.")
        ] = None,
    ) -> Answer:
        """Learn what is normal from the rows of a table, and write a model.

        Rows should be normal, or mostly so. The answer says what each column was taken for.
        """
        flags = {
            "out": self.folders.fresh(out),
            "members": members,
            "false-alarms": false_alarms,
            "label": label,
            "normal": normal,
            "anomaly": anomaly,
            "ignore": ignore,
            "category": category,
            "number": number,
            "group": group,
            "id": id,
            "time": time,
            "by": by,
            "season": season,
            "high": high,
            "low": low,
            "above": above,
            "below": below,
        }
        return _shorter(await _run("fit", [self.folders.existing(data)], flags))

    async def score(
        self,
        model: Model,
        data: Data,
        out: Annotated[
            str | None,
            Field(description="File for all scores, .csv, .jsonl or .parquet; none by default."),
        ] = None,
        worst: Annotated[
            int, Field(ge=0, le=MOST_ROWS, description="Lowest scores to return.")
        ] = 5,
        false_alarms: FalseAlarms = None,
    ) -> Answer:
        """Judge every row of a table: how many are anomalies, and which are the strangest."""
        paths = [self.folders.existing(model), self.folders.existing(data)]
        with tempfile.TemporaryDirectory() as folder:
            written = self.folders.fresh(out) if out else Path(folder, "scores.parquet")
            flags = {"out": written, "false-alarms": false_alarms}
            answer: Answer = await _run("score", paths, flags)
            answer["worst"] = _worst(written, worst)
        return answer | {"file": out}

    async def explain(
        self,
        model: Model,
        data: Data,
        rows: Annotated[
            list[int] | None, Field(description="Numbers of rows, as score tells them.")
        ] = None,
        worst: Annotated[
            int, Field(ge=1, le=MOST_ROWS, description="Without rows: so many lowest scores.")
        ] = 3,
    ) -> Answer:
        """Say why rows have their scores: which columns are unusual, and what is usual there."""
        paths = [self.folders.existing(model), self.folders.existing(data)]
        if rows is not None and not 0 < len(rows) <= MOST_ROWS:
            raise InvalidInputError(f"rows must name 1 to {MOST_ROWS} rows. Got {len(rows)}.")
        flags = {"row": rows} if rows else {"worst": worst}
        return {"rows": [_explained(row) for row in await _run("explain", paths, flags)]}

    async def compare(
        self,
        data: Data,
        label: Annotated[str, Field(description="Column that tells normal rows from anomalies.")],
        normal: Normal = None,
        anomaly: Anomaly = None,
        members: Members = "default",
        group: Group = None,
        splits: Annotated[int, Field(ge=1, le=50, description="Repetitions.")] = 5,
    ) -> Answer:
        """Compare the default detector, its members and other fusions on rows with labels."""
        flags = {
            "label": label,
            "normal": normal,
            "anomaly": anomaly,
            "members": members,
            "group": group,
            "splits": splits,
        }
        found: Answer = await _run("compare", [self.folders.existing(data)], flags)
        told = ("system", "kind", "auc", "gmean", "false_alarms", "rank", "failure")
        return found | {
            "summary": [{name: row.get(name) for name in told} for row in found["summary"]]
        }

    async def report(
        self,
        model: Model,
        data: Data,
        out: Annotated[str, Field(description="Page to write, such as report.html.")],
    ) -> Answer:
        """Write a page that shows the alarms among rows and why they were raised."""
        paths = [self.folders.existing(model), self.folders.existing(data)]
        page = self.folders.fresh(out)
        with tempfile.TemporaryDirectory() as folder:
            flags = {"out": Path(folder, "scores.parquet"), "report": page}
            answer: Answer = await _run("score", paths, flags)
        return answer | {"file": out}


async def _run(command: str, paths: Sequence[Path], flags: Flags) -> Any:
    """Run a command and return what it prints as JSON, or raise what it says.

    In an empty folder, so that no file of settings is read. A flag and its value are one word:
    no value can be taken for a flag.
    """
    words = [sys.executable, "-m", "ocfuse", command, "--json"]
    for name, value in flags.items():
        several = value if isinstance(value, list) else [value]
        words += [f"--{name}={each}" for each in several if each not in (None, False)]
    run_process = needed("anyio", "to serve assistants", "mcp").run_process
    wide = {"COLUMNS": "10000", "NO_COLOR": "1", "TERM": "dumb"}
    with tempfile.TemporaryDirectory() as folder:
        done = await run_process(
            [*words, *map(str, paths)],
            stdin=subprocess.DEVNULL,  # ours is the assistant's
            check=False,
            cwd=folder,
            env=os.environ | wide,
        )
    said = _in_parameters(done.stderr.decode(errors="replace"), flags)
    if done.returncode:
        raise InvalidInputError(_plain(said) or f"{command} ended with {done.returncode}.")
    answer = json.loads(done.stdout)
    warned = [line.removeprefix("Warning: ") for line in said.splitlines() if line.strip()]
    if isinstance(answer, dict):
        told = [_in_parameters(line, flags) for line in answer.get("warnings") or ()]
        answer["warnings"] = told or [line for line in warned if not line.startswith("[")]
    return answer


def _in_parameters(text: str, flags: Flags) -> str:
    """Return a message with the parameters of a tool in place of its flags; others are kept."""
    names = {flag: flag.replace("-", "_") for flag in flags} | {"row": "rows"}
    flag = rf"(?<![\w'\"-])--({'|'.join(sorted(names, key=len, reverse=True))})(?![\w-])"
    return re.sub(flag, lambda found: names[found[1]], text)


def _plain(said: str) -> str:
    """Return a message without the frame that typer draws around it."""
    lines = [re.sub(r"[─-╿]", " ", line).strip() for line in said.splitlines()]
    lines = [line for line in lines if line and line != "Error" and not line.startswith("Usage:")]
    text = " ".join(line for line in lines if not line.startswith("Try "))
    return re.sub(r"\s+", " ", text).removeprefix("Error: ")


def _worst(written: Path, count: int) -> list[Answer]:
    """Return the rows with the lowest scores of a file of scores."""
    scores = open_source(written).read()
    for name in ("row", "score", "p_value"):  # CSV has them as text
        scores[name] = pandas().to_numeric(scores[name])
    scores["is_anomaly"] = scores["is_anomaly"].astype(str).str.lower() == "true"
    lowest = scores.nsmallest(count, "score")
    rows: list[Answer] = json.loads(lowest.to_json(orient="records", date_format="iso"))
    return rows


def _explained(row: Answer) -> Answer:
    """Return what matters most of an explained row."""
    members = sorted(row["members"], key=lambda member: member["share"])
    return row | {"members": members[:MOST_MEMBERS], "features": row["features"][:MOST_FEATURES]}


def _shorter(answer: Answer) -> Answer:
    """Return the facts of a model with the first of very many columns."""
    columns = answer.get("columns", [])
    if len(columns) <= MOST_COLUMNS:
        return answer
    return answer | {"columns": columns[:MOST_COLUMNS], "columns_in_all": len(columns)}
