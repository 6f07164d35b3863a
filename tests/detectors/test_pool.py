"""Pools: shared work, out-of-fold scores, groups, failures, names."""

import threading

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from ocfuse.detectors import (
    ALP,
    GMM,
    KNN,
    KPCA,
    LOF,
    SVDD,
    Compressed,
    Mahalanobis,
    Marginal,
    OneClassGP,
    Pool,
    Whitened,
    make_pool,
)
from ocfuse.detectors import gram as gram_module
from ocfuse.detectors.base import MANY_ROWS, BaseDetector, KernelDetector
from ocfuse.detectors.gram import Gram, Query, Reference
from ocfuse.detectors.pool import POOLS
from ocfuse.detectors.views import Compression, Whitening
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, MemberError, MemberWarning
from ocfuse.scores import MinMax, TailProbability
from ocfuse.system.threads import few_threads


def small_forest(pool):
    """Return the members of a named pool, with a small forest."""
    return Pool(pool).set_params(iforest__n_trees=5).members


KERNELS = [
    (f"{family.__name__}-{width}", family(width=width))
    for family in (SVDD, OneClassGP, KPCA)
    for width in (0.25, 0.5, 1.0)
]


WHITE = {
    "maha": Mahalanobis(),
    "wknn": Whitened(KNN(5)),
    "wlof": Whitened(LOF((10, 20, 40))),
    **{f"w{name}": Whitened(member) for name, member in KERNELS},
}
COMPRESSED = {
    "cknn-1": Compressed(KNN(1)),
    "clof": Compressed(LOF((10, 20, 40))),
    **{f"c{name}": Compressed(member) for name, member in KERNELS},
}
MANY = {**dict(small_forest("default")), **dict(KERNELS), "alp": ALP(), **WHITE}


@pytest.fixture(name="X")
def training_rows():
    return np.random.default_rng(0).normal(size=(90, 3))


@pytest.fixture
def new():
    return np.random.default_rng(1).normal(size=(20, 3)) * 2


class Fragile(OutlierMixin, BaseEstimator):
    """Distance to the mean; fails where it is told to."""

    def __init__(self, fails="never", value=np.nan):
        self.fails = fails
        self.value = value

    def fit(self, X, y=None):
        if self.fails == "fit" or (self.fails == "fold" and len(X) < 90):
            raise RuntimeError("no luck")
        self.mean_ = X.mean(axis=0)
        return self

    def decision_function(self, X):
        if self.fails == "score":
            raise RuntimeError("no score")
        scores = -((X - self.mean_) ** 2).sum(axis=1)
        if self.fails == "value":
            scores[0] = self.value
        return scores[:-1] if self.fails == "shape" else scores


class FragileGram(BaseDetector):
    """The same for a detector on a Gram."""

    def __init__(self, fails="never", max_samples=None, false_alarm_rate=0.05):
        self.fails = fails
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def _fit(self, gram):
        if self.fails == "fit" or (self.fails == "fold" and gram.n_rows < 90):
            raise RuntimeError("no luck")

    def _score(self, query):
        if self.fails == "score":
            raise RuntimeError("no score")
        scores = -query.squared_distances.mean(axis=1)
        if self.fails == "value":
            scores[0] = np.inf
        return scores


# --- shared work -------------------------------------------------------------------------------


@pytest.fixture
def counters(monkeypatch):
    """Collect the counters of every Gram and Query that is not a part of another."""
    found = []
    begin = Query.__init__

    def counted(self, reference, X, part=None):
        begin(self, reference, X, part)
        if part is None:
            found.append(self)

    monkeypatch.setattr(gram_module.Query, "__init__", counted)
    return found


@pytest.fixture
def asked(monkeypatch):
    """Collect how many neighbours are searched for."""
    found = []
    compute = Query._compute_nearest
    monkeypatch.setattr(
        Query, "_compute_nearest", lambda self, k: found.append(k) or compute(self, k)
    )
    return found


