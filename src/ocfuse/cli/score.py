"""`ocfuse score`: a table or pictures in, scores out, chunk by chunk."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocfuse.cli.early import import_early
from ocfuse.cli.options import (
    SCORE_FORMATS,
    Columns,
    Config,
    Data,
    Decimal,
    Delimiter,
    Engine,
    FailAbove,
    FailOnAnomaly,
    FalseAlarms,
    Gaps,
    Json,
    Model,
    Overlays,
    Quiet,
    Report,
    Scheduler,
    Threads,
    Threshold,
    Topic,
    Workers,
    check_engine,
    check_flags,
    check_scores,
    refuse_overwriting,
    split_names,
)
from ocfuse.cli.output import (
    collected,
    in_words,
    oddities,
    print_json,
    print_line,
    progress,
    warn,
    warn_of,
)
from ocfuse.cli.runtime import ExitCode
from ocfuse.exceptions import TableError

if TYPE_CHECKING:
    import pandas as pd

    from ocfuse.tables import Source, TableDetector
    from ocfuse.tables.detector import Tally

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("score")
def score_command(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=f"File for the scores ({SCORE_FORMATS}); else stdout. With an engine, a folder.",
        ),
    ] = None,
    threshold: Threshold = None,
    false_alarms: FalseAlarms = None,
    fail_on_anomaly: FailOnAnomaly = False,
    fail_above: FailAbove = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--no-keep-going",
            help="Do not stop at rows that cannot be scored; leave their results empty.",
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why/--no-why", help="Add a column with the reason of each alarm, in one line."
        ),
    ] = False,
    why_all: Annotated[
        bool,
        typer.Option(
            "--why-all/--no-why-all", help="Add the same column for every row; takes much longer."
        ),
    ] = False,
    gaps: Gaps = None,
    overlays: Overlays = None,
    report: Report = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    topic: Topic = None,
    engine: Engine = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score the rows of a table, or pictures, with a model."""
    refuse_overwriting({"--out": out, "--report": report}, {"model": model, "data": data})
    is_spread = check_engine(
        engine,
        {"--scheduler": scheduler, "--workers": workers},
        {
            "--report": report,
            "--delimiter": delimiter,
            "--decimal": decimal,
            "--columns": columns,
            "--topic": topic,
            "--why": why,
            "--why-all": why_all,
        },
    )
    if is_spread and out is None:
        raise typer.BadParameter("--engine dask needs --out, a folder for the scores")
    out = out if is_spread else check_scores(out)
    if report is not None and data == "-":
        raise typer.BadParameter("--report needs a file that can be read twice, not stdin")
    import_early("pandas", "ocfuse.cli.model_card", "ocfuse.tables")
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli import model_card  # noqa: PLC0415

    if report is not None:
        model_card.check_report(report)
    detector = model_card.load_either(model, data, threshold, false_alarms, gaps)
    of_tables: dict[str, Any] = {
        "--keep-going": keep_going,
        "--why": why,
        "--why-all": why_all,
        "--gaps": gaps,
    }
    of_tables |= {"--delimiter": delimiter, "--decimal": decimal, "--engine": engine}
    is_table = isinstance(detector, tables.TableDetector)
    check_flags("a model of pictures", not is_table, {"--overlays": overlays}, of_tables)
    if not isinstance(detector, tables.TableDetector):
        from ocfuse.cli import pictures  # noqa: PLC0415

        tally = pictures.score_pictures(
            *(detector, data, out, overlays, report), threads=threads, json=json, quiet=quiet
        )
    elif is_spread and out is not None:
        cluster = {"scheduler": scheduler, "workers": workers}
        tally = score_folder(
            detector, data, out, cluster, json=json, quiet=quiet, keep_going=keep_going
        )
    else:
        opened = partial(
            tables.open_source,
            data,
            delimiter,
            decimal=decimal,
            columns=split_names(columns),
            topic=topic,
        )
        tally = score_table(
            *(detector, opened, out, report),
            json=json,
            quiet=quiet,
            keep_going=keep_going,
            why="all" if why_all else why,
        )
    most = 0.0 if fail_on_anomaly else 1.0 if fail_above is None else fail_above
    if tally.exceeds(most):
        raise typer.Exit(ExitCode.ANOMALIES)


