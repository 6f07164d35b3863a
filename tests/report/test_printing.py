"""Pages are printed by a browser, and it is said what to do where there is none."""

import shutil
import stat

import pytest

from ocfuse.exceptions import MissingPackageError, OcfuseError
from ocfuse.report import make_report, page
from ocfuse.report.page import Report
from tests.report import examples


@pytest.fixture
def make_browser(tmp_path, monkeypatch):
    """Return a function that makes a script the only browser on the PATH."""

    def make(script):
        path = tmp_path / "bin" / "google-chrome"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(path.parent))
        return path

    return make


def test_no_browser(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPackageError, match=r"chromium.* is on the PATH\. Install"):
        Report("").save(tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_what_the_browser_prints_is_written(tmp_path, make_browser):
    browser = make_browser(
        'for a; do case "$a" in --print-to-pdf=*) echo "%PDF" > "${a#*=}";; esac; done'
    )
    assert page.find_browser() == str(browser)
    assert Report("").save(tmp_path / "r.PDF").read_bytes() == b"%PDF\n"


def test_a_browser_that_fails_is_quoted(tmp_path, make_browser):
    make_browser("echo no display >&2; exit 1")
    with pytest.raises(OcfuseError, match=r"google-chrome printed no PDF\. It said: no display"):
        Report("").save(tmp_path / "r.pdf")


def test_a_browser_that_hangs_is_given_up(tmp_path, make_browser, monkeypatch):
    make_browser("exec /bin/sleep 30")
    monkeypatch.setattr(page, "PATIENCE", 0.2)
    with pytest.raises(OcfuseError, match=r"nothing within 0\.2 s"):
        Report("").save(tmp_path / "r.pdf")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_real_browser_prints_pages(tmp_path):
    content = make_report(examples.full_data()).save(tmp_path / "r.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(content) > 50_000