@pytest.fixture
def views(monkeypatch):
    """Collect the views that are learned."""
    found = []

    def counted(kind):
        begin = kind.__init__
        return lambda self, raw: found.append(kind) or begin(self, raw)

    for kind in (Whitening, Compression):
        monkeypatch.setattr(kind, "__init__", counted(kind))
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_nine_kernel_members_compute_one_distance_matrix_and_one_exp(X, new, counters, grouped):
    pool = Pool(KERNELS).fit(X, groups=np.arange(90) // 5 if grouped else None)
    assert len(counters) == 1
    (gram,) = counters
    assert isinstance(gram, Gram)
    # fit, and leave-one-out or four folds: all from one matrix, one exp and its squares
    assert gram.counts["distances"] == 1
    assert gram.counts["exp"] == 1
    counters.clear()
    pool.score_samples(new)
    assert len(counters) == 1
    assert counters[0].counts["distances"] == 1
    assert counters[0].counts["exp"] == 1


def test_apart_the_same_members_compute_nine(X, new, counters):
    for _, member in KERNELS:
        clone(member).fit(X).score_samples(new)
    assert len(counters) == 18
    assert sum(counter.counts["distances"] for counter in counters) == 18
    assert sum(counter.counts["exp"] for counter in counters) == 18


def test_factorisations_are_shared_by_members_of_one_width(X, counters):
    Pool(KERNELS).fit(X)
    assert counters[0].counts["eigh"] == 3
    assert counters[0].counts["cholesky"] <= 3


def test_neighbours_and_kernels_share_one_gram(X, new, counters, asked):
    pool = Pool([KNN(5), LOF(10), SVDD(), LOF(30), KNN(2)]).fit(X)
    assert len(counters) == 1
    assert counters[0].counts["distances"] == 1
    # one search for all of them, of 30 neighbours (and the row itself)
    assert len(asked) == 1
    pool.score_samples(new)
    assert len(asked) == 2
    assert len(counters) == 2


def test_whitened_members_share_one_whitening_its_distances_and_neighbours(
    X, new, counters, views, asked
):
    pool = Pool(WHITE).fit(X)
    # the plain Gram, which nobody needs, then per set of rows (all, four folds) one whitening,
    # one distance matrix, one exp; and in a fold those of the tested rows against the others
    assert views == 5 * [Whitening]
    plain, white, *folds = counters
    assert not plain.counts
    assert len(folds) == 4 * 2
    for counter in (white, *folds):
        assert counter.counts["distances"] == counter.counts["exp"] == 1
        assert counter.counts["eigh"] in (0, 3)
    assert len(asked) == 1 + 4 * 2
    for found in (views, asked, counters):
        found.clear()
    pool.score_samples(new)
    assert not views
    assert len(asked) == 1
    plain, white = counters
    assert not plain.counts
    assert dict(white.counts) == {"distances": 1, "exp": 1}


def test_compressed_members_share_one_compression_its_distances_and_neighbours(
    X, new, counters, views, asked
):
    pool = Pool(COMPRESSED).fit(X)
    # fit and closed forms: no fold learns a compression of its own
    assert views == [Compression]
    plain, compressed = counters
    assert not plain.counts
    assert compressed.counts["distances"] == compressed.counts["exp"] == 1
    assert compressed.counts["eigh"] == 3
    assert asked == [41]
    for found in (views, asked, counters):
        found.clear()
    pool.score_samples(new)
    assert not views
    assert asked == [40]
    plain, compressed = counters
    assert not plain.counts
    assert dict(compressed.counts) == {"distances": 1, "exp": 1}


@pytest.mark.slow
def test_members_of_different_views_share_rows_and_nothing_else(X, new):
    kinds = (WHITE, COMPRESSED, {"knn": KNN(5), "kpca": KPCA()})
    together = Pool({name: member for kind in kinds for name, member in kind.items()}).fit(X)
    assert len({id(member.reference_) for _, member in together.members_}) == 1
    apart = [Pool(kind).fit(X) for kind in kinds]
    np.testing.assert_allclose(
        together.score_samples(new),
        np.hstack([pool.score_samples(new) for pool in apart]),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        together.out_of_fold_scores_,
        np.hstack([pool.out_of_fold_scores_ for pool in apart]),
        atol=1e-12,
    )


def test_equal_max_samples_share_a_gram(X, counters):
    pool = Pool([KNN(max_samples=40), SVDD(max_samples=40), LOF(max_samples=500), GMM(1)]).fit(X)
    references = [id(member.reference_) for _, member in pool.members_]
    assert references[0] == references[1]
    assert references[2] == references[3]
    assert len([counter for counter in counters if isinstance(counter, Gram)]) == 2


@pytest.mark.slow
def test_together_equals_apart(X, new):
    pool = Pool(small_forest("wide")).fit(X, random_state=0)
    together = pool.score_samples(new)
    for column, (member_name, member) in enumerate(pool.members_):
        apart = clone(member).fit(X)
        scores = apart.score_samples(new)
        scale = np.abs(scores).max()
        np.testing.assert_allclose(
            together[:, column], scores, atol=1e-9 * scale, err_msg=member_name
        )
        if isinstance(member, BaseDetector):
            np.testing.assert_allclose(member.offset_, apart.offset_, atol=1e-9 * scale)
        assert member.n_features_in_ == 3


# --- out-of-fold scores ------------------------------------------------------------------------


def refits(estimator, X, folds):
    scores = np.empty(len(X))
    for test in folds:
        train = np.setdiff1d(np.arange(len(X)), test)
        model = clone(estimator).fit(X[train])
        score = getattr(model, "score_samples", None) or model.decision_function
        scores[test] = score(X[test])
    return scores


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        IsolationForest(n_estimators=10, random_state=0),
        OneClassSVM(),
        Fragile(),
        EllipticEnvelope(),
        Whitened(KNN(5)),
        Whitened(KPCA()),
        Whitened(LOF((5, 10))),
        Compressed(Whitened(KNN(5))),
    ],
    ids=repr,
)
def test_out_of_fold_scores_of_other_estimators_equal_refits(X, estimator):
    pool = Pool([estimator]).fit(X, random_state=0)
    expected = refits(pool.members_[0][1], X, [np.arange(f, 90, 4) for f in range(4)])
    np.testing.assert_allclose(pool.out_of_fold_scores_[:, 0], expected, rtol=1e-10)


