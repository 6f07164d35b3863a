"""`ocfuse score`, `explain` and `watch` of pictures that stand alone: scores and places."""

import heapq
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from ocfuse.cli.output import (
    collected,
    json_line,
    print_at_once,
    print_json,
    print_line,
    warn,
    warn_of,
)
from ocfuse.cli.runtime import ExitCode
from ocfuse.cli.score import print_summary
from ocfuse.cli.score_files import to_file, to_stdout
from ocfuse.cli.video_runs import open_run
from ocfuse.exceptions import InvalidInputError
from ocfuse.report.pictures import MOST_SHOWN, PictureEntry, PictureReportData, make_picture_report
from ocfuse.report.words import count
from ocfuse.system.files import LineFile, write_atomically
from ocfuse.system.packages import needed
from ocfuse.tables.detector import Tally
from ocfuse.vision import FrameSource, PictureDetector
from ocfuse.vision.explanation import PictureExplanation, Spot
from ocfuse.vision.extract import CHUNK
from ocfuse.vision.frames import Frame, Picture, PictureFiles

#: Columns of a score file of pictures.
COLUMNS = (
    *("picture", "score", "threshold", "p_value", "is_anomaly"),
    *("x", "y", "left", "top", "width", "height", "problem"),
)
#: Pixels that are held at a time.
MOST_PIXELS = 50_000_000


@dataclass(frozen=True)
class Judged:
    """A picture, and row `row` of what lies behind the scores; only a problem if it has none."""

    name: str
    image: Picture | None = None
    explanation: PictureExplanation | None = None
    row: int = 0
    problem: str = ""

    @property
    def score(self) -> float:
        """Its score; NaN if there is none."""
        return float("nan") if self.explanation is None else float(self.explanation.score[self.row])

    @property
    def is_anomaly(self) -> bool | None:
        """Whether it raises an alarm; None if that is not known."""
        found = self.explanation
        return None if found is None else bool(found.is_anomaly[self.row])

    @property
    def spot(self) -> Spot | None:
        """Its most unusual place."""
        if self.explanation is None or self.image is None:
            return None
        return self.explanation.spot(self.row, self.image.shape)

    def as_dict(self) -> dict[str, Any]:
        """Return what is known of it, for JSON."""
        if self.explanation is None:
            return {"picture": self.name, "score": None, "problem": self.problem}
        found, i, spot = self.explanation, self.row, self.spot
        columns = (found.weights, found.normalised_scores[i], found.contributions[i])
        return {
            "picture": self.name,
            "score": self.score,
            "threshold": float(found.offset),
            "p_value": float(found.p_value[i]),
            "is_anomaly": self.is_anomaly,
            "place": None if spot is None else spot.as_dict(),
            "members": [
                {"name": name, "weight": weight, "score": score, "share": share}
                for name, weight, score, share in zip(found.member_names, *columns, strict=True)
            ],
        }

    def cells(self) -> tuple[Any, ...]:
        """Return the cells of `COLUMNS`."""
        found, spot = self.explanation, self.spot
        if found is None:
            return (self.name, *[None] * 10, self.problem)
        place = (None, None) if spot is None else spot[:2]
        box = [None] * 4 if spot is None or spot.box is None else spot.box
        p_value = float(found.p_value[self.row])
        return (
            *(self.name, self.score, float(found.offset), p_value, self.is_anomaly),
            *(*place, *box, ""),
        )


def stand_alone(detector: PictureDetector, source: FrameSource, single: bool | None) -> bool:
    """Return whether pictures are judged each for itself: as the model learned them, or as told."""
    if single is not None:
        return single
    is_of_frames = detector.context_range_ is not None or detector.normal_groups_ is not None
    return isinstance(source, PictureFiles) and not source.is_sequence and not is_of_frames


