"""A table of words and numbers, written as Markdown, CSV and LaTeX."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.files import write_atomically

#: How a missing figure is shown.
GAP = "-"
#: Header and rows of the CSV file.
Raw: TypeAlias = tuple[Sequence[str], Sequence[Sequence[object]]]

#: What LaTeX takes for a command, and what its fonts may lack.
SPECIAL: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "²": r"\textsuperscript{2}",
    "\n": " ",
}


@dataclass(frozen=True)
class Bold:
    """Text that stands out."""

    text: str


Cell: TypeAlias = str | Bold
Rows: TypeAlias = Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Sheet:
    """A table with its heading.

    `name` is that of its files, without suffix; `note` is Markdown shown above. `rules` are numbers
    of rows before which there is a rule, with the words there; `raw` are header and rows of the CSV
    file where they differ from those shown.
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Rows
    note: str = ""
    rules: Mapping[int, str] = field(default_factory=dict)
    raw: Raw | None = None

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the header."""
        if any(len(row) != len(self.header) for row in self.rows):
            raise InvalidInputError(
                f"rows of {self.name} must have {len(self.header)} cells, as the header has."
            )

    def markdown(self) -> str:
        """Return heading, note and table."""
        width = len(self.header)
        lines = [_pipes(self.header), _pipes(["---"] * width)]
        for i, row in enumerate(self.rows):
            if i in self.rules:
                lines.append(_pipes([f"*{self.rules[i]}*", *[""] * (width - 1)]))
            lines.append(_pipes([_marked(cell) for cell in row]))
        parts = [f"## {self.title}", self.note, "\n".join(lines)]
        return "\n\n".join(part for part in parts if part)

    def csv(self) -> str:
        """Return comma-separated values; a gap is empty."""
        header, rows = self.raw or (self.header, [[_plain(c) for c in row] for row in self.rows])
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[_value(value) for value in row] for row in rows])
        return stream.getvalue()

    def latex(self) -> str:
        """Return a table that can be read in; a long one breaks over pages."""
        width = len(self.header)
        kind = "longtable" if len(self.rows) > 60 else "tabular"
        packages = "booktabs" if kind == "tabular" else "booktabs,longtable"
        lines = [
            rf"% {escape(self.title)}; needs \usepackage{{{packages}}}",
            rf"\begin{{{kind}}}{{{self._alignment()}}}",
            r"\toprule",
            _ampersands([escape(name) for name in self.header]),
            r"\midrule",
        ]
        for i, row in enumerate(self.rows):
            if i in self.rules:
                words = rf"\multicolumn{{{width}}}{{l}}{{\emph{{{escape(self.rules[i])}}}}} \\"
                lines += [r"\midrule", words] if i else [words]
            lines.append(_ampersands([_typeset(cell) for cell in row]))
        return "\n".join([*lines, r"\bottomrule", rf"\end{{{kind}}}"]) + "\n"

    def write(self, folder: Path) -> None:
        """Write the CSV and the LaTeX file, each into a folder of its kind."""
        for kind, suffix, text in (("csv", "csv", self.csv()), ("latex", "tex", self.latex())):
            (folder / kind).mkdir(exist_ok=True)
            write_atomically(folder / kind / f"{self.name}.{suffix}", text.encode())

    def _alignment(self) -> str:
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)
        return "".join("r" if all(_is_figure(c) for c in column) else "l" for column in columns)


def number(value: float, digits: int = 2, sign: str = "") -> str:
    """Write a figure, or the sign of a gap."""
    return GAP if math.isnan(value) else f"{value:{sign}.{digits}f}"


def p_value(value: float | None, digits: int = 3) -> str:
    """Write a p-value with the digits that count."""
    return GAP if value is None or math.isnan(value) else f"{value:.{digits}g}"


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _plain(cell: Cell) -> str:
    return cell.text if isinstance(cell, Bold) else cell


def _marked(cell: Cell) -> str:
    text = _plain(cell).replace("|", r"\|").replace("\n", " ")
    return f"**{text}**" if isinstance(cell, Bold) else text


def _typeset(cell: Cell) -> str:
    text = escape(_plain(cell))
    return rf"\textbf{{{text}}}" if isinstance(cell, Bold) else text


def _is_figure(cell: Cell) -> bool:
    text = _plain(cell).strip("+-<> ")
    return not text or text == GAP or text[0].isdigit()


def _value(value: object) -> object:
    is_gap = value in (None, GAP) or (isinstance(value, float) and math.isnan(value))
    return "" if is_gap else value


def escape(text: str) -> str:
    r"""Return text as LaTeX shows it, a leading minus as a minus.

    Examples
    --------
    >>> from ocfuse.lab.paper.sheet import escape
    >>> print(escape("R&D_1: 5 % ± 1"))
    R\&D\_1: 5 \% $\pm$ 1
    """
    return re.sub(r"^-(?=\d)", "$-$", text.translate(str.maketrans(SPECIAL)))
