"""A page as PDF, printed by a browser that is installed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ocfuse.exceptions import MissingPackageError, OcfuseError

#: Programs that can print a page without a window, in the order in which they are tried.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
#: Seconds after which a browser that has not printed is given up.
PATIENCE = 120


def find_browser() -> str:
    """Return the path of a browser that can print, or say what to do without one."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingPackageError(
        f"A browser is needed to write a report as PDF. None of {', '.join(BROWSERS)} is on the "
        "PATH. Install Chromium, or write an .html file and print it from any browser."
    )


def print_pdf(html: str) -> bytes:
    """Return a page as the content of a PDF file."""
    browser = find_browser()
    # a browser that closes late may still write into its folder
    with tempfile.TemporaryDirectory(prefix="ocfuse-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        page, printed = folder / "report.html", folder / "report.pdf"
        page.write_bytes(html.encode("utf-8", "replace"))
        said = _run([browser, *_flags(folder / "profile", printed), page.as_uri()])
        if not printed.is_file():
            raise OcfuseError(
                f"{browser} printed no PDF. It said: {said or 'nothing'}. Write an .html file "
                "and print it from any browser."
            )
        return printed.read_bytes()


def _flags(profile: Path, printed: Path) -> list[str]:
    flags = [
        "--headless",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        "--no-pdf-header-footer",
        f"--user-data-dir={profile}",
        f"--print-to-pdf={printed}",
    ]
    # it refuses to run in its sandbox as root; the page itself can load nothing
    if getattr(os, "geteuid", lambda: 1)() == 0:
        flags.append("--no-sandbox")
    return flags


def _run(command: list[str]) -> str:
    """Run a browser; return the end of what it said."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"nothing within {PATIENCE} s"
    return done.stderr.decode("utf-8", "replace").strip()[-300:]
