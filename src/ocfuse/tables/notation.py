"""How numbers are written: with a unit, marks for thousands, or parentheses.

A column is read as numbers only if all its cells are written in one way: one unit or none,
one mark for thousands and one for decimals. That way is kept as a pattern, such as
``$1,000.0``, and later tables are read by it.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ocfuse.columns import UNITS, WRITTEN
from ocfuse.exceptions import TableError

#: Marks for decimals; all but digits may mark thousands.
DECIMALS = ".,"
PATTERN = re.compile(
    rf"(?P<before>[{UNITS}]?)1(?P<mark>\D?)000(?P<point>[.,])0(?P<after>[{UNITS}]?)"
)


@dataclass(frozen=True)
class Notation:
    """One way of writing numbers.

    Parameters
    ----------
    unit : str
        The unit, such as "%" or "$"; may be empty.
    mark : str
        What stands between thousands; may be empty.
    point : str
        What stands before decimals.
    """

    unit: str
    mark: str
    point: str

    @property
    def pattern(self) -> str:
        """The way to write one thousand."""
        is_after = self.unit in "%‰€"
        before, after = ("", self.unit) if is_after else (self.unit, "")
        return f"{before}1{self.mark}000{self.point}0{after}"

    @classmethod
    def of(cls, pattern: str) -> "Notation":
        """Return the notation that a pattern shows."""
        found = PATTERN.fullmatch(pattern)
        if found is None:
            raise TableError(f"Numbers cannot be written as {pattern!r}. Use, say, '$1,000.0'.")
        return cls(found["before"] or found["after"], found["mark"], found["point"])

    def number(self, cell: str) -> float | None:
        """Return the number that a cell says, None if it is written in another way."""
        found = WRITTEN.fullmatch(cell)
        if found is None or _unit(found) != self.unit:
            return None
        whole, point, decimals = found["digits"].partition(self.point)
        if self.mark and self.mark in whole:
            first, *groups = whole.split(self.mark)
            if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
                return None
            whole = whole.replace(self.mark, "")
        if not whole.isdigit() or (point and not decimals.isdigit()):
            return None
        is_minus = found["open"] or "-" in (found["sign"], found["inner"])
        return math.copysign(float(f"{whole}.{decimals or 0}"), -1.0 if is_minus else 1.0)


def is_written(cell: str) -> bool:
    """Tell whether a cell is a number in some notation."""
    return WRITTEN.fullmatch(cell) is not None


def settled_notation(cells: Iterable[str]) -> Notation | None:
    """Return the one way in which all cells are written, or None; refuse what is not clear."""
    matches = []
    for cell in cells:
        match = WRITTEN.fullmatch(cell)
        if match is None:
            return None
        matches.append(match)
    if not matches:
        return None
    units = {_unit(match) for match in matches}
    if len(units) > 1 or any(match["before"] and match["after"] for match in matches):
        return None
    marks, points, is_open = _marks(match["digits"] for match in matches)
    unit = units.pop()
    if len(marks) > 1 or len(points) > 1 or marks & points:
        return None
    is_plain = not unit and not marks and not any(match["open"] for match in matches)
    if is_plain:
        return None  # decimal commas alone are for the reader of the file
    if is_open and not marks and not points:
        cell = next(m.group() for m in matches if set(DECIMALS) & set(m["digits"]))
        raise TableError(
            f"{cell!r} may mean thousands or decimals, and no other cell settles it. Write it "
            "without marks for thousands, or with decimals."
        )
    mark = marks.pop() if marks else ""
    point = points.pop() if points else ("," if mark == "." else ".")
    notation = Notation(unit, mark, point)
    is_read = all(notation.number(match.group()) is not None for match in matches)
    return notation if is_read else None


def _unit(found: re.Match[str]) -> str:
    return found["before"] or found["after"] or ""


def _marks(digits: Iterable[str]) -> tuple[set[str], set[str], bool]:
    """Return what marks thousands, what decimals, and whether some mark may be either."""
    marks, points, is_open = set(), set(), False
    for number in digits:
        used = re.sub(r"\d", "", number)
        if not used:
            continue
        last = used[-1]
        head, tail = number.rsplit(last, 1)
        if len(set(used)) > 1:  # 1,234.5: the last one is the point
            points.add(last)
            marks |= set(used[:-1])
        elif len(used) > 1 or last not in DECIMALS:  # 1,234,567 and 1 234
            marks.add(last)
        elif len(tail) == 3 and 1 <= len(head) <= 3 and not head.startswith("0"):
            is_open = True  # 1,234
        else:
            points.add(last)
    return marks, points, is_open