def test_out_of_fold_scores_of_gmm_equal_refits(X):
    # reg_covar is relative to the scale of all rows, which the folds share
    pool = Pool([GMM(1, reg_covar=1e-9)], n_folds=3).fit(X)
    expected = refits(GMM(1, reg_covar=1e-9), X, [np.arange(f, 90, 3) for f in range(3)])
    np.testing.assert_allclose(pool.out_of_fold_scores_[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("member", [KNN(), KNN(method="mean"), OneClassGP(), Marginal()])
def test_exact_closed_forms_equal_leaving_one_out(X, member):
    rows = X[:25]
    pool = Pool([member]).fit(rows)
    gram = Gram(rows)
    for i in range(25):
        part, query = gram.fold(np.delete(np.arange(25), i), np.array([i]))
        expected = clone(member).fit_gram(part).score_query(query)[0]
        assert pool.out_of_fold_scores_[i, 0] == pytest.approx(expected, rel=1e-6)


def test_local_outlier_factor_brings_its_own_out_of_fold_scores(X):
    pool = Pool([LocalOutlierFactor(novelty=True), LOF(20)]).fit(X)
    theirs = LocalOutlierFactor().fit(X).negative_outlier_factor_
    np.testing.assert_array_equal(pool.out_of_fold_scores_[:, 0], theirs)
    np.testing.assert_allclose(pool.out_of_fold_scores_[:, 1], theirs, rtol=1e-8)


@pytest.mark.slow
def test_in_sample_scores_never_appear(X):
    pool = Pool("default").fit(X, random_state=0)
    differs = pool.out_of_fold_scores_ != pool.score_samples(X)
    for column, (name, member) in enumerate(pool.members_):
        # a row that supports no hypersphere may be left out without any change
        assert differs[:, column].all() or isinstance(member, SVDD), name
        assert differs[:, column].any(), name
    # out-of-fold scores are lower on the whole: nobody has seen the row
    assert (pool.out_of_fold_scores_.mean(axis=0) < pool.score_samples(X).mean(axis=0)).all()


def test_seen_rows_are_their_own_neighbours(X):
    members = {"knn": KNN(1), "wknn": Whitened(KNN(1)), "two": KNN(2)}
    pool = Pool(members).fit(X)
    seen = pool.score_samples(X)
    assert not seen[:, :2].any()
    np.testing.assert_array_equal(seen[:, 2], pool.out_of_fold_scores_[:, 0])
    assert (pool.out_of_fold_scores_ < 0).all()


def test_rows_outside_the_core_get_the_plain_score(X):
    white = Whitened(KNN(max_samples=40))
    pool = Pool([SVDD(max_samples=40), KNN(max_samples=40), GMM(1, max_samples=40), white]).fit(X)
    inside = pool.members_[0][1].reference_.X
    outside = ~(X[:, None] == inside[None]).all(axis=2).any(axis=1)
    assert outside.sum() == 50
    plain = pool.score_samples(X)
    np.testing.assert_allclose(pool.out_of_fold_scores_[outside], plain[outside], rtol=1e-9)
    assert (pool.out_of_fold_scores_[~outside, 1] < plain[~outside, 1]).all()
    assert (pool.out_of_fold_scores_[~outside, 3] != plain[~outside, 3]).all()


# --- groups ------------------------------------------------------------------------------------


class Witness(OutlierMixin, BaseEstimator):
    """Score 1 for rows whose group it has seen: the first column is the group."""

    def fit(self, X, y=None):
        self.seen_ = np.unique(X[:, 0])
        return self

    def score_samples(self, X):
        return np.isin(X[:, 0], self.seen_).astype(float)


class GramWitness(BaseDetector):
    closed_form = True

    def __init__(self, max_samples=None, false_alarm_rate=0.05):
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def _fit(self, gram):
        self.seen_ = np.unique(gram.X[:, 0])

    def _score(self, query):
        return np.isin(query.X[:, 0], self.seen_).astype(float)

    def _leave_one_out(self, gram):
        raise AssertionError("a closed form looks at rows of the same group")


@pytest.mark.parametrize("kind", [str, float])
@pytest.mark.parametrize("n_groups", [2, 3, 4, 17])
def test_groups_are_never_split(n_groups, kind):
    rng = np.random.default_rng(0)
    group = rng.integers(0, n_groups, size=200)
    X = np.column_stack([group, rng.normal(size=(200, 2))]).astype(float)
    members = [Witness(), GramWitness(), GramWitness(max_samples=60)]
    steps = []
    pool = Pool(members).fit(
        X, groups=group.astype(kind), progress=lambda *step: steps.append(step)
    )
    assert (pool.out_of_fold_scores_ == 0).all()
    assert (pool.score_samples(X) == 1).all()
    assert steps[-1][2:] == (3 * (1 + min(4, n_groups)), 3 * (1 + min(4, n_groups)))


def test_local_outlier_factor_goes_by_folds_with_groups(X):
    groups = np.arange(90) // 10
    pool = Pool([LocalOutlierFactor(novelty=True)]).fit(X, groups=groups)
    theirs = LocalOutlierFactor().fit(X).negative_outlier_factor_
    assert (pool.out_of_fold_scores_[:, 0] != theirs).any()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(90), "at least 2 different labels"),
        (np.arange(7), r"groups must have shape \(90,\)"),
        (np.array([1, "a"] * 45, dtype=object), "labels of one kind"),
    ],
)
def test_unusable_groups_are_refused(X, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        Pool("light").fit(X, groups=groups)


def test_core_of_one_fold_is_refused(X):
    with pytest.raises(InvalidInputError, match="a larger max_samples"):
        Pool([KNN(max_samples=2)]).fit(X, groups=[0] + 88 * [1] + [0])


# --- callers' estimators, determinism -----------------------------------------------------------


def test_given_estimators_are_untouched(X):
    members = [SVDD(), GMM(3), IsolationForest(n_estimators=5), LocalOutlierFactor(novelty=True)]
    before = [dict(vars(member)) for member in members]
    pool = Pool(members).fit(X, random_state=0)
    assert [vars(member) for member in members] == before
    assert pool.members is members
    assert not any(ours is given for (_, ours), given in zip(pool.members_, members, strict=True))


@pytest.mark.slow
def test_random_state_and_n_jobs_change_no_bit(X, new):
    members = [
        GMM(3),
        SVDD(),
        IsolationForest(n_estimators=10),
        OneClassSVM(),
        Fragile(),
    ]
    pools = [Pool(members).fit(X, random_state=5, n_jobs=n_jobs) for n_jobs in (None, 2)]
    for pool in pools[1:]:
        np.testing.assert_array_equal(pool.out_of_fold_scores_, pools[0].out_of_fold_scores_)
        np.testing.assert_array_equal(pool.score_samples(new), pools[0].score_samples(new))
    other = Pool(members).fit(X, random_state=6)
    assert (other.out_of_fold_scores_[:, 2] != pools[0].out_of_fold_scores_[:, 2]).any()


def test_a_seed_of_the_user_is_kept(X):
    pool = Pool([IsolationForest(n_estimators=3, random_state=11), GMM(2)]).fit(X, random_state=0)
    assert pool.members_[0][1].random_state == 11
    assert pool.members_[1][1].random_state is not None


@pytest.mark.slow
def test_scoring_is_batch_invariant_and_changes_nothing(X, monkeypatch):
    rng = np.random.default_rng(2)
    rows = np.vstack([X[:10], rng.normal(size=(20, 3)), 50 * rng.normal(size=(5, 3))])
    pool = Pool([*small_forest("wide"), ("alp", ALP())]).fit(X, random_state=0)
    batch = pool.score_samples(rows)
    single = np.vstack([pool.score_samples(row[None]) for row in rows])
    scale = np.abs(batch).max(axis=0)
    assert (np.abs(batch - single) <= 1e-10 * scale).all()
    np.testing.assert_array_equal(batch, pool.score_samples(rows))
    monkeypatch.setattr("ocfuse.detectors.training.MOST_DISTANCES", 90 * 4)
    assert (np.abs(batch - pool.score_samples(rows)) <= 1e-10 * scale).all()


COPIES = {
    "copies": lambda rng: np.repeat(rng.normal(size=(20, 3)), 4, axis=0),
    "binary": lambda rng: rng.integers(0, 2, size=(150, 3)).astype(float),
    "two-points": lambda rng: np.repeat(np.eye(3)[:2], 20, axis=0),
    "whole-numbers": lambda rng: np.round(rng.normal(size=(150, 3))),
}


@pytest.mark.slow
@pytest.mark.parametrize("normaliser", [MinMax(), TailProbability()], ids=repr)
@pytest.mark.parametrize("kind", COPIES)
def test_normalised_scores_are_batch_invariant_on_copies(kind, normaliser):
    rng = np.random.default_rng(0)
    X = COPIES[kind](rng)
    near, far = X[:9] + 1e-7 * rng.normal(size=(9, 3)), 9 * rng.normal(size=(5, 3))
    rows = np.vstack([X[:10], near, rng.normal(size=(10, 3)), far])
    pool = Pool(MANY).fit(X, random_state=0)
    fitted = clone(normaliser).fit(pool.out_of_fold_scores_)
    batch = fitted.transform(pool.score_samples(rows))
    single = np.vstack([fitted.transform(pool.score_samples(row[None])) for row in rows])
    np.testing.assert_allclose(single, batch, rtol=1e-10, atol=1e-10)


def test_blocks_bound_the_rows_of_a_query(X, monkeypatch):
    sizes = []
    query = Reference.query
    monkeypatch.setattr(
        Reference, "query", lambda self, rows: sizes.append(len(rows)) or query(self, rows)
    )
    monkeypatch.setattr("ocfuse.detectors.training.MOST_DISTANCES", 90 * 40)
    pool = Pool([SVDD(), KNN()]).fit(X)
    pool.score_samples(X)
    assert sizes == [40, 40, 10]


# --- failures ----------------------------------------------------------------------------------

FAILURES = [
    Fragile("fit"),
    Fragile("fold"),
    Fragile("score"),
    Fragile("shape"),
    Fragile("value"),
    Fragile("value", np.inf),
    FragileGram("fit"),
    FragileGram("fold"),
    FragileGram("score"),
    FragileGram("value"),
    KNN(n_neighbors=0),
    KNN(max_samples="all"),
    Whitened(KNN(0)),
    Whitened(Fragile()),
    OneClassSVM(nu=7.0),
]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("failing", FAILURES, ids=repr)
def test_failing_member_is_named(X, failing, n_jobs):
    members = {"good": KNN(), "bad": failing, "other": Fragile()}
    with pytest.raises(MemberError, match="Member 'bad' failed") as caught:
        Pool(members).fit(X, n_jobs=n_jobs)
    assert isinstance(caught.value.__cause__, Exception)
    with pytest.warns(MemberWarning, match="'bad' failed .* left out"):
        pool = Pool(members, on_error="drop").fit(X, n_jobs=n_jobs)
    assert pool.names_ == ["good", "other"]
    assert list(pool.dropped_) == ["bad"]
    assert pool.out_of_fold_scores_.shape == (90, 2)
    assert pool.score_samples(X).shape == (90, 2)
    alone = Pool({"good": KNN(), "other": Fragile()}).fit(X)
    np.testing.assert_array_equal(pool.out_of_fold_scores_, alone.out_of_fold_scores_)


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.MemberWarning")
def test_every_member_failing_is_an_error(X):
    with pytest.raises(MemberError, match=r"Every member failed\. 'a': RuntimeError: no luck; 'b'"):
        Pool({"a": Fragile("fit"), "b": FragileGram("fold")}, on_error="drop").fit(X)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
def test_rows_out_of_reach_score_far_below_the_others(X, bandwidth, grouped):
    groups = np.arange(90) // 3 if grouped else None
    density = KernelDensity(kernel="tophat", bandwidth=bandwidth)
    pool = Pool({"knn": KNN(), "density": density}).fit(X, groups)
    lowest = pool.lowest_["density"]
    out_of_fold = pool.out_of_fold_scores_[:, 1]
    assert np.isfinite(out_of_fold).all()
    out_of_reach = out_of_fold == lowest
    assert out_of_reach.any()
    inside = out_of_fold[~out_of_reach]
    assert lowest < inside.min() - 999 * np.ptp(inside)
    far, near = pool.score_samples([[50.0, 50.0, 50.0], X[0]])[:, 1]
    assert far == lowest
    assert near == pytest.approx(clone(density).fit(X).score_samples(X[:1])[0])


def test_out_of_reach_is_no_excuse_for_other_scores_that_are_not_finite(X):
    pool = Pool({"odd": Fragile("value", -np.inf)}).fit(X)
    for value in (np.nan, np.inf):
        pool.members_[0][1].value = value
        with pytest.raises(MemberError, match="Scores must be finite"):
            pool.score_samples(X)
    with pytest.raises(MemberError, match="finite score"):
        Pool([KernelDensity(kernel="tophat", bandwidth=1e-9)]).fit(X)


@pytest.mark.parametrize("member", [Fragile(), FragileGram()])
@pytest.mark.parametrize("fails", ["score", "value"])
def test_failure_in_scoring_names_the_member(X, member, fails):
    pool = Pool({"knn": KNN(), "bad": member}, on_error="drop").fit(X)
    pool.members_[1][1].fails = fails
    with pytest.raises(MemberError, match="Member 'bad' failed"):
        pool.score_samples(X)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (object(), "Member 'odd' must be a scikit-learn estimator with fit"),
        (KNN, r"Got the class KNN. Use KNN\(...\)"),
        (LocalOutlierFactor(), "novelty=True"),
        (None, "Member 'odd' must be a scikit-learn estimator"),
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "drop"])
def test_what_cannot_be_a_member_is_refused(X, member, message, on_error):
    with pytest.raises(InvalidInputError, match=message):
        Pool({"knn": KNN(), "odd": member}, on_error=on_error).fit(X)


