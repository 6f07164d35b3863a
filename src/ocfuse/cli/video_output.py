"""Pictures of anomalies: thumbnails, an annotated video, a view in the terminal."""

import io
import itertools
import math
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ocfuse.cli.options import VIDEO_FORMATS
from ocfuse.report.words import count
from ocfuse.system.files import finish, naming, unfinished, write_atomically
from ocfuse.system.packages import needed
from ocfuse.vision.frames import Picture
from ocfuse.vision.watch import Alarm, FrameWatch, Moment, Seen

Colour: TypeAlias = tuple[int, int, int]

#: Colours of the annotated video.
RED: Colour = (230, 40, 40)
GREEN: Colour = (60, 190, 90)
#: Styles in the terminal.
NORMAL = "green"
STRANGE = "bold red"


class Thumbnails:
    """Keep a picture of each event, the unusual places in red.

    It is written when the event is raised, and once more with the frame of the
    lowest score when it has ended. The folder is made if need be.
    """

    def __init__(self, watch: FrameWatch, folder: Path) -> None:
        self.watch, self.folder = watch, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.prefix = _new_prefix(folder)

    def path(self, alarm: Alarm) -> Path:
        """Return where the picture of an event is."""
        return self.folder / f"{self.prefix}-event-{alarm.number:04d}.jpg"

    def see(self, moment: Moment) -> None:
        """Write the picture of an event that has begun or ended."""
        alarm = moment.alarm if moment.is_new else moment.ended
        if alarm is not None:
            content = io.BytesIO()
            marked = _pillow().fromarray(_marked(self.watch, alarm.worst))
            _enlarged(marked).save(content, "JPEG", quality=90)
            write_atomically(self.path(alarm), content.getvalue())


class AnnotatedVideo:
    """Write frames with scores and, while an event lasts, unusual places drawn in.

    The file appears under its name when it is complete, also after Ctrl-C.
    """

    #: Height of the strip with the curve below the picture.
    strip: ClassVar[int] = 64
    #: Ticks per second, and ticks of a frame whose time is not known.
    ticks: ClassVar[int] = 1000
    step: ClassVar[int] = 33

    def __init__(self, watch: FrameWatch, path: Path) -> None:
        self.watch, self.path = watch, path
        watch.explains_events = True
        self.av = needed("av", "to write videos", "video")
        self.stream: Any = None
        self.first, self.tick = math.nan, -1
        self.curve: deque[tuple[float, Colour]] = deque()
        self.low, self.high = score_range(watch)

    def __enter__(self) -> "AnnotatedVideo":
        kind = VIDEO_FORMATS[self.path.suffix.lower()]
        with ExitStack() as stack:
            self.file = stack.enter_context(unfinished(self.path.parent, self.path))
            self.container = self.av.open(str(self.file.name), "w", format=kind)
            self.opened = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        # what was seen until something failed is wanted too; who presses Ctrl-C twice wants none
        is_wanted = self.stream is not None and (kind is None or issubclass(kind, Exception))
        with self.opened, naming(self.path):
            if is_wanted:
                self.container.mux(self.stream.encode())
            self.container.close()
            if is_wanted:
                finish(self.file, self.path)

    def see(self, moment: Moment) -> None:
        """Write the next frame."""
        if moment.seen is None:
            return
        picture = self._drawn(moment.seen, moment.alarm)
        if self.stream is None:
            self._start(picture.size)
        if picture.size != (self.stream.width, self.stream.height):
            picture = picture.resize((self.stream.width, self.stream.height))
        frame = self.av.VideoFrame.from_image(picture)
        frame.pts, frame.time_base = self._next_tick(moment.seen), Fraction(1, self.ticks)
        self.container.mux(self.stream.encode(frame))

    def _start(self, size: tuple[int, int]) -> None:
        # the best first; not every FFmpeg has all
        codec = next(name for name in ("libx264", "mpeg4") if name in self.av.codecs_available)
        self.stream = self.container.add_stream(codec, rate=Fraction(self.ticks, self.step))
        self.stream.width, self.stream.height = size
        self.stream.pix_fmt = "yuv420p"
        self.stream.codec_context.time_base = Fraction(1, self.ticks)
        if codec == "libx264":
            self.stream.options = {"preset": "superfast", "crf": "20"}

    def _next_tick(self, seen: Seen) -> int:
        """Return the time of a frame in ticks; times that do not grow are made to."""
        if math.isnan(self.first):
            self.first = seen.frame.time
        elapsed = seen.frame.time - self.first
        ticks = round(self.ticks * elapsed) if math.isfinite(elapsed) else self.tick + self.step
        self.tick = max(ticks, self.tick + 1)
        return self.tick

    def _drawn(self, seen: Seen, alarm: Alarm | None) -> Any:
        pixels = seen.frame.image if alarm is None else _marked(self.watch, seen)
        picture = _enlarged(_pillow().fromarray(pixels))
        width, height = picture.width // 2 * 2, (picture.height + self.strip) // 2 * 2
        page = _pillow().new("RGB", (width, height))
        page.paste(picture, (0, 0))
        draw = needed("PIL.ImageDraw", "to draw", "video").Draw(page)
        if alarm is not None:
            draw.rectangle((0, 0, width - 1, picture.height - 1), outline=RED, width=4)
        self._draw_strip(draw, picture.height, width, seen)
        time = "" if math.isnan(seen.frame.time) else f"  {seen.frame.time:.2f} s"
        event = "" if alarm is None else f"  EVENT {alarm.number}"
        text = f"frame {seen.frame.index}{time}  score {seen.score:.2f}{event}"
        colour = (255, 255, 255) if alarm is None else RED
        draw.text((8, picture.height + self.strip - 16), text, fill=colour)
        return page

    def _draw_strip(self, draw: Any, top: int, width: int, seen: Seen) -> None:
        offset = self.watch.threshold
        self.curve.append((self._height(seen.score), RED if seen.score < offset else GREEN))
        while len(self.curve) > width // 2:
            self.curve.popleft()
        line = top + self._height(offset)
        draw.line((0, line, width, line), fill=(235, 190, 40))
        points = [(2 * i, top + height) for i, (height, _) in enumerate(self.curve)]
        for i in range(1, len(points)):
            draw.line((points[i - 1], points[i]), fill=self.curve[i][1], width=2)

    def _height(self, score: float) -> float:
        share = (score - self.low) / (self.high - self.low)
        return (self.strip - 4) * (1.0 - min(max(share, 0.0), 1.0)) + 2


