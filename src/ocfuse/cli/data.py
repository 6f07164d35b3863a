"""`ocfuse data`: which data sets there are, fetch them, look at one."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ocfuse.cli.output import print_fields, print_json, print_line, print_table, warn
from ocfuse.cli.runtime import ExitCode
from ocfuse.datasets import Dataset, Sequence, fetch, find, list_datasets, load, locate
from ocfuse.exceptions import OcfuseError

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

app = typer.Typer(
    help="List, fetch and show data sets.", no_args_is_help=True, pretty_exceptions_enable=False
)


@app.command("list")
def list_command(json: Json = False) -> None:
    """List the data sets and their folders."""
    infos = list_datasets()
    if json:
        print_json([asdict(info) | {"here": locate(info.name)} for info in infos])
        return
    header = ("name", "paper", "kind", "rows", "features", "normals", "licence", "here")
    print_table(
        header,
        (
            (
                info.name,
                info.paper_id,
                info.kind,
                info.n_rows,
                info.n_features,
                info.n_normals,
                info.licence.split(" (")[0],
                locate(info.name) or "no",
            )
            for info in infos
        ),
    )


@app.command("fetch")
def fetch_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of data sets, as in ocfuse data list.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Fetch all sets that can be downloaded.")
    ] = False,
    json: Json = False,
) -> None:
    """Download data sets unless they are already here, and verify them."""
    if bool(names) == everything:
        raise typer.BadParameter("give names of data sets, or --all")
    if everything:  # of the families that have an address to download from
        known = [info.name for info in list_datasets()]
        wanted = [name for name in known if name.startswith(("uci/", "robot-failures/"))]
    else:  # a wrong name stops here, before any download
        wanted = [_full_name(name) for name in names or ()]
    results = [_fetched(name) for name in wanted]
    if json:
        print_json(results)
    else:
        print_table(("name", "here"), ((r["name"], r.get("here", "no")) for r in results))
    if any("error" in result for result in results):
        raise typer.Exit(ExitCode.BAD_DATA)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="Name of the data set, as in ocfuse data list.")],
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show.")] = 5,
    json: Json = False,
) -> None:
    """Show what is known about a data set, its classes and its first rows."""
    entry = asdict(find(name)) | {"here": locate(name)}
    content = _content(load(name), rows)
    if json:
        print_json(entry | content)
        return
    print_fields((key.removeprefix("n_").replace("_", " "), entry[key]) for key in entry)
    print_line()
    print_table(("class", "count"), content["classes"].items())
    print_line()
    _print_rows(content)


def _full_name(name: str) -> str:
    """Return "uci/banknotes" for "D1"; a run of SKAB keeps its own name."""
    known = find(name).name
    return name if name.startswith(known) else known


def _fetched(name: str) -> dict[str, str]:
    """Fetch one set; a failure is printed and does not stop the others."""
    try:
        where = fetch(name)
    except OcfuseError as error:
        warn(f"Error: {error}")
        return {"name": name, "error": str(error)}
    return {"name": name, "here": where}


def _content(loaded: Dataset | Sequence | list[Sequence], rows: int) -> dict[str, Any]:
    """Return the counts of classes, the columns, and the first rows with their classes."""
    if isinstance(loaded, Dataset):
        table, columns, marks = loaded.X, loaded.feature_names, loaded.labels.tolist()
        classes = Counter(marks)
    else:
        runs = loaded if isinstance(loaded, list) else [loaded]
        table, columns, marks = runs[0].X, runs[0].columns, _words(runs[0])
        classes = Counter(w for run in runs for w in ([run.label] if run.label else _words(run)))
    return {
        "classes": dict(classes.most_common()),
        "columns": list(columns),
        # JSON knows no NaN
        "first_rows": [[None if v != v else v for v in row] for row in table[:rows].tolist()],
        "first_classes": marks[:rows],
    }


def _print_rows(content: dict[str, Any], most_columns: int = 40) -> None:
    """Print one line per column, so that many columns do not run out of the window."""
    columns, rows = content["columns"], content["first_rows"]
    lines = [
        [name, *("" if row[j] is None else f"{row[j]:g}" for row in rows)]
        for j, name in enumerate(columns[:most_columns])
    ]
    if len(columns) > most_columns:
        lines.append([f"... {len(columns)} columns in all", *("" for _ in rows)])
    header = ["first rows", *(str(i + 1) for i in range(len(rows)))]
    print_table(header, [*lines, ["class", *content["first_classes"]]])


def _words(run: Sequence) -> list[str]:
    return [run.label or ("normal" if sign == 1 else "anomaly") for sign in run.y]
