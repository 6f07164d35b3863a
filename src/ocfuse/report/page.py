"""The page of a report: templates filled with data, as one HTML file or as PDF."""

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import MissingPackageError, OcfuseError
from ocfuse.report import words
from ocfuse.report.data import ReportData
from ocfuse.report.payload import to_json
from ocfuse.report.timeline import MOST_POINTS, TimelineEvent
from ocfuse.system.files import write_atomically
from ocfuse.system.packages import needed

#: Parts of the script; the first draws for the others, the last starts them.
SCRIPTS = ("tools", "scores", "time", "rows", "map", "members", "trust", "page")


@dataclass(frozen=True)
class Report:
    """A report as one self-contained HTML page.

    Attributes
    ----------
    html : str
        The page.
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file. If its name ends in ``.pdf``, Chromium or Chrome, which must be installed,
            prints it; any other file is HTML.

        Returns
        -------
        pathlib.Path
            The file written.
        """
        target = Path(path)
        is_pdf = target.suffix.lower() == ".pdf"
        # half of a character, as a broken file name may hold, cannot be written
        content = print_pdf(self.html) if is_pdf else self.html.encode("utf-8", "replace")
        write_atomically(target, content)
        return target

    def __repr__(self) -> str:
        return f"<Report of {len(self.html):,} characters: save('report.html')>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="Report" srcdoc="{escape(self.html)}" width="100%" height="800" '
            'frameborder="0"></iframe>'
        )


def make_report(data: ReportData) -> Report:
    """Make the page of a report.

    Parameters
    ----------
    data : ReportData
        Data of the report.

    Returns
    -------
    Report
        The page.
    """
    environment, markup = make_environment()
    (style, policy), parts = read_style(), "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'  # leaves no names behind
    page = environment.get_template("report.html").render(
        **_texts(data),
        data=data,
        style=markup(style),
        script=markup(script),
        # lets this style and this script run, and nothing else
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"{policy}; script-src '{_digest(script)}'",
        payload=markup(to_json(data)),
    )
    return Report(page)


def make_environment() -> tuple[Any, Any]:
    """Return what fills the templates, and the class of text that is HTML already."""
    jinja2 = needed("jinja2", "to make a report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_read),
    )
    environment.filters |= {
        "percent": words.percent,
        "number": words.number,
        "counted": words.count,
        "reason_words": words.reason_words,
    }
    return environment, jinja2.utils.markupsafe.Markup


def read_style() -> tuple[str, str]:
    """Return the style of all reports, and what lets it, and nothing else, come into a page."""
    style = _read("report.css")
    return style, f"style-src '{_digest(style)}'"


def _texts(data: ReportData) -> dict[str, Any]:
    """Return the texts and counts of the page."""
    events = words.events(data)
    n_timed = 0 if data.times is None else int(np.isfinite(data.times).sum())
    return {
        "headline": words.headline(data),
        "verdict": words.verdict(data),
        "first_look": words.first_look(data),
        "label_words": words.label_words(data),
        "basis": words.basis(data),
        "certificate": words.certificate_words(data),
        "alarms": words.count(int(data.is_alarm.sum()), "alarm"),
        "notes": words.notes(data),
        "n_alarms": int(data.is_alarm.sum()),
        "ranked": _ranked(data),
        # the others are only drawn
        "events": [_event(data, i, event) for i, event in enumerate(events[:50])],
        "n_events": len(events),
        "joined": words.joined(data),
        "n_known": int((~data.embedding.is_new).sum()),
        "n_drawn": int(data.embedding.is_new.sum()),
        "n_columns": 5 + (data.times is not None) + (data.labels is not None),
        "n_untimed": len(data.scores) - n_timed,
        "n_timed": n_timed,
        "n_line": MOST_POINTS,
        "n_groups": 10,
    }


def _ranked(data: ReportData) -> list[dict[str, Any]]:
    """Return the rows of the table of anomalies."""
    return [
        {
            "id": data.ids[row],
            "time": 0.0 if data.times is None else float(data.times[row]),
            "when": "" if data.times is None else words.when(data, float(data.times[row])),
            "score": float(data.scores[row]),
            "p_value": float(data.p_values[row]),
            "label": 0 if data.labels is None else int(data.labels[row]),
            "is_alarm": bool(data.is_alarm[row]),
            "readings": words.reasons(data, i),
        }
        for i, row in enumerate(data.rows)
    ]


def _event(data: ReportData, i: int, event: TimelineEvent) -> dict[str, Any]:
    start, end = words.when(data, event.start), words.when(data, event.end)
    day, _, clock = end.partition(" ")
    return {
        "index": i,
        "start": start,
        "end": clock if clock and end != start and start.startswith(f"{day} ") else end,
        "alarms": words.count(event.n_alarms, "alarm"),
        "score": float(data.scores[event.row]),
        "id": data.ids[event.row],
        "channels": data.channel_readings.get(event.row, ""),
    }


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    """Return a file of the templates."""
    return (files("ocfuse.report") / "templates" / name).read_text(encoding="utf-8")


def find_browser() -> str:
    """Return the path of a browser that can print, or say what to do without one."""
    names = (
        *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
        "msedge",
    )
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingPackageError(
        f"A browser is needed to write a report as PDF. None of {', '.join(names)} is on the "
        "PATH. Install Chromium, or write an .html file and print it from any browser."
    )


def print_pdf(html: str, seconds: float = 120) -> bytes:
    """Return a page as the content of a PDF file, or give up a browser that takes too long."""
    browser = find_browser()
    # a browser that closes late may still write into its folder
    with tempfile.TemporaryDirectory(prefix="ocfuse-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        page, printed = folder / "report.html", folder / "report.pdf"
        page.write_bytes(html.encode("utf-8", "replace"))
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={printed}",
        ]
        # it refuses to run in its sandbox as root; the page itself can load nothing
        if getattr(os, "geteuid", lambda: 1)() == 0:
            command.append("--no-sandbox")
        command.append(page.as_uri())
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        except subprocess.TimeoutExpired:
            said = f"nothing within {seconds} s"
        if not printed.is_file():
            raise OcfuseError(
                f"{browser} printed no PDF. It said: {said or 'nothing'}. Write an .html file "
                "and print it from any browser."
            )
        return printed.read_bytes()
