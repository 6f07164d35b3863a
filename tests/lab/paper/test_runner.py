"""Cells that survive a kill, measures, and keys that change with the code."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import show_progress
from ocfuse.compare import System
from ocfuse.exceptions import (
    InconsistentMeasuresError,
    InvalidInputError,
    InvalidTypeError,
    MemberError,
    OcfuseError,
)
from ocfuse.lab.paper import runner
from ocfuse.lab.paper.runner import (
    ASIDE,
    PACKAGE,
    Cell,
    code_digest,
    data_digest,
    definition_key,
    duration,
    load,
    measure,
    other_thresholds,
    package_sources,
    require_consistent,
    run_cells,
    save,
)
from ocfuse.metrics import auc
from tests.lab.paper.cases import CELLS, NAMES, TRAP, Toy, run_toy

ROOT = Path(__file__).parents[3]
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
    call = f"from tests.lab.paper.cases import run_toy; run_toy({str(tmp_path)!r})"
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


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    levels=st.sampled_from([2, 5, 1000]),
    shift=st.floats(-2, 2),
)
def test_auc_is_at_least_the_square_of_the_gmean(seed, n, m, levels, shift):
    rng = np.random.default_rng(seed)
    is_normal = rng.permutation(np.arange(n + m) < n)
    # few levels: ties within and across the classes
    test = np.round(levels * (rng.normal(size=n + m) + shift * is_normal)) / levels
    found = measure(rng.normal(size=20), test, is_normal)
    assert found["auc"] >= found["gmean"] ** 2 / 100 - 1e-5
    assert found["auc"] >= found["best_gmean"] ** 2 / 100 - 1e-5
    assert found["best_gmean"] >= found["gmean"] - 1e-5
    assert found["auc"] == pytest.approx(100 * auc(np.where(is_normal, 1, -1), test), abs=1e-6)
    assert found["prevalence"] == pytest.approx(100 * m / (n + m), abs=1e-6)


def test_bound_is_reached():
    # normals at 1 and 0, anomalies at 0.5: AUC 1/2; above 0.25: TPR 1/2, TNR 0
    found = measure(np.zeros(20), np.array([1.0, -1.0, -1.0, 1.0]), np.array([1, 1, 0, 0]) > 0)
    assert found["auc"] == 50.0
    assert found["gmean"] == 50.0


@pytest.mark.parametrize(("area", "mean"), [(0.9220, 0.9788), (0.24, 0.5), (0.25 - 1e-6, 0.5)])
def test_contradiction_is_raised(area, mean):
    with pytest.raises(InconsistentMeasuresError, match="not of the same scores"):
        require_consistent(area, mean)


def test_consistent_figures_pass():
    require_consistent(0.25, 0.5)
    require_consistent(1.0, 1.0)


def test_inconsistent_measures_are_not_returned(monkeypatch):
    monkeypatch.setattr(runner, "gmean", lambda y, predicted: 1.0)
    with pytest.raises(InconsistentMeasuresError):
        measure(np.zeros(5), np.array([0.0, 1.0]), np.array([True, False]))


@pytest.mark.parametrize("is_normal", [[1, 1, -1, -1], [1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0]])
def test_truth_must_be_boolean(is_normal):
    # of +1 and -1 all would count as normal
    with pytest.raises(InvalidTypeError, match=r"is_normal must be booleans.*y > 0"):
        measure(np.zeros(5), np.arange(4.0), np.array(is_normal))


def test_truth_must_fit_the_scores():
    with pytest.raises(InvalidInputError, match="one shape"):
        measure(np.zeros(5), np.arange(4.0), np.array([True, False]))


def test_truth_may_be_a_list():
    truth = [True, True, False, False]
    found = measure(np.zeros(5), np.arange(4.0), truth)
    assert found == measure(np.zeros(5), np.arange(4.0), np.array(truth))


def test_threshold_comes_from_validation_normals():
    is_normal = np.array([True] * 4 + [False] * 4)
    test = np.array([4.0, 3.0, 2.0, 1.0, 2.5, 0.5, 0.0, -1.0])
    low, high = (measure(np.full(99, value), test, is_normal) for value in (0.2, 2.2))
    assert low["false_alarms"] == 0.0
    assert high["false_alarms"] == 50.0
    assert low["gmean"] != high["gmean"]
    for name in ("auc", "ap", "best_gmean", "prevalence"):
        assert low[name] == high[name]


@pytest.mark.parametrize("where", [0, 1])
def test_scores_must_be_finite(where):
    scores = [np.zeros(5), np.zeros(4)]
    scores[where][2] = np.nan
    with pytest.raises(InvalidInputError, match="finite"):
        measure(*scores, np.array([True, True, False, False]))


CODE = '"""Words."""\n\n\ndef f(x):\n    """Add one."""\n    return x + 1  # why\n'


def digest_of(tmp_path, text):
    path = tmp_path / "code.py"
    path.write_text(text)
    runner._source.cache_clear()
    return code_digest([path])


def test_words_do_not_count_but_code_does(tmp_path):
    before = digest_of(tmp_path, CODE)
    assert digest_of(tmp_path, CODE.replace("Add one", "Add 1").replace("why", "how")) == before
    assert digest_of(tmp_path, CODE.replace("x + 1", "x + 2")) != before


def test_order_of_files_does_not_count(tmp_path):
    for name in ("a.py", "b.cpp"):
        (tmp_path / name).write_text(f"x = '{name}'")
    paths = [tmp_path / "a.py", tmp_path / "b.cpp"]
    assert code_digest(paths) == code_digest(paths[::-1])
    assert code_digest(paths) != code_digest(paths[:1])


def test_parts_of_a_key_do_not_run_together():
    assert definition_key("ab", "c") != definition_key("a", "bc")


def test_package_has_what_scores_and_not_what_tells():
    names = {path.relative_to(PACKAGE).as_posix() for path in package_sources()}
    assert {"fusion/local_lp.py", "detectors/kpca.py", "metrics/rows.py"} <= names
    assert not any(name.startswith(("cli/", "datasets/", "lab/", "stats/")) for name in names)
    assert any(name.endswith(".cpp") for name in names)
    assert all((PACKAGE / name).exists() for name in ASIDE)
    some = package_sources(["detectors", "metrics"])
    assert {path.relative_to(PACKAGE).parts[0] for path in some} == {"detectors", "metrics"}
    with pytest.raises(InvalidInputError, match=r"Got features\.py"):
        package_sources(["detectors", "features.py"])


def test_digest_of_data_is_that_of_the_values():
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 1, -1])
    assert data_digest(X, y) == data_digest(np.asfortranarray(X), np.repeat(y, 2)[::2])
    assert data_digest(X, y) != data_digest(X, -y)
    assert data_digest(X, y) != data_digest(X[::-1], y)


def test_other_thresholds_are_those_of_every_offset_tried():
    rng = np.random.default_rng(0)
    normals, negatives = rng.normal(1.0, size=(30, 1)), rng.normal(0.0, size=(20, 1))
    found = other_thresholds(normals[:, 0], negatives[:, 0])
    offsets = np.sort(np.vstack([normals, negatives])[:, 0])
    false_alarms, missed = (normals < offsets).mean(axis=0), (negatives >= offsets).mean(axis=0)
    at = {name: int(np.flatnonzero(offsets == offset)[0]) for name, offset in found.items()}
    gap = np.abs(false_alarms - missed)
    assert gap[at["gmean_equal"]] == gap.min()
    product = (1 - false_alarms) * (1 - missed)
    assert product[at["gmean_validation"]] == pytest.approx(product.max())
    for rate in (10, 20, 30):
        assert false_alarms[at[f"gmean_{rate}"]] <= rate / 100
        assert false_alarms[at[f"gmean_{rate}"]] > rate / 100 - 2 / 30


def test_measure_has_other_thresholds_only_with_negatives():
    scores, is_normal = np.arange(10.0), np.arange(10) > 3
    plain = measure(scores[5:], scores, is_normal)
    found = measure(scores[5:], scores, is_normal, negatives=scores[:3])
    assert plain.items() <= found.items()
    assert len(found) == len(plain) + 5
    # between the two no normal of the test is lost, and no anomaly missed
    assert found["gmean_equal"] == pytest.approx(100 * np.sqrt(5 / 6))