def test_pyod_without_adapter_is_refused(X):
    hbos = pytest.importorskip("pyod.models.hbos", reason="needs PyOD").HBOS()
    with pytest.raises(InvalidTypeError, match="Use from_pyod"):
        Pool({"knn": KNN(), "hbos": hbos}).fit(X)


# --- names, parameters, progress, saving ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size"),
    [("paper", 4), ("paper-all", 10), ("default", 16), ("large", 12), ("wide", 20), ("light", 4)],
)
def test_named_pools(name, size):
    members = make_pool(name)
    assert len(members) == len(dict(members)) == size
    assert all("__" not in name for name, _ in members)
    assert members[0][1] is not make_pool(name)[0][1]


def test_the_large_pool_is_the_default_without_what_whitens():
    default, large = dict(make_pool("default")), dict(make_pool("large"))
    others = {
        name: member
        for name, member in default.items()
        if not isinstance(member, Whitened | Mahalanobis)
    }
    assert list(large) == list(others)
    assert [str(member) for member in large.values()] == [str(m) for m in others.values()]


@pytest.mark.parametrize(
    ("members", "n", "expected"),
    [
        ("default", MANY_ROWS, "default"),
        ("default", MANY_ROWS + 1, "large"),
        ("light", MANY_ROWS + 1, "light"),
        ("large", 90, "large"),
        ([KNN()], MANY_ROWS + 1, None),
    ],
)
def test_many_rows_make_the_default_pool_the_large_one(monkeypatch, members, n, expected):
    quick = {name: lambda name=name: [(f"{name}-knn", KNN(1))] for name in POOLS}
    monkeypatch.setattr("ocfuse.detectors.pool.POOLS", quick)
    X = np.random.default_rng(0).normal(size=(n, 2))
    pool = Pool(members).fit(X)
    assert pool.pool_name_ == expected
    assert pool.names_ == (["knn"] if expected is None else [f"{expected}-knn"])
    assert pool.members == members  # what was asked for stays


