"""`ocfuse watch`: alarms as the rows come."""

import csv
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol, TypeAlias

import typer

from ocfuse.cli.kinds import Heading, Kind, KindCommand, Panels, is_of
from ocfuse.cli.options import (
    MIN_FRAMES,
    Config,
    Decimal,
    Delimiter,
    FailOnAnomaly,
    Gaps,
    Json,
    Model,
    Quiet,
    Threads,
    Threshold,
    Topic,
    check_folder,
    check_place,
    check_rate,
    check_video,
    help_or_value,
    refuse_overwriting,
)
from ocfuse.cli.output import warn
from ocfuse.cli.runtime import ExitCode, Terminated
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    OcfuseWarning,
    TableError,
    TableWarning,
)

if TYPE_CHECKING:
    import pandas as pd

    from ocfuse.cli.watch_events import Flags, Wishes
    from ocfuse.tables import TableDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: Told once, at whatever line it shows.
NOT_UTF8 = (
    "The input is not in UTF-8 and is read as Windows-1252. If letters come out wrong, feed it in "
    "UTF-8."
)
#: Number and fields of a row.
Row: TypeAlias = tuple[int, list[str]]


class WatchCommand(KindCommand):
    """The options of `ocfuse watch` by the kind of data that they are for."""

    panels: ClassVar[Panels] = {
        Heading.TABLES: ("follow", "new", "strict", "gaps", "delimiter", "decimal"),
        Heading.STREAM_MODELS: ("min_rows",),
        Heading.EVENTS: ("leave", "timeout", "events"),
        Heading.PICTURES: ("video", "topic", "progress", "min_frames", "annotated", "thumbnails"),
    }


def _check_events(ctx: typer.Context, path: Path | None) -> Path | None:
    return check_place(path) if is_of(ctx, Kind.PICTURES) else path


@app.command("watch", cls=WatchCommand)
def watch_command(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(
            help="CSV file with a header line; - for stdin, which is the default.",
            show_default=False,
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all/--no-all", help="Print every row or frame.")
    ] = False,
    threshold: Threshold = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            help="Share of normal rows or frames that may raise an alarm; by default the model's.",
            callback=check_rate,
        ),
    ] = None,
    fail_on_anomaly: FailOnAnomaly = False,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", "-f", help="Wait for further rows of the file.")
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new/--no-new", help="With --follow, leave out the rows that are there."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", help="Stop at a row that cannot be scored.")
    ] = False,
    gaps: Gaps = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows in a row below the threshold that raise an event; by default 3.",
            show_default=False,
        ),
    ] = None,
    leave: Annotated[
        float | None,
        typer.Option(
            help="Score that ends an event; by default a quarter of the way from the threshold "
            "to the median of normal rows or frames.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds without a row after which to say so; by default 5 usual steps of the "
            "training rows, if these have dates, and at least 5. Without a frame, or without a "
            "number of --progress -, the command gives up then with exit code 3; by default "
            "after 5 for cameras and addresses, else never.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Append events to this file, a line of JSON each; of pictures, also alarms when "
            "they are raised.",
            callback=_check_events,
        ),
    ] = None,
    video: Annotated[
        str | None,
        typer.Option(
            help="Video, bag, array, folder of pictures or trial folder; number of a camera; "
            "address such as rtsp://...; - for a video on stdin.",
            callback=help_or_value,
            is_eager=True,
        ),
    ] = None,
    topic: Topic = None,
    progress: Annotated[
        str | None,
        typer.Option(
            help="Progress of the task, for a model that learned with it: a file with a number "
            "per frame, or - for numbers on stdin, of which the latest holds."
        ),
    ] = None,
    min_frames: Annotated[
        int, typer.Option(min=1, help="Frames in a row below the threshold that raise an event.")
    ] = MIN_FRAMES,
    annotated: Annotated[
        Path | None,
        typer.Option(
            help="Write the video with scores and unusual places drawn in: .mp4, .mkv, .avi, .mov.",
            callback=check_video,
        ),
    ] = None,
    thumbnails: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a picture of each event, its unusual places in red.",
            callback=check_folder,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score rows or frames as they come, and tell the alarms at once.

    Rows of sensors, of which ocfuse fit --stream learns, raise events; so do pictures and
    recordings, with --video.
    """
    if video is not None:
        from ocfuse.cli import watch_video  # noqa: PLC0415

        watch_video.watch_recording(
            *(model, video, topic, progress),
            outputs=watch_video.Outputs(events, annotated, thumbnails),
            threshold=threshold,
            false_alarms=false_alarms,
            leave=leave,
            min_frames=min_frames,
            timeout=timeout,
            threads=threads,
            fail_on_anomaly=fail_on_anomaly,
            show_all=show_all,
            json=json,
            quiet=quiet,
        )
        return
    data = "-" if data is None else data
    if (follow and data == "-") or (new and not follow):
        raise typer.BadParameter("--follow needs a file, and --new needs --follow")
    refuse_overwriting({"--events": events}, {"model": model, "data": data})
    from ocfuse.cli import model_card, watch_events  # noqa: PLC0415

    detector = model_card.load_model(model, threshold, false_alarms, gaps)
    wishes = watch_events.Wishes(leave, min_rows, timeout, events)
    flags = watch_events.Flags(show_all=show_all, strict=strict, json=json, quiet=quiet)
    reporter = teller_of(detector, wishes, flags, is_live=follow or data == "-")
    watch = Watch(detector, reporter, delimiter, decimal)
    run(watch, data, follow=follow, only_new=new, quiet=quiet)
    if fail_on_anomaly and reporter.n_alarms + reporter.n_unknown:
        raise typer.Exit(ExitCode.ANOMALIES)


class Observer(Protocol):
    """Who is told what comes."""

    @property
    def n_alarms(self) -> int:
        """Alarms so far."""

    @property
    def n_unknown(self) -> int:
        """Rows so far that may be anomalies, and were not watched."""

    def tell(self, scores: "pd.DataFrame") -> None:
        """Take the scores of the next rows."""

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Take the number of a row that cannot be scored, and why."""

    def begin(self) -> None:
        """Take note of another header."""

    def listen(self, has_come: bool) -> None:
        """Take note of whether something has come."""

    def end(self, n_rows: int, n_bad: int) -> None:
        """Take the number of rows, and of those that could not be scored."""


