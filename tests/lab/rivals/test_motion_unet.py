"""The rival that predicts motion: films of a square that runs in a circle."""

import numpy as np
import pytest
import skops.io
from scipy.ndimage import gaussian_filter, shift
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError, MissingPackageError
from ocfuse.lab.rivals.motion_unet import (
    MotionRun,
    MotionUNet,
    film_of,
    optical_flow,
    shrunk,
    spliced,
)
from ocfuse.system.packages import needed

#: Frame at which something happens, and frames in a run.
EVENT, N = 14, 24


def circling(seed, side=48, event="", n=N):
    """Return a run of a textured square on a circle; joints are the angle and speed it was told."""
    random = np.random.default_rng(seed)
    turn = random.uniform(0.10, 0.16)
    angle = random.uniform(0, 2 * np.pi) + turn * np.arange(n)
    shown = angle.copy()
    if event == "jump":
        shown[EVENT:] += np.pi
    if event == "stop":
        shown[EVENT:] = shown[EVENT]
    y, x = np.mgrid[:side, :side] * (64 / side)
    frames = np.empty((n, side, side, 3), np.uint8)
    for t in range(n):
        u, v = x - 32 - 18 * np.cos(shown[t]), y - 32 - 18 * np.sin(shown[t])
        square = np.clip(7.5 - np.maximum(abs(u), abs(v)), 0, 1)
        wall = 70 + 20 * np.sin(x / 5) + 20 * np.sin(y / 7)
        picture = (1 - square) * wall + square * (180 + 40 * np.sin(u) * np.sin(v))
        if event == "occlusion" and t >= EVENT:
            picture[:, : side // 2] = 30
        noisy = picture + random.normal(0, 1.5, picture.shape)
        frames[t] = noisy.clip(0, 255)[..., np.newaxis]
    return MotionRun(frames, np.stack([np.cos(angle), np.sin(angle)], axis=1))


def camera_only(run):
    return MotionRun(run.frames)


TRAINING = [circling(seed) for seed in range(8)]
SHORT = [circling(seed, n=8) for seed in range(6)]


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("torch", reason="torch is in the extra rivals-torch")
    return MotionUNet(width=8, n_steps=80, random_state=0).fit(TRAINING)


def small(**changes):
    """Return a rival that learns next to nothing, at once."""
    pytest.importorskip("torch", reason="torch is in the extra rivals-torch")
    return MotionUNet(width=2, n_steps=2, random_state=0).set_params(**changes)


@pytest.mark.parametrize("motion", [(0.5, 0.0), (-1.3, 0.7), (3.0, 2.0), (6.0, -4.0)])
def test_flow_finds_a_shift(motion):
    scene = gaussian_filter(np.random.default_rng(0).random((96, 96)), 2.0)
    scene = (scene - scene.min()) / np.ptp(scene)
    moved = shift(scene, (motion[1], motion[0]), order=3)
    cut = np.s_[np.newaxis, 16:80, 16:80]
    flow = optical_flow(scene[cut].astype(np.float32), moved[cut].astype(np.float32))
    inner = flow[0, :, 10:-10, 10:-10]
    np.testing.assert_allclose(inner.mean(axis=(1, 2)), motion, atol=0.1)
    assert np.abs(inner - np.reshape(motion, (2, 1, 1))).mean() < 0.4


def test_flow_of_a_still_picture_and_of_camera_noise():
    still = np.random.default_rng(0).random((1, 64, 64)).astype(np.float32)
    assert (optical_flow(still, still) == 0).all()
    grain = np.random.default_rng(1).normal(0.5, 0.008, (2, 64, 64)).astype(np.float32)
    assert optical_flow(grain[:1], grain[1:]).std() < 0.3


def test_flow_does_not_take_flicker_for_motion():
    y, x = np.mgrid[:64, :64]
    wall = (0.5 + 0.1 * np.sin(x / 5) + 0.1 * np.sin(y / 7))[np.newaxis].astype(np.float32)
    assert np.abs(optical_flow(wall, 1.03 * wall)).max() < 0.4


@pytest.mark.parametrize("side", [16, 64, 100, 128])
def test_small_pictures_keep_means_and_places(side):
    frames = np.zeros((1, side, side, 3), np.uint8)
    frames[:, side // 2 :] = 200
    small = shrunk(frames)
    assert small.shape == (1, 64, 64)
    assert small.mean() == pytest.approx(100 / 255, rel=1e-5)
    np.testing.assert_allclose(small[0, :30], 0, atol=1e-6)
    np.testing.assert_allclose(small[0, 34:], 200 / 255, rtol=1e-5)


def test_history_does_not_reach_into_another_run():
    films = [film_of(run.frames, run.joints) for run in TRAINING[:2]]
    both = spliced(films)
    frames = np.arange(N)
    np.testing.assert_array_equal(both.before(N + frames, 3), films[1].before(frames, 3))
    np.testing.assert_array_equal(both.turns(N + frames), films[1].turns(frames))
    np.testing.assert_array_equal(both.moved(), [*range(1, N), *range(N + 1, 2 * N)])


def test_it_learns(model):
    assert len(model.losses_) == len(model.weights_) == 2
    for losses in model.losses_:
        assert min(losses) < losses[0] - 0.3
    assert model.n_parameters_ == sum(w.size for one in model.weights_ for w in one.values())


@pytest.mark.parametrize("event", ["jump", "occlusion"])
def test_the_unforeseen_scores_less_than_any_normal_frame(model, event):
    normal = np.concatenate([model.score(circling(seed)) for seed in (100, 101, 102)])
    scores = model.score(circling(100, event=event))
    assert scores[EVENT] < normal.min() - 1.0
    np.testing.assert_array_equal(scores[:EVENT], model.score(circling(100))[:EVENT])


def test_joints_that_move_while_the_picture_stands_still(model):
    # long after the stop the network foresees rest; only the joints can tell
    stopped, going = model.errors(circling(100, event="stop")), model.errors(circling(100))
    later = slice(EVENT + 4, None)
    assert np.median(stopped[later, 1]) > np.median(going[later, 1]) + 1.0
    assert np.median(stopped[later, 0]) < np.median(stopped[later, 1])


def test_the_score_is_minus_the_mean_error_and_unseen_normals_set_its_unit(model):
    run = circling(100)
    errors = model.errors(run)
    assert errors.shape == (N, 2)
    np.testing.assert_array_equal(model.score(run), -errors.mean(axis=1))
    held = np.concatenate([model.errors(run)[1:] for run in TRAINING[4::5]])
    np.testing.assert_allclose(np.median(held, axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.percentile(held, 95, axis=0), 1, rtol=1e-6)


def test_the_future_does_not_change_the_past(model):
    run = circling(100, event="occlusion")
    scores = model.score(run)
    for n in (1, 2, 5, EVENT, N - 1):
        part = MotionRun(run.frames[:n], run.joints[:n])
        np.testing.assert_array_equal(model.score(part), scores[:n])


def test_a_single_frame_is_a_typical_one(model):
    run = circling(100, n=1)
    np.testing.assert_array_equal(model.score(run), [0.0])


def test_equal_seeds_give_equal_scores_and_others_do_not():
    torch = pytest.importorskip("torch", reason="torch is in the extra rivals-torch")
    runs, new = SHORT[:3], SHORT[5]
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    first, second = small().fit(runs), small().fit(iter(runs))
    np.testing.assert_array_equal(first.score(new), second.score(new))
    assert not np.array_equal(first.score(new), small(random_state=1).fit(runs).score(new))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_parameters_stay():
    model = small()
    before = repr(model.get_params())
    model.fit(SHORT[:2])
    assert repr(model.get_params()) == before
    assert not hasattr(clone(model), "weights_")


@pytest.mark.parametrize("changes", [{"n_latent": 0}, {"history": 1}])
@pytest.mark.parametrize("n_runs", [1, 2, 6])
def test_any_number_of_runs_without_joints(changes, n_runs):
    model = small(**changes).fit([camera_only(run) for run in SHORT[:n_runs]])
    errors = model.errors(camera_only(SHORT[5]))
    assert errors.shape == (8, 1)
    assert np.isfinite(errors).all()
    assert len(model.weights_) == 1


def test_pictures_that_never_change_and_joints_that_never_turn():
    still = MotionRun(np.full((6, 32, 32, 3), 90, np.uint8), np.zeros((6, 2)))
    assert np.isfinite(small().fit([still, still]).score(still)).all()


def test_saved_and_loaded(model):
    data = skops.io.dumps(model)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    run = circling(100)
    np.testing.assert_array_equal(loaded.score(run), model.score(run))


FRAMES, JOINTS = TRAINING[0].frames, TRAINING[0].joints


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], "empty"),
        ([MotionRun(FRAMES[:5])], r"at least 5 frames .* Got 4"),
        ([MotionRun(FRAMES / 255.0)], r"uint8 .* Got float64"),
        ([MotionRun(FRAMES[..., 0])], r"\(n, h, w, 3\).* Got uint8 of shape \(24, 48, 48\)"),
        ([MotionRun(FRAMES[:0])], r"shape \(0, "),
        ([MotionRun(FRAMES[:, :8])], "16 pixels"),
        ([MotionRun(FRAMES, JOINTS[:-1])], r"one row per frame, n=24. Got shape \(23, 2\)"),
        ([MotionRun(FRAMES, np.full_like(JOINTS, np.nan))], "finite"),
        ([TRAINING[0], MotionRun(FRAMES)], r"runs\[1\] has 0 joints"),
    ],
)
def test_runs_that_cannot_be_used(runs, said):
    with pytest.raises(InvalidInputError, match=said):
        MotionUNet(n_steps=1).fit(runs)


def test_a_new_run_must_have_the_joints_of_training(model):
    with pytest.raises(InvalidInputError, match="run has 0 joints"):
        model.score(camera_only(circling(100)))


@pytest.mark.parametrize(
    "changes", [{"history": 0}, {"width": 1.5}, {"n_latent": -1}, {"n_steps": 0}]
)
def test_parameters_that_cannot_be_used(changes):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        MotionUNet(**changes).fit(SHORT[:2])


def test_without_torch_the_extra_is_named(monkeypatch):
    def absent(package, purpose, extra):
        return needed("no_such_torch", purpose, extra)

    monkeypatch.setattr("ocfuse.lab.rivals.motion_unet.needed", absent)
    with pytest.raises(MissingPackageError, match=r"\[rivals-torch\]"):
        MotionUNet(n_steps=1).fit(SHORT[:2])
