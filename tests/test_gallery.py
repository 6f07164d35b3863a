"""The notebooks of the gallery run, draw their figures, and find what their text says."""

import re
import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

from ocfuse.exceptions import OcfuseWarning

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parents[1] / "examples" / "gallery"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def check_first_table(found):
    rows = found["malignant"]
    assert (found["detector"].predict(found["fresh"]) == -1).mean() < 0.1
    assert (found["detector"].predict(rows) == -1).mean() > 0.5


def check_groups(found):
    assert found["rates"]["rows stand alone"] > 0.5
    assert found["rates"]["groups=run"] < 0.15


def check_labels(found):
    assert found["found"]["10 anomalies"] > found["found"]["no labels"]


def check_unlabelled(found):
    assert found["after"] > found["before"]


def check_pump(found):
    assert next(iter(found["stream"].readings())).name == "vibration_mm_s"


def check_pictures(found):
    assert all(k >= len(found["fresh"]) for k in found["lowest"])


def check_paper(found):
    assert set(found["found"]) >= {"local lp fusion", "Sum rule"}


def check_pyod(found):
    scores = found["found"]
    assert scores["fused"] > max(scores["ECOD"], scores["HBOS"])


CHECKS = dict(
    zip(
        [path.name for path in NOTEBOOKS],
        [
            check_first_table, check_groups, check_labels, check_unlabelled,
            check_pump, check_pictures, check_paper, check_pyod,
        ],
        strict=True,
    )
)  # fmt: skip


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_finds_what_its_text_says(path, tmp_path, monkeypatch):
    if "pyod" in path.read_text(encoding="utf-8"):
        pytest.importorskip("pyod")
    shown = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", OcfuseWarning)
            found = runpy.run_path(str(path))
        assert shown
        assert all(axes.has_data() for figure in shown for axes in figure.axes)
        CHECKS[path.name](found)
    finally:
        plt.close("all")
    assert not list(tmp_path.iterdir())  # a notebook leaves no file behind


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_in_the_percent_format(path):
    text = path.read_text(encoding="utf-8")
    head = re.match(r'"""\n(.+)\n(=+)\n\n.+?"""\n\n# %%\n#? ?\S', text, re.DOTALL)
    assert head is not None
    assert len(head[1]) == len(head[2])
    assert all(line in ("# %%",) for line in text.splitlines() if line.startswith("# %%"))