def _new_prefix(folder: Path) -> str:
    """Return the time of day, so that a service that starts again replaces nothing it has kept.

    A clock that was set back may tell a time for the second time.
    """
    now = f"{datetime.now():%Y%m%d-%H%M%S}"
    names = (now if n == 1 else f"{now}-{n}" for n in itertools.count(1))
    return next(name for name in names if not any(folder.glob(f"{name}-event-*")))


def score_range(watch: FrameWatch) -> tuple[float, float]:
    """Return the scores between which curves are drawn: the threshold is above the middle."""
    step = max(watch.usual - watch.threshold, 1e-6)
    return watch.threshold - 3 * step, watch.usual + step


def _pillow() -> Any:
    return needed("PIL.Image", "to draw pictures", "video")


def _marked(watch: FrameWatch, seen: Seen) -> Picture:
    """Return a picture with its unusual places in red, in its own shape."""
    explanation = watch.explain(seen)
    if not explanation.maps.size:
        return seen.frame.image
    return explanation.overlay(0, seen.frame.image)


def _enlarged(picture: Any) -> Any:
    """Return a picture with at least 384 pixels on its longer side: text has to be read."""
    factor = -(-384 // max(picture.size))
    if factor <= 1:
        return picture
    width, height = picture.size
    return picture.resize((factor * width, factor * height), _pillow().Resampling.NEAREST)


@dataclass(frozen=True)
class Curve:
    """How scores are drawn in characters, two scores and four levels to each.

    Scores beyond `low` and `high` are drawn at the edge.
    """

    low: float
    high: float
    threshold: float
    width: int
    height: int
    is_ascii: bool = False  # stars, where the terminal has no dots

    def level(self, score: float) -> int:
        """Return the row of dots of a score, from 0 at the top."""
        share = (score - self.low) / (self.high - self.low)
        last = 4 * self.height - 1
        return round(last * (1.0 - min(max(share, 0.0), 1.0)))

    def draw(self, scores: Sequence[float]) -> Text:
        """Draw the last scores, the newest on the right."""
        shown = list(scores)[-2 * self.width :]
        first = 2 * self.width - len(shown)
        cells: dict[tuple[int, int], int] = {}
        strange = set()
        # bits of the dots of a braille character, by column and by row from the top
        dots = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
        for i, score in enumerate(shown, first):
            row, dot = divmod(self.level(score), 4)
            cells[row, i // 2] = cells.get((row, i // 2), 0) | dots[i % 2][dot]
            if score < self.threshold:
                strange.add((row, i // 2))
        text = Text(no_wrap=True)
        for row in range(self.height):
            places = [(row, column) for column in range(self.width)]
            drawn = [self._cell(row, cells.get(place, 0), place in strange) for place in places]
            for style, group in groupby(drawn, key=itemgetter(1)):
                text.append("".join(mark for mark, _ in group), style)
            text.append("\n")
        return text

    def _cell(self, row: int, bits: int, is_strange: bool) -> tuple[str, str]:
        if not bits:
            return ("-", "yellow") if row == self.level(self.threshold) // 4 else (" ", "")
        blank = 0x2800  # of the braille characters
        return "*" if self.is_ascii else chr(blank + bits), STRANGE if is_strange else NORMAL


class LiveView:
    """Show the curve of scores, the threshold, the alarm and the parts of the members."""

    #: Columns of the frame around the curve.
    frame: ClassVar[int] = 4

    def __init__(self, watch: FrameWatch, name: str, pace: Callable[[], str]) -> None:
        self.watch, self.name, self.pace = watch, name, pace
        self.console = Console(file=sys.stdout)
        width = max(min(self.console.width, 120) - self.frame, 10)
        low, high = score_range(watch)
        is_ascii = self.console.options.ascii_only
        self.curve = Curve(low, high, watch.threshold, width, 8, is_ascii)
        self.scores: deque[float] = deque(maxlen=2 * width)
        self.live = Live(console=self.console, auto_refresh=False)
        self.latest: Moment | None = None
        self.drawn_at = -math.inf

    def __enter__(self) -> "LiveView":
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._draw()
        self.live.stop()

    def see(self, moment: Moment) -> None:
        """Draw anew, but not too often; events have a line each."""
        if moment.is_new and moment.alarm is not None:
            self._say("alarm", moment.alarm, STRANGE)
        if moment.ended is not None:
            is_cut = moment.ended.is_interrupted
            word, style = ("interrupted", STRANGE) if is_cut else ("ended", NORMAL)
            self._say(word, moment.ended, style)
        for failure in moment.failures if moment.seen is not None else ():
            self.live.console.print(Text(failure.text, style=STRANGE))
        if moment.seen is None:
            return
        self.scores.append(moment.seen.score)
        self.latest = moment
        # ten times a second at most: drawing takes time from scoring
        if moment.is_new or moment.ended or monotonic() - self.drawn_at >= 0.1:
            self._draw()

    def _draw(self) -> None:
        if self.latest is not None and self.latest.seen is not None:
            self.live.update(self._page(self.latest.seen, self.latest.alarm), refresh=True)
            self.drawn_at = monotonic()

    def _say(self, word: str, alarm: Alarm, style: str) -> None:
        line = Text(f"{word}  event {alarm.number}", style=style)
        line.append(f"  from {_where(alarm.start)} to {_where(alarm.last)}", style="default")
        line.append(f"  lowest score {alarm.worst.score:.2f}", style="default")
        if self.watch.sensors is not None:
            words = [*self.watch.speaking(alarm.worst), *map(str, self.watch.readings(alarm.worst))]
            line.append(f"  by {', '.join(words)}", style="default")
        self.live.console.print(line)

    def _page(self, seen: Seen, alarm: Alarm | None) -> Panel:
        threshold, curve = self.curve.threshold, self.curve.draw(self.scores)
        style = NORMAL if alarm is None else STRANGE
        word = "normal" if alarm is None else f"ALARM  event {alarm.number}"
        state = Text(f"{word:<18}", style=style)
        state.append(f"score {seen.score:8.2f}", STRANGE if seen.score < threshold else NORMAL)
        state.append(f"   threshold {threshold:.2f}", "yellow")
        footer = f"{_where(seen)}   {count(self.watch.n_events, 'event')}   {self.pace()}"
        footer += "   camera repeats its picture" * self.watch.repeats.is_on
        footer += "   scene hardly moves" * self.watch.repeats.is_still
        return Panel(
            Group(state, curve, self._members(seen), Text(footer, style="dim")),
            title=self.name,
            border_style=style,
            width=self.curve.width + self.frame,
        )

    def _members(self, seen: Seen) -> Table:
        """Show how far each family pulls the score down; full bars reach the lower edge."""
        table = Table(box=None, show_header=False, pad_edge=False)
        mark = "#" if self.curve.is_ascii else "█"
        for name, part in seen.members.items():
            share = min(max(part / min(self.curve.low, -1e-9), 0.0), 1.0)
            bar = Text(mark * round(24 * share), style=STRANGE if share > 0.5 else "cyan")
            table.add_row(name, f"{part:8.2f}", bar)
        return table


def _where(seen: Seen) -> str:
    time = "" if math.isnan(seen.frame.time) else f" ({seen.frame.time:.2f} s)"
    return f"frame {seen.frame.index}{time}"
