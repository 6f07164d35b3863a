"""Mean ranks, the tests behind them, diagrams, and the paper's claims about pairs."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.lab.paper.beside import GLASS, OURS_ONLY, OurTable, Records, summarise
from ocfuse.lab.paper.published import PublishedTable, published_table
from ocfuse.lab.paper.sheet import GAP, Bold, Cell, Sheet, number, p_value
from ocfuse.stats import PairComparison, compare, skillings_mack, wilcoxon_holm
from ocfuse.stats.ranks import critical_difference, mean_ranks


@dataclass(frozen=True)
class Contrast:
    """A question, and two systems of a table that answer it if the first is better or not."""

    question: str
    table: str
    first: str
    second: str


CONTRASTS = tuple(
    Contrast(question, *pair)
    for question, pairs in {
        "local against global weights": (
            ("comparison", "Pure2 RPAU", "Previous RPAU"),
            ("comparison", "Pure2 pseudo-negative", "Previous pseudo-negative"),
            ("comparison", "Non-pure2", "Previous Non-pure"),
            ("comparison", "Pure2 RPAU, signed", "Previous RPAU, signed"),
            ("comparison", "Pure2 pseudo-negative, signed", "Previous pseudo-negative, signed"),
            ("comparison", "Non-pure2, signed", "Previous Non-pure, signed"),
        ),
        "hinge against least squares": (
            ("comparison", "Previous RPAU", "Least squares RPAU"),
            ("comparison", "Previous pseudo-negative", "Least squares pseudo-negative"),
            ("comparison", "Previous Non-pure", "Least squares Non-pure"),
        ),
        "fusion against its parts": (
            ("rpau", "Pure2 (interior point)", "Sum rule"),
            ("pseudo-negative", "Pure2 (interior point)", "Sum rule"),
            ("rpau", "Pure2 (interior point)", "Single-best"),
            ("pseudo-negative", "Pure2 (interior point)", "Single-best"),
            ("comparison", "Non-pure2", "Sum rule Non-pure"),
            ("comparison", "Non-pure2", "Single-best Non-pure"),
        ),
        "fusion against common detectors": (
            ("rpau", "Pure2 (interior point)", "LOF"),
            ("rpau", "Pure2 (interior point)", "IF"),
            ("rpau", "Pure2 (interior point)", "ALP"),
        ),
        "known anomalies": (("comparison", "Non-pure2", "Pure2 RPAU"),),
        "criterion": (("comparison", "Pure2 pseudo-negative", "Pure2 RPAU"),),
        "solver": (("comparison", "Pure2 RPAU", "Pure1 RPAU"),),
        "weights of any sign": (("comparison", "Pure2 RPAU, signed", "Pure2 RPAU"),),
        "our default": (
            ("comparison", "FusedDetector()", "Pure2 RPAU"),
            ("comparison", "FusedDetector() with labels", "Non-pure2"),
        ),
    }.items()
    for pair in pairs
)


def contrast_sheet(results: Records, measure: str, title: str) -> Sheet:
    """Return what the printed figures and ours show about every contrast, without Glass."""
    rows: list[list[Cell]] = [
        [
            contrast.question,
            f"{contrast.first} against {contrast.second}"
            + ("" if contrast.table == "comparison" else f" ({contrast.table})"),
            *_outcome(*printed(contrast, measure)),
            *_outcome(*measured(results, contrast, measure)),
        ]
        for contrast in CONTRASTS
    ]
    side = ("mean difference", "won/level/lost", "p")
    header = ["question", "systems", *(f"paper: {s}" for s in side), *side]
    note = (
        "Over the sets without Glass, on both sides. p: Wilcoxon's test of this pair alone, not "
        "corrected for the number of pairs."
    )
    return Sheet(f"contrasts-{measure}", title, header, rows, note)


def printed(contrast: Contrast, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return the printed figures of the two systems without Glass; none if one is ours."""
    table = published_table(contrast.table, measure)
    if not {contrast.first, contrast.second} <= set(table.systems):
        return np.array([]), np.array([])
    kept = np.array([name != GLASS for name in table.sets])
    return table.column(contrast.first)[kept], table.column(contrast.second)[kept]


