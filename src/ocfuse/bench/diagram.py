"""Critical-difference diagrams (Demsar 2006), as SVG."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import critical_difference, mean_ranks

FloatArray = NDArray[np.float64]

MARGIN, SCALE, AXIS, ROW, BAR = 20, 46, 88, 22, 10
#: Wide enough for the text beside the scale, and for labels of so many pixels a letter.
LABELS, LETTER = 190, 8.5
#: Pixels of the axis, at least and per system; of one figure on it.
INNER, PER_SYSTEM, TICK = 420, 20, 24
#: Two colours that the colour-blind tell apart; highlighted systems are also bold.
INK, HIGHLIGHT = "#222222", "#0072B2"


def critical_difference_diagram(
    table: ArrayLike,
    names: Sequence[str],
    *,
    highlight: Collection[str] = (),
    title: str = "Mean ranks",
    alpha: float = 0.05,
) -> str:
    """Draw mean ranks on a line, the best on the left, and return the SVG.

    A bar joins systems whose mean ranks differ by less than the critical
    difference of Nemenyi's test, so that they cannot be told apart. With gaps
    in the table, which count as mid-ranks, it is an approximation.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a gap.
    names : sequence of str
        What to call the systems.
    highlight : collection of str, default=()
        Names to show in bold and colour.
    title : str, default="Mean ranks"
        Shown above, and read by programs that read pictures aloud.
    alpha : float, default=0.05
        Level of Nemenyi's test.

    Returns
    -------
    str
        A document in SVG.

    Examples
    --------
    >>> from ocfuse.bench.diagram import critical_difference_diagram
    >>> svg = critical_difference_diagram([[0.9, 0.8], [0.7, 0.6]], ["ours", "theirs"])
    >>> svg.startswith("<svg")
    True
    """
    ranks = mean_ranks(table)
    _check_names(names, highlight, len(ranks))
    order = np.argsort(ranks, kind="stable")
    gap = critical_difference(len(ranks), len(np.asarray(table)), alpha)
    sheet = _Sheet.of(ranks[order], [names[i] for i in order], gap)
    body = [
        *_head(title, sheet),
        *_axis(sheet),
        *_scale(sheet, gap),
        *_labels(sheet, set(highlight)),
        *_bars(sheet),
    ]
    return "\n".join([*body, "</svg>"]) + "\n"


def joined(ranks: FloatArray, gap: float) -> list[tuple[int, int]]:
    """Return first and last of every longest run of sorted ranks within the gap."""
    runs: list[tuple[int, int]] = []
    for low in range(len(ranks)):
        high = int(np.searchsorted(ranks, ranks[low] + gap, side="right")) - 1
        if high > low and (not runs or high > runs[-1][1]):
            runs.append((low, high))
    return runs


@dataclass(frozen=True)
class _Sheet:
    """Where things are drawn: sorted ranks and names, the bars, and the two ends."""

    ranks: FloatArray
    names: list[str]
    bars: list[tuple[int, int]]
    ends: tuple[int, int]
    labels: float
    inner: float

    @classmethod
    def of(cls, ranks: FloatArray, names: list[str], gap: float) -> "_Sheet":
        start = math.floor(ranks[0])
        ends = start, math.ceil(max(ranks[-1], start + gap))
        letters = max(len(name) for name in names) + len(" (00.00)")
        labels = max(LABELS, LETTER * letters)
        inner = max(INNER, PER_SYSTEM * len(names))
        return cls(ranks, names, joined(ranks, gap), ends, labels, inner)

    @property
    def width(self) -> float:
        return 2 * (MARGIN + self.labels) + self.inner

    @property
    def first_row(self) -> float:
        return AXIS + 30 + BAR * len(self.bars)

    @property
    def n_left(self) -> int:
        return (len(self.names) + 1) // 2

    @property
    def height(self) -> float:
        return self.first_row + ROW * self.n_left + MARGIN

    def place(self, rank: float) -> float:
        share = (rank - self.ends[0]) / (self.ends[1] - self.ends[0])
        return MARGIN + self.labels + self.inner * share


def _head(title: str, sheet: _Sheet) -> list[str]:
    size = f"{sheet.width:.0f} {sheet.height:.0f}"
    ranked = zip(sheet.names, sheet.ranks, strict=True)
    in_words = ", ".join(f"{name} {rank:.2f}" for name, rank in ranked)
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        f'font-family="sans-serif" font-size="13" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape('Mean ranks: ' + in_words)}</desc>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="15">{escape(title)}</text>',
    ]


def _axis(sheet: _Sheet) -> list[str]:
    low, high = sheet.ends
    # so far apart that the figures do not touch
    step = math.ceil(TICK * (high - low) / sheet.inner)
    parts = [_line(sheet.place(low), AXIS, sheet.place(high), AXIS)]
    for rank in range(low, high + 1, step):
        x = sheet.place(rank)
        parts.append(_line(x, AXIS - 6, x, AXIS))
        parts.append(f'<text x="{x:.1f}" y="{AXIS - 10}" text-anchor="middle">{rank}</text>')
    return parts


def _scale(sheet: _Sheet, gap: float) -> list[str]:
    """Show how long the critical difference is."""
    left, right = sheet.place(sheet.ends[0]), sheet.place(sheet.ends[0] + gap)
    return [
        _line(left, SCALE, right, SCALE),
        _line(left, SCALE - 4, left, SCALE + 4),
        _line(right, SCALE - 4, right, SCALE + 4),
        f'<text x="{right + 8:.1f}" y="{SCALE + 4}">critical difference {gap:.2f}</text>',
    ]


def _bars(sheet: _Sheet) -> list[str]:
    parts = []
    for i, (low, high) in enumerate(sheet.bars):
        y = AXIS + 18 + BAR * i
        left, right = sheet.place(sheet.ranks[low]), sheet.place(sheet.ranks[high])
        parts.append(_line(left - 4, y, right + 4, y, 4))
    return parts


def _labels(sheet: _Sheet, highlight: set[str]) -> list[str]:
    """Write the better half on the left and the others on the right, the outermost on top."""
    parts = []
    left, right = MARGIN + sheet.labels - 8, sheet.width - MARGIN - sheet.labels + 8
    for i, (name, rank) in enumerate(zip(sheet.names, sheet.ranks, strict=True)):
        is_left = i < sheet.n_left
        y = sheet.first_row + ROW * (i if is_left else len(sheet.names) - 1 - i)
        edge, anchor, shift = (left, "end", -6) if is_left else (right, "start", 6)
        colour, weight = (HIGHLIGHT, "bold") if name in highlight else (INK, "normal")
        parts += [
            f'<path d="M {sheet.place(rank):.1f} {AXIS} V {y} H {edge:.1f}" fill="none" '
            f'stroke="{colour}" stroke-width="1.2"/>',
            f'<text x="{edge + shift:.1f}" y="{y + 4}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(name)} ({rank:.2f})</text>',
        ]
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, width: float = 1.5) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{INK}" stroke-width="{width}"/>'
    )


def _check_names(names: Sequence[str], highlight: Collection[str], n_systems: int) -> None:
    if isinstance(names, str) or isinstance(highlight, str):
        raise InvalidTypeError("names and highlight must be lists of names. Got a string.")
    strange = [name for name in (*names, *highlight) if not isinstance(name, str)]
    if strange:
        raise InvalidTypeError(f"names and highlight must hold strings. Got {strange[0]!r}.")
    if len(names) != n_systems:
        raise InvalidInputError(
            f"names must name all {n_systems} systems of the table. Got {len(names)} names."
        )
    unknown = set(highlight) - set(names)
    if unknown:
        raise InvalidInputError(
            f"highlight must hold names of systems. Got {', '.join(sorted(unknown))}."
        )
