"""What a terminal shows while frames are watched."""

import math
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from time import monotonic
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ocfuse.cli.videomarks import score_range
from ocfuse.report.words import count
from ocfuse.vision.watching import Alarm, FrameWatch, Moment, Seen

#: Seconds between two pictures of the terminal: drawing takes time from scoring.
PERIOD = 0.1
#: Characters of the curve, its frame left out, and of the bars of members.
HEIGHT, BAR = 8, 24
#: Columns and rows that are not the curve's.
FRAME = 4
WIDEST = 120
#: Bits of the dots of a braille character, by column and by row from the top.
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
BLANK = 0x2800
NORMAL, STRANGE, LINE = "green", "bold red", "yellow"


@dataclass(frozen=True)
class Curve:
    """How scores are drawn in characters, two scores and four levels to each.

    Parameters
    ----------
    low, high : float
        Scores at the lower and the upper edge; those beyond are drawn at the edge.
    threshold : float
        Where the line is.
    width, height : int
        Characters.
    is_ascii : bool, default=False
        Use stars, where the terminal has no dots.
    """

    low: float
    high: float
    threshold: float
    width: int
    height: int
    is_ascii: bool = False

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
        for i, score in enumerate(shown, first):
            row, dot = divmod(self.level(score), 4)
            cells[row, i // 2] = cells.get((row, i // 2), 0) | DOTS[i % 2][dot]
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
            return ("-", LINE) if row == self.level(self.threshold) // 4 else (" ", "")
        return "*" if self.is_ascii else chr(BLANK + bits), STRANGE if is_strange else NORMAL


class LiveView:
    """Show the curve of scores, the threshold, the alarm and the parts of the members.

    Parameters
    ----------
    watch : FrameWatch
        Where scores come from.
    name : str
        What is watched.
    pace : callable
        Returns how fast it goes, in words.
    """

    def __init__(self, watch: FrameWatch, name: str, pace: Callable[[], str]) -> None:
        self.watch, self.name, self.pace = watch, name, pace
        self.console = Console(file=sys.stdout)
        width = max(min(self.console.width, WIDEST) - FRAME, 10)
        low, high = score_range(watch)
        is_ascii = self.console.options.ascii_only
        self.curve = Curve(low, high, watch.detector.offset_, width, HEIGHT, is_ascii)
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
            self._say("ended", moment.ended, NORMAL)
        if moment.seen is None:
            return
        self.scores.append(moment.seen.score)
        self.latest = moment
        if moment.is_new or moment.ended or monotonic() - self.drawn_at >= PERIOD:
            self._draw()

    def _draw(self) -> None:
        if self.latest is not None and self.latest.seen is not None:
            page = self._page(self.latest.seen, self.latest.alarm)
            self.live.update(page, refresh=True)
            self.drawn_at = monotonic()

    def _say(self, word: str, alarm: Alarm, style: str) -> None:
        line = Text(f"{word}  event {alarm.number}", style=style)
        line.append(f"  from {_where(alarm.start)} to {_where(alarm.last)}", style="default")
        line.append(f"  lowest score {alarm.worst.score:.2f}", style="default")
        self.live.console.print(line)

    def _page(self, seen: Seen, alarm: Alarm | None) -> Panel:
        state, curve = self._state(seen, alarm), self.curve.draw(self.scores)
        footer = f"{_where(seen)}   {count(self.watch.n_events, 'event')}   {self.pace()}"
        return Panel(
            Group(state, curve, self._members(seen), Text(footer, style="dim")),
            title=self.name,
            border_style=NORMAL if alarm is None else STRANGE,
            width=self.curve.width + FRAME,
        )

    def _state(self, seen: Seen, alarm: Alarm | None) -> Text:
        threshold = self.curve.threshold
        word = "normal" if alarm is None else f"ALARM  event {alarm.number}"
        text = Text(f"{word:<18}", style=NORMAL if alarm is None else STRANGE)
        style = STRANGE if seen.score < threshold else NORMAL
        text.append(f"score {seen.score:8.2f}", style=style)
        return text.append(f"   threshold {threshold:.2f}", style="yellow")

    def _members(self, seen: Seen) -> Table:
        """Show how far each family pulls the score down; full bars reach the lower edge."""
        table = Table(box=None, show_header=False, pad_edge=False)
        mark = "#" if self.curve.is_ascii else "█"
        for name, part in seen.members.items():
            share = min(max(part / min(self.curve.low, -1e-9), 0.0), 1.0)
            bar = Text(mark * round(BAR * share), style=STRANGE if share > 0.5 else "cyan")
            table.add_row(name, f"{part:8.2f}", bar)
        return table


def _where(seen: Seen) -> str:
    time = "" if math.isnan(seen.frame.time) else f" ({seen.frame.time:.2f} s)"
    return f"frame {seen.frame.index}{time}"