def measured(results: Records, contrast: Contrast, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return our figures of the two systems without Glass."""
    ours = summarise(results, contrast.table, measure)
    first, second = ours.columns([contrast.first, contrast.second])[ours.is_reproducible].T
    return first, second


def _outcome(first: FloatArray, second: FloatArray) -> list[Cell]:
    if np.isnan(first - second).all():
        return [GAP] * 3
    found = compare(first, second)
    return [
        number(found.mean_difference, sign="+"),
        f"{found.wins}/{found.ties}/{found.losses}",
        p_value(found.p_value),
    ]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The results that are ranked: those of the systems that the paper ranks."""

    ours: OurTable
    printed: PublishedTable

    @property
    def systems(self) -> list[str]:
        """Systems that the paper ranks."""
        ranked = zip(self.printed.systems, self.printed.copies, strict=True)
        return [name for name, copies in ranked if copies and name in self.ours.systems]

    @property
    def extra(self) -> list[str]:
        """Our other rows: systems that the paper lacks, or has no result of."""
        return [name for name in self.ours.systems if name not in self.systems]

    @property
    def table(self) -> FloatArray:
        """Our results of these systems."""
        return self.ours.columns(self.systems)

    @property
    def printed_table(self) -> FloatArray:
        """Their printed results."""
        return np.column_stack([self.printed.column(name) for name in self.systems])

    def control(self, beginning: str = "Pure2") -> str | None:
        """Return the system whose name begins so, if it has results."""
        for name in self.systems:
            if name.startswith(beginning) and not np.isnan(self.ours.columns([name])).all():
                return name
        return None

    @property
    def best(self) -> str:
        """The system of the best mean rank in our results."""
        return self.systems[int(np.argmin(mean_ranks(self.table)))]


def rank_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return mean ranks: printed, recomputed from printed results, and ours."""
    systems, extra = ranking.systems, ranking.extra
    kept = [ranking.printed.systems.index(system) for system in systems]
    all_rows = mean_ranks(ranking.ours.columns([*systems, *extra]))
    own = np.full(len(extra), np.nan)
    columns = [
        np.concatenate([ranking.printed.ranks[kept], own]),
        np.concatenate([mean_ranks(ranking.printed_table), own]),
        np.concatenate([mean_ranks(ranking.table), own]),
        all_rows,
    ]
    shown = [_lowest_bold(column) for column in columns]
    rows: list[list[Cell]] = [
        [system, *(column[i] for column in shown)] for i, system in enumerate([*systems, *extra])
    ]
    header = ["system", "paper, printed", "paper, recomputed", "ours", "ours, all rows"]
    rules = {len(systems): OURS_ONLY + ", or without a printed figure"} if extra else {}
    note = (
        "Rank 1 is the best. A gap in the printed results counts as the mid-rank, as in the paper; "
        '"ours" ranks the same systems by our results, "all rows" ours among them.'
    )
    return Sheet(name, title, header, rows, note, rules)


def omnibus_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return Skillings and Mack's test of the printed results and of ours."""
    ours = ranking.ours
    rows: list[list[Cell]] = [
        ["paper, printed", GAP, GAP, GAP, GAP, p_value(ranking.printed.p_value, 4), GAP],
        _test_row("paper, recomputed", ranking.printed_table),
        _test_row("ours", ranking.table),
        _test_row("ours, all rows", ours.columns([*ranking.systems, *ranking.extra])),
        _test_row("ours without Glass", ranking.table[ours.is_reproducible]),
    ]
    header = ["results", "sets", "systems", "T", "df", "p, chi-squared", "p, Monte Carlo"]
    note = (
        "Monte Carlo: 10000 tables with the ranks of each set dealt out anew, ties kept; "
        "its least value is 1.0e-04. A small p says that some systems differ, not which."
    )
    return Sheet(name, title, header, rows, note)


def pair_sheet(ranking: Ranking, name: str, title: str) -> Sheet:
    """Return Wilcoxon's test with Holm's correction, of Pure2 and of the best against all."""
    rows: list[list[Cell]] = []
    rules = {}
    for control in dict.fromkeys([ranking.control(), ranking.best]):
        if control is None:
            continue
        at = ranking.systems.index(control)
        rules[len(rows)] = f"{control} against" + (" (our best)" if control == ranking.best else "")
        ours = _pairs(ranking.table, at)
        theirs = _pairs(ranking.printed_table, at)
        for j, system in enumerate(ranking.systems):
            if j != at:
                rows.append([system, *_pair_cells(ours.get(j)), *_pair_cells(theirs.get(j))])
    header = ["against", "ours: mean difference", "won/level/lost", "p", "p, Holm"]
    header += ["paper: mean difference", "won/level/lost", "p", "p, Holm"]
    return Sheet(name, title, header, rows, _pair_note(ranking), rules)


def _pair_note(ranking: Ranking) -> str:
    n_sets, k = len(ranking.ours.sets), len(ranking.systems)
    gap = critical_difference(k, n_sets)
    ranks = mean_ranks(ranking.table)
    near = [s for s, r in zip(ranking.systems, ranks, strict=True) if r <= ranks.min() + gap]
    return (
        "Wilcoxon's signed-rank test over the sets, exact, level sets split; Holm's correction "
        f"within each block. With {n_sets} sets p is never below {2.0 ** (1 - n_sets):.2g}. "
        f"Nemenyi, all pairs at .05: mean ranks of {k} systems on {n_sets} sets must differ by "
        f"{gap:.2f}; in our results this cannot tell {len(near)} of {k} from the best: "
        f"{', '.join(near)}."
    )


def _test_row(label: str, table: FloatArray) -> list[Cell]:
    informative = (~np.isnan(table)).sum(axis=1) >= 2
    table = table[informative]
    if not len(table):
        return [label, *[GAP] * 6]
    found = skillings_mack(table, n_resamples=10_000, random_state=0)
    return [
        label,
        str(found.n_sets),
        str(table.shape[1]),
        number(found.statistic, 4),
        str(found.df),
        p_value(found.p_value, 4),
        p_value(found.resampled_p_value, 4),
    ]


def _pairs(table: FloatArray, control: int) -> dict[int, PairComparison]:
    met = ~np.isnan(table[:, [control]] - table)
    met[:, control] = False
    return {pair.second: pair for pair in wilcoxon_holm(table, control)} if met.any() else {}


def _pair_cells(pair: PairComparison | None) -> list[Cell]:
    if pair is None:
        return [GAP] * 4
    return [
        number(pair.mean_difference, sign="+"),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
        p_value(pair.p_value),
        p_value(pair.adjusted_p_value),
    ]


def _lowest_bold(column: FloatArray) -> Sequence[Cell]:
    lowest = np.nanmin(column) if not np.isnan(column).all() else np.nan
    return [Bold(number(rank)) if rank == lowest else number(rank) for rank in column]


def critical_difference_diagram(
    table: ArrayLike,
    names: Sequence[str],
    *,
    highlight: Collection[str] = (),
    title: str = "Mean ranks",
    alpha: float = 0.05,
) -> str:
    """Draw mean ranks on a line, the best on the left, and return the SVG.

    A bar joins systems whose mean ranks differ by less than the critical difference of Nemenyi's
    test, that is, not significantly. With missing results, which have middle ranks, it is an
    approximation.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a missing result.
    names : sequence of str
        Names of the systems.
    highlight : collection of str, default=()
        Names to show in bold and colour.
    title : str, default="Mean ranks"
        Title above the diagram, also read by screen readers.
    alpha : float, default=0.05
        Significance level of Nemenyi's test.

    Returns
    -------
    str
        A document in SVG.

    Examples
    --------
    >>> from ocfuse.lab.paper.ranking import critical_difference_diagram
    >>> svg = critical_difference_diagram([[0.9, 0.8], [0.7, 0.6]], ["ours", "theirs"])
    >>> svg.startswith("<svg")
    True
    """
    ranks = mean_ranks(table)
    if isinstance(names, str) or isinstance(highlight, str):
        raise InvalidTypeError("names and highlight must be lists of names. Got a string.")
    strange = [name for name in (*names, *highlight) if not isinstance(name, str)]
    if strange:
        raise InvalidTypeError(f"names and highlight must hold strings. Got {strange[0]!r}.")
    if len(names) != len(ranks):
        raise InvalidInputError(
            f"names must name all {len(ranks)} systems of the table. Got {len(names)} names."
        )
    unknown = set(highlight) - set(names)
    if unknown:
        raise InvalidInputError(
            f"highlight must hold names of systems. Got {', '.join(sorted(unknown))}."
        )
    order = np.argsort(ranks, kind="stable")
    gap = critical_difference(len(ranks), len(np.asarray(table)), alpha)
    diagram = _Diagram(ranks[order], [names[i] for i in order], gap)
    body = [
        *diagram.head(title),
        *diagram.scale(),
        *diagram.labels(set(highlight)),
        *diagram.bars(),
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


class _Diagram:
    """Where things are drawn, in pixels: sorted ranks and names, and bars that join them."""

    margin: ClassVar = 20
    #: Height of the axis, of the critical difference above it, of a label and of a bar below.
    axis: ClassVar = 88
    gap_line: ClassVar = 46
    row: ClassVar = 22
    bar: ClassVar = 10
    #: Two colours that the colour-blind can distinguish; highlighted systems are also bold.
    ink: ClassVar = "#222222"
    highlight: ClassVar = "#0072B2"

    def __init__(self, ranks: FloatArray, names: list[str], gap: float) -> None:
        self.ranks, self.names, self.gap = ranks, names, gap
        self.joined = joined(ranks, gap)
        self.first: int = math.floor(ranks[0])
        self.last: int = math.ceil(max(ranks[-1], self.first + gap))
        letters = max(len(name) for name in names) + len(" (00.00)")
        # wide enough for the text beside the scale, and for labels
        self.side = self.margin + max(190, 8.5 * letters)
        self.inner = max(420, 20 * len(names))
        self.width = 2 * self.side + self.inner
        self.n_left = (len(names) + 1) // 2
        self.first_row = self.axis + 30 + self.bar * len(self.joined)

    def place(self, rank: float) -> float:
        """Return where a rank is on the axis."""
        return self.side + self.inner * ((rank - self.first) / (self.last - self.first))

    def head(self, title: str) -> list[str]:
        """Return the beginning of the document, with the ranks in words."""
        height = self.first_row + self.row * self.n_left + self.margin
        ranked = zip(self.names, self.ranks, strict=True)
        in_words = ", ".join(f"{name} {rank:.2f}" for name, rank in ranked)
        return [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {height:.0f}" '
            f'role="img" font-family="sans-serif" font-size="13" fill="{self.ink}">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape('Mean ranks: ' + in_words)}</desc>",
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{self.margin}" y="24" font-size="15">{escape(title)}</text>',
        ]

    def scale(self) -> list[str]:
        """Return the axis, and above it how long the critical difference is."""
        axis, y = self.axis, self.gap_line
        parts = [self.line(self.place(self.first), axis, self.place(self.last), axis)]
        # so far apart that the figures do not touch
        step = math.ceil(24 * (self.last - self.first) / self.inner)
        for rank in range(self.first, self.last + 1, step):
            x = self.place(rank)
            parts.append(self.line(x, axis - 6, x, axis))
            parts.append(f'<text x="{x:.1f}" y="{axis - 10}" text-anchor="middle">{rank}</text>')
        left, right = self.place(self.first), self.place(self.first + self.gap)
        return [
            *parts,
            self.line(left, y, right, y),
            self.line(left, y - 4, left, y + 4),
            self.line(right, y - 4, right, y + 4),
            f'<text x="{right + 8:.1f}" y="{y + 4}">critical difference {self.gap:.2f}</text>',
        ]

    def bars(self) -> list[str]:
        """Return the bars that join what does not differ."""
        parts = []
        for i, (low, high) in enumerate(self.joined):
            y = self.axis + 18 + self.bar * i
            left, right = self.place(self.ranks[low]), self.place(self.ranks[high])
            parts.append(self.line(left - 4, y, right + 4, y, 4))
        return parts

    def labels(self, highlight: set[str]) -> list[str]:
        """Return the better half on the left and the others on the right, the outermost on top."""
        parts = []
        left, right = self.side - 8, self.width - self.side + 8
        for i, (name, rank) in enumerate(zip(self.names, self.ranks, strict=True)):
            is_left = i < self.n_left
            y = self.first_row + self.row * (i if is_left else len(self.names) - 1 - i)
            edge, anchor, shift = (left, "end", -6) if is_left else (right, "start", 6)
            colour = self.highlight if name in highlight else self.ink
            weight = "bold" if name in highlight else "normal"
            parts += [
                f'<path d="M {self.place(rank):.1f} {self.axis} V {y} H {edge:.1f}" fill="none" '
                f'stroke="{colour}" stroke-width="1.2"/>',
                f'<text x="{edge + shift:.1f}" y="{y + 4}" text-anchor="{anchor}" fill="{colour}" '
                f'font-weight="{weight}">{escape(name)} ({rank:.2f})</text>',
            ]
        return parts

    def line(self, x1: float, y1: float, x2: float, y2: float, width: float = 1.5) -> str:
        """Return a line."""
        return (
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{self.ink}" stroke-width="{width}"/>'
        )
