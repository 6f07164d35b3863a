"""Members that take up rows and forget others, against those that learn all anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.svm import OneClassSVM

from ocfuse.detectors import (
    GMM,
    KNN,
    KPCA,
    LOF,
    SVDD,
    Compressed,
    Forest,
    Mahalanobis,
    Marginal,
    Whitened,
)
from ocfuse.detectors.change import updated_pool
from ocfuse.detectors.gram import Gram, Query, Reference, RowChange
from ocfuse.detectors.landmarks import Landmarks
from ocfuse.detectors.pool import Pool, make_pool

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4))
X = RNG.normal(size=(900, 4)) @ W
NEW = RNG.normal(size=(200, 4)) @ W
LANDMARKS = {"max_samples": 80, "landmarks": 80}


def changed(rows, kept, added):
    """Return a change of rows, and a Gram of those of after with the same scale."""
    old = Reference(rows)
    new = old.like(np.vstack([rows[kept], added]), kept)
    return RowChange(old, new, kept, added)


def updated(member, n=800, kept=None, n_added=20):
    """Return a member that was updated, and one learned anew from the rows of then."""
    kept = np.arange(n) if kept is None else kept
    before = clone(member).fit_gram(Gram(X[:n]))
    change = changed(X[:n], kept, X[n : n + n_added])
    change = RowChange(before.reference_, *_rest(before.reference_, kept, change.added))
    return before.updated(change), clone(member).fit_gram(Gram.of(change.new)), change


def _rest(old, kept, added):
    new = old.like(np.vstack([old.X[kept], added]), kept)
    return new, kept, added


def seen_by(member, change, rows=NEW):
    return member.score_query(change.new.query(rows))


@pytest.mark.parametrize("kept", [np.arange(800), np.arange(60, 800), np.arange(0, 800, 3)])
@pytest.mark.parametrize("member", [KNN(5), KNN(1), Marginal(), GMM(1)], ids=str)
def test_some_members_are_what_a_fit_would_be(member, kept):
    after, fit, change = updated(member, kept=kept)
    found, wanted = seen_by(after, change), seen_by(fit, change)
    # a Gaussian is learned about another centre, in another unit of what is added to variances
    np.testing.assert_allclose(found, wanted, rtol=2e-3 if isinstance(member, GMM) else 1e-12)


def test_a_mahalanobis_distance_is_what_a_fit_would_be():
    after, _, change = updated(Mahalanobis())
    fit = Mahalanobis().fit(change.new.X)
    np.testing.assert_allclose(seen_by(after, change), fit.score_samples(NEW), rtol=1e-10)
    # views that others share stay as they were
    assert change.new.view(Whitened.view).coordinates is (
        change.old.view(Whitened.view).coordinates
    )


@pytest.mark.parametrize("kept", [np.arange(800), np.arange(20, 800)])
@pytest.mark.parametrize(
    "member", [LOF(30), LOF((10, 20)), Whitened(LOF(20)), Compressed(KNN(5))], ids=str
)
def test_neighbourhoods_rank_rows_as_those_of_a_fit_do(member, kept):
    after, _, change = updated(member, kept=kept)
    fit = clone(member).fit(change.new.X)
    assert spearmanr(seen_by(after, change), fit.score_samples(NEW))[0] > 0.995


def test_a_neighbourhood_is_looked_at_again_when_a_tenth_of_it_is_new():
    after, fit, _ = updated(LOF(30), n_added=100)
    factor = after.factors_[0]
    assert (factor.changes < 3).all()
    renewed = np.flatnonzero(factor.changes == 0)
    np.testing.assert_allclose(factor.radii[renewed], fit.factors_[0].radii[renewed], rtol=1e-12)
    assert (factor.changes[800:] == 0).all()  # the new rows are known in full


def test_far_more_rows_gone_than_left_is_a_fit():
    after, fit, change = updated(LOF(20), kept=np.arange(700, 800))
    np.testing.assert_allclose(seen_by(after, change), seen_by(fit, change), rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 2.0])
@pytest.mark.parametrize("n_gone", [0, 40])
def test_kernel_directions_are_those_of_all_rows_at_the_same_landmarks(shift, n_gone):
    member = KPCA(subspace=40, width=0.5, **LANDMARKS)
    before = clone(member).fit_gram(Gram(X[:800]))
    root = Reference(X[:800])
    added = X[800:840] + shift
    change = RowChange(root, *_rest(root, np.arange(n_gone, 800), added))
    after = before.updated(change)
    before.values_ = None  # then all rows are learned from again
    again = before.updated(change)
    rows = np.vstack([NEW, NEW[:50] + shift])
    found, wanted, old = (m._score(m.reference_.query(rows)) for m in (after, again, before))
    error = np.abs(found - wanted).mean()
    assert spearmanr(found, wanted)[0] > 0.998
    assert error < 0.25 * np.abs(old - wanted).mean() or error < 1e-3
    assert (after.changed_, again.changed_) == (40 + n_gone, 0)
    np.testing.assert_allclose(after.mean_, again.mean_, rtol=1e-6)


def test_kernel_directions_are_learned_again_once_a_fifth_of_the_rows_is_new():
    member = KPCA(subspace=40, width=0.5, **LANDMARKS).fit_gram(Gram(X[:500]))
    root = Reference(X[:500])
    for n_added, expected in ((50, 50), (140, 0)):
        change = RowChange(root, *_rest(root, np.arange(500), X[500 : 500 + n_added]))
        assert member.updated(change).changed_ == expected


def test_a_share_of_the_trees_is_grown_anew_in_turn():
    forest = Forest(50, rows_per_tree=64, random_state=0).fit_gram(Gram(X[:800]))
    root = Reference(X[:800])
    change = RowChange(root, *_rest(root, np.arange(800), X[800:840]))
    after = forest.updated(change)
    again = after.updated(change)
    is_new = [(a.drawn_ != b.drawn_).any(axis=1) for a, b in ((forest, after), (after, again))]
    assert [np.flatnonzero(new).tolist() for new in is_new] == [[0, 1], [2, 3]]
    same = forest.trees_.follow(NEW)[:, 4:] == again.trees_.follow(NEW)[:, 4:]
    assert same.all()
    np.testing.assert_array_equal(forest.updated(change).trees_.lengths, after.trees_.lengths)


def test_trees_of_other_heights_score_as_they_are():
    low = Forest(4, rows_per_tree=4, random_state=0).fit(X[:50]).trees_
    high = Forest(2, rows_per_tree=64, random_state=0).fit(X[:200]).trees_
    joined = low.with_others(high, np.array([1, 3]))
    found = joined.follow(NEW)
    np.testing.assert_array_equal(found[:, [1, 3]], high.follow(NEW))
    np.testing.assert_array_equal(found[:, [0, 2]], low.follow(NEW)[:, [0, 2]])


def test_several_gaussians_go_on_from_where_they_are():
    both = np.vstack([X[:400], X[400:800] + 12.0])
    before = GMM(2, random_state=0).fit_gram(Gram(both))
    root = before.reference_
    added = np.vstack([X[800:830] + 12.0])
    after = before.updated(RowChange(root, *_rest(root, np.arange(800), added)))
    fit = GMM(2, random_state=0).fit(np.vstack([both, added]))
    rows = np.vstack([NEW, NEW + 12.0])
    found = after._score(after.reference_.query(rows))
    assert spearmanr(found, fit.score_samples(rows))[0] > 0.999
    assert np.abs(found - fit.score_samples(rows)).mean() < 0.05


@settings(deadline=None, max_examples=20)
@given(n_gone=st.integers(0, 150), n_added=st.integers(0, 60), seed=st.integers(0, 9))
def test_neighbours_are_exact_whatever_comes_and_goes(n_gone, n_added, seed):
    rows = np.random.default_rng(seed).normal(size=(300, 3))
    kept = np.sort(np.random.default_rng(seed + 1).permutation(300)[n_gone:])
    pool = Pool([("knn", KNN(3)), ("tails", Marginal())]).fit(rows[:300])
    added = np.random.default_rng(seed + 2).normal(size=(n_added, 3))
    after, unchanged = updated_pool(pool, rows, kept, added)
    fit = Pool([("knn", KNN(3)), ("tails", Marginal())]).fit(np.vstack([rows[kept], added]))
    new = np.random.default_rng(9).normal(size=(20, 3))
    np.testing.assert_allclose(after.score_samples(new), fit.score_samples(new), rtol=1e-12)
    assert unchanged == []
    assert after.out_of_fold_scores_.shape == (300 - n_gone, 2)


def test_members_that_cannot_be_updated_are_kept_and_said_so():
    members = [("svdd", SVDD(max_samples=None)), ("knn", KNN(5)), ("svm", OneClassSVM())]
    pool = Pool(members).fit(X[:600])
    after, unchanged = updated_pool(pool, X[:600], np.arange(600), X[600:620])
    assert unchanged == ["svdd", "svm"]
    before, now = pool.score_samples(NEW), after.score_samples(NEW)
    np.testing.assert_array_equal(before[:, [0, 2]], now[:, [0, 2]])
    assert (before[:, 1] != now[:, 1]).any()


def test_few_rows_are_learned_anew():
    pool = Pool([("svdd", SVDD()), ("kpca", KPCA(20))]).fit(X[:200])
    after, unchanged = updated_pool(pool, X[:200], np.arange(200), X[200:210])
    assert unchanged == []
    fit = Pool([("svdd", SVDD()), ("kpca", KPCA(20))]).fit(X[:210])
    # of the scale of before
    for j in range(2):
        assert spearmanr(after.score_samples(NEW)[:, j], fit.score_samples(NEW)[:, j])[0] > 0.99


def test_members_of_some_rows_look_at_others_of_them():
    pool = Pool([("knn", KNN(3, max_samples=100)), ("lof", LOF(10, max_samples=100))]).fit(X[:300])
    after, unchanged = updated_pool(pool, X[:300], np.arange(100, 300), X[300:400])
    assert unchanged == []
    assert {member.reference_.n_rows for _, member in after.members_} == {100}
    rows = after.members_[0][1].reference_.X
    assert (rows[:, None] == X[None, :100]).all(axis=2).sum() == 0  # those are gone


def test_an_update_computes_no_kernel_of_all_rows(monkeypatch):
    names = ("kpca-1", "ckpca-1", "knn-5", "lof-30")
    members = [(name, member) for name, member in make_pool("large") if name in names]
    rows = np.vstack([X, X + 0.1, X + 0.2])[:2400]
    pool = Pool(members).fit(rows[:2376], random_state=0)
    computed = []
    kernel, distances = Query.kernel, Reference.squared_distances

    def counted_kernel(query, width):
        found = kernel(query, width)
        computed.append(found.size)
        return found

    def counted_distances(reference, some):
        computed.append(len(some) * reference.n_rows)
        return distances(reference, some)

    monkeypatch.setattr(Query, "kernel", counted_kernel)
    monkeypatch.setattr(Reference, "squared_distances", counted_distances)
    monkeypatch.setattr(Landmarks, "__init__", lambda *_: pytest.fail("landmarks are chosen anew"))
    updated_pool(pool, rows[:2376], np.arange(2376), rows[2376:])
    # two kernels of the landmarks, those of the new rows, and distances of these and of near rows
    assert 0 < sum(computed) < 0.6 * 2376**2
