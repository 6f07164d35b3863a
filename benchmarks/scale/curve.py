"""Curves on axes in powers of ten, as SVG."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP = 420, 300, 60, 30
GAP, LEGEND = 40, 18
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#555555", "#999999")


@dataclass(frozen=True)
class Line:
    """Points of one system; those of ours are drawn thicker."""

    name: str
    points: list[tuple[float, float]]
    is_ours: bool


@dataclass(frozen=True)
class Axes:
    """Where values are drawn."""

    x: tuple[int, int]
    y: tuple[int, int]
    left: int

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + WIDTH * across, TOP + HEIGHT * (1 - up)


def curves(panels: dict[str, list[Line]], below: str) -> str:
    """Draw panels side by side, with one legend under them."""
    parts = []
    for i, (title, lines) in enumerate(panels.items()):
        parts += panel(title, lines, below, LEFT + i * (WIDTH + LEFT + GAP))
    width = len(panels) * (WIDTH + LEFT + GAP)
    lines = next(iter(panels.values()))
    bottom = TOP + HEIGHT + 60
    for i, line in enumerate(lines):
        x, y = LEFT + (i % 4) * (width - LEFT) / 4, bottom + LEGEND * (i // 4)
        parts.append(stroke([(x, y), (x + 20, y)], i, line.is_ours))
        parts.append(text(x + 26, y + 4, line.name))
    height = bottom + LEGEND * (len(lines) // 4 + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def panel(title: str, lines: list[Line], below: str, left: int) -> list[str]:
    axes = Axes(
        span([x for line in lines for x, _ in line.points]),
        span([y for line in lines for _, y in line.points]),
        left,
    )
    parts = [text(left, TOP - 10, title), text(left + WIDTH / 2, TOP + HEIGHT + 36, below)]
    for power in range(axes.x[0], axes.x[1] + 1):
        x, y = axes.at(10.0**power, 10.0 ** axes.y[0])
        parts += [rule(x, TOP, x, y), text(x, y + 16, f"{10**power:,}", "middle")]
    for power in range(axes.y[0], axes.y[1] + 1):
        x, y = axes.at(10.0 ** axes.x[0], 10.0**power)
        parts += [rule(x, y, x + WIDTH, y), text(x - 6, y + 4, f"{10.0**power:,g}", "end")]
    for i, line in enumerate(lines):
        points = [axes.at(*point) for point in line.points]
        parts.append(stroke(points, i, line.is_ours))
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[i]}"/>' for x, y in points
        ]
    return parts


def span(values: list[float]) -> tuple[int, int]:
    """Return the powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def stroke(points: list[tuple[float, float]], colour: int, is_ours: bool) -> str:
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    width = 3 if is_ours else 1.5
    return (
        f'<polyline points="{where}" fill="none" stroke="{COLOURS[colour]}" '
        f'stroke-width="{width}"/>'
    )


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
