import pickle

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import Groups
from ocfuse.vision import Features, PatchGaussian, PatchKNN
from ocfuse.vision.defects import Defects
from ocfuse.vision.patches import embedded, farthest, smoothed
from tests.vision.cases import features

MEMBERS = [PatchGaussian(), PatchKNN(), PatchKNN(strides=(8, 16), n_neighbors=3)]


def folds(n):
    return Groups(np.arange(n) % 5)


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
def test_a_strange_position_is_found_where_it_is(member):
    normal = features(80)
    member.fit(normal, folds(80))
    test = features(1, seed=5)
    test.maps[8][0, 3, 1] += 9.0
    test.maps[16][0, 1, 0] += 9.0
    distances = member.distances(test)[0]
    y, x = np.unravel_index(distances.argmax(), distances.shape)
    assert y / distances.shape[0] >= 0.5
    assert x / distances.shape[1] < 0.5
    assert member.score(test)[0] < member.score(features(20, seed=6)).min()


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
def test_held_out_scores_are_those_of_fresh_pictures(member):
    """Scores of pictures that were learned from would be much higher."""
    held_out, none = member.fit(features(100), folds(100))
    assert not len(none)
    fresh = member.score(features(100, seed=1))
    seen = member.score(features(100))
    assert abs(held_out.mean() - fresh.mean()) < 0.25 * held_out.std()
    assert seen.mean() > fresh.mean() + 0.2 * fresh.std()


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
@pytest.mark.parametrize("has_context", [False, True])
def test_a_score_does_not_depend_on_the_batch(member, has_context):
    context = np.linspace(0, 1, 60) if has_context else None
    member.learn(features(60), folds(60), context)
    test = features(70, seed=2)
    given = np.random.default_rng(0).random(70) if has_context else None
    together = member.score(test, given)
    for i in (0, 33, 69):
        alone = member.score(test.take([i]), None if given is None else given[[i]])
        assert np.allclose(alone, together[i], rtol=1e-5)


def test_the_gaussian_is_that_of_ledoit_and_wolf():
    rng = np.random.default_rng(0)
    patches = rng.normal(size=(50, 1, 1, 6)) @ rng.normal(size=(6, 6))
    given = Features(np.zeros((50, 1), np.float32), {8: patches.astype(np.float32)})
    member = PatchGaussian(strides=(8,), is_smooth=False).learn(given, folds(50))
    covariance = ledoit_wolf(patches[:, 0, 0])[0]
    new = patches[:5, 0, 0] + 1
    r = new - patches[:, 0, 0].mean(axis=0)
    expected = np.sqrt(np.einsum("nc,cd,nd->n", r, np.linalg.inv(covariance), r))
    test = Features(np.zeros((5, 1), np.float32), {8: new.reshape(5, 1, 1, 6).astype(np.float32)})
    # a mean drawn a little to itself, and a small ridge
    assert np.allclose(member.distances(test).ravel(), expected, rtol=0.02)


def test_constant_channels_do_no_harm():
    normal = features(40)
    normal.maps[8][:] = 1.0
    member = PatchGaussian(strides=(8,))
    member.fit(normal, folds(40))
    assert np.isfinite(member.score(features(5))).all()
    assert member.score(features(5)).max() < member.score(normal).min()


def test_the_nearest_neighbour_is_the_nearest():
    normal, test = features(40), features(6, seed=3)
    member = PatchKNN(n_neighbors=2).learn(normal, folds(40))
    for i in range(6):
        all_distances = np.linalg.norm(normal.maps[16] - test.maps[16][i], axis=3)
        expected = np.sort(all_distances, axis=0)[:2].mean(axis=0)
        assert np.allclose(member.distances(test)[i], expected, rtol=1e-3)  # of 16 bits


def test_with_context_only_its_time_counts():
    """A picture that was normal early is an anomaly late."""
    context = np.repeat(np.linspace(0, 1, 10), 20)
    rng = np.random.default_rng(0)
    maps = context[:, None, None, None] * 10 + rng.normal(size=(200, 2, 2, 3))
    normal = Features(np.zeros((200, 1), np.float32), {16: maps.astype(np.float32)})
    early = normal.take([0])
    for member in (PatchKNN(), PatchGaussian(strides=(16,))):
        member.learn(normal, folds(200), context)
        right, wrong = (member.score(early, np.array([c])) for c in (0.0, 1.0))
        assert wrong < right - 3
        member.learn(normal, folds(200))
        assert np.isclose(member.score(early), member.score(early, np.array([1.0])))


def test_the_nearest_neighbour_is_the_nearest_of_its_time():
    normal, test = features(300), features(20, seed=3)
    context = np.random.default_rng(0).random(300)
    member = PatchKNN(n_neighbors=2).learn(normal, folds(300), context)
    at = np.random.default_rng(1).random(20)
    found = member.distances(test, at)
    for i in range(20):
        near = np.abs(context - at[i]) <= 0.05
        assert near.sum() >= 10
        distances = np.linalg.norm(normal.maps[16][near] - test.maps[16][i], axis=3)
        assert np.allclose(found[i], np.sort(distances, axis=0)[:2].mean(axis=0), rtol=1e-3)


def test_a_gate_holds_ten_pictures_at_least():
    context = np.concatenate([np.zeros(30), [1.0]])
    member = PatchKNN().learn(features(31), folds(31), context)
    for at in (-0.2, 0.0, 0.5, 1.0, 1.7):
        low, high = member._gate(at)
        assert high - low >= 10
        assert 0 <= low < high <= 31


