"""`ocfuse demo`: the whole story on a data set that comes with scikit-learn."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocfuse import __version__
from ocfuse.cli.options import Config, Json, Quiet, Seed, Threads
from ocfuse.cli.output import print_json, print_line, progress
from ocfuse.system.progress import show_progress

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: Share of normal rows that may raise an alarm.
FALSE_ALARMS = 0.05


@app.command("demo")
def demo_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the files of the demo.")
    ] = Path("ocfuse-demo"),
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn from normal rows, raise alarms on new ones, explain them, and write a report."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file. Give the name of a folder.")
    if not (json or quiet):  # at once: what follows takes seconds, and its import a few, too
        print_line(f"ocfuse {__version__}: the story on scikit-learn's breast cancer measurements")
    from ocfuse.ensemble import FusedDetector  # noqa: PLC0415
    from ocfuse.system.files import write_atomically  # noqa: PLC0415
    from ocfuse.tables import TableDetector  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    normal, new, labelled = _tables(seed)
    is_normal = (labelled.set_index("id")["diagnosis"].loc[new["id"]] == "benign").to_numpy()
    for name, table in (("normal", normal), ("new", new), ("labelled", labelled)):
        write_atomically(out / f"{name}.csv", table.to_csv(index=False).encode())
    begin = time.perf_counter()
    with progress(quiet) as bar, show_progress(bar):
        detector = FusedDetector(false_alarm_rate=FALSE_ALARMS, random_state=seed)
        model = TableDetector(detector, id="id").fit(normal)
    seconds = time.perf_counter() - begin
    scores = model.score(new)
    strangest = int(scores["score"].argmin())
    model.save(out / "model.ocf")
    features = model.schema_.features_of(new)
    page = model.detector_.report(
        features, is_normal, ids=new["id"], title="The samples of the demo"
    )
    page.save(out / "report.html")
    facts = _facts(scores, is_normal)
    facts |= {"learned": len(normal), "members": len(model.detector_.pool_.names_)}
    facts |= {"seconds": round(seconds, 2), "strangest": strangest, "folder": str(out)}
    if json:
        print_json(facts | {"next": _next(out, strangest)})
    elif not quiet:
        _print_story(facts, model.explain(new.iloc[[strangest]]).describe(), out)


def _tables(seed: int) -> "tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]":
    """Return normal rows to learn from, new rows, and all rows with their diagnosis.

    Of the benign samples 70 % are learned from; the others are new, as are all malignant ones.
    """
    import numpy as np  # noqa: PLC0415
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415

    data = load_breast_cancer(as_frame=True)
    rows = data.data.copy()
    rows.insert(0, "id", [f"S{i:03d}" for i in range(len(rows))])
    benign = np.random.default_rng(seed).permutation(np.flatnonzero(data.target == 1))
    learned = np.sort(benign[: round(0.7 * len(benign))])
    is_new = ~np.isin(np.arange(len(rows)), learned)
    diagnosis = np.where(data.target == 1, "benign", "malignant")
    return (
        rows.iloc[learned],
        rows[is_new].reset_index(drop=True),
        rows.assign(diagnosis=diagnosis),
    )


def _facts(scores: "pd.DataFrame", is_normal: Any) -> dict[str, Any]:
    """Return how the alarms fit the diagnosis, which nobody learned from."""
    import numpy as np  # noqa: PLC0415

    from ocfuse.metrics import auc  # noqa: PLC0415

    alarm = scores["is_anomaly"].to_numpy()
    return {
        "new": len(scores),
        "alarms": int(alarm.sum()),
        "anomalies": int((~is_normal).sum()),
        "found": float(alarm[~is_normal].mean()),
        "false_alarms": float(alarm[is_normal].mean()),
        "auc": auc(np.where(is_normal, 1, -1), scores["score"].to_numpy()),
    }


def _print_story(facts: dict[str, Any], why: str, out: Path) -> None:
    print_line(
        f"\nLearned what is normal from {facts['learned']} benign samples: {facts['members']} "
        f"members and their fusion, {facts['seconds']:.1f} s.\n"
        f"Scored {facts['new']} new samples: {facts['alarms']} alarms. By the diagnosis, which "
        f"nobody learned from,\nthey are {facts['found']:.1%} of the {facts['anomalies']} "
        f"malignant samples and {facts['false_alarms']:.1%} of the benign ones (asked for: "
        f"{FALSE_ALARMS:.0%}).\nThe AUC is {facts['auc']:.3f}. One split of one data set ranks no "
        "method.\n"
    )
    print_line(f"Why row {facts['strangest']} is the strangest:")
    print_line("  " + why.replace("\n", "\n  "))
    print_line(f"\nThe report: {out / 'report.html'} (open it in a browser)")
    print_line("\nThese files are yours to try things on:")
    for command in _next(out, facts["strangest"]):
        print_line(f"  {command}")


def _next(out: Path, row: int) -> list[str]:
    """Return three commands that work on the files of the demo."""
    model, new, labelled, scores = (
        shlex.quote(str(out / name))
        for name in ("model.ocf", "new.csv", "labelled.csv", "scores.csv")
    )
    return [
        f"ocfuse score {model} {new} -o {scores}",
        f"ocfuse explain {model} {new} --row {row}",
        f"ocfuse compare {labelled} --label diagnosis --splits 3",
    ]
