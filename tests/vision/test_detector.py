import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import ocfuse
from ocfuse import FusedDetector
from ocfuse.exceptions import (
    FewSamplesWarning,
    InvalidInputError,
    SuspectInputWarning,
    ThresholdWarning,
)
from ocfuse.vision import FrameWarning, PatchGaussian, PatchKNN, PictureDetector, PooledMembers
from ocfuse.vision.fit import training_folds
from ocfuse.vision.frames import FrameSource
from tests.vision.cases import Blocks, needs, runs, scene

needs("PIL.Image")

LIGHT = [
    ("gaussian", PatchGaussian()),
    ("knn", PatchKNN()),
    ("pooled", PooledMembers(FusedDetector("light", random_state=0))),
]


def make(**settings):
    usual = {"members": LIGHT, "false_alarm_rate": 0.2, "random_state": 0}
    return PictureDetector(Blocks(), **(usual | settings))


@pytest.fixture(scope="module")
def cell():
    return runs()


@pytest.fixture(scope="module")
def detector(cell):
    frames, run, progress = cell
    return make().fit(frames, groups=run, context=progress)


def broken(progress, seed=0):
    """Return a scene with a stain."""
    picture = scene(progress, seed=seed)
    picture[50:58, 8:16] = 20
    return picture


@pytest.fixture(scope="module")
def test_set():
    fresh, _, progress = runs(3, seed=9)
    strange = np.stack([broken(p, seed=i) for i, p in enumerate(progress)])
    return np.concatenate([fresh, strange]), np.tile(progress, 2), np.repeat([1, 0], len(fresh))


def test_stains_are_found_and_placed(detector, test_set):
    pictures, progress, is_normal = test_set
    scores = detector.score_samples(pictures, progress)
    assert roc_auc_score(is_normal, scores) > 0.99
    explanation = detector.explain(pictures[is_normal == 0], progress[is_normal == 0])
    places = np.array([explanation.place(i) for i in range(len(explanation))])
    assert np.mean(np.abs(places - [54 / 64, 12 / 64]).max(axis=1) < 0.13) > 0.9


def test_something_normal_at_the_wrong_time_is_found(detector):
    late = np.stack([scene(1.0, seed=i) for i in range(8)])
    right, wrong = (detector.score_samples(late, np.full(8, c)) for c in (1.0, 0.2))
    assert wrong.max() < right.min()


def test_false_alarms_stay_within_the_rate(detector, test_set):
    pictures, progress, is_normal = test_set
    alarms = detector.predict(pictures, progress) < 0
    assert alarms[is_normal == 1].mean() <= 0.35  # three runs only
    assert alarms[is_normal == 0].mean() > 0.9


def test_fusion_is_no_worse_than_its_best_family(detector, test_set):
    pictures, progress, is_normal = test_set
    raw = detector.transform_raw(pictures, progress)
    best = max(roc_auc_score(is_normal, column) for column in raw.T)
    assert roc_auc_score(is_normal, detector.fusion_.fuse(raw)) > best - 0.01


def test_save_and_load(detector, test_set, tmp_path):
    pictures, progress, _ = test_set
    loaded = ocfuse.load(
        detector.save(tmp_path / "cell.ocf"), trusted=["tests.vision.cases.Blocks"]
    )
    assert (
        loaded.score_samples(pictures, progress) == detector.score_samples(pictures, progress)
    ).all()
    assert loaded.offset_ == detector.offset_


@pytest.mark.slow
def test_the_same_seed_gives_the_same_detector(detector, cell, test_set):
    frames, run, progress = cell
    pictures, at, _ = test_set
    again = make().fit(frames, run, progress)
    assert (again.score_samples(pictures, at) == detector.score_samples(pictures, at)).all()


@pytest.mark.slow
def test_features_may_be_given(cell, test_set):
    frames, run, _ = cell
    pictures, _, is_normal = test_set
    features = Blocks().extract(list(frames))
    detector = make().fit(features, groups=run)
    scores = detector.score_samples(Blocks().extract(list(pictures)))
    assert np.allclose(scores, detector.score_samples(pictures), atol=1e-4)
    assert roc_auc_score(is_normal, scores) > 0.8


def test_explanations_add_up(detector, test_set):
    pictures, progress, _ = test_set
    explanation = detector.explain(pictures[-2:], progress[-2:])
    assert np.allclose(explanation.contributions.sum(axis=1), explanation.score)
    assert explanation.maps.shape == (2, 8, 8)
    text = explanation.describe(0)
    assert text.startswith("anomaly: score")
    assert "knn" in text
    assert "most unusual place" in text
    overlay = explanation.overlay(0, pictures[-2])
    redder = overlay[..., 0].astype(int) - pictures[-2][..., 0]
    assert redder[50:58, 8:16].mean() > 20 + redder[:20, 40:].mean()


