"""Real data, where the environment names it; tables of a plant and their model."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ocfuse import FusedDetector
from ocfuse.cli.app import run
from ocfuse.tables import TableDetector, open_source
from tests.cli.cases import plant, with_anomalies

# a busy machine is no failure; `make test-random` draws other examples each time, and more
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", patient, derandomize=True)
settings.register_profile("random", patient, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

DATA = os.environ.get("OCFUSE_DATA")
#: What takes longest, begun first, so that no process is left alone with it in the end.
LONG = (
    "tests/test_install.py",
    "tests/end_to_end/test_installed.py",
    "tests/ensemble/test_guarantees.py",
    "tests/detectors/test_conformance.py",
    "tests/ordinary/test_tables.py",
    "tests/ensemble/test_detector.py",
    "tests/serve/test_dashboard_browser.py",
    "tests/distributed/test_scoring.py",
    "tests/faults/test_killed.py",
    "tests/tables/test_detector.py",
    "tests/hardening/test_detector.py",
    "tests/ensemble/test_plan.py",
    "tests/test_tutorials.py",
    "tests/report/test_browser.py",
    "tests/golden/test_scores.py",
    "tests/lab/paper/test_paper.py",
    "tests/ensemble/test_conformance.py",
    "tests/hardening/test_model_files.py",
    "tests/cli/test_startup.py",
    "tests/lab/robot_cell/test_run.py",
    "tests/lab/robot_cell/test_cell.py",
    "tests/serve/test_server.py",
    "tests/distributed/test_fitting.py",
    "tests/vision/test_detector.py",
    "tests/lab/paper/test_runner.py",
    "tests/cli/test_watch_video.py",
    "tests/lab/test_bench.py",
    "docs/tutorials/tiles.md",
    "docs/tutorials/pump.md",
)
#: Marks of whole folders and files.
MARKS = {
    "tests/end_to_end/": "e2e",
    "tests/test_install.py": "e2e",
    "tests/test_demo.py": "e2e",
    "tests/test_examples.py": "e2e",
    "tests/test_tutorials.py": "e2e",
    "tests/report/test_browser.py": "browser",
    "tests/report/test_page.py::test_a_real_browser_prints_pages": "browser",
    "tests/serve/test_dashboard_browser.py": "browser",
    "tests/distributed/": "slow",
    "tests/faults/": "slow",
    "tests/hardening/": "slow",
    "tests/lab/": "slow",
    "tests/benchmarks/": "slow",
    "tests/reference/": "slow",
    "tests/test_figures.py": "slow",
    "tests/test_paper.py::test_scores_are_those_of_the_row_of_the_tables": "slow",
    "tests/ensemble/test_many_rows.py": "slow",
    "tests/persistence/test_archive.py::test_hostile_files_are_refused_at_once": "slow",
}


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no doctests among the tests: there are none, and it takes seconds."""
    found = yield
    return [each for each in found if type(each).__name__ != "DoctestModule"]


def pytest_collection_modifyitems(items):
    """Mark what takes long, and bring the long files to the front."""
    for item in items:
        for place, mark in MARKS.items():
            if item.nodeid.startswith(place):
                item.add_marker(mark)
    rank = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.nodeid.split("::")[0], len(LONG)))


def pytest_collection():
    """Collect no garbage while there is hardly any: it would take a fifth of the time."""
    gc.disable()


def pytest_collection_finish():
    """Spare the garbage collector what stays to the end: ten thousand tests and their modules."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def data():
    """Return the folder of the real data sets."""
    if not DATA:
        pytest.skip("OCFUSE_DATA does not name the folder of the data sets")
    return Path(DATA)


@pytest.fixture(scope="session")
def plant_folder(tmp_path_factory):
    """Return a folder with normal.csv, new.csv and model.ocf, which knows the first."""
    folder = tmp_path_factory.mktemp("plant")
    plant(300, seed=0).to_csv(folder / "normal.csv", index=False)
    with_anomalies().to_csv(folder / "new.csv", index=False)
    detector = FusedDetector("light", false_alarm_rate=0.01, random_state=0)
    model = TableDetector(detector, id="part", time="when")
    model.fit(open_source(folder / "normal.csv").read()).save(folder / "model.ocf")
    return folder


@pytest.fixture
def run_command(capsys):
    """Return what runs the command as the console script does: code, stdout, stderr."""

    def run_it(*arguments):
        with pytest.raises(SystemExit) as caught:
            run([str(argument) for argument in arguments])
        return caught.value.code, *capsys.readouterr()

    return run_it
