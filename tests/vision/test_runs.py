"""Several recordings as one source: read once, with their runs and their progress."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import FrameWarning, PatchKNN, PictureDetector, open_frames
from ocfuse.vision.frames import FrameSource, corrupt
from ocfuse.vision.sources import Runs
from tests.vision.cases import Blocks, runs


class Recording(FrameSource):
    """Pictures that count how often they are decoded; those that are None are damaged."""

    is_sequence = True

    def __init__(self, pictures):
        self.pictures, self.n_decoded = pictures, 0

    def __str__(self):
        return "a recording"

    def _undecoded(self):
        for picture in self.pictures:
            yield 0.0, corrupt("damaged") if picture is None else lambda p=picture: self._give(p)

    def _give(self, picture):
        self.n_decoded += 1
        return picture


def black(n):
    return np.zeros((n, 4, 4, 3), dtype=np.uint8)


def test_frames_come_in_order_and_damaged_ones_keep_their_place():
    source = Runs([black(2), Recording([None, black(1)[0]]), black(1)])
    with pytest.warns(FrameWarning, match="1 of 5 frames of 3 runs"):
        assert [frame.index for frame in source] == [0, 1, 3, 4]
    assert source.counts_ == [2, 2, 1]
    assert source.groups_.tolist() == [0, 0, 1, 1, 2]
    assert source.n_frames_ == 5


def test_one_run_has_no_groups():
    source = Runs([black(2)])
    assert len(list(source)) == 2
    assert source.groups_ is None
    assert str(source) == "the array"


def test_frames_carry_the_progress_of_their_runs():
    source = Runs([open_frames(black(2), progress=[0, 1]), open_frames(black(1), progress=[0.5])])
    assert [frame.progress for frame in source] == [0, 1, 0.5]
    assert [frame.progress for frame in source.with_progress(None)] == [None] * 3


@pytest.mark.parametrize(("told", "there"), [([0, 1], "3 or more"), ([0, 1, 2, 3], "3")])
@pytest.mark.parametrize("last", [True, False])
def test_progress_of_another_length_is_refused_by_name(told, there, last):
    wrong = Recording(list(black(3))).with_progress(told)
    right = open_frames(black(2), progress=[0, 1])
    source = Runs([right, wrong] if last else [wrong, right])
    with pytest.raises(InvalidInputError, match=f"told for {len(told)} frames of a recording, wh"):
        list(source)
    with pytest.raises(InvalidInputError, match=f"which has {there}"):
        list(wrong)


def test_all_runs_tell_their_progress_or_none_does():
    recording = Recording(list(black(3)))
    with pytest.raises(InvalidInputError, match="a recording tells no progress"):
        Runs([open_frames(black(2), progress=[0, 1]), recording])
    assert recording.n_decoded == 0


@pytest.mark.parametrize("wrong", [[[0.0], [1.0]], [0.0, np.nan], ["high", "low"]])
def test_progress_must_be_numbers(wrong):
    with pytest.raises(InvalidInputError, match="progress must hold"):
        open_frames(black(2), progress=wrong)


def test_progress_is_that_of_the_moment_at_which_the_frame_comes():
    now = iter([0.25, 0.5])
    source = open_frames(black(2), progress=lambda: next(now))
    assert [frame.progress for frame in source] == [0.25, 0.5]


@pytest.mark.slow
def test_a_fit_reads_every_frame_once_and_knows_runs_and_progress():
    pictures, run, progress = runs(n_runs=4, n_frames=8)
    recordings = [Recording(list(pictures[run == r])) for r in range(4)]
    source = Runs([r.with_progress(progress[:8]) for r in recordings])
    settings = {"members": [("knn", PatchKNN())], "false_alarm_rate": 0.3, "random_state": 0}
    fitted = PictureDetector(Blocks(), **settings).fit(source)
    assert [r.n_decoded for r in source.runs] == [8] * 4
    expected = PictureDetector(Blocks(), **settings).fit(pictures, run, progress)
    assert fitted.offset_ == expected.offset_
    assert fitted.context_range_ == [0, 1]
    assert fitted.normal_groups_.tolist() == run.tolist()
    fitted.calibrate(source)
    assert fitted.normal_groups_.tolist() == run.tolist()


def test_what_is_live_has_no_end():
    live = Recording(list(black(3)))
    live.is_live = True
    with pytest.raises(InvalidInputError, match="a recording has no end"):
        Runs([live])
    with pytest.raises(InvalidInputError, match="a recording has no end"):
        PictureDetector(Blocks()).fit(live)
    assert live.n_decoded == 0
