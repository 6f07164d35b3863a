"""kill -9 at any moment: the old file or the new one is there, and the next start is clean."""

import os
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from ocfuse import load
from ocfuse.persistence import save
from tests.cli.cases import plant
from tests.distributed.cases import run_command_line
from tests.faults.cases import WRITERS, Big, last_told, run_fed
from tests.forks import process

#: How often, and at most how many seconds after the first version.
KILLS, LONGEST = 6, 0.06


def listing(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", list(WRITERS))
def test_a_writer_killed_at_any_moment(tmp_path, name):
    writer, first = WRITERS[name], 0
    for seconds in np.random.default_rng(0).uniform(0, LONGEST, KILLS):
        told = last_told(name, tmp_path, first, seconds)
        found = writer.read(tmp_path)
        # what was told to be there is there, or the one that was just being written
        assert found in (told, told + 1)
        first = found + 1
    writer.write(tmp_path, first)
    assert writer.read(tmp_path) == first
    assert not list(tmp_path.rglob(".ocfuse-*.part"))
    if writer.names is not None:
        assert set(listing(tmp_path)) == writer.names


def save_until_killed(path):
    """Save, and be ended by the system when a file has more than a megabyte."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    save(Big(2).fit(), path)


def save_with_a_pause(path):
    """Save, but stop before the file gets its name; whoever wakes this process lets it go on."""
    replace = os.replace

    def pause(*names):
        os.kill(os.getpid(), signal.SIGSTOP)
        replace(*names)

    os.replace = pause
    save(Big(2).fit(), path)


def wait_for(condition, child, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert child.is_alive()
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_save_killed_in_the_midst_of_its_file(tmp_path):
    target = tmp_path / "model.ocf"
    save(Big(1), target)
    before = target.read_bytes()
    with process(save_until_killed, target) as child:
        child.join()
        assert child.exitcode == -signal.SIGXFSZ
    (part,) = tmp_path.glob(".ocfuse-*.part")
    assert 0 < part.stat().st_size <= 2**20
    assert target.read_bytes() == before
    save(Big(3), target)
    assert listing(tmp_path) == ["model.ocf"]
    assert load(target, trusted=[f"{Big.__module__}.Big"]).mark == 3


def is_stopped(child):
    state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def test_what_somebody_still_writes_is_left_alone(tmp_path):
    with process(save_with_a_pause, tmp_path / "model.ocf") as child:
        wait_for(lambda: is_stopped(child), child)
        save(Big(3), tmp_path / "other.ocf")
        assert len(list(tmp_path.glob(".ocfuse-*.part"))) == 1
        os.kill(child.pid, signal.SIGCONT)
        child.join()
        assert child.exitcode == 0
    assert listing(tmp_path) == ["model.ocf", "other.ocf"]


def test_fit_killed_at_any_moment(tmp_path):
    plant(120, seed=0).to_csv(tmp_path / "normal.csv", index=False)
    arguments = ["fit", str(tmp_path / "normal.csv"), "-o", str(tmp_path / "m.ocf"), "--force"]
    arguments += ["--members", "gmm-1,knn-5", "--quiet"]

    def fit(seconds):
        with process(run_command_line, arguments) as child:
            begin = time.monotonic()
            child.join(seconds)
            child.kill()
            child.join()
            return child.exitcode, time.monotonic() - begin

    code, whole = fit(None)
    assert code == 0
    codes, seconds = [], whole
    for seconds in np.random.default_rng(1).uniform(0.3 * whole, 1.05 * whole, 3):
        codes.append(fit(seconds)[0])
        assert load(tmp_path / "m.ocf").schema_.features  # the old one or the new one
    while -9 not in codes:  # the first one was slow, as the machine was busy
        seconds /= 2
        codes.append(fit(seconds)[0])
    assert fit(None)[0] == 0
    former = [f"m.ocf.{i}" for i in (1, 2, 3)]
    assert set(listing(tmp_path)) - set(former) == {"m.ocf", "normal.csv"}


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_score_killed_amid_its_rows(plant_folder, tmp_path, name):
    """The command has begun its file, and waits for more rows."""
    fifo = tmp_path / "rows"
    os.mkfifo(fifo)
    (tmp_path / name).write_text("of yesterday")
    arguments = ["score", str(plant_folder / "model.ocf"), "-", "-o", str(tmp_path / name), "-q"]
    rows = plant(300, 3).to_csv(index=False)
    for is_killed in (True, False):
        with process(run_fed, arguments, fifo) as child:
            with fifo.open("w") as feed:
                feed.write(rows)
                feed.flush()
                if is_killed:
                    wait_for(lambda: parts(tmp_path), child)
                    child.kill()
                    child.join()
            child.join()
            assert child.exitcode == (-9 if is_killed else 0)
        if is_killed:
            assert (tmp_path / name).read_text() == "of yesterday"
            assert len(parts(tmp_path)) == 1
    assert WRITTEN[name](tmp_path / name) == 300
    assert listing(tmp_path) == [name]


def parts(folder):
    return list(folder.glob(".ocfuse-*.part"))


def _csv_rows(path):
    return path.read_text().count("\n") - 1


def _parquet_rows(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_metadata(path).num_rows


WRITTEN = {"s.csv": _csv_rows, "s.parquet": _parquet_rows}
