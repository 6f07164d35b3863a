"""What `ocfuse watch` says of the rows, at once."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ocfuse.cli.output import in_words, print_at_once, warn
from ocfuse.cli.sinks import to_json_lines
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RESULTS
from ocfuse.tables.names import free_name


@dataclass(frozen=True)
class Teller:
    """Print alarms, and complain of rows that cannot be scored.

    Attributes
    ----------
    model : TableDetector
        What the scores come from.
    show_all : bool
        Print every row.
    strict : bool
        Stop at a row that cannot be scored.
    json : bool
        Print lines of JSON.
    quiet : bool
        Leave complaints out.
    """

    model: TableDetector
    show_all: bool = False
    strict: bool = False
    json: bool = False
    quiet: bool = False

    def tell(self, scores: pd.DataFrame) -> None:
        """Print a line per alarm."""
        shown = scores if self.show_all else scores[scores["is_anomaly"]]
        name = free_name("threshold", shown.columns)
        shown = shown.assign(**{name: self.model.detector_.offset_})
        lines = (_line(row, name) for row in shown.to_dict("records"))
        print_at_once(to_json_lines(shown, False) if self.json else "".join(lines))

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row has no score."""
        if self.strict:
            raise TableError(f"Row {number} cannot be scored. {error}") from error
        if not self.quiet:
            warn(f"Row {number} is left out: {in_words(error)}")


def _line(row: dict[str, Any], threshold: str) -> str:
    state = "alarm" if row["is_anomaly"] else "normal"
    names = "  ".join(
        f"{key} {value}" for key, value in row.items() if key not in (*RESULTS, threshold)
    )
    return (
        f"{state}  {names}  score {row['score']:.4g}  threshold {row[threshold]:.4g}  "
        f"p-value {row['p_value']:.3g}\n"
    )
