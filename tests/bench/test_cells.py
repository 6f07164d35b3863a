"""Runs: nothing is computed twice, nothing is lost, what is stale is seen."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ocfuse import show_progress
from ocfuse.compare import System
from ocfuse.exceptions import InconsistentMeasuresError, InvalidInputError, MemberError, OcfuseError
from ocfuse.lab.paper.runner import Cell, duration, load, run_cells, save
from tests.bench.cases import CELLS, NAMES, TRAP, Toy, run_toy

ROOT = Path(__file__).parents[2]
EVERY = [f"{cell} {name}" for cell in CELLS for name in NAMES]
STOPPED = f"{TRAP[0]} {TRAP[1]}"


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


def test_everything_runs_once_in_order(toy, tmp_path):
    first = run_toy(tmp_path)
    assert toy.log() == EVERY
    assert run_toy(tmp_path) == first
    assert toy.log() == EVERY
    assert [cell["set"] for cell in first] == [cell.name for cell in CELLS]
    assert first[1]["runs"]["first"]["results"] == {"first": {"value": 6}}


def test_failure_is_kept_in_one_line(tmp_path):
    found = run_toy(tmp_path)
    assert found[2]["runs"]["third"]["results"] == {
        "third": {"failure": "ValueError: no such luck"}
    }


@pytest.mark.slow
def test_killed_run_goes_on_where_it_was(toy, tmp_path):
    (tmp_path / "stop").write_text("sleep")
    call = f"from tests.bench.cases import run_toy; run_toy({str(tmp_path)!r})"
    child = subprocess.Popen([sys.executable, "-c", call], cwd=ROOT)
    try:
        deadline = time.monotonic() + 300
        while "stopped" not in toy.log() and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    finished = EVERY[: EVERY.index(STOPPED)]
    assert toy.log() == [*finished, STOPPED, "stopped"]
    (tmp_path / "stop").unlink()
    resumed = run_toy(tmp_path)
    # only what was not finished runs again
    assert toy.log() == [*finished, STOPPED, "stopped", *EVERY[len(finished) :]]
    clean = tmp_path / "clean"
    clean.mkdir()
    assert resumed == run_toy(clean)


@pytest.mark.slow
def test_killed_worker_loses_nothing(toy, tmp_path):
    (tmp_path / "stop").write_text("kill")
    with pytest.raises(OcfuseError, match="run the same again"):
        run_toy(tmp_path, jobs=2)
    (tmp_path / "stop").unlink()
    before = toy.log()
    assert "stopped" in before
    folder = tmp_path / "cells"
    stored = {f"{c} {name}" for c in CELLS for name in load(c, folder).get("runs", {})}
    resumed = run_toy(tmp_path)
    assert sorted(toy.log()[len(before) :]) == sorted(set(EVERY) - stored)
    # nor do results depend on where they were computed
    clean = tmp_path / "clean"
    clean.mkdir()
    assert resumed == run_toy(clean)


def test_changed_definition_runs_again_alone(toy, tmp_path):
    run_toy(tmp_path)
    changed = Toy(tmp_path, ("1", "2", "1"))
    found = run_cells(changed, CELLS, tmp_path / "cells")
    assert toy.log()[len(EVERY) :] == [f"{cell} second" for cell in CELLS]
    assert found[0]["runs"]["second"]["key"] == "2"


def test_spoilt_file_counts_as_none(toy, tmp_path):
    run_toy(tmp_path)
    CELLS[0].path(tmp_path / "cells").write_text('{"runs": {"fi')
    run_toy(tmp_path)
    assert toy.log()[len(EVERY) :] == EVERY[:3]


def test_system_no_longer_wanted_is_left_out(tmp_path):
    cell = CELLS[0]
    save(cell, tmp_path / "cells", {"runs": {"old": {"key": "1", "results": {}}}})
    assert list(run_toy(tmp_path)[0]["runs"]) == list(NAMES)
    assert "old" in load(cell, tmp_path / "cells")["runs"]


def test_file_is_never_half_written(tmp_path):
    cell = CELLS[0]
    save(cell, tmp_path, {"value": 1, "runs": {}})
    with pytest.raises(ValueError, match="JSON"):
        save(cell, tmp_path, {"value": float("nan"), "runs": {}})
    assert json.loads(cell.path(tmp_path).read_text()) == {"value": 1, "runs": {}}


@pytest.mark.parametrize(
    "text", ["[]", "null", "3", "{}", '{"runs": []}', '{"runs": {"first": 3}}']
)
def test_what_is_no_cell_counts_as_none(toy, tmp_path, text):
    path = CELLS[0].path(tmp_path / "cells")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert load(CELLS[0], tmp_path / "cells") == {}
    run_toy(tmp_path)
    assert toy.log() == EVERY


def test_save_keeps_what_another_process_has_stored(tmp_path):
    one, two = ({name: {"key": "1", "results": {name: {}}}} for name in ("one", "two"))
    save(CELLS[0], tmp_path, {"set": "a", "runs": one})
    save(CELLS[0], tmp_path, {"runs": two})
    assert load(CELLS[0], tmp_path) == {"set": "a", "runs": one | two}


def test_orphan_that_finishes_late_takes_nothing_away(toy, tmp_path):
    # while a worker is at its first system, a resumed run finishes the cell
    class Late(Toy):
        def run(self, cell, name):
            if name == "first":
                run_cells(Toy(tmp_path), CELLS[:1], tmp_path / "cells")
            return super().run(cell, name)

    changed = Late(tmp_path, ("2", "1", "1"))
    (found,) = run_cells(changed, CELLS[:1], tmp_path / "cells")
    assert list(found["runs"]) == list(NAMES)
    assert found["runs"]["first"]["key"] == "2"


def test_results_that_vanish_during_a_run_are_told(tmp_path):
    class Losing(Toy):
        def run(self, cell, name):
            if name == "third":
                cell.path(self.folder / "cells").unlink()
            return super().run(cell, name)

    with pytest.raises(OcfuseError, match="changed during the run: 'first', 'second'"):
        run_cells(Losing(tmp_path), CELLS[:1], tmp_path / "cells")


class Wrong(Toy):
    """Systems that fail as they are told to."""

    error = AssertionError("own")

    def run(self, cell, name):
        raise self.error


def chained(error):
    wrapped = MemberError("Member 'gp' failed.")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    "error",
    [
        InconsistentMeasuresError("AUC"),
        MemoryError("full"),
        OSError("disk full"),
        chained(MemoryError("full")),
    ],
)
def test_what_is_not_the_fault_of_a_system_is_raised(tmp_path, monkeypatch, error):
    monkeypatch.setattr(Wrong, "error", error)
    with pytest.raises(type(error)):
        run_cells(Wrong(tmp_path), CELLS[:1], tmp_path / "cells")
    assert load(CELLS[0], tmp_path / "cells") == {}


@pytest.mark.parametrize("error", [AssertionError("own"), chained(ValueError("width"))])
def test_errors_of_a_system_are_kept(tmp_path, monkeypatch, error):
    monkeypatch.setattr(Wrong, "error", error)
    (found,) = run_cells(Wrong(tmp_path), CELLS[:1], tmp_path / "cells")
    failure = found["runs"]["first"]["results"]["first"]["failure"]
    assert failure.startswith(type(error).__name__)


def test_folder_that_cannot_be_written_is_refused_first(toy, tmp_path):
    (tmp_path / "cells").write_text("a file")
    with pytest.raises(InvalidInputError, match="cells' must be one to write to"):
        run_toy(tmp_path)
    assert toy.log() == []


def test_progress_tells_how_long_it_takes(tmp_path):
    told = []
    with show_progress(lambda *step: told.append(step)):
        run_toy(tmp_path)
        run_toy(tmp_path)
    assert [step[2:] for step in told] == [(i, 4) for i in range(5)] + [(4, 4)]
    assert told[0][:2] == ("cells", "stored")
    assert told[2][1].startswith("a/b one 1, about ")
    assert told[4][1].endswith("about 0 s left")


def test_inner_progress_is_not_shown(tmp_path):
    class Loud(Toy):
        def run(self, cell, name):
            with show_progress():
                return super().run(cell, name)

    told = []
    with show_progress(lambda *step: told.append(step[0])):
        run_cells(Loud(tmp_path), CELLS[:1], tmp_path / "cells")
    assert set(told) == {"cells"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(12, "about 12 s"), (600, "about 10 min"), (9000, "about 2.5 h")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_cell_has_one_place():
    paths = {cell.path(Path("x")) for cell in CELLS}
    assert len(paths) == len(CELLS)
    assert Cell("p", "70/20/10", "D1", 3).path(Path("x")) == Path("x/p/70-20-10/D1.3.json")


def test_system_is_a_record():
    assert System("a", "b", "c", dict).name == "a"
