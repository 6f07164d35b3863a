"""`ocfuse fit --events`: from the old data and the verdicts on events to a new model."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer
from sklearn.base import clone

from ocfuse.cli.output import at_work, print_json, print_line, print_table, warn_of
from ocfuse.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ocfuse.cli.fit import Opened
    from ocfuse.tables import TableDetector
    from ocfuse.tables.judged import Heeded, JudgedEvent

#: Options of `ocfuse fit` that go with --events; all others are those of the old model.
ALLOWED = frozenset(
    (
        *("data", "out", "force", "keep", "events", "old", "served_as", "delimiter", "decimal"),
        *("columns", "topic", "json", "quiet", "config"),
    )
)


def check_alone(ctx: typer.Context) -> None:
    """Refuse options that settle what the old model has settled."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ctx.params
        if name not in ALLOWED and _is_given(ctx, name)
    ]
    if given:
        raise typer.BadParameter(
            f"--events learns with the settings of --model. Leave {', '.join(given)} out"
        )


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def learn_from_events(
    events: Path,
    model: Path,
    out: Path,
    opened: "Opened",
    *,
    served_as: str | None,
    keep: int,
    json: bool,
    quiet: bool,
) -> None:
    """Fit a model like the old one to its data and the verdicts, and tell what has changed."""
    from ocfuse.cli.model_card import load_model  # noqa: PLC0415
    from ocfuse.persistence import keep_former  # noqa: PLC0415
    from ocfuse.tables.judged import HeldOutVerdicts, counted  # noqa: PLC0415

    old = load_model(model)
    name = served_as or model.stem
    judged, left_out = read_judged(events, name, old)
    with at_work(quiet) as notes:
        frame = opened().read()
        start = perf_counter()

        def learn(some: "Sequence[JudgedEvent]") -> "TableDetector":
            model: TableDetector = clone(old)
            return model.fit(frame, judged=some)

        held_out = HeldOutVerdicts(learn, old, judged).run()
        found = sorted(held_out, key=lambda one: one.event.number)
        new = learn(judged)
        seconds = perf_counter() - start
    if new.card_["sha256"] != old.card_["sha256"]:
        notes.append(
            f"The data are not those that {model} learned from: their checksum differs. What the "
            "new model does otherwise may be due to them, not to the verdicts."
        )
    keep_former(out, keep)
    new.save(out)
    done = {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}
    counts = counted(found)
    if json:
        each = [_plain(one) for one in found]
        print_json(done | {"held_out": counts, "events": each, "without_rows": left_out})
    elif not quiet:
        _print_verdicts(judged, left_out, events)
        _print_held_out(found, counts)
        print_line(f"\n{out} written, {seconds:.1f} s of learning. {model} {_fate(model, out)}.")
    if not quiet:
        warn_of(notes)


def read_judged(
    path: Path, name: str, old: "TableDetector"
) -> "tuple[list[JudgedEvent], list[int]]":
    """Return the events of a model to learn from, and numbers of those whose rows are not kept."""
    from ocfuse.serve.database import judged_events  # noqa: PLC0415
    from ocfuse.serve.event_rows import to_judged, unpacked  # noqa: PLC0415
    from ocfuse.streaming.status import ANOMALY  # noqa: PLC0415

    if not path.is_file():
        raise InvalidInputError(f"There is no file of events {path}.")
    found = [(event, data) for event, data in judged_events(path) if event.kind == ANOMALY]
    of_model = [(event, data) for event, data in found if event.model == name]
    if not of_model:
        known = sorted({event.model for event, _ in found})
        others = f" There are some of: {', '.join(known)}; see --served-as." if known else ""
        raise InvalidInputError(
            f"No alarm of a model called {name!r} in {path} has the verdict real or false "
            f"alarm.{others} Give verdicts on the page of ocfuse serve first."
        )
    judged, left_out = [], []
    for event, data in of_model:
        rows = [] if data is None else unpacked(data)
        one = to_judged(event, rows, old.schema_.features)
        if any(low.any() for low in one.low):
            judged.append(one)
        else:
            left_out.append(event.id)
    if not judged:
        raise InvalidInputError(
            f"{len(of_model)} events of {name!r} in {path} have a verdict, but none has rows below "
            "its threshold that were kept. Rows are kept of streams (see --keep-rows of serve)."
        )
    return judged, left_out


def _print_verdicts(judged: "Sequence[JudgedEvent]", left_out: Sequence[int], events: Path) -> None:
    real = sum(event.is_real for event in judged)
    print_line(
        f"{len(judged)} events of {events} with a verdict and rows: {real} real, "
        f"{len(judged) - real} false alarms"
        + (f"; {len(left_out)} without rows left out" if left_out else "")
    )


def _print_held_out(found: "Sequence[Heeded]", counts: dict[str, Any]) -> None:
    """Print what becomes of every event by models that have not seen it."""
    from ocfuse.tables.judged import HeldOutVerdicts  # noqa: PLC0415

    if not found:
        print_line("One verdict tells nothing of how others are judged: none was held out.")
        return
    false, real = counts["false_alarms"], counts["real"]
    print_line("\nEach event by a model that has not seen it:")
    print_table(
        ("verdict", "events", "old model", "new model"),
        [
            ("false alarm", *_row(false, "quiet")),
            ("real", *_row(real, "alarm")),
        ],
    )
    changed = [one for one in found if one.event.is_real and one.before and one.after is False]
    if changed:
        numbers = ", ".join(str(one.event.number) for one in changed)
        print_line(f"Real events that no longer raise an alarm: {numbers}.")
    least = min((n for n in (false["events"], real["events"])), default=0)
    if least < HeldOutVerdicts.enough:
        print_line(
            f"These are {false['events']} false alarms and {real['events']} real events: too few "
            "to promise anything of those to come. Try the new model beside the old one: "
            "ocfuse serve --shadow."
        )


def _row(counts: dict[str, int], word: str) -> tuple[str, str, str]:
    n = counts["events"]
    return str(n), f"{counts[f'{word}_before']} {word}", f"{counts[f'{word}_after']} {word}"


def _plain(one: "Heeded") -> dict[str, Any]:
    return {
        "event": one.event.number,
        "verdict": "real" if one.event.is_real else "false alarm",
        "alarm_before": one.before,
        "alarm_after": one.after,
    }


def _fate(model: Path, out: Path) -> str:
    if out.resolve() == model.resolve():
        return "was replaced"
    return "is as it was"