@pytest.mark.parametrize(("name", "most"), [("default", 500), ("large", 500), ("wide", MANY_ROWS)])
def test_more_rows_go_by_way_of_landmarks(name, most):
    kernels = [getattr(member, "detector", member) for _, member in make_pool(name)]
    kernels = [kernel for kernel in kernels if isinstance(kernel, KernelDetector)]
    assert len(kernels) >= 3
    for kernel in kernels:
        assert not kernel.needs_landmarks(most)
        assert kernel.needs_landmarks(most + 1)


@pytest.mark.slow
def test_the_default_pool_passes_through_folds_of_groups_and_files(X, new):
    pool = Pool(small_forest("default")).fit(X, groups=np.arange(90) // 5, random_state=0)
    assert np.isfinite(pool.out_of_fold_scores_).all()
    data = skops.io.dumps(pool)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    scores = pool.score_samples(new)
    np.testing.assert_array_equal(loaded.score_samples(new), scores)
    single = np.vstack([pool.score_samples(row[None]) for row in new])
    assert (np.abs(single - scores) <= 1e-10 * np.abs(scores).max(axis=0)).all()


def test_unknown_pool_lists_the_names(X):
    with pytest.raises(InvalidInputError, match=r"'default', 'large', 'wide', 'light'\. Got"):
        make_pool("defualt")
    with pytest.raises(InvalidInputError, match="Got 'defualt'"):
        Pool("defualt").fit(X)


def test_columns_come_in_the_order_given(X, new):
    members = [("z", KNN()), ("a", Fragile()), ("m", GMM(1)), ("b", LOF())]
    pool = Pool(members).fit(X)
    assert pool.names_ == ["z", "a", "m", "b"]
    turned = Pool(members[::-1]).fit(X)
    np.testing.assert_allclose(turned.score_samples(new)[:, ::-1], pool.score_samples(new))
    np.testing.assert_allclose(turned.out_of_fold_scores_[:, ::-1], pool.out_of_fold_scores_)
    np.testing.assert_array_equal(pool.score_samples(new)[:, 0], KNN().fit(X).score_samples(new))


def test_names_are_made_from_classes(X):
    pool = Pool([KNN(), KNN(3), ("knn-2", LOF()), OneClassSVM()]).fit(X)
    assert pool.names_ == ["knn", "knn-3", "knn-2", "oneclasssvm"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a", KNN()), ("a", LOF())], "Got 'a' twice"),
        ([("a__b", KNN())], "without '__'"),
        ([(3, KNN())], "Got 3"),
        ({"members": KNN()}, "Got 'members'"),
        ([], "at least one estimator"),
        (KNN(), "members must be the name of a pool"),
        (None, "members must be the name of a pool"),
    ],
)
def test_unusable_members_are_refused(X, members, message):
    with pytest.raises(InvalidInputError, match=message):
        Pool(members).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'drop'"),
    ],
)
def test_wrong_parameters_are_refused(X, params, message):
    with pytest.raises(InvalidInputError, match=message):
        Pool("light", **params).fit(X)


