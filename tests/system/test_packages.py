import importlib.metadata
import json
import shlex
from types import SimpleNamespace

import pytest

from ocfuse.exceptions import MissingPackageError
from ocfuse.system.packages import install_line, needed, slow


@pytest.fixture
def installed_from(monkeypatch):
    """Return what makes the package one that was installed from some place, or from an index."""

    def install(**told):
        text = json.dumps(told) if told else None
        found = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else "")
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)

    return install


def test_a_package_that_is_there():
    assert needed("json.decoder", "to read").JSONDecoder


def test_a_package_that_is_missing_names_its_extra(installed_from):
    installed_from()
    with pytest.raises(MissingPackageError) as raised:
        needed("no_such_package.part", "to draw", extra="video")
    assert str(raised.value) == (
        "no_such_package is needed to draw. Install it with: pip install 'ocfuse[video]'"
    )


def test_a_package_that_is_there_but_too_old_or_damaged_is_told_so(
    installed_from, tmp_path, monkeypatch
):
    installed_from()
    (tmp_path / "damaged_package.py").write_text("import no_such_part\n")
    monkeypatch.syspath_prepend(tmp_path)
    for package, reason in [
        ("damaged_package", "No module named 'no_such_part'"),
        ("json.no_such_part", "No module named 'json.no_such_part'"),
    ]:
        with pytest.raises(MissingPackageError) as raised:
            needed(package, "to draw", extra="plot")
        assert str(raised.value) == (
            f"{package.split('.')[0]} is needed to draw. It is installed, but cannot be imported: "
            f"{reason}. It may be too old or damaged. Install what fits with: "
            "pip install 'ocfuse[plot]'"
        )


def test_an_extra_comes_from_where_the_package_came_from(installed_from, tmp_path):
    clone = tmp_path / "a clone"
    clone.mkdir()
    installed_from(url=clone.as_uri(), dir_info={})
    assert shlex.split(install_line("tool")) == ["pip", "install", f"{clone}[tool]"]
    installed_from(url=clone.as_uri(), dir_info={"editable": True})
    assert shlex.split(install_line("tool,plot"))[2:] == ["-e", f"{clone}[tool,plot]"]
    wheel = tmp_path / "ocfuse-0.1.0-py3-none-any.whl"
    wheel.touch()
    installed_from(url=wheel.as_uri(), archive_info={})
    assert install_line("tool").endswith(".whl[tool]'")


@pytest.mark.parametrize(
    "told",
    [
        {"url": "file:///no/such/clone", "dir_info": {}},
        {"url": "https://example.org/ocfuse.whl", "archive_info": {}},
    ],
)
def test_what_is_gone_or_far_is_not_named(installed_from, told):
    installed_from(**told)
    assert install_line("tool") == "pip install 'ocfuse[tool]'"


def test_sources_that_nobody_installed_name_the_index(monkeypatch):
    def refuse(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", refuse)
    assert install_line("tool") == "pip install 'ocfuse[tool]'"


def test_a_package_that_takes_long_is_imported_when_asked_for():
    assert slow("json.decoder").JSONDecoder
