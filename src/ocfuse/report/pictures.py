"""Report on pictures as one HTML page: lowest scores first, unusual places marked."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from ocfuse.report.page import Report, make_environment, read_style
from ocfuse.report.words import count, percent

#: Pictures of a report; others are counted.
MOST_SHOWN = 200


@dataclass(frozen=True)
class PictureEntry:
    """One picture of a report: `jpeg` is the content of a small file, marked, `place` in words."""

    name: str
    score: float
    p_value: float
    is_alarm: bool
    place: str
    jpeg: bytes

    @property
    def address(self) -> str:
        """The picture itself, as the address of an image."""
        return "data:image/jpeg;base64," + base64.b64encode(self.jpeg).decode()


@dataclass(frozen=True)
class PictureReportData:
    """What a report on pictures shows.

    Parameters
    ----------
    title : str
        Title of the page.
    entries : sequence of PictureEntry
        The pictures with the lowest scores, the lowest first.
    unread : sequence of (str, str)
        Names of pictures that could not be read, and why.
    n_pictures, n_alarms : int
        Number of pictures, and of those that raised an alarm.
    threshold : float
        Scores below it raise an alarm.
    rate : float
        False-alarm rate of the threshold.
    """

    title: str
    entries: Sequence[PictureEntry]
    unread: Sequence[tuple[str, str]]
    n_pictures: int
    n_alarms: int
    threshold: float
    rate: float

    @property
    def headline(self) -> str:
        """The result in one line."""
        scored = self.n_pictures - len(self.unread)
        alarms = count(self.n_alarms, "alarm") if self.n_alarms else "No alarm"
        return f"{alarms} among {count(scored, 'picture')}"

    @property
    def verdict(self) -> str:
        """Number of alarms that normal pictures would raise, as text."""
        scored = self.n_pictures - len(self.unread)
        usual = f"{self.rate * scored:,.1f}".removesuffix(".0")
        return (
            f"Of {count(scored, 'normal picture')} about {usual} would raise one "
            f"({percent(self.rate)}). Scores below {self.threshold:.4g} are alarms; higher is more "
            "normal."
        )


def make_picture_report(data: PictureReportData) -> Report:
    """Make the page of a report on pictures.

    Parameters
    ----------
    data : PictureReportData
        Data of the report.

    Returns
    -------
    Report
        The page.
    """
    environment, markup = make_environment()
    style, policy = read_style()
    page = environment.get_template("pictures.html").render(
        data=data,
        style=markup(style),
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; {policy}",
        n_hidden=data.n_pictures - len(data.unread) - len(data.entries),
    )
    return Report(page)
