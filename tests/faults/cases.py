"""Writers that can be killed at any moment, and disks that are full or may not be written to."""

import ctypes
import json
import os
import resource
import sys
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from ocfuse.cli.score_files import to_file
from ocfuse.detectors import KNN
from ocfuse.lab.paper.runner import Cell
from ocfuse.lab.paper.runner import load as load_cell
from ocfuse.lab.paper.runner import save as save_cell
from ocfuse.lab.paper.sheet import Sheet
from ocfuse.persistence import load, save
from ocfuse.streaming.clock import Clock, SlowMean, StreamState
from ocfuse.system.files import LineFile
from ocfuse.vision import FeatureStore
from tests.distributed.cases import run_command_line
from tests.forks import FORKS, process
from tests.vision.cases import Blocks, scene

X = np.random.default_rng(0).normal(size=(2000, 4))
CELL = Cell("part", "variant", "set", 0)


@dataclass(frozen=True)
class Writer:
    """Something that writes one version after another.

    Attributes
    ----------
    write : callable
        Takes a folder and the number of the version.
    read : callable
        Takes the folder; returns the number of the version there, having seen that it is whole.
    names : set of str
        Files that are there afterwards.
    """

    write: object
    read: object
    names: frozenset


def _write_model(folder, number):
    save(KNN(number + 1).fit(X), folder / "model.ocf")


def _read_model(folder):
    model = load(folder / "model.ocf")
    assert np.isfinite(model.score_samples(X[:9])).all()
    return model.n_neighbors - 1


def _write_scores(folder, number, name):
    with to_file(folder / name) as write:
        for first in range(0, 3000, 1000):
            frame = pd.DataFrame({"row": np.arange(first, first + 1000)})
            write(frame.assign(score=frame["row"] / 7, version=number))


def _read_scores(folder, read, name):
    table = read(folder / name)
    assert table["row"].tolist() == list(range(3000))
    (number,) = set(table["version"])
    return number


def _write_checkpoint(folder, number):
    state = StreamState(9, 4, Clock(1.0, 5.0), SlowMean(100.0, np.ones(4)))
    state.counts["seen"] = number
    save(state, folder / "stream.ocf")  # what `StreamDetector.checkpoint` does


def _read_checkpoint(folder):
    return load(folder / "stream.ocf").counts["seen"]


def _write_cell(folder, number):
    """Add a result; those before must stay."""
    save_cell(CELL, folder, {"runs": {str(number): {"key": "1", "results": {"n": [0] * 9000}}}})


def _read_cell(folder):
    json.loads(CELL.path(folder).read_text())  # load_cell takes a spoilt one for none
    runs = load_cell(CELL, folder)["runs"]
    assert list(runs) == [str(number) for number in range(len(runs))]
    return len(runs) - 1


def _write_sheet(folder, number):
    rows = [[str(number)] * 5] * 400
    Sheet("ranks", "Ranks", ["a", "b", "c", "d", "e"], rows).write(folder)


def _read_sheet(folder):
    text = (folder / "latex" / "ranks.tex").read_text()
    assert text.endswith("\\end{longtable}\n")
    table = pd.read_csv(folder / "csv" / "ranks.csv")
    assert table.shape == (400, 5)
    (number,) = set(table.to_numpy().ravel())
    assert {str(number), str(number - 1)} & set(text.split())
    return number


def _write_features(folder, number):
    FeatureStore(folder).extract(Blocks(), [scene(0.5, seed=number), scene(0.1, seed=number)])


def _read_features(folder):
    """Return the last picture that is known; everything that is there is right."""
    store = FeatureStore(folder)
    for number in count():
        pictures = [scene(0.5, seed=number), scene(0.1, seed=number)]
        n_files = len(list(folder.glob("*.npz")))
        found = store.extract(Blocks(), pictures)
        if len(list(folder.glob("*.npz"))) > n_files:  # it had to be computed
            max(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime_ns).unlink()
            return number - 1
        assert (found.pooled == Blocks().extract(pictures).halved().pooled).all()


def _write_line(folder, number):
    file = LineFile(folder / "events.jsonl")
    file.write(json.dumps({"event": number, "text": "x" * 9000}).encode() + b"\n")
    file.close()


