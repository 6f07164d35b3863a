"""Progress is shown where it is asked for, and changes nothing."""

import io

import numpy as np
import pytest

from ocfuse import FusedDetector, show_progress
from ocfuse.detectors import GMM, KNN
from ocfuse.system.progress import ProgressBar, current_progress, silent

FEW = [("knn", KNN()), ("gmm", GMM(n_components=1))]
X = np.random.default_rng(0).normal(size=(100, 2))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_shows_stage_and_member(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with show_progress():
        FusedDetector(FEW, tune="rpau", random_state=0).fit(X)
    assert capsys.readouterr().out == ""
    for word in ("knn", "gmm", "tuning", "fusion"):
        assert word in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


def test_a_log_has_a_line_per_stage(capsys):
    with show_progress():
        FusedDetector(FEW, random_state=0).fit(X)
    lines = capsys.readouterr().err.splitlines()
    assert "\r" not in "".join(lines)
    assert [line.partition(":")[0] for line in lines][:2] == ["fit", "out-of-fold scores"]
    assert len(lines) < 10


def test_without_it_nothing_is_shown(capsys):
    FusedDetector(FEW, random_state=0).fit(X)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_callback_is_told_every_step(capsys):
    steps = []
    with show_progress(lambda *step: steps.append(step)):
        told = FusedDetector(FEW, tune="rpau", random_state=0).fit(X)
    assert capsys.readouterr().err == ""
    assert {stage for stage, *_ in steps} >= {"fit", "out-of-fold scores", "tuning", "fusion"}
    assert all(0 <= done <= total for _, _, done, total in steps)
    untold = FusedDetector(FEW, tune="rpau", random_state=0).fit(X)
    np.testing.assert_array_equal(told.score_samples(X), untold.score_samples(X))


def test_silence_returns_after_an_error():
    with pytest.raises(KeyError), show_progress(lambda *step: None):
        raise KeyError
    assert current_progress() is silent


def test_the_inner_block_counts():
    outer, inner = [], []
    with show_progress(lambda *step: outer.append(step)):
        with show_progress(lambda *step: inner.append(step)):
            current_progress()("a", "b", 0, 1)
        current_progress()("c", "d", 0, 1)
    assert (outer, inner) == ([("c", "d", 0, 1)], [("a", "b", 0, 1)])


def test_bar_rewrites_one_line():
    stream = Terminal()
    bar = ProgressBar(stream)
    bar("members", "a long name", 1, 2)
    bar("members", "short", 2, 2)
    bar.close()
    lines = stream.getvalue().split("\r")
    assert len({len(line.rstrip("\n")) for line in lines[1:]}) == 1
    assert stream.getvalue().endswith("\n")


def test_unused_bar_leaves_no_line(capsys):
    with show_progress():
        pass
    assert capsys.readouterr().err == ""
