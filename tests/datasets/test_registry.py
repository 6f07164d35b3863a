"""One door to all data sets."""

import subprocess
import sys

import pytest

from ocfuse.datasets import Dataset, Sequence, fetch, find, list_datasets, load, locate
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import install_line


def test_names_are_unique_and_found():
    infos = list_datasets()
    assert len({info.name for info in infos}) == len(infos)
    assert [info.paper_id for info in infos[:10]] == [f"D{i}" for i in range(1, 11)]
    for info in infos:
        assert find(info.name) == info
        assert info.title
        assert info.licence
        assert info.citation
        assert info.source.startswith("https://")
        assert 0 < info.n_normals <= info.n_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("uci/banknotes", Dataset),
        ("D2", Dataset),
        ("haberman", Dataset),
        ("adbench/6_cardio", Dataset),
        ("skab/valve1/0", Sequence),
        ("skab", list),
        ("robot-failures/lp4", list),
    ],
)
def test_load_dispatches(data, name, kind):
    loaded = load(name)
    assert isinstance(loaded, kind)
    assert fetch(name) == locate(name)


@pytest.mark.parametrize(
    ("given", "close"),
    [
        ("uci/banknote", "banknotes"),
        ("banknots", "uci/banknotes"),
        ("robot_failures/lp1", "robot-failures/lp1"),
        ("uci", "uci/"),
        ("", "uci/banknotes"),
        ("D99", "D1 to D10"),
        ("d0", "D1 to D10"),
        ("uci/D11", "D1 to D10"),
    ],
)
@pytest.mark.parametrize("door", [load, find, locate, fetch])
def test_unknown_name(door, given, close):
    with pytest.raises(InvalidInputError, match=close):
        door(given)


@pytest.mark.slow
def test_optional_packages_stay_out():
    code = "import sys, ocfuse.datasets as d; d.list_datasets(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "pandas", "pyarrow", "sklearn", "typer"} & set(done.stdout.split())


@pytest.mark.slow
def test_works_without_the_extra(folder):
    """Without pooch and pandas: a file in the user's folder is read, wine is built in."""
    code = """
import sys
for name in ("pooch", "pandas", "pyarrow", "typer", "rich"):
    sys.modules[name] = None
from ocfuse.datasets import load
print(load("wine"))
try:
    load("iris")
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"OCFUSE_DATA": str(folder), "HOME": str(folder)},
    )
    first, second = done.stdout.splitlines()
    assert first == "<Dataset uci/wine: 178 rows (71 normal), 13 features>"
    assert "pooch is needed to download data" in second
    assert install_line("tool") in second
    assert f"{folder}/uci/iris.zip" in second
