"""Load the model that a command is given, and describe it."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ocfuse.cli.kinds import holds_pictures, holds_recordings
from ocfuse.cli.output import oddities, print_fields, print_line, print_table
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.ensemble.report import in_words, trusted_members, usual_facts, usual_words
from ocfuse.exceptions import ModelFileError
from ocfuse.fusion.base import BaseFusion
from ocfuse.persistence import load
from ocfuse.report.page import find_browser
from ocfuse.report.words import count
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RUNS

if TYPE_CHECKING:
    from ocfuse.vision import PictureDetector

#: Kinds of columns that are learned from.
LEARNED = ("number", "category")


def facts(model: TableDetector) -> dict[str, Any]:
    """Return what is known of a model, for JSON."""
    detector = model.detector_
    n_rows = len(detector.training_scores_)
    # a copy of a row that is too far out is both
    no_anomalies = {*detector.training_rows_, *detector.trimmed_rows_, *detector.copied_rows_}
    held_out = getattr(detector, "validation_rows_", ())  # of the paper's method
    return {
        "card": model.card_,
        "columns": [
            {"name": column.name, "kind": column.kind, "reason": column.reason}
            for column in model.schema_.columns
        ],
        "members": list(detector.pool_.names_),
        "fusion": type(detector.fusion_).__name__,
        "trust": trusted_members(detector),
        "usual": usual_facts(detector),
        "adapted": _adapted(detector.fusion_),
        "pruned": _pruned(detector),
        "threshold": detector.offset_,
        "limits": None if model.limits_ is None else str(model.limits_),
        "false_alarms": detector.false_alarm_rate,
        "false_alarms_reachable": detector.threshold_rate_,
        "certificate": _certificate(model),
        "rows": n_rows,
        "rows_learned": len(detector.training_rows_),
        "groups": detector.n_groups_,
        "rows_trimmed": len(detector.trimmed_rows_),
        "rows_copied": len(detector.copied_rows_),
        "rows_held_out": len(held_out),
        "anomalies_labelled": n_rows - len(no_anomalies) - len(held_out),
    } | model.facts()


def _certificate(model: TableDetector) -> dict[str, Any] | None:
    """Return how surely the stated rate holds for this model; None if nothing is known."""
    detector = model.detector_
    if model.kind == RUNS and not detector.n_groups_:
        return None  # neighbouring rows of one run are alike
    found = detector.certificate(detector.false_alarm_rate)
    return None if math.isnan(found.at_most) else asdict(found) | {"words": str(found)}


def _adapted(fusion: BaseFusion) -> dict[str, Any] | None:
    """Return the unlabelled rows that trust was adapted to, if it was."""
    rows = getattr(fusion, "n_adapted_", 0)
    return {"rows": rows, "sureness": float(fusion.sureness_)} if rows else None


def _pruned(detector: FusedDetector) -> dict[str, Any] | None:
    """Return the members that are no longer computed, if there are any."""
    members = list(detector.pool_.constants_)
    return {"members": members, "largest_change": detector.pruned_change_} if members else None


def print_columns(model: TableDetector, most: int = 40) -> None:
    """Print what columns are: so many that are learned from, and all others, with the reason."""
    columns = model.schema_.columns
    features = [column for column in columns if column.kind in LEARNED]
    hidden = {column.name for column in features[most:]}
    rows = [(c.name, c.kind, c.reason) for c in columns if c.name not in hidden]
    print_table(("column", "kind", "why"), rows)
    if hidden:
        print_line(f"... and {len(hidden)} more of {len(features)} columns that are learned from")


def print_summary(model: TableDetector) -> None:
    """Print rows, members, fusion and threshold."""
    known = facts(model)
    n_features = sum(column["kind"] in LEARNED for column in known["columns"])
    of_stream = _stream_fields(known["stream"]) if "stream" in known else []
    print_fields(
        [
            ("rows", _rows(known)),
            *of_stream,
            ("columns", f"{n_features} learned from, {len(known['columns']) - n_features} not"),
            ("members", f"{len(known['members'])}: {', '.join(known['members'])}"),
            ("pruned", _in_pruned_words(known["pruned"])),
            ("fusion", known["fusion"]),
            ("adapted", adaptation(known["adapted"])),
            *update_fields(known["card"].get("updates")),
            *(("trusted most", line) for line in in_words(known["trust"])),
            *(("usual", line) for line in usual_words(known["usual"])),
            ("threshold", f"{known['threshold']:.4g}; lower scores are anomalies"),
            ("limits", known["limits"] and f"{known['limits']}: always alarms, counted apart"),
            ("false alarms", _rates(known)),
            ("how sure", _sureness(known)),
        ]
    )


def _sureness(known: dict[str, Any]) -> str:
    """Return how surely the rate of rows holds; empty if a rate of events was asked for."""
    is_of_events = "stream" in known and known["stream"]["events"].get("asked") is not None
    if known["certificate"] is None or is_of_events:
        return ""
    of = "rows, not events" if "stream" in known else "normal rows"
    return f"of {of}: {known['certificate']['words']}"


def _in_pruned_words(pruned: dict[str, Any] | None) -> str:
    """Return which members are no longer computed; empty if all are."""
    if pruned is None:
        return ""
    names = ", ".join(pruned["members"])
    return f"{names}: scores of training rows changed by {pruned['largest_change']:.2g} at most"


def adaptation(adapted: dict[str, Any] | None) -> str:
    """Return what came of unlabelled rows; empty if there were none."""
    if adapted is None:
        return ""
    rows, sureness = f"to {adapted['rows']:,} different unlabelled rows", adapted["sureness"]
    if not sureness:
        return f"{rows}, which changed nothing: their alarms do not tell members apart"
    return f"{rows}, with sureness {sureness:.2f} of 1"


def update_fields(updates: dict[str, Any] | None) -> list[tuple[str, object]]:
    """Return what updates have brought, to show; nothing if there were none."""
    if updates is None:
        return []
    text = f"{updates['rows_added']:,} rows added in {count(updates['number'], 'update')}"
    forgotten = updates["rows_forgotten"]
    text += f", {forgotten:,} forgotten" if forgotten else ""
    text += f"; the last {updates['last_rows']['added']:,} at {updates['last']}"
    kept = ", ".join(updates["members_kept_as_they_were"])
    return [
        ("updated", text),
        ("kept as they were", kept),
        ("fit again", updates["fit_again"]),
    ]


def _stream_fields(stream: dict[str, Any]) -> list[tuple[str, object]]:
    """Return runs, windows and channels, to show."""
    channels = [
        f"{channel['name']} {channel['drift_ratio']:.2g}"
        + ("" if channel["is_watched"] else " (left out)")
        for channel in stream["channels"]
    ]
    windows = ", ".join(map(str, stream["windows"]))
    first = count(max(stream["windows"], default=1) - 1, "row")
    return [
        ("runs", f"{stream['runs']:,}"),
        ("windows", f"{windows} rows; the first {first} of a run have no score"),
        ("context", stream["context"]),
        ("odd rows", ", ".join(oddities(stream["counts"]))),
        ("an event is", _event_words(stream["events"])),
        ("held out", _held_out_words(stream["events"])),
        ("drift ratios", f"{', '.join(channels)}; {_drift_words(stream)}"),
    ]


def _drift_words(stream: dict[str, Any]) -> str:
    """Return from which drift ratio on a channel is treated how."""
    done = {"drop": "left out", "follow": "measured from a slow mean"}.get(stream["drift"])
    above = f"above {stream['drift_limit']:g} a channel"
    if done is None:
        return f"{above} drifts, as far as {count(stream['runs'], 'run')} can tell"
    return f"{above} is {done} (--drift {stream['drift']}, whatever the number of runs)"


def _event_words(events: dict[str, Any]) -> str:
    first = count(events["min_rows"], "row")
    return f"{first} in a row below the threshold, with alarms up to {events['hold']:,} rows later"


def _held_out_words(events: dict[str, Any]) -> str:
    """Return the events of held-out runs, and what they promise of others."""
    if "events" not in events:
        return ""
    n_runs, hours, per = events["runs"], events["hours"], events["per"]
    size = count(n_runs, "run") + ("" if hours is None else f", {hours:.2g} hours")
    found = f"{count(events['events'], 'event')} in {size}, by fits that have not seen them"
    if events["promised"] is None:
        return f"{found}; of other runs nothing is known from {count(n_runs, 'run')}"
    asked = "" if events["asked"] is None else f" ({events['asked']:g} asked for)"
    return (
        f"{found}: of others expect {events['promised']:.2g} per {per}{asked}, at most "
        f"{events['likely_at_most']:.2g} with 95 % confidence"
    )


def _rows(known: dict[str, Any]) -> str:
    """Return such as "200: 168 learned from, 10 copies, 2 too far out, 20 anomalies"."""
    n_anomalies, n_trimmed = known["anomalies_labelled"], known["rows_trimmed"]
    n_held_out = known["rows_held_out"]
    n_copies = known["rows"] - known["rows_learned"] - n_held_out - n_trimmed - n_anomalies
    text = f"{known['rows']:,}"
    if "stream" in known:  # many rows of a stream say the same
        whole = f"{known['card']['rows']:,}"
        text = f"{whole}, of which {text} were taken (--rows): neighbours are alike"
    text += f": {known['rows_learned']:,} learned from as normal"
    text += f", {n_held_out:,} held out for choices and threshold" if n_held_out else ""
    text += f", {count(n_copies, 'copy', 'copies')} of others" if n_copies else ""
    text += f", {n_trimmed:,} too far out to learn" if n_trimmed else ""
    # an update does not learn rows beyond a limit either
    is_mixed = known["limits"] and known["card"].get("updates")
    noun = "anomaly by a label or a limit" if is_mixed else "labelled anomaly"
    several = noun.replace("anomaly", "anomalies")
    text += f", {count(n_anomalies, noun, several)}" if n_anomalies else ""
    is_told = not known["groups"] or "stream" in known  # of a stream they are the runs
    return text if is_told else text + f"; {count(known['groups'], 'group')}"


def _rates(known: dict[str, Any]) -> str:
    stated, reachable = known["false_alarms"], known["false_alarms_reachable"]
    text = f"{stated:.2%} stated, {reachable:.2%} reachable with these "
    if "stream" not in known:
        return text + "rows"
    if known["stream"]["events"].get("asked") is not None:
        return f"counted as events: {reachable:.2%} of held-out rows are below the threshold"
    if known["groups"]:
        return text + "runs"
    runs = known["stream"]["runs"]
    return f"{stated:.2%} of rows stated, not known from {count(runs, 'run')}"


def load_model(
    path: Path,
    threshold: float | None = None,
    false_alarms: float | None = None,
    gaps: str | None = None,
) -> TableDetector:
    """Return the model of a table that `ocfuse fit` wrote, with what flags ask for."""
    return _with_flags(as_table(load(path), path), threshold, false_alarms, gaps)


def _with_flags(
    model: TableDetector, threshold: float | None, false_alarms: float | None, gaps: str | None
) -> TableDetector:
    _set_threshold(model, threshold, false_alarms)
    if gaps is not None:
        if model.kind == RUNS:
            raise typer.BadParameter(
                "--gaps is for rows that stand alone. Channels of a stream may be missing at any "
                "time; rows for which too much is missing have no score, and are counted"
            )
        model.detector_.set_gaps(gaps)
    return model


def load_either(
    path: Path,
    data: str,
    threshold: float | None,
    false_alarms: float | None,
    gaps: str | None,
) -> "TableDetector | PictureDetector":
    """Return a model of a table or of pictures, and see that the data are such."""
    loaded = load(path)
    if isinstance(loaded, TableDetector):
        if holds_pictures(data) and not holds_recordings(data):  # these may hold numbers, too
            raise ModelFileError(
                f"{path.name} judges rows of a table, and {data} holds pictures. Expected a model "
                f"that learned from pictures: ocfuse fit {data} -o part.ocf"
            )
        return _with_flags(loaded, threshold, false_alarms, gaps)
    from ocfuse.vision import PictureDetector  # noqa: PLC0415

    if not isinstance(loaded, PictureDetector):
        return as_table(loaded, path)  # says what is wrong
    _set_threshold(loaded, threshold, false_alarms)
    return loaded


def _set_threshold(model: Any, threshold: float | None, false_alarms: float | None) -> None:
    if threshold is not None and false_alarms is not None:
        raise typer.BadParameter("give either --threshold or --false-alarms")
    if threshold is not None or false_alarms is not None:
        model.set_threshold(false_alarms, offset=threshold)


def as_table(model: object, path: Path) -> TableDetector:
    """Return a model that knows the columns of a table, or refuse what a file holds."""
    if type(model).__name__ == "PictureDetector":
        raise ModelFileError(
            f"{path.name} judges pictures, and this command is for tables. Models of pictures are "
            "for ocfuse score, explain, serve, and ocfuse watch --video."
        )
    if not isinstance(model, TableDetector):
        raise ModelFileError(
            f"{path.name} holds a {type(model).__name__}, which knows arrays and not the columns "
            "of a table. Expected a model that `ocfuse fit` or TableDetector.save wrote."
        )
    return model


def load_detector(
    path: Path, threshold: float | None = None, false_alarms: float | None = None
) -> "PictureDetector":
    """Return the model of pictures that `ocfuse fit` wrote, with the threshold of the flags."""
    from ocfuse.vision import PictureDetector  # noqa: PLC0415

    model = load(path)
    if not isinstance(model, PictureDetector):
        raise ModelFileError(
            f"{path.name} holds a {type(model).__name__}, which does not know pictures. "
            "Expected a model that `ocfuse fit --video` or PictureDetector.save wrote."
        )
    _set_threshold(model, threshold, false_alarms)
    return model


def check_report(path: Path) -> None:
    """Refuse a report that could not be written, before the work is done."""
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}. Create it first.", param_hint="--report"
        )
    if path.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise typer.BadParameter(
            f"must end in .html or .pdf. Got {path.name}.", param_hint="--report"
        )
    if path.suffix.lower() == ".pdf":
        find_browser()