def test_pooling():
    member = PatchKNN(share=0.25)
    distances = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    assert member.pooled(distances)[0] == -13.5  # the mean of 12 to 15
    assert PatchKNN(share=1e-9).pooled(distances)[0] == -15


def test_smoothing_and_joining():
    maps = np.zeros((1, 3, 3, 1), np.float32)
    maps[0, 0, 0] = 9
    assert smoothed(maps)[0, :, :, 0].tolist() == [[4, 2, 0], [2, 1, 0], [0, 0, 0]]
    joined = embedded({8: np.zeros((1, 5, 5, 2)), 16: np.ones((1, 2, 2, 3))}, (16, 8), False)
    assert joined.shape == (1, 5, 5, 5)
    assert joined[0, 4, 4].tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (PatchKNN(strides=(32,)), r"strides \[32\].*gives \[8, 16\]"),
        (PatchKNN(share=0), "share must be"),
        (PatchKNN(reach=2), "reach must be"),
        (PatchKNN(n_neighbors=0), "n_neighbors must be"),
        (PatchKNN(max_patches=5), "max_patches must be"),
    ],
)
def test_wrong_settings_are_refused(member, words):
    with pytest.raises(InvalidInputError, match=words):
        member.learn(features(20), folds(20))


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
def test_defects_are_judged_by_what_has_not_seen_their_picture(member):
    """Pictures that pose as defects have the scores of pictures that were held out."""
    normal, origin = features(50), np.arange(0, 50, 3)
    held_out, strange = member.fit(normal, folds(50), None, Defects(normal.take(origin), origin))
    assert np.allclose(strange, held_out[origin], rtol=1e-5)


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
@pytest.mark.parametrize("context", [None, np.linspace(0, 1, 60)], ids=["plain", "context"])
def test_only_the_rows_are_learned(member, context):
    rows = np.arange(0, 60, 2)
    given = None if context is None else context[rows]
    test, when = features(9, seed=1), np.linspace(0, 1, 9)
    whole = member.learn(features(60), folds(60), context, rows).score(test, when)
    apart = member.learn(features(60).take(rows), folds(30), given).score(test, when)
    assert (whole == apart).all()


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
def test_sixteen_bits_are_enough(member):
    normal, test = features(80), features(30, seed=1)
    scores = [member.learn(f, folds(80)).score(test) for f in (normal, normal.halved())]
    assert np.abs(scores[0] - scores[1]).max() < 0.01 * scores[0].std()


@pytest.mark.parametrize("member", MEMBERS, ids=repr)
def test_a_copy_is_smaller_on_disk_and_says_the_same(member):
    member.learn(features(80).halved(), folds(80))
    vars(member).pop("_unseen", None)  # of training, which `take_unseen` takes and no file holds
    packed, copy = pickle.dumps(member), pickle.loads(pickle.dumps(member))
    assert len(packed) < 0.85 * sum(
        v.nbytes for v in vars(member).values() if isinstance(v, np.ndarray)
    )
    assert (copy.score(features(9, seed=1)) == member.score(features(9, seed=1))).all()


def test_the_bank_is_bounded():
    member = PatchKNN(max_patches=10).learn(features(50), folds(50))
    assert member.bank_.shape == (4, 10, 5)
    context = np.concatenate([np.full(190, 0.5), np.linspace(0, 1, 10)])
    member = PatchKNN(max_patches=40).learn(features(200), folds(200), context)
    assert member.bank_.shape[1] <= 40
    assert (np.diff(member.context_) >= 0).all()
    # what was seen rarely is all kept
    assert (np.abs(member.context_ - 0.5) > 0.05).sum() >= 8


@pytest.mark.parametrize(("reach", "most"), [(0.001, 20), (0.001, 100), (0.05, 10), (0.05, 21)])
def test_the_bank_is_bounded_however_short_the_reach(reach, most):
    context = np.random.default_rng(0).random(200)
    member = PatchKNN(reach=reach, max_patches=most).learn(features(200), folds(200), context)
    assert most / 2 <= member.bank_.shape[1] <= most
    assert member.context_[0] < 0.1
    assert member.context_[-1] > 0.9
    assert (np.diff(member.context_) >= 0).all()


def test_patches_that_are_kept_are_far_apart():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.01 * rng.normal(size=(90, 2)), 5 * rng.normal(size=(10, 2))])
    kept = farthest(X.astype(np.float32), 11)
    assert len(set(kept.tolist())) == 11
    assert set(range(90, 100)) <= set(kept.tolist())
    assert farthest(X[:5].astype(np.float32), 9).tolist() == [0, 1, 2, 3, 4]
    assert len(set(farthest(np.zeros((9, 2), np.float32), 4).tolist())) == 4


def test_a_smaller_bank_hardly_loses():
    """Of many patches that are much alike a quarter is enough, if rare ones are in it."""
    rng = np.random.default_rng(0)
    maps = rng.choice(4 * rng.normal(size=(30, 1, 1, 6)), 1000, p=np.arange(1, 31) ** 3 / 216225)
    maps = (maps + 0.1 * rng.normal(size=maps.shape)).astype(np.float32)
    known = Features(np.zeros((1000, 1), np.float32), {16: maps})
    test = known.take(slice(None, 200))
    full, small = (PatchKNN(max_patches=m).learn(known, folds(1000)) for m in (1000, 250))
    assert full.score(test).min() > -0.01
    assert small.score(test).min() > -1.5
