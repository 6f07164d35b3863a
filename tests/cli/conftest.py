"""Recordings, and models of them, which are made once for all tests of a process."""

import io
import json
from collections import Counter
from contextlib import redirect_stdout

import numpy as np
import pytest

from ocfuse.cli.app import run
from ocfuse.encoder import FeatureEncoder
from ocfuse.tables.text import TextSource
from tests.vision.cases import lighten
from tests.vision.framecases import N_FRAMES, N_RUNS, STAIN, run_frames, write_video

FIT = ("--size", 64, "--false-alarms", 0.15)


@pytest.fixture
def light(monkeypatch):
    """Learn without what takes its time."""
    lighten(monkeypatch)


@pytest.fixture
def counted(monkeypatch):
    """Count how often text files are read, and the rows that go through the chain of scores."""
    counts = Counter()
    frames, encode = TextSource.frames, FeatureEncoder.encode

    def counted_frames(source):
        counts["reads"] += 1
        return frames(source)

    def counted_encode(encoder, codes, *cells):
        counts["scored"] += len(codes)
        return encode(encoder, codes, *cells)

    monkeypatch.setattr(TextSource, "frames", counted_frames)
    monkeypatch.setattr(FeatureEncoder, "encode", counted_encode)
    return counts


@pytest.fixture(scope="session")
def cell(tmp_path_factory):
    """Return a folder of normal runs, with and without their progress, other runs, and models.

    `model.ocf` knows nothing of the progress, `progress.ocf` does; `model.txt` and
    `progress.txt` hold what was said of them.
    """
    folder = tmp_path_factory.mktemp("cell")
    numbers = "\n".join(map(str, np.linspace(0, 1, N_FRAMES)))
    for name in ("runs", "told"):
        (folder / name).mkdir()
    for i in range(N_RUNS):
        content = write_video(folder / "runs" / f"run{i}.mp4", run_frames(i)).read_bytes()
        (folder / "told" / f"run{i}.mp4").write_bytes(content)
        (folder / "told" / f"run{i}.progress").write_text(numbers)
    write_video(folder / "normal.mp4", run_frames(98))
    content = write_video(folder / "strange.mp4", run_frames(99, STAIN)).read_bytes()
    (folder / "stain.mp4").write_bytes(content)  # the same with its progress
    (folder / "stain.progress").write_text(numbers)
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        for runs, model, *flags in (("runs", "model", "--json"), ("told", "progress")):
            said = fitted("--video", folder / runs, "-o", folder / f"{model}.ocf", *flags)
            (folder / f"{model}.txt").write_text(said)
    return folder


def fitted(*arguments):
    """Learn, and return what is said on stdout."""
    with redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit) as caught:
        run(["fit", *map(str, (*arguments, *FIT))])
    assert caught.value.code == 0
    return said.getvalue()


@pytest.fixture
def watch(cell, run_command):
    """Return what watches a recording: code, lines of JSON, stderr."""

    def run_it(video, *arguments, model="model.ocf"):
        code, text, err = run_command("watch", cell / model, "--video", cell / video, *arguments)
        return code, [json.loads(line) for line in text.splitlines()], err

    return run_it
