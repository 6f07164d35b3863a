"""What `ocfuse watch` says of the rows, at once."""

from dataclasses import dataclass
from typing import Any

from ocfuse.cli.output import in_words, print_at_once, printable, warn
from ocfuse.cli.sinks import to_json_lines
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.report.words import count
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RESULTS
from ocfuse.tables.frames import Frame
from ocfuse.tables.names import free_name

#: Last column of the scores: the columns that a row is judged without.
WITHOUT = "judged_without"


@dataclass(frozen=True)
class Flags:
    """What is wanted of who tells.

    Attributes
    ----------
    show_all : bool
        Print every row.
    strict : bool
        Stop at a row that cannot be scored.
    json : bool
        Print lines of JSON.
    quiet : bool
        Leave complaints out.
    """

    show_all: bool = False
    strict: bool = False
    json: bool = False
    quiet: bool = False

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row has no score."""
        if self.strict:
            raise TableError(f"Row {number} cannot be scored. {error}") from error
        if not self.quiet:
            warn(f"Row {number} is left out: {in_words(error)}")


@dataclass
class Teller:
    """Print alarms, and complain of rows that cannot be scored.

    Attributes
    ----------
    model : TableDetector
        What the scores come from.
    flags : Flags
        What is wanted.
    n_alarms, n_unknown : int
        Alarms so far, and rows that could not be scored: these may be anomalies.
    n_judged : int
        Rows so far that were judged without some of their columns.
    """

    model: TableDetector
    flags: Flags
    n_alarms: int = 0
    n_unknown: int = 0
    n_judged: int = 0

    def tell(self, scores: Frame) -> None:
        """Print a line per alarm."""
        without = str(scores.columns[-1])
        self.n_alarms += int(scores["is_anomaly"].sum())
        self.n_judged += int(scores[without].notna().sum())
        shown = scores if self.flags.show_all else scores[scores["is_anomaly"]]
        name = free_name("threshold", shown.columns)
        shown = shown.assign(**{name: self.model.detector_.offset_})
        lines = (_line(row, name, without) for row in shown.to_dict("records"))
        print_at_once(to_json_lines(shown, False) if self.flags.json else printable("".join(lines)))

    def begin(self) -> None:
        """Take note of a header; rows stand alone, so that nothing begins with it."""

    def listen(self, has_come: bool) -> None:
        """Take note of whether rows have come; they may come when they like."""

    def end(self, n_rows: int, n_bad: int) -> None:
        """Say how much it was."""
        if not self.flags.quiet:
            rows, alarms = count(n_rows, "row"), count(self.n_alarms, "alarm")
            judged = f", {self.n_judged:,} judged without some columns" * (self.n_judged > 0)
            warn(f"{rows}, {alarms}, {n_bad:,} left out{judged}")

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row has no score."""
        self.n_unknown += 1
        self.flags.complain(number, error)


def _line(row: dict[str, Any], threshold: str, without: str) -> str:
    state = "alarm" if row["is_anomaly"] else "normal"
    names = "  ".join(
        f"{key} {value}" for key, value in row.items() if key not in (*RESULTS, threshold, without)
    )
    judged = f"  judged without {row[without]}" if row[without] else ""
    return (
        f"{state}  {names}  score {row['score']:.4g}  threshold {row[threshold]:.4g}  "
        f"p-value {row['p_value']:.3g}{judged}\n"
    )