def warm_up(detector: PictureDetector, threads: int | None) -> None:
    """Open the networks, which else is done late, with as many threads as the flags say."""
    for backbone in detector.backbones_.values():
        if threads is not None and "threads" in backbone.get_params():
            backbone.set_params(threads=threads)  # not those of the machine that it was learned on
        backbone.extract([np.zeros((8, 8, 3), dtype=np.uint8)])


def judge(detector: PictureDetector, source: FrameSource, where: str) -> Iterator[Judged]:
    """Yield what becomes of every picture, in order; those that cannot be read among them."""
    waiting: list[Frame] = []
    n_pixels = n_done = 0
    for frame in source:
        waiting.append(frame)
        n_pixels += frame.image.shape[0] * frame.image.shape[1]
        if len(waiting) == CHUNK or n_pixels > MOST_PIXELS:
            yield from _judged(detector, source, where, waiting, n_done)
            n_done, n_pixels, waiting = frame.index + 1, 0, []
    if waiting:
        yield from _judged(detector, source, where, waiting, n_done)
        n_done = waiting[-1].index + 1
    for index in range(n_done, source.n_frames_):
        yield Judged(_name(source, where, index), problem=source.reasons_[index])


def _judged(
    detector: PictureDetector, source: FrameSource, where: str, frames: list[Frame], begin: int
) -> Iterator[Judged]:
    """Yield the pictures from a number on to the last of some frames."""
    has_context = detector.context_range_ is not None
    context = [frame.progress for frame in frames] if has_context else None
    found = detector.explain([frame.image for frame in frames], context)
    rows = {frame.index: row for row, frame in enumerate(frames)}
    for index in range(begin, frames[-1].index + 1):
        name = _name(source, where, index)
        if index in rows:
            yield Judged(name, frames[rows[index]].image, found, rows[index])
        else:
            yield Judged(name, problem=source.reasons_[index])


def _name(source: FrameSource, where: str, index: int) -> str:
    """Return the name of a picture in its folder, or the number of a frame."""
    if not isinstance(source, PictureFiles):
        return f"{source}#{index}"
    path, folder = source.paths[index], Path(where)
    return path.relative_to(folder).as_posix() if folder.is_dir() else path.name


def open_pictures(detector: PictureDetector, where: str) -> FrameSource:
    """Return the pictures of a folder, or the frames of a recording."""
    source = open_run(where)
    if source.is_live:
        raise InvalidInputError(f"{source} has no end. Watch it: ocfuse watch ... --video {where}")
    if detector.context_range_ is None:
        return source.with_progress(None)
    if source.progress is None:
        raise InvalidInputError(
            f"The model compares frames of the same progress of the task, which {source} does not "
            "tell. Expected a number for every frame in a file beside it, such as run.progress."
        )
    return source


# -- score --------------------------------------------------------------


def score_pictures(
    detector: PictureDetector,
    where: str,
    out: Path | None,
    overlays: Path | None,
    report: Path | None,
    *,
    threads: int | None = None,
    json: bool = False,
    quiet: bool = False,
) -> Tally:
    """Write a row for every picture, and perhaps overlays of alarms and a report."""
    warm_up(detector, threads)
    source, tally = open_pictures(detector, where), Tally()
    folder = MarkedPictures(overlays, where)
    pages = None if report is None else Worst(detector)
    place = to_stdout(json) if out is None else to_file(out)
    with collected() as notes, place as write:
        for part in _in_parts(judge(detector, source, where)):
            table = as_table(part)
            table.index += tally.rows
            tally.add(table)
            write(table)
            for one in part:
                if one.is_anomaly:
                    folder.write(one)
                if pages is not None:
                    pages.add(one)
        if tally.rows == tally.without_score:
            raise InvalidInputError(f"No picture of {where} could be read.")
    tally.unknown = tally.without_score
    notes += tally.notes()
    if report is not None and pages is not None:
        make_picture_report(pages.data(where)).save(report)
    if not quiet:
        warn_of(notes)
    summary = tally.summary(has_limits=False) | {
        "threshold": float(detector.offset_),
        "file": out and str(out),
        "warnings": notes,
    }
    print_summary(summary, json, quiet, noun="picture")
    return tally


