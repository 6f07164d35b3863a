"""The parts of the benchmark on robots that a mistake would make flattering."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.robots import recordings as loading
from benchmarks.robots import toyota
from benchmarks.robots.cell import MOTION, method
from benchmarks.robots.measures import Scored, alarms_of, measure
from benchmarks.robots.our_systems import Learned, join
from benchmarks.robots.paper_systems import MOST_FRAMES, NON_PURE, PURE, anomalies, step_of
from benchmarks.robots.recordings import BENCHMARK, KNOWN, UNSEEN, Recordings, Runs
from benchmarks.robots.tables import delay_text
from benchmarks.robots.thresholds import BY_RUN, offsets
from benchmarks.robots.views import make_view
from ocfuse.lab.paper.systems import SYSTEMS
from ocfuse.lab.robot_cell import CellPlan
from ocfuse.lab.robot_cell.cell import claim
from ocfuse.vision.trials import KINDS, Trial

N = 20


def trial(number, kind=0, subkind="", split="test", anomalies=(), seed=0):
    """Return a run of 20 frames whose joints are noise about a curve of the progress."""
    rng = np.random.default_rng(seed + number)
    progress = np.sort(rng.random(N))
    joints = np.column_stack([np.sin(3 * progress), 5 * progress]) + 0.01 * rng.normal(size=(N, 2))
    return Trial(
        f"{split}/{number}",
        split,
        [Path(f"{number}-{i}.jpg") for i in range(N)],
        np.arange(N) / 10,
        progress,
        joints,
        ["position_1", "torque_1"],
        list(anomalies),
        kind,
        subkind,
    )


def runs(*trials):
    rng = np.random.default_rng(len(trials))
    return Runs(trials, rng.normal(size=(N * len(trials), 8)).astype(np.float32))


def recordings():
    strange = [trial(7, 1, "full", anomalies=[(5, 9)]), trial(8, 3, "open", anomalies=[(10, 19)])]
    known = [trial(20 + i, 1 + i // 2, anomalies=[(0, 3 + i)]) for i in range(4)]
    return Recordings(
        runs(*(trial(i, split="train") for i in range(4))),
        runs(*(trial(4 + i, split="validation") for i in range(2))),
        runs(trial(6), *strange),
        runs(*known),
    )


def test_a_perfect_system_has_all_figures_perfect():
    data = recordings()
    found = measure(Scored("camera", "x", np.linspace(0.5, 1.5, 40), 1.0 * data.test.y), data)
    for kind in found["types"].values():
        assert kind["frame"]["auc"] == kind["run"]["auc"] == 100
    alarms = found["alarms"]
    for kind in alarms["types"].values():
        assert (kind["anomalies"], kind["found"], kind["on before"]) == (1, 1, 0)
        assert kind["delays"] == [0.0]
    assert found["runs"] == [100, 100]
    assert found["kinds"] == {"full": 100, "open": 100}
    assert alarms["false alarms"] == [0]
    assert alarms["false alarms elsewhere"] == 0
    assert alarms["frames found"] == 100
    # 5 of 40 frames, 1 of 2 runs
    assert found["types"]["1"]["frame"]["prevalence"] == 12.5
    assert found["types"]["1"]["run"]["prevalence"] == 50


def test_types_do_not_see_each_other():
    data = recordings()
    scores = np.where(data.test.run == 2, -1.0, 1.0)  # all of the third run is strange, type 3
    found = measure(Scored("camera", "x", np.ones(40), scores), data)
    assert found["types"]["1"]["frame"]["auc"] == found["types"]["1"]["run"]["auc"] == 50
    assert found["alarms"]["types"]["1"]["delays"] == [None]
    assert found["types"]["3"]["run"]["auc"] == 100
    assert found["types"]["3"]["frame"]["auc"] == pytest.approx(100 * (1 - 0.5 * 10 / 30))
    assert found["alarms"]["false alarms"] == [0]
    assert found["alarms"]["false alarms elsewhere"] == pytest.approx(100 * 10 / 25)
    # the alarm of the third run was on all the time, and has found nothing
    third = found["alarms"]["types"]["3"]
    assert (third["anomalies"], third["on before"], third["found"]) == (1, 1, 0)
    assert third["delays"] == []


@pytest.mark.parametrize(
    ("unit", "delay", "words"), [("s", 0.3, "0.3 s"), ("frames", 3, "3 frames")]
)
def test_time_to_detection_is_in_seconds_if_they_are_known(unit, delay, words):
    data = replace(recordings(), unit=unit)
    scores = np.ones(60)
    scores[N + 8] = -1.0
    found = alarms_of(scores, 0.0, data)["types"]["1"]
    assert found["delays"] == [pytest.approx(delay)]
    assert delay_text(found) == f"1 of 1, {words}"


def test_thresholds_do_not_depend_on_the_test():
    rng = np.random.default_rng(0)
    validation = rng.normal(size=200)
    one, other = (Scored("camera", "x", validation, s * np.ones(60)) for s in (1, -9))
    assert one.offset == other.offset
    assert np.mean(validation < one.offset) <= 0.01


@pytest.mark.parametrize("name", ["camera", "joints", "both"])
def test_views_are_scaled_on_the_training_runs_alone(name):
    data = recordings()
    other = Recordings(data.train, data.test, data.validation)
    np.testing.assert_array_equal(
        make_view(data, name)(data.test), make_view(other, name)(data.test)
    )


def test_both_parts_of_a_view_count_alike():
    data = recordings()
    X = make_view(data, "both")(data.train)
    n = make_view(data, "camera")(data.train).shape[1]
    assert X[:, :n].var(axis=0).sum() == pytest.approx(1)
    assert X[:, n:].var(axis=0).sum() == pytest.approx(1)


def test_known_anomalies_are_other_runs_and_not_of_the_unseen_kinds():
    assert KNOWN.seed != BENCHMARK.seed
    made = {run.kind for run in KNOWN.runs()}
    for number, kinds in UNSEEN.items():
        assert not made & set(kinds)
        assert set(kinds) < set(KINDS[number])
    assert "" not in made


def test_halves_of_the_known_anomalies_share_no_run():
    data = recordings()
    halves = [anomalies(data.known, lambda part: part.joints, turn, 1) for turn in (0, 1)]
    assert [len(half) for half in halves] == [4 + 5, 6 + 7]
    rows = [tuple(row) for half in halves for row in half]
    assert len(set(rows)) == len(rows)


def test_frames_are_thinned_to_what_is_stated():
    data = recordings()
    assert step_of(data) == 1
    many = runs(*(trial(i) for i in range(MOST_FRAMES // N + 1)))
    assert step_of(Recordings(many, data.validation, data.test)) == 2


def test_the_systems_of_the_paper_are_there():
    assert set(PURE) <= set(SYSTEMS["pure"])
    assert set(NON_PURE) <= set(SYSTEMS["non-pure"])


def learned(held_out, validation, test):
    return Learned([Scored("camera", "ours", validation, test)], held_out, {})


def test_the_stranger_score_counts_where_two_are_joined():
    normal = np.array([9.0, 10.0, 11.0])
    camera = learned(normal, normal, np.array([10.0, 0.0, 10.0]))
    joints = learned(normal * 100, normal, np.array([1000.0, 1000.0, 0.0]))
    both = join([camera, joints]).scored[-1].test
    assert both[0] == pytest.approx(0)
    assert both[1] == pytest.approx(both[2])
    assert both[1] < -5


def test_a_threshold_by_run_is_not_above_that_of_frames():
    data = recordings()
    rng = np.random.default_rng(1)
    found = offsets(learned(rng.normal(size=80), rng.normal(size=40), np.zeros(60)), data)
    assert found[BY_RUN] <= min(found.values())


def test_by_run_the_threshold_counts_runs_of_training_and_validation():
    data = recordings()
    held_out, validation = np.arange(80.0), 100 + np.arange(40.0)
    # six runs promise 1 / 7 at best: the lowest score of all
    assert offsets(learned(held_out, validation, np.zeros(60)), data)[BY_RUN] == 0.0
    assert offsets(learned(held_out + 999, validation, np.zeros(60)), data)[BY_RUN] == 100.0


def test_a_cell_of_any_size_is_loaded_as_it_says_itself(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setenv("OCFUSE_CELL", str(tmp_path / "cell"))
    monkeypatch.setattr(loading, "simulate", lambda folder, plan, jobs: asked.append(plan) or [])
    monkeypatch.setattr(loading, "make_recordings", lambda *trials: None)
    loading.load_cell(quick=False)
    assert asked == [BENCHMARK, KNOWN]
    tiny = CellPlan(train=1, validation=1, test=1, n_frames=12)
    (tmp_path / "cell").mkdir()
    claim(tmp_path / "cell", tiny)
    loading.load_cell(quick=False)
    assert asked[2:] == [tiny, KNOWN]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_rival_that_cannot_be_learned_is_told(monkeypatch, is_there):
    monkeypatch.setattr("benchmarks.robots.cell.has_torch", lambda: is_there)
    monkeypatch.setattr("benchmarks.robots.cell.version", lambda name: "1.0")
    text = method(recordings())
    assert MOTION[is_there] in text
    assert MOTION[not is_there] not in text
    assert ("torch 1.0" in text) == is_there


def test_without_recordings_the_toyota_table_says_so(monkeypatch):
    monkeypatch.setenv("OCFUSE_TOYOTA", "/nowhere")
    report = toyota.run(quick=True)
    assert "Not measured" in report.method
    assert "4578539" in report.method
    assert not report.tables
