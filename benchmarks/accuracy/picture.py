"""A critical-difference diagram, as SVG."""

from html import escape

import numpy as np

from benchmarks.estimator.tables import FloatArray
from ocfuse.stats import critical_difference, mean_ranks

WIDTH, MARGIN, LABELS = 900, 20, 220
SCALE, AXIS, ROW, BAR = 46, 88, 22, 10
#: Two colours that the colour-blind tell apart; the highlighted system is also bold.
INK, HIGHLIGHT = "#222222", "#0072B2"


def diagram(table: FloatArray, names: list[str], highlight: str, title: str) -> str:
    """Draw mean ranks on a line; a bar joins systems that do not differ (Nemenyi, .05)."""
    ranks = mean_ranks(table)
    order = np.argsort(ranks, kind="stable")
    ranks, names = ranks[order], [names[i] for i in order]
    gap = critical_difference(len(names), len(table))
    cliques = joined(ranks, gap)
    first_row = AXIS + 30 + BAR * len(cliques)
    half = (len(names) + 1) // 2
    height = first_row + ROW * half + MARGIN
    start = int(np.floor(ranks[0]))
    ends = start, int(np.ceil(max(ranks[-1], start + gap)))

    def place(rank: float) -> float:
        inner = WIDTH - 2 * (MARGIN + LABELS)
        return MARGIN + LABELS + inner * (rank - ends[0]) / max(ends[1] - ends[0], 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13" fill="{INK}">',
        f'<title>{escape(title)}</title><rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="15">{escape(title)}</text>',
        *_axis(ends, place),
        *_scale(place(ends[0]), place(ends[0] + gap), gap),
    ]
    for i, (low, high) in enumerate(cliques):
        y = AXIS + 18 + BAR * i
        parts.append(_line(place(ranks[low]) - 4, y, place(ranks[high]) + 4, y, 4))
    for i, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        is_left = i < half
        y = first_row + ROW * (i if is_left else len(names) - 1 - i)
        parts += _label(name, rank, place(rank), y, is_left, name == highlight)
    return "\n".join([*parts, "</svg>"]) + "\n"


def joined(ranks: FloatArray, gap: float) -> list[tuple[int, int]]:
    """Return first and last of every longest run of sorted ranks within the gap."""
    runs: list[tuple[int, int]] = []
    for low in range(len(ranks)):
        high = int(np.searchsorted(ranks, ranks[low] + gap, side="right")) - 1
        if high > low and (not runs or high > runs[-1][1]):
            runs.append((low, high))
    return runs


def _axis(ends: tuple[int, int], place) -> list[str]:
    parts = [_line(place(ends[0]), AXIS, place(ends[1]), AXIS, 1.5)]
    for rank in range(ends[0], ends[1] + 1):
        parts.append(_line(place(rank), AXIS - 6, place(rank), AXIS, 1.5))
        parts.append(
            f'<text x="{place(rank):.1f}" y="{AXIS - 10}" text-anchor="middle">{rank}</text>'
        )
    return parts


def _scale(left: float, right: float, gap: float) -> list[str]:
    """Show how long the critical difference is."""
    y = SCALE
    return [
        _line(left, y, right, y, 1.5),
        _line(left, y - 4, left, y + 4, 1.5),
        _line(right, y - 4, right, y + 4, 1.5),
        f'<text x="{right + 8:.1f}" y="{y + 4}">critical difference {gap:.2f}</text>',
    ]


def _label(name: str, rank: float, x: float, y: float, is_left: bool, is_ours: bool) -> list[str]:
    colour, weight = (HIGHLIGHT, "bold") if is_ours else (INK, "normal")
    edge = MARGIN + LABELS - 8 if is_left else WIDTH - MARGIN - LABELS + 8
    anchor, shift = ("end", -6) if is_left else ("start", 6)
    path = f"M {x:.1f} {AXIS} V {y} H {edge}"
    return [
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.2"/>',
        f'<text x="{edge + shift}" y="{y + 4}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{escape(name)} ({rank:.2f})</text>',
    ]


def _line(x1: float, y1: float, x2: float, y2: float, width: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{INK}" stroke-width="{width}"/>'
    )