def test_parameters_of_members_are_reached_by_name():
    pool = Pool("paper")
    assert pool.get_params()["svdd-1__nu"] == SVDD().nu
    assert pool.set_params(**{"svdd-1__nu": 0.3, "gmm": KNN(), "n_folds": 3}) is pool
    assert pool.get_params()["svdd-1__nu"] == 0.3
    assert isinstance(pool.get_params()["gmm"], KNN)
    assert pool.n_folds == 3
    copy = clone(pool)
    assert copy.get_params()["svdd-1__nu"] == 0.3
    with pytest.raises(ValueError, match="no parameter 'svd'"):
        pool.set_params(svd__nu=0.1)
    assert pool.set_params(members="light").get_params()["knn-5__n_neighbors"] == 5


def test_set_params_leaves_the_given_estimator_alone():
    given = KNN(5)
    pool = Pool([given]).set_params(knn__n_neighbors=9)
    assert given.n_neighbors == 5
    assert pool.get_params()["knn__n_neighbors"] == 9


def test_progress_counts_every_step_in_the_calling_thread(X):
    steps, threads = [], set()

    def progress(*step):
        steps.append(step)
        threads.add(threading.get_ident())

    Pool([KNN(), GMM(1), Fragile(), LocalOutlierFactor(novelty=True)]).fit(
        X, progress=progress, n_jobs=2
    )
    assert threads == {threading.get_ident()}
    assert [done for _, _, done, _ in steps] == list(range(1, 15))
    assert {total for *_, total in steps} == {14}
    assert {stage for stage, *_ in steps} == {"fit", "out-of-fold scores"}
    assert sum(name == "gmm" for _, name, *_ in steps) == 5


