import platform
from importlib.metadata import PackageNotFoundError, version

import pytest

import ocfuse
from ocfuse import versions
from ocfuse.solvers import native


@pytest.fixture
def shown(capsys):
    """The printed lines as name -> value."""
    ocfuse.show_versions()
    lines = capsys.readouterr().out.splitlines()
    return dict(line.split("  ", maxsplit=1) for line in lines)


def test_lines_in_order(shown):
    names = [name.strip() for name in shown]
    assert names == [
        "Python", "platform", "ocfuse", "numpy", "scipy", "scikit-learn", "kernel of rows",
        "C++ kernel",
    ]  # fmt: skip


def test_values(shown):
    values = {name.strip(): value.strip() for name, value in shown.items()}
    assert values["Python"] == platform.python_version()
    assert values["numpy"] == version("numpy")
    assert values["C++ kernel"] == native.describe()
    assert "\n" not in native.describe()


def test_metadata_agrees_with_the_package():
    assert version("ocfuse") == ocfuse.__version__


def test_missing_package_is_said(monkeypatch, capsys):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(versions, "version", missing)
    ocfuse.show_versions()
    assert "scipy           not installed" in capsys.readouterr().out
