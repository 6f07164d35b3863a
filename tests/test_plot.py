"""Pictures hold what they were given, on the axes they were given."""

import re
import subprocess
import sys

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from ocfuse import FusedDetector, plot
from ocfuse.detectors import KNN
from ocfuse.exceptions import InvalidInputError, MissingPackageError
from ocfuse.stats import mean_ranks
from ocfuse.system import packages
from ocfuse.tables import TableDetector
from tests.report import examples


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def why():
    return examples.full_data().explanation


def texts(labels):
    return [label.get_text() for label in labels]


def test_scores_are_shares_beside_the_threshold():
    rng = np.random.default_rng(0)
    ax = plot.scores(rng.normal(size=300), [-50.0, 0.0], offset=-2.0)
    normal, new = ax.containers
    for bars in (normal, new):
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1.0)
    assert ax.lines[0].get_xdata()[0] == -2.0
    assert texts(ax.get_legend().get_texts()) == ["normal, held out", "new", "threshold -2"]
    ax.figure.canvas.draw()


def test_scores_of_normal_rows_alone():
    assert len(plot.scores([1.0, 2.0, 3.0]).containers) == 1


def test_weights_are_a_heat_map(why):
    ax = plot.weights(why)
    assert np.array_equal(ax.images[0].get_array(), why.weights)
    assert texts(ax.get_xticklabels()) == why.member_names


def test_explanation_shows_the_costly_features_first(why):
    ax = plot.explanation(why, 0, n_features=2)
    lengths = [bar.get_width() for bar in ax.patches]
    assert lengths == sorted(why.attributions[0], reverse=True)[:2]
    assert "anomaly" in ax.get_title()
    assert ax.yaxis_inverted()
    with pytest.raises(InvalidInputError, match="row must be"):
        plot.explanation(why, len(why))


def test_names_are_no_formulas(why):
    ax = plot.agreement(np.eye(2), ["$x_1$", "^"])
    ax.figure.canvas.draw()
    assert texts(ax.get_xticklabels())[0] == r"\$x_1\$"


def test_agreement_is_written_into_the_cells():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(30, 3))
    ax = plot.agreement(S, "abc")
    assert np.allclose(np.diag(ax.images[0].get_array()), 1.0)
    assert len(ax.texts) == 9
    assert len(plot.agreement(rng.normal(size=(9, 13)), ["m"] * 13).texts) == 0
    with pytest.raises(InvalidInputError, match="names must name all 3"):
        plot.agreement(S, "ab")


def test_critical_difference_puts_the_best_on_top():
    table = np.random.default_rng(0).normal([0.0, 3.0, 0.1, 2.9], size=(30, 4))
    ax = plot.critical_difference(table, ["a", "b", "c", "d"])
    ranks = mean_ranks(table)
    order = np.argsort(ranks)
    assert texts(ax.get_yticklabels()) == ["abcd"[i] for i in order]
    assert [c.lines[0].get_xdata()[0] for c in ax.containers] == pytest.approx(ranks[order])
    colours = [c.lines[0].get_color() for c in ax.containers]
    assert colours == [plot.NORMAL, plot.NORMAL, plot.QUIET, plot.QUIET]
    with pytest.raises(InvalidInputError, match="names"):
        plot.critical_difference(table, ["a"])


def test_given_axes_are_used(why):
    _, axes = pyplot.subplots(1, 5)
    before = pyplot.get_fignums()
    assert plot.scores([1.0, 2.0], ax=axes[0]) is axes[0]
    assert plot.weights(why, ax=axes[1]) is axes[1]
    assert plot.explanation(why, ax=axes[2]) is axes[2]
    assert plot.agreement(np.eye(2), "ab", ax=axes[3]) is axes[3]
    assert plot.critical_difference(np.eye(3), "abc", ax=axes[4]) is axes[4]
    assert pyplot.get_fignums() == before


@pytest.mark.slow
@pytest.mark.parametrize("normal", [[], [np.nan], [[1.0]]])
def test_scores_must_be_numbers(normal):
    with pytest.raises(InvalidInputError, match="normal must hold finite numbers"):
        plot.scores(normal)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    known = packages.importlib.import_module

    def refuse(name):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(packages.importlib, "import_module", refuse)
    line = re.escape(packages.install_line("plot"))
    with pytest.raises(MissingPackageError, match=rf"matplotlib .* {line}"):
        plot.scores([1.0])


@pytest.mark.slow
def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, ocfuse.plot, ocfuse.report;"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "jinja2"} & set(shown.stdout.split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.CellsWarning")
def test_scores_of_a_detector_and_rows():
    detector, rows = examples.fitted(), examples.new_rows()
    ax = plot.scores(detector, rows)
    direct = plot.scores(
        detector.normal_scores_, detector.score_samples(rows), offset=detector.offset_
    )
    assert texts(ax.get_legend().get_texts()) == texts(direct.get_legend().get_texts())
    for bars, others in zip(ax.containers, direct.containers, strict=True):
        assert [bar.get_height() for bar in bars] == [bar.get_height() for bar in others]
    assert len(plot.scores(detector).containers) == 1


def test_scores_of_a_table_leave_rows_without_a_score_out():
    frame = pd.DataFrame({"flow": np.random.default_rng(0).normal(size=80)})
    model = TableDetector(FusedDetector([("knn", KNN(3))], random_state=0)).fit(frame)
    assert len(plot.scores(model, frame[:9]).containers) == 2


def test_scores_of_a_detector_that_is_not_fitted():
    with pytest.raises(InvalidInputError, match="Fit it first"):
        plot.scores(FusedDetector(), [[0.0]])


def test_a_timeline_has_alarms_and_known_events():
    values = np.array([1.0, 1.0, np.nan, -2.0, -3.0, 1.0])
    y = [1, 1, 1, -1, -1, 1]
    _, ax = pyplot.subplots()
    assert plot.timeline(values, y=y, offset=-1.0, ax=ax) is ax
    line, alarms, threshold = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), values)
    np.testing.assert_array_equal(alarms.get_xdata(), [3, 4])
    assert threshold.get_ydata()[0] == -1.0
    assert texts(ax.get_legend().get_texts()) == ["known event", "alarm", "threshold -1"]
    (event,) = ax.patches
    assert (event.get_x(), event.get_width()) == (3, 2)
    ax.figure.canvas.draw()


def test_a_timeline_over_dates():
    dates = np.datetime64("2024-01-01") + np.arange(3) * np.timedelta64(1, "D")
    ax = plot.timeline([1.0, 2.0, 3.0], time=dates)
    assert ax.get_xlabel() == "time"
    assert ax.get_legend() is None
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", ["time", "y"])
def test_a_timeline_of_other_lengths_is_refused(name):
    with pytest.raises(InvalidInputError, match=rf"{name} must have one value per sample"):
        plot.timeline([1.0, 2.0], **{name: [1]})
