"""Parts of `ocfuse watch --video`: stalls, curve, signals."""

import datetime
import inspect
import json
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from ocfuse.cli import video_output, watch, watch_video
from ocfuse.cli.runtime import wish_to_stop
from ocfuse.cli.video_output import Curve
from ocfuse.vision.live import StallError
from ocfuse.vision.watch import FrameWatch
from tests.vision.framecases import Scripted, numbered


def test_a_stall_is_a_line_and_an_error_after_what_was_seen(capsys):
    forever = threading.Event()

    class Camera:
        is_live, skipped_, progress = True, (), None

        def __iter__(self):
            yield from numbered(2)
            forever.wait()

        def __str__(self):
            return "camera 0"

    assert watch_video.patience(Camera(), None) == 5.0
    frames = FrameWatch(Scripted([1.0, 1.0]), 0.0, 1)
    flags = {"json": True, "show_all": False, "quiet": True}
    with pytest.raises(StallError, match="camera 0 has given no frame"):
        watch_video.watch_run(frames, Camera(), watch_video.Outputs(), **flags, timeout=0.3)
    forever.set()
    stall, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert (stall["kind"], stall["state"]) == ("silent", "begin")
    assert stall["reason"].startswith("camera 0 has given no frame for 0.3 s")
    assert "--timeout" in stall["reason"]
    assert (summary["kind"], summary["frames"]) == ("summary", 2)


def test_pictures_of_events_outlive_a_clock_that_is_set_back(monkeypatch, tmp_path):
    class Frozen:
        @staticmethod
        def now():
            return datetime.datetime(2024, 10, 27, 2, 30)

    monkeypatch.setattr(video_output, "datetime", Frozen)
    alarm = SimpleNamespace(number=1)
    paths = []
    for _ in range(3):
        paths.append(video_output.Thumbnails(None, tmp_path).path(alarm))
        paths[-1].write_text("")
    assert [path.name for path in paths] == [
        "20241027-023000-event-0001.jpg",
        "20241027-023000-2-event-0001.jpg",
        "20241027-023000-3-event-0001.jpg",
    ]


def test_the_first_signal_asks_and_the_second_insists():
    told, before = [], signal.getsignal(signal.SIGINT)
    with wish_to_stop(lambda: told.append(True)) as stop:
        signal.raise_signal(signal.SIGINT)
        assert (stop.is_asked, stop.code) == (True, 130)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with wish_to_stop(lambda: told.append(True)) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert (stop.is_asked, stop.code) == (True, 0)
    assert told == [True, True]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_curve_goes_up_with_the_score_and_stays_in_its_box():
    curve = Curve(low=-3.0, high=1.0, threshold=-1.0, width=10, height=4)
    levels = [curve.level(score) for score in np.linspace(-9, 9, 50)]
    assert levels == sorted(levels, reverse=True)
    assert (levels[0], levels[-1]) == (15, 0)
    drawn = curve.draw([0.0] * 50 + [-9.0])
    lines = drawn.plain.rstrip("\n").split("\n")
    assert [len(line) for line in lines] == [10] * 4
    assert set(lines[2]) <= {"-"} or set(lines[1]) <= {"-"}  # the threshold
    assert [style for style in drawn.spans if "red" in str(style.style)]


def test_a_terminal_without_dots_has_stars():
    drawn = Curve(-3.0, 1.0, -1.0, width=6, height=3, is_ascii=True).draw([0.0, -2.0])
    assert drawn.plain.isascii()
    assert "*" in drawn.plain


def test_flags_have_the_defaults_of_the_library():
    """Which the help must not import."""
    (option,) = (p for p in typer.main.get_command(watch.app).params if p.name == "min_frames")
    assert option.default == inspect.signature(FrameWatch).parameters["min_frames"].default


@pytest.mark.slow
def test_no_help_for_recordings_imports_what_takes_long():
    code = (
        "import sys; from ocfuse.cli.app import app; "
        "[app([name, '--video', '--help'], standalone_mode=False) for name in ('fit', 'watch')]; "
        "assert not {'sklearn', 'scipy', 'pandas', 'av', 'PIL'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
