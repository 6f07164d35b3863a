"""The work of `ocfuse score`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ocfuse.cli.models import load_model
from ocfuse.cli.output import collected, print_json, print_line, progress, warn, warn_of
from ocfuse.cli.reports import check_report, write_report
from ocfuse.cli.scored import scored_chunks
from ocfuse.cli.sinks import to_file, to_stdout
from ocfuse.cli.streamtelling import oddities
from ocfuse.ensemble.score import Trace, keep_traces
from ocfuse.report.words import MANY_ALARMS, MOST, count
from ocfuse.tables import Source, TableDetector, open_source

__all__ = ["check_report", "load_model", "open_source", "score_table"]

#: Rows from which on a share of alarms tells something about the table.
FEWEST_ROWS = 10


@dataclass
class Tally:
    """What became of the rows so far.

    Attributes
    ----------
    rows, anomalies : int
        Rows, and anomalies among them.
    without : list of int
        Numbers of the rows that have no score.
    unknown : int
        Rows without a score that may be anomalies: not those that begin a stream.
    """

    rows: int = 0
    anomalies: int = 0
    without: list[int] = field(default_factory=list)
    unknown: int = 0

    def add(self, scores: pd.DataFrame) -> None:
        """Count further rows."""
        self.rows += len(scores)
        self.anomalies += int(scores["is_anomaly"].sum())
        self.without += scores.index[scores["score"].isna()].tolist()

    def exceeds(self, share: float) -> bool:
        """Tell whether more than a share of the rows are anomalies, or may be."""
        return self.anomalies + self.unknown > share * self.rows

    def notes(self) -> list[str]:
        """Say what is odd about so many alarms."""
        is_odd = self.rows >= FEWEST_ROWS and self.anomalies > MOST * self.rows
        return [MANY_ALARMS] if is_odd else []


def score_table(
    model: TableDetector,
    opened: Callable[[], Source],
    out: Path | None,
    report: Path | None,
    *,
    json: bool,
    quiet: bool,
    keep_going: bool = False,
    why: bool | str = False,
) -> Tally:
    """Write the scores of all rows, and perhaps a report; return how many there are."""
    place = to_stdout(json) if out is None else to_file(out)
    traces: list[Trace] | None = None if report is None else []
    chunks: list[pd.DataFrame] = []
    with collected() as notes, place as write, keep_traces(traces):
        source = opened()
        tally = Tally()
        model.restart()
        for chunk, scores in _all_scores(model, source, quiet, keep_going, why):
            write(scores)
            tally.add(scores)
            if report is not None:
                chunks.append(chunk)
    with collected() as again:
        if report is not None and traces is not None:
            frame = pd.concat(chunks)
            has_score = ~frame.index.isin(tally.without)
            trace = Trace.join(traces) if traces else None
            write_report(model, frame, source.name, report, trace, has_score)
    tally.unknown = model.n_unknown(len(tally.without), tally.rows)
    if tally.unknown and model.needed:
        notes.append(f"No row has a score. {model.needed}")
    notes += [note for note in (*again, *tally.notes()) if note not in notes]
    if not quiet:
        warn_of(notes)
    told: dict[str, Any] = {
        "rows": tally.rows,
        "anomalies": tally.anomalies,
        "without_score": len(tally.without),
    }
    if model.counts is not None:
        told["counts"] = model.counts
    told |= {"threshold": model.offset_, "file": out and str(out), "warnings": notes}
    tell(told, json, quiet)
    return tally


def _all_scores(
    model: TableDetector, source: Source, quiet: bool, keep_going: bool, why: bool | str
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    n_rows = 0
    with progress(quiet) as tell:
        for chunk, scores in scored_chunks(model, source, keep_going=keep_going, why=why):
            yield chunk, scores
            n_rows += len(scores)
            if source.n_bytes:
                done = min(100 * source.bytes_read // source.n_bytes, 100)
                tell("score", f"{n_rows:,} rows", done, 100)


def tell(told: dict[str, Any], json: bool, quiet: bool) -> None:
    """Print what became of the rows."""
    if told["file"] and json:
        print_json(told)
    elif not quiet:
        # scores on stdout stay alone there
        say = print_line if told["file"] else warn
        where = f" {told['file']} written." if told["file"] else ""
        rows, share = count(told["rows"], "row"), told["anomalies"] / max(told["rows"], 1)
        rows += f" ({told['without_score']:,} without a score)" if told["without_score"] else ""
        say(
            f"{rows}, {count(told['anomalies'], 'anomaly', 'anomalies')} ({share:.2%}) "
            f"below the threshold {told['threshold']:.4g}.{where}"
        )
        odd = oddities(told.get("counts", {}))
        if odd:
            say(f"Rows of the stream: {', '.join(odd)}.")
