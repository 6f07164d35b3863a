"""The command line as an operator has it, and the events that it tells."""

import io
import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from ocfuse.cli.app import run

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """An event as `ocfuse watch` tells it, by numbers of frames or rows.

    `place` is the most unusual one of the frame `worst`, from the top and from the left.
    """

    raised: int
    stop: float
    kind: str = "event"
    worst: int = -1
    channel: str | None = None
    place: tuple[float, float] | None = None


def ocfuse(*words: object) -> Records:
    """Call a command in this process, which need not import everything again; return its JSON."""
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            run([str(word) for word in words])
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"ocfuse {' '.join(map(str, words))}: code {stop.code}") from None
    text, found = out.getvalue().strip(), []
    while text:  # a record on a line each, or one over several
        record, end = json.JSONDecoder().raw_decode(text)
        found.append(record)
        text = text[end:].lstrip()
    return found


def events(records: Records) -> list[Told]:
    """Return events, and failures of camera and sensors, in the order in which they were told."""
    found = []
    for record in records:
        if record["kind"] == "event":
            by_row = isinstance(record["start"], dict)
            raised = record["raised"]["row"] if by_row else record["raised"]
            stop = record["last"]["row"] + 1 if by_row else record["stop"]
            place = None if by_row or record["place"] is None else tuple(record["place"])
            worst = -1 if by_row else record["worst"]
            found.append(Told(raised, stop, worst=worst, place=place))
        elif record["kind"] != "summary" and record.get("state") == "begin":
            at = record["frame"] if "frame" in record else record["row"]
            found.append(Told(at, float("inf"), record["kind"]))
    return sorted(found, key=lambda told: told.raised)
