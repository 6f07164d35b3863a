"""A disk that is full, a folder that takes nothing: one error, and what was there stays."""

import errno
import json
import shutil
from functools import partial

import numpy as np
import pytest

from ocfuse import FusedDetector
from ocfuse.cli.video_output import AnnotatedVideo
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.robot_cell import simulate
from ocfuse.system.files import LineFile
from ocfuse.vision import FeatureStore
from ocfuse.vision.frames import Frame
from ocfuse.vision.watch import FrameWatch
from tests.faults.cases import full_disk, on_disk, read_only, run_told, unwritable
from tests.lab.paper.cases import run_toy
from tests.lab.robot_cell.cases import PLAN
from tests.vision.cases import Blocks, needs, scene
from tests.vision.framecases import Scripted


def tried(disk, function, folder):
    """Return the error of a function and the files then, none of which is unfinished."""
    why_not, error, files = on_disk(disk, function, folder)
    if why_not:
        pytest.skip(why_not)
    assert not [name for name in files if ".part" in name]
    return error, files


def fill(folder, n_bytes=12_288):
    """Leave a page of memory on the disk."""
    (folder / "ballast").write_bytes(b"x" * n_bytes)


#: Commands and the file that each writes; names of files are those of `plant_folder`.
WRITING = {
    "m.ocf": ("fit", "normal.csv", "--members", "light", "--force"),
    "s.csv": ("score", "model.ocf", "new.csv"),
}


def run_beside(old, arguments, name, told, folder):
    """Be a command that writes a file into the folder, where there may be an old one."""
    if old is not None:
        fill(folder, 8_192)
        (folder / name).write_text(old)
    run_told([*arguments, "-o", folder / name], told)


def refused(disk, old, name, plant_folder, tmp_path):
    """Return the one line that a command prints, and the files of the disk then."""
    folder, told = tmp_path / "disk", tmp_path / "told"
    folder.mkdir()
    told.mkdir()
    words = [plant_folder / word if "." in word else word for word in WRITING[name]]
    error, files = tried(disk, partial(run_beside, old, words, name, told), folder)
    assert isinstance(error, SystemExit)
    assert (error.args, (told / "out").read_text()) == ((3,), "")
    err = (told / "err").read_text()
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    return err, files


@pytest.mark.parametrize("name", WRITING)
def test_a_command_on_a_full_disk_leaves_the_old_file(plant_folder, tmp_path, name):
    err, files = refused(full_disk, "of yesterday", name, plant_folder, tmp_path)
    assert f"{name}: No space left on device" in err
    assert set(files) - {"m.ocf.1"} == {"ballast", name}
    assert files[name] == files.get("m.ocf.1", b"of yesterday") == b"of yesterday"


@pytest.mark.parametrize("name", WRITING)
def test_a_command_names_a_folder_that_takes_no_file(plant_folder, tmp_path, name):
    err, files = refused(unwritable, None, name, plant_folder, tmp_path)
    assert str(tmp_path / "disk") in err
    assert files == {}


def write_events(folder):
    fill(folder)
    file = LineFile(folder / "events.jsonl")
    for number in range(1000):
        file.write(json.dumps({"event": number, "text": "x" * 90}).encode() + b"\n")


def test_events_on_a_full_disk_are_whole_lines(tmp_path):
    error, files = tried(full_disk, write_events, tmp_path)
    assert error.errno == errno.ENOSPC
    assert error.filename == str(tmp_path / "events.jsonl")
    lines = files["events.jsonl"].decode().splitlines(keepends=True)
    assert [json.loads(line)["event"] for line in lines] == list(range(len(lines)))
    assert lines[-1].endswith("\n")
    assert len(lines) > 10


def keep_features(folder):
    for seed in range(1000):
        FeatureStore(folder / "f").extract(Blocks(), [scene(0.5, seed=seed)])


def test_features_on_a_full_disk(tmp_path):
    error, files = tried(full_disk, keep_features, tmp_path)
    assert error.errno == errno.ENOSPC
    assert error.filename.startswith(str(tmp_path / "f"))
    assert all(name.endswith(".npz") for name in files)


def run_bench(folder):
    fill(folder)
    run_toy(folder)


def test_a_bench_on_a_full_disk_keeps_what_it_has(tmp_path):
    error, files = tried(full_disk, run_bench, tmp_path)
    assert error.errno == errno.ENOSPC
    log = files["log"].decode().splitlines()
    stored = [json.loads(files[name])["runs"] for name in files if name.endswith(".json")]
    assert 0 <= len(log) - sum(map(len, stored)) <= 1  # the last one found no room


def write_report(folder):
    (folder / "report.html").write_text("of yesterday")
    X = np.random.default_rng(0).normal(size=(40, 2))
    FusedDetector("light", random_state=0).fit(X).report(X).save(folder / "report.html")


def test_a_report_on_a_full_disk_leaves_the_old_one(tmp_path):
    error, files = tried(full_disk, write_report, tmp_path)
    assert error.errno == errno.ENOSPC
    assert error.filename == str(tmp_path / "report.html")
    assert files == {"report.html": b"of yesterday"}


def annotate(folder):
    (folder / "a.mkv").write_text("of yesterday")
    watch = FrameWatch(Scripted([1.0] * 256), 0.0, 1)
    noise = np.random.default_rng(0).integers(0, 255, (400, 400, 3), dtype=np.uint8)
    with AnnotatedVideo(watch, folder / "a.mkv") as video:
        for i in range(60):
            video.see(watch.take(Frame(i, i / 30, noise)))


def test_an_annotated_video_on_a_full_disk_leaves_the_old_one(tmp_path):
    needs("av", "PIL")
    error, files = tried(full_disk, annotate, tmp_path)
    assert error.errno == errno.ENOSPC
    assert files == {"a.mkv": b"of yesterday"}


def make_cell(folder):
    simulate(folder, PLAN)


def test_a_cell_on_a_full_disk_has_no_half_of_a_run(tmp_path):
    pytest.importorskip("pybullet", reason="the extra robots is not installed")
    error, files = tried(full_disk, make_cell, tmp_path)
    assert isinstance(error, OSError)
    assert error.errno == errno.ENOSPC
    assert set(files) <= {"cell.json", ".lock"}


@pytest.mark.parametrize("function", [run_toy, make_cell])
def test_a_folder_that_takes_nothing_is_refused_before_work(tmp_path, function):
    if function is make_cell:
        pytest.importorskip("pybullet", reason="the extra robots is not installed")
    error, files = tried(read_only, function, tmp_path)
    assert isinstance(error, OSError | InvalidInputError)
    assert "ead-only" in str(error)
    assert str(tmp_path) in str(error)
    assert files == {}


def use_features(folder):
    known = scene(0.5, seed=0)
    found = FeatureStore(folder).extract(Blocks(), [known])
    assert (found.pooled == Blocks().extract([known]).halved().pooled).all()
    FeatureStore(folder).extract(Blocks(), [scene(0.5, seed=1)])


def test_features_of_a_folder_that_takes_nothing_can_be_read(tmp_path):
    FeatureStore(tmp_path).extract(Blocks(), [scene(0.5, seed=0)])
    (path,) = tmp_path.iterdir()
    shutil.copy(path, tmp_path / path.name.replace(path.stem[-9:], "x" * 9))
    (tmp_path / f"{path.stem[:-9]}{'y' * 9}.npz").write_bytes(b"damaged")
    before = {path.name for path in tmp_path.iterdir()}
    error, files = tried(read_only, use_features, tmp_path)
    assert error.errno == errno.EROFS
    assert set(files) == before  # one that is damaged cannot be removed