def test_marks_are_on_stains_and_hardly_on_normal_pictures(detector, test_set):
    pictures, progress, is_normal = test_set
    explanation = detector.explain(pictures, progress)
    assert explanation.place_limit == detector.place_limit_
    marked = np.array([explanation.marks(i) for i in range(len(pictures))])
    rows, columns = slice(50 * 9 // 8, 58 * 9 // 8), slice(9, 18)  # cells of the stain
    assert marked[is_normal == 0][:, rows, columns].any(axis=(1, 2)).mean() > 0.9
    assert marked[is_normal == 1].any(axis=(1, 2)).mean() < 0.5


def test_models_from_before_there_were_limits_of_places_mark_too(detector, test_set):
    older = copy.copy(detector)
    del older.place_limit_
    assert older.explain(test_set[0][:1], test_set[1][:1]).place_limit == 4.0


@pytest.mark.slow
def test_members_join_backbones(cell, test_set):
    frames, run, _ = cell
    pictures, _, is_normal = test_set
    members = {"fine": [("knn", PatchKNN(strides=(8,)))], "coarse": [("gaussian", PatchGaussian())]}
    detector = PictureDetector(
        {"fine": Blocks(), "coarse": Blocks(32)}, members=members, random_state=0
    )
    with pytest.warns(FewSamplesWarning):
        detector.fit(frames, groups=run)
    assert [family.name for family in detector.families_] == ["fine/knn", "coarse/gaussian"]
    assert roc_auc_score(is_normal, detector.score_samples(pictures)) > 0.9
    assert detector.explain(pictures[:1]).maps.shape == (1, 8, 8)


@pytest.mark.slow
def test_calibration_moves_the_threshold_only(detector, cell):
    fresh, run, progress = runs(6, seed=4)
    moved = fast().fit(cell[0], cell[1], cell[2])
    before = moved.score_samples(fresh, progress)
    moved.calibrate(fresh, groups=run, context=progress)
    assert (moved.score_samples(fresh, progress) == before).all()
    assert moved.offset_ != detector.offset_
    assert np.mean(before < moved.offset_) <= 0.2
    assert moved.set_threshold(offset=-3.0).offset_ == -3.0


@pytest.mark.parametrize("way", ["score_samples", "predict", "calibrate"])
def test_context_in_other_units_is_told(detector, cell, way):
    frames, run, progress = cell
    call = getattr(copy.copy(detector), way)
    settings = {"groups": run} if way == "calibrate" else {}
    with pytest.warns(SuspectInputWarning, match=r"0 to 1 in training, and is 9.*units") as told:
        call(frames, context=100 * progress, **settings)
    assert len(told) == 1
    call(frames, context=1.9 * progress, **settings)  # a warning would be an error


def test_p_values_follow_scores(detector, test_set):
    pictures, progress, _ = test_set
    scores, p = (f(pictures, progress) for f in (detector.score_samples, detector.p_values))
    order = np.argsort(scores)
    assert (np.diff(p[order]) >= 0).all()
    assert 0 < p.min() <= p.max() <= 1


@pytest.mark.slow
def test_groups_and_context_count_frames_that_were_skipped(tmp_path, cell):
    image = pytest.importorskip("PIL.Image")
    frames, run, progress = cell
    for i, frame in enumerate(frames):
        image.fromarray(frame).save(tmp_path / f"{i:03}.png")
    (tmp_path / "010.png").write_bytes(b"damaged")
    with pytest.warns(FrameWarning, match="1 of 96"):
        skipping = fast().fit(tmp_path, groups=run, context=progress)
    kept = np.arange(96) != 10
    whole = fast().fit(frames[kept], groups=run[kept], context=progress[kept])
    assert np.allclose(skipping.training_scores_, whole.training_scores_)
    with (
        pytest.raises(InvalidInputError, match="each of the 96 frames"),
        pytest.warns(FrameWarning),
    ):
        fast().fit(tmp_path, groups=run[kept])


@pytest.mark.slow
def test_a_store_changes_nothing_but_time(cell, test_set, tmp_path):
    frames, run, progress = cell
    pictures, at, _ = test_set
    plain = fast().fit(frames, run, progress).score_samples(pictures, at)
    for _ in range(2):
        stored = fast(store=tmp_path / "kept").fit(frames, run, progress)
        kept = set((tmp_path / "kept").iterdir())
        assert (stored.score_samples(pictures, at) == plain).all()
    assert kept
    assert set((tmp_path / "kept").iterdir()) == kept  # scoring writes nothing


@pytest.mark.slow
def test_a_failed_fit_leaves_the_detector_as_it_was(cell, test_set):
    frames, run, progress = cell
    detector = fast().fit(frames, run, progress)
    before = detector.score_samples(test_set[0][:3], test_set[1][:3])
    with pytest.raises(InvalidInputError):
        detector.fit(frames, run[:5], progress)
    assert (detector.score_samples(test_set[0][:3], test_set[1][:3]) == before).all()


def test_mistakes_are_told(detector, cell):
    frames, _, progress = cell
    with pytest.raises(InvalidInputError, match="context must be given"):
        detector.score_samples(frames[:2])
    with pytest.raises(InvalidInputError, match="each of the 4 frames"):
        detector.score_samples(frames[:4], progress[:2])
    with pytest.raises(InvalidInputError, match="At least 10"):
        make().fit(frames[:5])
    with pytest.raises(InvalidInputError, match="finite"):
        make().fit(frames, context=np.where(progress > 0.5, np.nan, progress))
    with pytest.raises(InvalidInputError, match="vary"):
        make().fit(frames, context=np.zeros(len(frames)))
    with pytest.raises(InvalidInputError, match="pairs"):
        PictureDetector(Blocks(), members=[PatchKNN()]).fit(frames)
    with pytest.raises(InvalidInputError, match=r"backbones: blocks\. Got 'block'"):
        make(members={"block": LIGHT}).fit(frames)
    with pytest.raises(InvalidInputError, match="backbones blocks"):
        make().fit({"other": Blocks().extract(list(frames))})
    with pytest.raises(NotFittedError):
        make().score_samples(frames)
    with pytest.raises(InvalidInputError, match="false_alarm_rate"):
        make(false_alarm_rate=2).fit(frames)


@pytest.mark.slow
def test_a_backbone_without_maps_has_pooled_members(cell, monkeypatch):
    light = FusedDetector("light", random_state=0)
    monkeypatch.setattr("ocfuse.vision.fit.pooled_detector", lambda seed: light)

    class Flat(Blocks):
        def _run(self, x):
            return super()._run(x)[-1:]

    detector = make(members=None)
    detector.set_params(backbone=Flat())
    detector.fit(cell[0], groups=cell[1])
    assert [family.name for family in detector.families_] == ["pooled"]
    assert detector.explain(cell[0][:2]).maps.shape == (2, 0, 0)


class Recording(FrameSource):
    """A video whose length nobody knows beforehand."""

    is_sequence = True

    def __init__(self, frames):
        self.frames = frames

    def __str__(self):
        return "recording"

    def _undecoded(self):
        yield from ((i / 30, lambda frame=frame: frame) for i, frame in enumerate(self.frames))


def fast(**settings):
    return make(members=LIGHT[:2], **settings)


@pytest.mark.slow
def test_one_run_promises_nothing_for_others(cell):
    video = Recording(cell[0][:40])
    with pytest.warns(FewSamplesWarning, match="One run cannot tell how runs differ"):
        alone = fast(false_alarm_rate=0.05).fit(video)
    assert alone.threshold_rate_ == 0.5
    assert alone.offset_ == alone.training_scores_.min()
    with pytest.raises(InvalidInputError, match="context cannot be learned from one run"):
        fast().fit(video, context=cell[2][:40])
    several = fast().fit(cell[0], groups=cell[1])
    with pytest.warns(FewSamplesWarning, match=r"One run.* 0\.5\.$"):
        several.calibrate(video)
    assert several.threshold_rate_ == 0.5


@pytest.mark.slow
def test_runs_that_nobody_told_are_noticed(cell):
    frames = np.repeat(cell[0], 2, axis=0)
    with pytest.warns(ThresholdWarning, match="Give groups"):
        fast().fit(frames)
    with pytest.warns(ThresholdWarning, match="Give groups"):
        fast().fit(Blocks().extract(list(frames)))
    parts = np.stack([scene(0.5, seed=i) for i in range(40)])
    independent = fast().fit(parts)  # and no warning
    with pytest.warns(ThresholdWarning, match="Give groups"):
        independent.calibrate(frames)


def test_stretches_of_a_video_are_purged():
    fold = training_folds(None, 100, True, 0)
    withheld = fold.withheld(fold.label)
    assert np.flatnonzero(withheld[:, 2]).tolist() == list(range(35, 65))
    assert not training_folds(None, 100, False, 0).purge


@pytest.mark.parametrize("n", [10, 30])
def test_a_context_of_another_length_is_refused(detector, cell, n):
    frames, progress = cell[0][:20], cell[2][:n]
    given = (frames, Blocks().extract(list(frames)), Recording(frames))
    for pictures in given:
        for method in (detector.score_samples, detector.explain, detector.predict):
            with pytest.raises(InvalidInputError, match=r"context must have one value"):
                method(pictures, progress)


def test_calibration_refuses_groups_of_another_length_and_changes_nothing(detector, cell):
    before = detector.offset_
    for groups, context in ((cell[1][:30], cell[2][:20]), (cell[1][:20], cell[2][:30])):
        with pytest.raises(InvalidInputError, match="each of the 20 frames"):
            detector.calibrate(cell[0][:20], groups, context)
    assert detector.offset_ == before