def as_table(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return pictures as rows of a score file."""
    table = pd.DataFrame([one.cells() for one in judged], columns=list(COLUMNS))
    numbers = dict.fromkeys(("score", "threshold", "p_value"), "float64")
    places = dict.fromkeys(COLUMNS[5:11], "Int64")
    return table.astype({**numbers, "is_anomaly": "boolean", **places})


def _in_parts(judged: Iterator[Judged]) -> Iterator[list[Judged]]:
    """Yield pictures that were scored together, so that their pixels are soon forgotten."""
    part: list[Judged] = []
    for one in judged:
        is_of_next = one.explanation is not None and one.row == 0 and part
        if is_of_next:
            yield part
            part = []
        part.append(one)
    if part:
        yield part


class MarkedPictures:
    """Write pictures whose unusual places are marked, below their names in a folder."""

    def __init__(self, folder: Path | None, *sources: str) -> None:
        self.folder = folder
        for source in map(Path, sources) if folder is not None else ():
            own, read = Path(folder or ".").resolve(), source.resolve()
            if own.is_relative_to(read) or own == read.parent:
                raise typer.BadParameter(
                    f"{folder} is among the pictures that are read: these would be replaced, or "
                    "what is marked would be scored next time. Give a folder elsewhere."
                )

    def write(self, one: Judged) -> Path | None:
        """Write the overlay of a picture; return where, None if there is none."""
        if self.folder is None or one.explanation is None or one.image is None:
            return None
        is_kept = Path(one.name).suffix.lower() in (".jpg", ".jpeg", ".png")
        path = self.folder / (one.name if is_kept else f"{one.name}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = "PNG" if path.suffix.lower() == ".png" else "JPEG"
        write_atomically(path, encoded(one.explanation.overlay(one.row, one.image), kind))
        return path


def encoded(picture: Picture, kind: str, size: int | None = None) -> bytes:
    """Return a picture as the content of a file, at most so many pixels high and wide."""
    image = needed("PIL.Image", "to write pictures", "video").fromarray(picture)
    if size is not None:
        image.thumbnail((size, size))
    content = io.BytesIO()
    image.save(content, kind, quality=88)
    return content.getvalue()


class Worst:
    """The pictures with the lowest scores, for a report."""

    def __init__(self, detector: PictureDetector) -> None:
        self.detector = detector
        self.kept: list[tuple[float, int, PictureEntry]] = []  # the highest score is the first
        self.unread: list[tuple[str, str]] = []
        self.n_seen = self.n_anomalies = 0

    def add(self, one: Judged) -> None:
        """Count a picture, and keep it if it is one of the worst so far."""
        self.n_seen += 1
        found = one.explanation
        if found is None or one.image is None:
            self.unread.append((one.name, one.problem))
            return
        self.n_anomalies += bool(one.is_anomaly)
        if len(self.kept) == MOST_SHOWN and -one.score < self.kept[0][0]:
            return
        entry = PictureEntry(
            name=one.name,
            score=one.score,
            p_value=float(found.p_value[one.row]),
            is_alarm=bool(one.is_anomaly),
            place=place_words(one),
            jpeg=encoded(found.overlay(one.row, one.image), "JPEG", 320),
        )
        keep = heapq.heappush if len(self.kept) < MOST_SHOWN else heapq.heappushpop
        keep(self.kept, (-one.score, -self.n_seen, entry))

    def data(self, where: str) -> PictureReportData:
        """Return what the report shows."""
        return PictureReportData(
            title=f"Pictures of {where}",
            entries=[entry for _, _, entry in sorted(self.kept, reverse=True)],
            unread=self.unread,
            n_pictures=self.n_seen,
            n_alarms=self.n_anomalies,
            threshold=float(self.detector.offset_),
            rate=float(self.detector.threshold_rate_),
        )


def place_words(one: Judged) -> str:
    """Return where a picture is most unusual, in words."""
    spot = one.spot
    if spot is None:
        return "no place: the model looks at pictures as a whole"
    if spot.box is None:
        return f"({spot.x}, {spot.y}), which is not unusual by itself"
    left, top, width, height = spot.box
    return f"({spot.x}, {spot.y}), in a box of {width} x {height} pixels at ({left}, {top})"


# -- explain ------------------------------------------------------------


def explain_pictures(
    detector: PictureDetector,
    places: Sequence[str],
    worst: int | None,
    overlays: Path | None,
    *,
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Print what lies behind the scores of pictures, in words or as JSON."""
    if worst is None and any(Path(place).is_dir() for place in places):
        raise typer.BadParameter("name single pictures, or say how many of a folder: --worst 5")
    warm_up(detector, threads)
    folder, chosen = MarkedPictures(overlays, *places), []
    with collected() as notes:
        for place in places:
            chosen += _worst_of(judge(detector, open_pictures(detector, place), place), worst)
        chosen = _worst_of(iter(chosen), worst)
    unread = [one for one in chosen if one.explanation is None]
    marked = [folder.write(one) for one in chosen]
    if json:
        pairs = zip(chosen, marked, strict=True)
        print_json([one.as_dict() | {"overlay": path and str(path)} for one, path in pairs])
    else:
        for one, path in zip(chosen, marked, strict=True):
            print_line("\n".join(_described(one, path)) + "\n")
    warn_of(notes)
    if unread and len(unread) == len(chosen):
        raise typer.Exit(ExitCode.BAD_DATA)


def _worst_of(judged: Iterator[Judged], most: int | None) -> list[Judged]:
    """Return the pictures with the lowest scores, or all in their order."""
    if most is None:
        return list(judged)
    return heapq.nsmallest(most, (one for one in judged if one.explanation is not None), _score)


def _score(one: Judged) -> float:
    return one.score


def _described(one: Judged, overlay: Path | None) -> list[str]:
    if one.explanation is None:
        return [one.name, f"no score: {one.problem}"]
    said = one.explanation.describe(one.row).split("\nmost unusual place")[0]
    lines = [one.name, said, f"most unusual place: {place_words(one)}"]
    return lines if overlay is None else [*lines, f"marked in {overlay}"]


# -- watch --------------------------------------------------------------


def watch_pictures(
    detector: PictureDetector,
    source: FrameSource,
    where: str,
    events: Path | None,
    thumbnails: Path | None,
    *,
    threads: int | None,
    show_all: bool,
    quiet: bool,
) -> Tally:
    """Print a line of JSON for each alarm, or for every picture, and one for all of them."""
    warm_up(detector, threads)
    folder, tally = MarkedPictures(thumbnails, where), Tally()
    with collected() as notes, ExitStack() as stack:
        file = None if events is None else stack.enter_context(closing(LineFile(events)))
        for one in judge(detector, source, where):
            tally.rows += 1
            tally.anomalies += bool(one.is_anomaly)
            tally.unknown += one.explanation is None
            path = folder.write(one) if one.is_anomaly else None
            line = json_line({"kind": "picture", **one.as_dict(), "overlay": path and str(path)})
            if show_all or one.is_anomaly is not False:
                print_at_once(line)
            if file is not None and one.is_anomaly is not False:
                file.write(line.encode())
    known = {"pictures": tally.rows, "anomalies": tally.anomalies, "without_score": tally.unknown}
    print_at_once(json_line({"kind": "summary", **known}))
    if not quiet:
        warn_of(notes)
        warn(f"{count(tally.rows, 'picture')}, {count(tally.anomalies, 'anomaly', 'anomalies')}")
    return tally