@dataclass
class Watch:
    """Score the lines of a table; the first one names the columns.

    A later line that names all columns of the model is a header again: files are replaced.

    Attributes
    ----------
    model : TableDetector
        Scores the rows.
    reporter : Observer
        Is told what comes.
    delimiter, decimal : str or None
        What separates values, and what separates decimals; None to find out.
    header : list of str
        Names of the columns.
    is_utf8 : bool
        Whether all lines so far were.
    n_rows, n_bad : int
        Rows seen, and those among them that could not be scored.
    """

    model: "TableDetector"
    reporter: Observer
    delimiter: str | None = None
    decimal: str | None = None
    header: list[str] = field(default_factory=list)
    is_utf8: bool = True
    n_rows: int = 0
    n_bad: int = 0

    def take(self, lines: Iterable[bytes], *, skip: bool = False) -> None:
        """Score the next lines, or only count them."""
        rows: list[Row] = []
        for line in lines:
            if not line.strip():
                continue
            if not self.header:
                self._begin(line)
                continue
            try:
                fields = self._fields(line)
            except TableError as error:
                self._score(rows)  # in the order in which they came
                rows = []
                if not skip:
                    self._refuse(self.n_rows, error)
            else:
                if self._names_columns(fields):
                    self._score(rows)
                    self.header, rows = _names(fields), []
                    self.reporter.begin()
                    continue
                if not skip:
                    rows.append((self.n_rows, fields))
            self.n_rows += 1
        self._score(rows)

    def _begin(self, line: bytes) -> None:
        """Take the first line, which has to name the columns; another one may name a separator."""
        import pandas as pd  # noqa: PLC0415

        from ocfuse.cli.streams import require_text  # noqa: PLC0415
        from ocfuse.tables.dataframes import require_distinct  # noqa: PLC0415
        from ocfuse.tables.text import separator_line  # noqa: PLC0415

        require_text(line)
        text = self._text(line)
        named = separator_line(text)
        if named is not None:
            self.delimiter = self.delimiter or named
            return
        self.delimiter = self.delimiter or self._find_delimiter(text)
        names = _names(_split(text, self.delimiter))
        require_distinct(names, "The first line")
        if not self._names_columns(names):
            # the model says which columns it misses
            self.model.schema_.check(pd.DataFrame(columns=names))
        self.header = names

    def _fields(self, line: bytes) -> list[str]:
        fields = _split(self._text(line), str(self.delimiter))
        if len(fields) != len(self.header):
            raise TableError(f"It has {len(fields)} values, the header {len(self.header)} names.")
        return fields

    def _text(self, line: bytes) -> str:
        from ocfuse.cli.streams import to_text  # noqa: PLC0415

        text, is_utf8 = to_text(line)
        if self.is_utf8 and not is_utf8:
            self.is_utf8 = False
            warnings.warn(NOT_UTF8, OcfuseWarning, stacklevel=2)
        return text

    def _find_delimiter(self, header: str) -> str:
        """Return the separator by which most names are columns of the model."""
        from ocfuse.tables.text import DELIMITERS, head_records, sniff_delimiter  # noqa: PLC0415

        known = {column.name for column in self.model.schema_.columns}

        def n_known(delimiter: str) -> int:
            return len(known.intersection(*map(_names, head_records([header], delimiter))))

        best = max(DELIMITERS, key=n_known)
        return best if n_known(best) else sniff_delimiter([header])

    def _names_columns(self, fields: list[str]) -> bool:
        """Tell whether this is a header."""
        return set(self.model.schema_.features) <= set(_names(fields))

    def _score(self, rows: list[Row]) -> None:
        """Score rows at once; if that fails, find those that cannot be scored by halves."""
        if not rows:
            return
        try:
            scores = self._scored(rows)
        except InvalidInputError as error:
            if len(rows) == 1:
                self._refuse(rows[0][0], error)
                return
            self._score(rows[: len(rows) // 2])
            self._score(rows[len(rows) // 2 :])
            return
        self.reporter.tell(scores)

    def _scored(self, rows: list[Row]) -> "pd.DataFrame":
        """Return scores, and beside them which columns a row is judged without."""
        import pandas as pd  # noqa: PLC0415

        from ocfuse.cli.streams import scored  # noqa: PLC0415
        from ocfuse.cli.watch_events import WITHOUT  # noqa: PLC0415
        from ocfuse.tables.dataframes import free_name  # noqa: PLC0415
        from ocfuse.tables.detector import ROWS  # noqa: PLC0415

        frame = self._frame(rows)
        scores = scored(self.model, frame)
        if self.model.kind == ROWS:  # gaps of sensors are usual
            without = [names or None for names in self.model.judged_without(frame)]
            scores[free_name(WITHOUT, scores)] = pd.Series(without, scores.index, dtype=object)
        return scores

    def _frame(self, rows: list[Row]) -> "pd.DataFrame":
        import pandas as pd  # noqa: PLC0415

        from ocfuse.tables.text import sniff_decimal, with_point  # noqa: PLC0415

        cells = [fields for _, fields in rows]
        if self.decimal is None and sniff_decimal(cells, str(self.delimiter), "The row") == ",":
            self.decimal = ","  # for good: not every row shows it
        if self.decimal == ",":
            cells = [with_point(fields) for fields in cells]
        numbers = [number for number, _ in rows]
        return pd.DataFrame(cells, columns=self.header, index=numbers, dtype="string")

    def _refuse(self, number: int, error: InvalidInputError) -> None:
        self.n_bad += 1
        self.reporter.complain(number, error)


def _split(text: str, delimiter: str) -> list[str]:
    from ocfuse.tables.text import records  # noqa: PLC0415

    try:
        (fields,) = records([text], delimiter)
    except csv.Error as error:
        raise TableError(f"It cannot be read: {error}.") from None
    return list(fields)


def _names(fields: list[str]) -> list[str]:
    """Return the names of columns, as `open_source` has them."""
    return [name.strip() or f"Unnamed: {j}" for j, name in enumerate(fields)]


def teller_of(model: "TableDetector", wishes: "Wishes", flags: "Flags", is_live: bool) -> Observer:
    """Return who tells of the rows: alarms one by one, or events of a stream."""
    from ocfuse.cli.watch_events import Reporter, StreamReporter, Wishes  # noqa: PLC0415
    from ocfuse.streaming import StreamTable  # noqa: PLC0415

    if isinstance(model, StreamTable):
        return StreamReporter(model, wishes, flags, is_live)
    if wishes != Wishes():
        raise typer.BadParameter(
            "--leave, --min-rows, --timeout and --events are for streams of sensors. The model "
            "knows rows that stand alone; learn one with ocfuse fit --stream."
        )
    return Reporter(model, flags)


def run(watch: Watch, data: str, *, follow: bool, only_new: bool, quiet: bool) -> None:
    """Score what comes until it ends, and say how much it was."""
    try:
        _take_all(watch, _source(data, follow, quiet), only_new)
    except Terminated:
        pass  # this is how a service is stopped
    finally:
        watch.reporter.end(watch.n_rows, watch.n_bad)


def _source(data: str, follow: bool, quiet: bool) -> Iterator[list[bytes]]:
    from ocfuse.cli.streams import (  # noqa: PLC0415
        lines_of_file,
        lines_of_growing_file,
        lines_of_stdin,
    )

    if data == "-":
        return lines_of_stdin()
    if follow:
        return lines_of_growing_file(Path(data), lambda text: None if quiet else warn(text))
    return lines_of_file(Path(data))


def _take_all(watch: Watch, source: Iterator[list[bytes]], only_new: bool) -> None:
    skip = only_new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)  # one of the things that are told
        for lines in source:
            # an empty list: what was there has been read
            skip = skip and bool(lines)
            watch.reporter.listen(bool(lines))
            watch.take(lines, skip=skip)
            if lines:
                watch.reporter.listen(True)  # to score them is not to wait
            if watch.n_rows:
                # what is odd about the table has been told; odd rows are alarms
                warnings.simplefilter("ignore", TableWarning)
    if not watch.header:
        raise TableError("There is no header line. Expected the names of the columns first.")