def score_table(
    model: "TableDetector",
    opened: "Callable[[], Source]",
    out: Path | None,
    report: Path | None,
    *,
    json: bool,
    quiet: bool,
    keep_going: bool = False,
    why: bool | str = False,
) -> "Tally":
    """Write the scores of all rows, and perhaps a report; return how many there are."""
    import pandas as pd  # noqa: PLC0415

    from ocfuse.cli.score_files import EventCount, to_file, to_stdout  # noqa: PLC0415
    from ocfuse.ensemble.score import Trace, keep_traces  # noqa: PLC0415
    from ocfuse.streaming import StreamTable  # noqa: PLC0415
    from ocfuse.tables.detector import Tally  # noqa: PLC0415

    place = to_stdout(json) if out is None else to_file(out)
    traces: list[Trace] | None = None if report is None else []
    chunks: list[pd.DataFrame] = []
    without: list[int] = []
    has_limits = model.limits_ is not None
    events = EventCount(model) if isinstance(model, StreamTable) else None
    with collected() as notes, place as write, keep_traces(traces):
        source = opened()
        tally = Tally()
        model.restart()
        for chunk, scores in _all_scores(model, source, quiet, keep_going, why):
            write(scores)
            tally.add(scores, has_limits=has_limits, threshold=float(model.offset_))
            if events is not None:
                events.add(scores)
            if report is not None:
                chunks.append(chunk)
                without += scores.index[scores["score"].isna()].tolist()
    with collected() as again:
        if report is not None and traces is not None:
            frame = pd.concat(chunks)
            has_score = ~frame.index.isin(without)
            trace = Trace.join(traces) if traces else None
            page = model.report(frame, name=source.name, trace=trace, has_score=has_score)
            page.save(report)
    tally.unknown = model.n_unknown(tally.without_score, tally.rows)
    if tally.unknown and model.needed:
        notes.append(f"No row has a score. {model.needed}")
    notes += [note for note in (*again, *tally.notes()) if note not in notes]
    if not quiet:
        warn_of(notes)
    summary = tally.summary(has_limits)
    if events is not None:
        summary = events.summary() | summary
    if model.counts is not None:
        summary["counts"] = model.counts
    summary |= {"threshold": model.offset_, "file": out and str(out), "warnings": notes}
    print_summary(summary, json, quiet)
    return tally


def _all_scores(
    model: "TableDetector", source: "Source", quiet: bool, keep_going: bool, why: bool | str
) -> "Iterator[tuple[pd.DataFrame, pd.DataFrame]]":
    from ocfuse.cli.score_files import scored_chunks  # noqa: PLC0415

    n_rows = 0
    with progress(quiet) as show:
        for chunk, scores in scored_chunks(model, source, keep_going=keep_going, why=why):
            yield chunk, scores
            n_rows += len(scores)
            if source.n_bytes:
                done = min(100 * source.bytes_read // source.n_bytes, 100)
                show("score", f"{n_rows:,} rows", done, 100)


def score_folder(
    model: "TableDetector",
    data: str,
    out: Path,
    cluster: dict[str, Any],
    *,
    json: bool,
    quiet: bool,
    keep_going: bool,
) -> "Tally":
    """Write the scores of all files of a folder on a cluster; return how many rows there are."""
    from ocfuse import distributed  # noqa: PLC0415
    from ocfuse.report.words import count  # noqa: PLC0415

    with distributed.connected(**cluster) as client, progress(quiet) as bar:

        def show(done: int, total: int) -> None:
            bar("score", f"{done:,} of {count(total, 'file')}", done, total)

        outcome = distributed.score(
            model, data, out, client=client, keep_going=keep_going, progress=show
        )
    with collected() as notes:
        outcome.give_warnings()
    outcome.unknown = outcome.without_score
    notes += outcome.notes()
    if not quiet:
        warn_of(notes)
    summary = outcome.summary(model.limits_ is not None) | {
        "threshold": model.detector_.offset_,
        "file": str(out),
        "files": outcome.files,
        "resumed": outcome.resumed,
        "failed": outcome.failed,
        "warnings": notes,
    }
    print_summary(summary, json, quiet)
    if outcome.failed:  # files without scores are no success
        for why in outcome.failed.values():
            warn(in_words(why))
        raise TableError(
            f"There are no scores of {count(len(outcome.failed), 'file')}; those of the other "
            f"{outcome.files:,} are written."
        )
    return outcome


def print_summary(summary: dict[str, Any], json: bool, quiet: bool, noun: str = "row") -> None:
    """Print what became of the rows, or pictures."""
    from ocfuse.report.words import count  # noqa: PLC0415

    if summary["file"] and json:
        print_json(summary)
    elif not quiet:
        # scores on stdout stay alone there
        say = print_line if summary["file"] else warn
        where = f" {summary['file']} written." if summary["file"] else ""
        if "events" in summary:
            hours = summary["hours"]
            size = "" if hours is None else f", {hours:,.1f} hours"
            say(f"{count(summary['events'], 'event')} in {count(summary['runs'], 'run')}{size}.")
        rows, share = count(summary["rows"], noun), summary["anomalies"] / max(summary["rows"], 1)
        rows += (
            f" ({summary['without_score']:,} without a score)" if summary["without_score"] else ""
        )
        say(
            f"{rows}, {count(summary['anomalies'], 'anomaly', 'anomalies')} ({share:.2%}) "
            f"below the threshold {summary['threshold']:.4g}.{where}"
        )
        if "by_rule" in summary:
            known = summary["by_rule"]
            shown = "; ".join(f"{rule}: {n:,}" for rule, n in known["limits"].items())
            say(
                f"Limits, counted apart: broken by {count(known['rows'], noun)}"
                + (
                    f" ({shown}), {known['only']:,} of them not below the threshold."
                    if shown
                    else "."
                )
            )
        odd = oddities(summary.get("counts", {}))
        if odd:
            say(f"Rows of the stream: {', '.join(odd)}.")
        if summary.get("resumed"):
            before = count(summary["resumed"], "file")
            say(f"Of {count(summary['files'], 'file')}, {before} had been written before.")