def _read_lines(folder):
    LineFile(folder / "events.jsonl").close()  # as the next program opens it
    lines = (folder / "events.jsonl").read_text().splitlines()
    numbers = [json.loads(line)["event"] for line in lines]
    assert numbers == list(range(len(numbers)))
    return numbers[-1]


def _scores(name, read):
    return Writer(
        lambda folder, number: _write_scores(folder, number, name),
        lambda folder: _read_scores(folder, read, name),
        frozenset({name}),
    )


WRITERS = {
    "model": Writer(_write_model, _read_model, frozenset({"model.ocf"})),
    "csv": _scores("s.csv", pd.read_csv),
    "gzip": _scores("s.csv.gz", pd.read_csv),
    "parquet": _scores("s.parquet", pd.read_parquet),
    "checkpoint": Writer(_write_checkpoint, _read_checkpoint, frozenset({"stream.ocf"})),
    "bench": Writer(_write_cell, _read_cell, frozenset({"set.0.json"})),
    "tables": Writer(_write_sheet, _read_sheet, frozenset({"ranks.csv", "ranks.tex"})),
    "features": Writer(_write_features, _read_features, None),
    "events": Writer(_write_line, _read_lines, frozenset({"events.jsonl"})),
}


def write_versions(name, folder, first, pipe):
    """Write versions without end, and tell each that is there."""
    for number in count(first):
        WRITERS[name].write(folder, number)
        pipe.send(number)


def last_told(name, folder, first, seconds):
    """Kill the writer some time after its first version; return the last that it told."""
    ours, theirs = FORKS.Pipe(duplex=False)
    with process(write_versions, name, folder, first, theirs) as child:
        theirs.close()
        told = ours.recv()
        time.sleep(seconds)
        child.kill()
        child.join()
        assert child.exitcode == -9
    try:
        while True:
            told = ours.recv()
    except (EOFError, OSError):
        return told


class Big(BaseEstimator):
    """An estimator whose file has some megabytes.

    Parameters
    ----------
    mark : int
        Tells it from others.
    """

    def __init__(self, mark=0):
        self.mark = mark

    def fit(self, X=None, y=None):
        self.ballast_ = np.full(500_000, float(self.mark))
        return self


def run_fed(arguments, fifo):
    """Be the command `ocfuse`, whose standard input is a named pipe."""
    os.dup2(os.open(fifo, os.O_RDONLY), 0)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
    run_command_line(arguments)


def run_told(arguments, folder, n_bytes=None):
    """Be the command `ocfuse`, with so much more memory at most; output goes to files."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if n_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    run_command_line([str(argument) for argument in arguments])


# -- disks -----------------------------------------------------------------

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18


def mount(what, where, kind, flags, options=b""):
    """Mount something; nobody but this process sees it, and it is gone with the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = [None if text is None else os.fsencode(text) for text in (what, where, kind)]
    if libc.mount(*names, ctypes.c_ulong(flags), options):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mount")


def be_apart():
    """Leave the mounts of others alone from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS if os.geteuid() == 0 else CLONE_NEWNS | CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "unshare")
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def full_disk(folder):
    """Let a folder be a disk of 16 KB."""
    be_apart()
    mount("tmpfs", folder, "tmpfs", 0, b"size=16k")


def read_only(folder):
    """Let a folder take nothing more."""
    be_apart()
    mount(folder, folder, None, MS_BIND)
    mount(None, folder, None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def unwritable(folder):
    """Let a folder take no file: by its permissions, or where these do not bind, by a mount."""
    if os.geteuid() == 0:
        read_only(folder)
    else:
        folder.chmod(0o555)


def try_on_disk(disk, function, folder, pipe):
    """Call a function with a folder on such a disk; send its error, and all files then."""
    try:
        disk(folder)
    except OSError as error:
        pipe.send((f"nothing can be mounted here: {error}", None, None))
        return
    error = None
    try:
        function(folder)
    except (Exception, SystemExit) as caught:
        error = caught
    files = {str(path.relative_to(folder)): path.read_bytes() for path in _files(folder)}
    pipe.send((None, error, files))


def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def on_disk(disk, function, folder):
    """Return why nothing could be tried, the error of the function, and the files then."""
    ours, theirs = FORKS.Pipe(duplex=False)
    with process(try_on_disk, disk, function, folder, theirs):
        return ours.recv()
