"""The page is complete in itself, texts of users cannot become markup, and browsers print it."""

import base64
import hashlib
import json
import re
import shutil
import stat
from html.parser import HTMLParser

import pytest

from ocfuse.exceptions import MissingPackageError, OcfuseError
from ocfuse.report import make_report
from ocfuse.report.page import Report, find_browser, print_pdf
from ocfuse.system import packages
from tests.report import examples


class Page(HTMLParser):
    """Tags with their attributes, and the text inside script and style."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.inside, self.content = [], None, {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = f"{tag} {dict(attrs).get('type', '')}".strip()

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.content[self.inside] = self.content.get(self.inside, "") + data


@pytest.fixture(scope="module", params=["full", "bare"])
def html(request):
    data = examples.full_data() if request.param == "full" else examples.bare_data()
    return make_report(data).html


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_nothing_comes_from_elsewhere(html, page):
    assert not [tag for tag, _ in page.tags if tag in ("link", "img", "iframe", "object", "base")]
    links = [attrs[key] for _, attrs in page.tags for key in ("src", "href") if key in attrs]
    assert links
    assert [link for link in links if not link.startswith("#")] == []
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttp|WebSocket|innerHTML|eval\(", html)


def test_only_our_style_and_script_may_run(page):
    (policy,) = [attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = hashlib.sha256(page.content[kind].encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    # what the policy would refuse
    assert not [
        tag for tag, attrs in page.tags if any(a == "style" or a[:2] == "on" for a in attrs)
    ]


def test_hostile_names_stay_text(html, page):
    assert "alert(1)</script>" not in html
    assert "<img" not in html
    assert "49" not in re.findall(r"&amp;(.{6})", html)  # {{7*7}} is not computed
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    data = json.loads(page.content["script application/json"])
    assert any(examples.HOSTILE in reading for d in data["details"] for reading in d["readings"])


def test_every_part_is_there(html, page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    assert {"summary", "scores", "ranked", "map", "members", "trust", "card"} <= set(ids)
    assert ("time" in ids) == ("Score over time</h2>" in html)
    targets = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a"}
    assert targets <= set(ids)


def test_controls_have_names(page):
    labelled = {attrs["for"] for tag, attrs in page.tags if tag == "label"}
    controls = [attrs for tag, attrs in page.tags if tag in ("input", "select")]
    assert {attrs["id"] for attrs in controls} == labelled
    assert dict(page.tags[0:1])["html"]["lang"] == "en"


def test_save_writes_the_page(tmp_path, html):
    path = Report(html).save(tmp_path / "r.html")
    assert path.read_text(encoding="utf-8") == html
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]


def test_save_survives_half_characters(tmp_path):
    path = Report("a\ud800b").save(tmp_path / "r.html")
    assert path.read_bytes() == b"a?b"


def test_save_names_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="Create it first"):
        Report("").save(tmp_path / "none" / "r.html")


def test_notebooks_show_it_in_a_frame(html):
    shown = Page(Report(html)._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["iframe"]
    assert shown.tags[0][1]["srcdoc"] == html


def test_consoles_do_not_show_the_page(html):
    assert len(repr(Report(html))) < 80


def test_missing_jinja_names_the_extra(monkeypatch):
    known = packages.importlib.import_module

    def refuse(name):
        if name.startswith("jinja2"):
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(packages.importlib, "import_module", refuse)
    line = re.escape(packages.install_line("tool"))
    with pytest.raises(MissingPackageError, match=rf"jinja2 .* {line}"):
        make_report(examples.bare_data())


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
    assert find_browser() == str(browser)
    assert Report("").save(tmp_path / "r.PDF").read_bytes() == b"%PDF\n"


def test_a_browser_that_fails_is_quoted(tmp_path, make_browser):
    make_browser("echo no display >&2; exit 1")
    with pytest.raises(OcfuseError, match=r"google-chrome printed no PDF\. It said: no display"):
        Report("").save(tmp_path / "r.pdf")


def test_a_browser_that_hangs_is_given_up(make_browser):
    make_browser("exec /bin/sleep 30")
    with pytest.raises(OcfuseError, match=r"nothing within 0\.2 s"):
        print_pdf("", seconds=0.2)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_real_browser_prints_pages(tmp_path):
    content = make_report(examples.full_data()).save(tmp_path / "r.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(content) > 50_000