def test_progress_ends_at_the_total_when_a_core_has_fewer_rows_than_folds(X):
    steps = []
    Pool([GMM(1, max_samples=3)]).fit(X, progress=lambda *step: steps.append(step))
    assert steps[-1][2:] == (4, 4)


def test_progress_ends_at_the_total_when_members_are_dropped(X):
    steps = []
    members = {
        "bad": Fragile("fold"),
        "worse": FragileGram("fit"),
        "good": KNN(),
        "fine": Fragile(),
    }
    with pytest.warns(MemberWarning):
        Pool(members, on_error="drop").fit(X, progress=lambda *step: steps.append(step))
    done = [step[2] for step in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1][3]


@pytest.mark.slow
def test_a_saved_pool_gives_the_same_bits(X, new):
    pool = Pool([*small_forest("wide"), ("alp", ALP())])
    pool.fit(X, random_state=0)
    data = skops.io.dumps(pool)
    trusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith(("ocfuse.detectors.", "sklearn.")) for name in trusted)
    loaded = skops.io.loads(data, trusted=trusted)
    np.testing.assert_array_equal(loaded.score_samples(new), pool.score_samples(new))
    np.testing.assert_array_equal(loaded.out_of_fold_scores_, pool.out_of_fold_scores_)
    references = {
        id(member.reference_) for _, member in loaded.members_ if hasattr(member, "reference_")
    }
    assert len(references) == 1


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("m", [1, 40])
def test_few_rows(n, m):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, m))
    pool = Pool(MANY).fit(X, random_state=0)
    assert np.isfinite(pool.out_of_fold_scores_).all()
    assert np.isfinite(pool.score_samples(rng.normal(size=(4, m)))).all()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_few_rows_in_groups(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    groups = np.arange(n) > 0
    pool = Pool(MANY).fit(X, groups=groups, random_state=0)
    assert np.isfinite(pool.out_of_fold_scores_).all()


def test_equal_rows_and_constant_columns():
    X = np.ones((40, 3))
    pool = Pool(MANY).fit(X, random_state=0)
    inside, outside = pool.score_samples([[1.0, 1.0, 1.0], [3.0, 1.0, 1.0]])
    # between equal rows a forest finds no cut, and all rows are alike to it
    has_cuts = np.array([name != "iforest" for name in pool.names_])
    assert (inside > outside)[has_cuts].all()
    assert (inside >= outside).all()


def test_columns_must_match(X):
    pool = Pool("light").fit(X, random_state=0)
    with pytest.raises(ValueError, match="features"):
        pool.score_samples(np.zeros((2, 5)))


def test_a_fit_that_failed_leaves_no_fitted_pool(X):
    pool = Pool({"bad": Fragile("fit")})
    with pytest.raises(MemberError):
        pool.fit(X)
    with pytest.raises(NotFittedError):
        pool.score_samples(X)


def test_members_of_a_view_learn_in_a_thread_of_their_own(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 4))
    meeting = None

    class Noted(KNN):
        def _fit(self, gram):
            if meeting is not None:
                meeting.wait(60)  # breaks if one of the two waits alone
            super()._fit(gram)

    members = [("raw", Noted(3)), ("compressed", Compressed(Noted(4))), ("kernel", KPCA())]
    monkeypatch.setattr("ocfuse.detectors.training.MANY_ROWS", 300)
    found = []
    for n_threads in (1, 2):
        monkeypatch.setattr("ocfuse.detectors.training.allowed_threads", lambda n=n_threads: n)
        meeting = threading.Barrier(2) if n_threads == 2 else None
        with few_threads(0):
            pool = Pool(members).fit(X, random_state=0)
        found.append((pool.out_of_fold_scores_, pool.score_samples(X[:9])))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_failure_in_a_thread_names_the_member(monkeypatch):
    class Broken(KNN):
        def _fit(self, gram):
            raise RuntimeError("no luck")

    X = np.random.default_rng(0).normal(size=(400, 4))
    monkeypatch.setattr("ocfuse.detectors.training.MANY_ROWS", 300)
    monkeypatch.setattr("ocfuse.detectors.training.allowed_threads", lambda: 2)
    members = [("raw", KNN(3)), ("broken", Compressed(Broken(4)))]
    with few_threads(0), pytest.raises(MemberError, match="'broken' failed"):
        Pool(members).fit(X)
    with few_threads(0), pytest.warns(MemberWarning, match="'broken'"):
        assert Pool(members, on_error="drop").fit(X).names_ == ["raw"]
