"""What a folder says of its cell, and which cells are refused."""

import json
import shutil
from dataclasses import replace

import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.robot_cell import cell, read_plan, simulate
from ocfuse.lab.robot_cell.cell import MAKER, PLAN_FILE, SIMULATOR, maker
from tests.robots.cases import PLAN

pytest.importorskip("pybullet", reason="the extra robots is not installed")


@pytest.fixture
def begun(folder, tmp_path, monkeypatch):
    """Return a cell of which one run is missing; none can be made."""
    shutil.copytree(folder, tmp_path / "cell")
    shutil.rmtree(tmp_path / "cell/train/trial_0001")
    monkeypatch.setattr(cell, "write_run", None)
    return tmp_path / "cell"


def rewrite(folder, **changes):
    file = folder / PLAN_FILE
    facts = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    file.write_text(json.dumps(facts), encoding="utf-8")


def test_a_plan_is_read_as_it_was_written(folder, tmp_path):
    assert read_plan(folder) == PLAN
    assert read_plan(tmp_path) is None


def test_what_made_it_is_written(folder):
    made_by = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))[MAKER]
    assert made_by == maker()
    assert made_by["simulator"] == SIMULATOR
    assert {"numpy", "pillow", "pybullet"} < set(made_by)


def test_another_cell_is_not_mixed_in(folder):
    with pytest.raises(InvalidInputError, match="other n_frames, seed: 10, 7"):
        simulate(folder, replace(PLAN, n_frames=20, seed=8))


def test_a_cell_of_another_simulator_is_refused_even_if_it_is_whole(folder, monkeypatch):
    monkeypatch.setattr(cell, "SIMULATOR", SIMULATOR + 1)
    with pytest.raises(InvalidInputError, match=r"version 1; this is version 2.*new folder"):
        simulate(folder, PLAN)


@pytest.mark.parametrize("made_by", [None, {}, "me"])
def test_a_cell_that_tells_no_simulator_is_refused(begun, made_by):
    rewrite(begun, **{MAKER: made_by})
    with pytest.raises(InvalidInputError, match="not told"):
        simulate(begun, PLAN)


def test_runs_of_other_packages_are_not_mixed_in(begun):
    rewrite(begun, **{MAKER: {**maker(), "numpy": "1.0"}})
    with pytest.raises(InvalidInputError, match=r"begun with numpy 1\.0.*Install those versions"):
        simulate(begun, PLAN)


def test_a_whole_cell_may_be_read_with_other_packages(folder, begun):
    shutil.copytree(folder / "train/trial_0001", begun / "train/trial_0001")
    rewrite(begun, **{MAKER: {**maker(), "numpy": "1.0"}})
    assert len(simulate(begun, PLAN)) == 3


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"letter\.txt.*Give a new folder"):
        simulate(tmp_path, PLAN)


@pytest.mark.parametrize("text", ["dear", "[]", "{}", '{"train": 1}'])
def test_a_damaged_claim_is_told(tmp_path, text):
    (tmp_path / PLAN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match="damaged"):
        simulate(tmp_path, PLAN)
    with pytest.raises(InvalidInputError, match="damaged"):
        read_plan(tmp_path)
