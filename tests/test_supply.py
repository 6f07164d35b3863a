"""The supply chain: what is promised is read, builds are compared, an audit finds what is there."""

import io
import json
import re
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from supply import audit, dist, oldest
from supply.pins import lowest, pins, project


def test_lowest_versions_are_those_of_pyproject():
    found = oldest.requirements()
    for line in project()["dependencies"]:
        assert line.replace(">=", "==") in found
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in found)
    with pytest.raises(ValueError, match="name>=version"):
        lowest(["numpy<3"])


def test_the_service_needs_a_reader_of_requests_without_known_holes():
    """Before h11 0.16 one request could be hidden in the chunks of another."""
    (found,) = [line for line in project()["optional-dependencies"]["serve"] if "h11" in line]
    assert tuple(map(int, lowest([found])[0].partition("==")[2].split("."))) >= (0, 16)


def archive(order, mtime, mode, owner):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in order:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode, member.uname = 3, mtime, mode, owner
            tar.addfile(member, io.BytesIO(b"abc"))
    return packed.getvalue()


def test_order_times_modes_and_owners_do_not_matter():
    one, other = archive("ab", 1, 0o644, "me"), archive("ba", 2, 0o664, "you")
    assert one != other
    assert dist.repacked(one, 7) == dist.repacked(other, 7)
    with tarfile.open(fileobj=io.BytesIO(dist.repacked(one, 7))) as tar:
        found = [(m.name, m.mtime, m.mode, m.uname, m.uid) for m in tar.getmembers()]
    assert found == [("a", 7, 0o644, "", 0), ("b", 7, 0o644, "", 0)]


def test_builds_that_differ_are_refused():
    one, other = archive("a", 1, 0o644, "me"), archive("ab", 1, 0o644, "me")
    dist.require_same({"x": one}, {"x": one})
    with pytest.raises(SystemExit, match=r"x differs: \['b'\]"):
        dist.require_same({"x": one}, {"x": other})
    with pytest.raises(SystemExit, match="other files"):
        dist.require_same({"x": one}, {"y": one})
    with pytest.raises(SystemExit, match="a holds the path abc"):
        dist.require_no_paths(one, [Path("abc")])


def test_pins_and_installation_are_compared(capsys):
    installed = {"ocfuse": "1", "pip": "1", "a": "1", "b": "2+cpu", "c": "3"}
    found = list(audit.check_pins(installed, {"a": "1", "b": "2", "c": "4", "torch": "2"}))
    assert found == ["c 3 is installed, 4 is pinned"]
    assert "though pinned: torch" in capsys.readouterr().out
    assert "d 1 is installed, but not" in next(audit.check_pins({"d": "1"}, {}))


def test_everything_that_runs_is_pinned_and_free():
    found = audit.brought_by(*audit.FOR_USERS)
    assert {"numpy", "scikit-learn", "pandas"} <= set(found)
    assert not set(found) - set(pins())
    assert list(audit.check_licences(found)) == []


def test_the_command_brings_little():
    """What `make demo` installs: a package here is one more to wait for in the first minute."""
    found = audit.brought_by("tool")
    assert {"numpy", "scikit-learn", "pandas", "typer"} <= set(found)
    assert len(found) <= 47  # and pip, setuptools, and ocfuse itself
    assert not {"matplotlib", "pybullet", "torch", "dask", "fastapi"} & set(found)
    assert set(audit.brought_by("plot")) - set(found) >= {"matplotlib"}


class Made:
    """A distribution with files of its own."""

    name, version, metadata = "made", "1", {}

    def __init__(self, folder, licence):
        self.folder, self.metadata = folder, Fields(licence)
        (folder / "a.py").write_text("1")
        (folder / "RECORD").write_text(
            "a.py,sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s,1\nRECORD,,\n"
        )
        self.files = ()

    def read_text(self, name):
        return (self.folder / name).read_text()

    def locate_file(self, name):
        return self.folder / name


class Fields(dict):
    def __init__(self, licence):
        super().__init__({"License": [licence]})

    def get_all(self, name):
        return self.get(name)


def test_changed_and_missing_files_are_found(tmp_path):
    made = Made(tmp_path, "MIT")
    assert list(audit.check_files([made])) == []
    (tmp_path / "a.py").write_text("2")
    assert list(audit.check_files([made])) == ["made: a.py was changed"]
    (tmp_path / "a.py").unlink()
    assert list(audit.check_files([made])) == ["made: a.py is gone"]
    assert list(audit.check_files([distribution("numpydoc")])) == []


@pytest.mark.parametrize(
    ("licence", "findings"),
    [("MIT", []), ("GPLv3", ["made 1 is under GPLv3"]), ("", ["made 1 does not tell its licence"])],
)
def test_licences_that_do_not_go_with_ours_are_found(tmp_path, licence, findings):
    assert list(audit.check_licences({"made": Made(tmp_path, licence)})) == findings


HOLE = {"id": "PYSEC-1", "fix_versions": ["2"]}
SKIPPED = {"name": "b", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("out", "err", "findings"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], "", []),
        ([{"name": "a", "version": "1", "vulns": [HOLE]}], "", ["a 1: PYSEC-1, mended in 2"]),
        ([SKIPPED, {"name": "a", "version": "1", "vulns": []}], "", []),
        (None, "unknown flag", ["pip-audit failed: unknown flag"]),
    ],
)
def test_advisories_are_findings(capsys, out, err, findings):
    text = "" if out is None else json.dumps({"dependencies": out})
    assert list(audit.advisories(text, err)) == findings
    assert ("not looked up of: b" in capsys.readouterr().out) == (out is not None and len(out) > 1)


@pytest.mark.parametrize(
    ("out", "err", "words"),
    [
        (json.dumps({"dependencies": [SKIPPED]}), "", "knows no package (not found)"),
        ("", "ConnectionError: Max retries", "the database was not reached"),
    ],
)
def test_silence_is_no_finding_and_is_said(out, err, words):
    with pytest.raises(audit.UnreachedError, match=re.escape(words)):
        list(audit.advisories(out, err))


@pytest.mark.slow
@pytest.mark.parametrize(("findings", "code"), [([], 2), (["a hole"], 1)])
def test_the_audit_fails_when_it_could_not_look(monkeypatch, capsys, findings, code):
    for name in ("pins", "conflicts", "licences", "files"):
        monkeypatch.setattr(audit, f"check_{name}", lambda *args: iter(()))
    monkeypatch.setattr(audit, "check_pins", lambda *args: iter(findings))
    with pytest.raises(SystemExit) as caught:
        audit.main("no-such-command")
    assert caught.value.code == code
    told = capsys.readouterr().out
    assert "advisories: NOT looked up: pip-audit is not installed" in told
    assert f"pins: {len(findings) or 'nothing'} found" in told
