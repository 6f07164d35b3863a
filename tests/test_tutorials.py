"""Pages with commands and Python: run from top to bottom, both print what is shown."""

import doctest
import os
import re
import shlex
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from examples import plot_fusion, shrink_tiles
from ocfuse.cli.app import run

ROOT = Path(__file__).parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"^```(python|console|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_DATA = "<!-- needs OCFUSE_DATA -->"
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DEMO = "ocfuse demo --quiet"


def pages():
    """Return the tutorials and guides that show commands; pytest itself runs the others."""
    found = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("howto/*.md")])
    return [page for page in found if "```console" in page.read_text(encoding="utf-8")]


def run_python(block, names, page):
    """Run the examples of a block and compare what they print."""
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
    told = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=told.append, clear_globs=False)
    assert runner.failures == 0, "".join(told)
    names.update(test.globs)  # the test works on a copy


def run_command(line):
    """Run a command in this process and return what it prints to stdout."""
    program, *arguments = shlex.split(line)
    assert program == "ocfuse"
    with redirect_stdout(StringIO()) as out, pytest.raises(SystemExit) as caught:
        run(arguments)
    assert caught.value.code in (0, None), line
    return out.getvalue()


def run_commands(block, demo):
    """Run the commands of a block and compare what they print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        if line == DEMO:
            shutil.copytree(demo, "ocfuse-demo")
            continue
        printed = run_command(line)
        if shown.strip():
            same = doctest.OutputChecker().check_output(shown, printed, LENIENT)
            assert same, f"{line}\n{printed}"


def write_file(block):
    """Write a block to the file that its first line names."""
    Path(block.split()[1]).write_text(block, encoding="utf-8")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run once what several pages begin with."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_command(DEMO) == ""
    return folder / "ocfuse-demo"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_page(page, demo, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if text.startswith(NEEDS_DATA) and not os.environ.get("OCFUSE_DATA"):
        pytest.skip("OCFUSE_DATA does not name the folder of the data sets")
    monkeypatch.chdir(tmp_path)
    names = {}
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            run_python(block, names, page)
        elif kind == "console":
            run_commands(block, demo)
        else:
            write_file(block)


def test_the_figures_of_the_mathematics_are_drawn_again(tmp_path, monkeypatch):
    with mpl.rc_context({"backend": "agg"}):
        plot_fusion.main(str(tmp_path))
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    for name, words in (
        ("held_out", "held out"),
        ("norms", "competence"),
        ("scales", "local scale"),
    ):
        assert f"images/{name}.svg" in text
        for folder in (tmp_path, DOCS / "images"):
            assert words in (folder / f"{name}.svg").read_text(encoding="utf-8")


def test_tiles_are_shrunk(tmp_path):
    for path in ("MT_Free/Imgs/exp1_num_1.jpg", "MT_Crack/Imgs/exp2_num_2.jpg"):
        (tmp_path / path).parent.mkdir(parents=True)
        Image.fromarray(np.full((130, 200), 90, dtype=np.uint8)).save(tmp_path / path)
    shrink_tiles.main(str(tmp_path), str(tmp_path / "data"))
    with np.load(tmp_path / "data" / "images" / "magnetic_tile_96.npz") as stored:
        assert stored["X"].shape == (2, 96, 96)
        assert stored["X"].dtype == np.uint8
        assert stored["y"].tolist() == ["MT_Crack", "MT_Free"]
        assert stored["name"].tolist() == ["exp2_num_2.jpg", "exp1_num_1.jpg"]


#: Rows of the table in README.md, and what they are called in the results.
SYSTEMS = {
    "**`FusedDetector()`**": ("**FusedDetector()**", "FusedDetector, default pool"),
    "its best single member": ("ckpca-1", None),
    "sum rule of its members": ("sum", None),
    "PyOD, average of five detectors": ("PyOD average", "PyOD average"),
    "PyOD SUOD": ("PyOD SUOD", None),
    "PyOD LSCP, five detectors": ("PyOD LSCP", "PyOD LSCP"),
    "isolation forest, scikit-learn": ("IsolationForest", None),
}


def cells_of(text, name):
    """Return the first row of a table that begins with a name."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip().strip("*") for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_readme_tells_what_was_measured(name):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    accuracy = (RESULTS / "accuracy" / "families.md").read_text(encoding="utf-8")
    speed = (RESULTS / "estimator" / "synthetic.md").read_text(encoding="utf-8")
    told = cells_of(readme, name)
    in_accuracy, in_speed = SYSTEMS[name]
    found = cells_of(accuracy.partition("## All systems")[2], in_accuracy)
    assert told[1] == found[2]
    assert told[2] == f"{float(found[5]):.1f} %"
    if in_speed is None:
        assert told[3:6] == ["", "", ""]
    else:
        assert told[3:6] == cells_of(speed.partition("## n = 5,000")[2], in_speed)[1:4]


def rows_of(text):
    """Return the rows of all tables, without what marks or pads them."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_of_the_papers_questions_tells_what_was_measured():
    page = (ROOT / "docs" / "paper-questions.md").read_text(encoding="utf-8")
    measured = rows_of((RESULTS / "accuracy" / "questions.md").read_text(encoding="utf-8"))
    told = rows_of(page)
    assert len(told) > 20
    assert [row for row in told if row not in measured] == []
    assert f"{sum(row[0].count(' - ') for row in measured)} rows are tested" in page


def test_the_account_of_thresholds_tells_what_was_measured():
    page = rows_of((ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8"))
    measured = rows_of((RESULTS / "paper" / "thresholds.md").read_text(encoding="utf-8"))
    names = {
        "local fusions": "local fusion (Pure, Non-pure)",
        "global fusions": "global fusion (previous work)",
        "members": "members (GMM, SVDD, GP, KPCA)",
        "all 216 cells": "all",
    }
    for told, name in names.items():
        (shown,) = [row[1:] for row in page if row[0] == told]
        (found,) = [row[2:] for row in measured if row[0] == name]
        assert shown == found
