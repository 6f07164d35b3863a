"""The contract of every fusion, with context where it knows places, and evidence for members."""

import warnings

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseWarning
from ocfuse.fusion import (
    CompetenceFusion,
    LabelledFusion,
    LocalLpFusion,
    LpFusion,
    MajorityVote,
    SumRule,
)
from ocfuse.fusion.base import BaseFusion, Evidence, Ranked, auc_of
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.stacking import StackedFusion
from tests.fusion.cases import ALL, RULES, name_of, scores

pytestmark = pytest.mark.filterwarnings("ignore:Nothing could be learned")

every_fusion = pytest.mark.parametrize("fusion", ALL, ids=name_of)


def fitted(fusion, seed=0, **shape):
    Z, y, X = scores(seed, **shape)
    return clone(fusion).fit(Z, y, X), Z, y, X


@pytest.mark.slow
@every_fusion
def test_shapes_and_finite_answers(fusion):
    model, Z, _, X = fitted(fusion)
    base, C = model.contributions(Z, X)
    assert model.fuse(Z, X).shape == base.shape == model.local_p(X).shape == (len(Z),)
    assert C.shape == model.weights(X).shape == Z.shape
    assert all(np.isfinite(a).all() for a in (model.fuse(Z, X), base, C, model.weights(X)))


@every_fusion
def test_fit_returns_itself_and_leaves_parameters_alone(fusion):
    Z, y, X = scores()
    model = clone(fusion)
    before = repr(model.get_params())
    assert model.fit(Z, y, X) is model
    assert repr(model.get_params()) == before


@pytest.mark.slow
@every_fusion
def test_a_row_does_not_depend_on_the_others(fusion):
    model, Z, _, X = fitted(fusion)
    one_by_one = np.concatenate([model.fuse(Z[i : i + 1], X[i : i + 1]) for i in range(len(Z))])
    np.testing.assert_allclose(one_by_one, model.fuse(Z, X), rtol=1e-10, atol=1e-10)
    shuffled = np.random.default_rng(1).permutation(len(Z))
    np.testing.assert_allclose(
        model.fuse(Z[shuffled], X[shuffled]), one_by_one[shuffled], rtol=1e-10, atol=1e-10
    )


@pytest.mark.slow
@every_fusion
def test_scoring_changes_nothing(fusion):
    model, Z, _, X = fitted(fusion)
    given, places = Z.copy(), X.copy()
    first = model.fuse(Z, X)
    state = skops.io.dumps(model)
    model.contributions(Z, X), model.weights(X), model.local_p(X)
    np.testing.assert_array_equal(model.fuse(Z, X), first)
    assert len(skops.io.dumps(model)) == len(state)
    np.testing.assert_array_equal(Z, given)
    np.testing.assert_array_equal(X, places)


@pytest.mark.slow
@every_fusion
def test_fitting_twice_gives_the_same_bits(fusion):
    first, Z, _, X = fitted(fusion)
    again, *_ = fitted(fusion)
    np.testing.assert_array_equal(first.fuse(Z, X), again.fuse(Z, X))


@every_fusion
def test_contributions_add_up(fusion):
    model, Z, _, X = fitted(fusion)
    base, C = model.contributions(10 * Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), model.fuse(10 * Z, X), rtol=1e-10, atol=1e-10)


@every_fusion
def test_weights_have_unit_size(fusion):
    model, _, _, X = fitted(fusion)
    np.testing.assert_allclose(np.abs(model.weights(X)).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("fusion", RULES, ids=name_of)
def test_rules_trust_all_members_alike_and_have_no_norm(fusion):
    model, Z, _, X = fitted(fusion)
    np.testing.assert_array_equal(model.weights(X), np.full(Z.shape, 1 / Z.shape[1]))
    assert np.isnan(model.local_p(X)).all()


@every_fusion
def test_normals_score_higher_than_anomalies(fusion):
    model, Z, y, X = fitted(fusion)
    fused = model.fuse(Z, X)
    assert np.median(fused[y > 0]) > np.median(fused[y < 0])


@pytest.mark.slow
@every_fusion
def test_saved_and_loaded_scores_are_bit_exact(fusion):
    model, Z, _, X = fitted(fusion)
    data = skops.io.dumps(model)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.fuse(Z, X), model.fuse(Z, X))
    np.testing.assert_array_equal(loaded.weights(X), model.weights(X))


@pytest.mark.slow
@every_fusion
def test_only_our_own_types_are_untrusted(fusion):
    model, *_ = fitted(fusion)
    untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    trees = {"sklearn.tree._tree.Tree"}
    assert all(name.startswith("ocfuse.fusion.") for name in set(untrusted) - trees)


@pytest.mark.slow
@every_fusion
@pytest.mark.parametrize(
    "shape",
    [{"n": 5, "d": 20, "n_anomalies": 2}, {"n": 2, "d": 3, "n_anomalies": 1}, {"d": 1}],
    ids=["more members than rows", "one row per class", "one member"],
)
def test_small_and_flat(fusion, shape):
    model, Z, _, X = fitted(fusion, **shape)
    assert np.isfinite(model.fuse(Z, X)).all()
    base, C = model.contributions(Z, X)
    np.testing.assert_allclose(base + C.sum(axis=1), model.fuse(Z, X), atol=1e-10)


@every_fusion
def test_one_normal_row(fusion):
    if fusion.needs_anomalies:
        pytest.skip("needs anomalies too")
    Z, _, X = scores(n=1, n_anomalies=0)
    assert np.isfinite(clone(fusion).fit(Z, X=X).fuse(Z, X)).all()


@every_fusion
def test_constant_columns_and_duplicates(fusion):
    Z, y, X = scores()
    Z[:, 1] = 0.5
    Z[:60], X[:60] = Z[0], X[0]
    X[:, 2] = 7.0
    model = clone(fusion).fit(Z, y, X)
    fused = model.fuse(Z, X)
    assert np.isfinite(fused).all()
    assert np.ptp(fused[:60]) <= 1e-12 * max(1.0, abs(fused[0]))


@every_fusion
def test_all_rows_the_same(fusion):
    Z, X = np.full((30, 3), 0.4), np.zeros((30, 2))
    y = np.r_[np.ones(25), -np.ones(5)]
    assert np.isfinite(clone(fusion).fit(Z, y, X).fuse(Z, X)).all()


@every_fusion
def test_no_rows_to_score(fusion):
    model, Z, _, X = fitted(fusion)
    assert model.fuse(Z[:0], X[:0]).shape == (0,)
    assert model.weights(X[:0]).shape == (0, Z.shape[1])
    base, C = model.contributions(Z[:0], X[:0])
    assert base.shape == (0,)
    assert C.shape == (0, Z.shape[1])


@every_fusion
def test_rows_far_away_stay_finite(fusion):
    model, Z, _, X = fitted(fusion)
    for far in (1e6, -1e6, 1e12):
        assert np.isfinite(model.fuse(Z * far, X * far)).all()


@pytest.mark.slow
@every_fusion
def test_weight_zero_leaves_a_row_out(fusion):
    Z, y, X = scores()
    rng = np.random.default_rng(3)
    kept = rng.random(len(Z)) < 0.7
    kept[[0, -1]] = True
    without = clone(fusion).fit(Z[kept], y[kept], X[kept])
    weighted = clone(fusion).fit(Z, y, X, sample_weight=kept.astype(float))
    np.testing.assert_array_equal(without.fuse(Z, X), weighted.fuse(Z, X))


@pytest.mark.slow
@every_fusion
def test_equal_weights_are_no_weights(fusion):
    Z, y, X = scores()
    plain = clone(fusion).fit(Z, y, X)
    weighted = clone(fusion).fit(Z, y, X, sample_weight=np.full(len(Z), 0.3))
    np.testing.assert_array_equal(plain.fuse(Z, X), weighted.fuse(Z, X))


@pytest.mark.slow
@every_fusion
def test_float32_and_lists(fusion):
    Z, y, X = scores(n=40, n_anomalies=10)
    Z32, X32 = Z.astype(np.float32), X.astype(np.float32)
    model = clone(fusion).fit(Z32.tolist(), y.astype(int).tolist(), X32.tolist())
    same = clone(fusion).fit(Z32, y.astype(np.int8), X32)
    np.testing.assert_array_equal(model.fuse(Z32, X32), same.fuse(Z32.tolist(), X32.tolist()))


@every_fusion
def test_not_fitted(fusion):
    Z, _, X = scores()
    for call in (
        lambda f: f.fuse(Z, X),
        lambda f: f.weights(X),
        lambda f: f.contributions(Z, X),
        lambda f: f.local_p(X),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            call(clone(fusion))


@pytest.mark.parametrize("fusion", [f for f in ALL if f.needs_X], ids=name_of)
def test_missing_features_are_asked_for(fusion):
    model, Z, y, X = fitted(fusion)
    with pytest.raises(InvalidInputError, match="needs the feature rows"):
        clone(fusion).fit(Z, y)
    with pytest.raises(InvalidInputError, match="needs the feature rows"):
        model.fuse(Z)
    with pytest.raises(InvalidInputError, match="3 columns, as in fit"):
        model.fuse(Z, X[:, :2])
    with pytest.raises(InvalidInputError, match="as Z"):
        model.fuse(Z, X[:-1])


@pytest.mark.parametrize("fusion", [f for f in ALL if f.needs_anomalies], ids=name_of)
def test_missing_anomalies_are_asked_for(fusion):
    Z, _, X = scores(n_anomalies=0)
    with pytest.raises(InvalidInputError, match="pseudo-negatives"):
        clone(fusion).fit(Z, X=X)


@pytest.mark.parametrize("fusion", [f for f in ALL if not f.needs_X], ids=name_of)
def test_features_are_not_read_where_not_needed(fusion):
    model, Z, _, _ = fitted(fusion)
    np.testing.assert_array_equal(model.fuse(Z), model.fuse(Z, "anything"))


def test_wrong_scores_are_refused():
    model = SumRule()
    for Z, message in [
        ([0.1, 0.2], "reshape"),
        ([[0.1, np.nan]], "row 0, column 1"),
        ([[0.1, np.inf]], "finite"),
        (np.empty((3, 0)), "n_members"),
        (np.empty((0, 3)), "at least one normal row"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            model.fit(Z)
    for Z in ([["a", "b"]], [[1j, 0]], [[None, {}]]):
        with pytest.raises(InvalidTypeError, match="real numbers"):
            model.fit(Z)
    with pytest.raises(InvalidInputError, match="2 columns, one per member"):
        model.fit([[0.1, 0.2]]).fuse([[0.1, 0.2, 0.3]])


def test_wrong_labels_and_weights_are_refused():
    Z = np.ones((3, 2))
    for y, message in [([1, 1], "shape"), ([0, 1, 1], "1 - 2"), ([-1, -1, -1], "normal row")]:
        with pytest.raises(InvalidInputError, match=message):
            SumRule().fit(Z, y)
    for c, message in [
        ([1, 1], "shape"),
        ([1, -1, 1], "negative"),
        ([1, np.nan, 1], "finite"),
        ([0, 0, 0], "zero everywhere"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            SumRule().fit(Z, sample_weight=c)
    with pytest.raises(InvalidInputError, match="normal row"):
        SumRule().fit(Z, [1, -1, -1], sample_weight=[0, 1, 1])


def test_huge_weights_do_not_overflow():
    Z, y, _ = scores()
    model = LpFusion().fit(Z, y, sample_weight=np.full(len(Z), 1e308))
    assert np.isfinite(model.w_).all()


def test_the_walk_shares_an_interaction_evenly():
    class Interaction(BaseFusion):
        def _fit(self, Z, y, X, c):
            pass

        def _fuse(self, Z, X):
            return Z[:, 0] * Z[:, 1]

    model = Interaction().fit([[1.0, 2.0]])
    base, C = model.contributions([[4.0, 10.0]])
    # (4 * 2 - 2, 40 - 8) forth and (40 - 10, 10 - 2) back.
    np.testing.assert_allclose(base, [2.0])
    np.testing.assert_allclose(C, [[18.0, 20.0]])


def test_refitting_forgets():
    Z, y, X = scores()
    model = LocalLpFusion(anchors="query").fit(Z, y, X)
    model.set_params(anchors=2).fit(Z, y, X)
    fresh = LocalLpFusion(anchors=2).fit(Z, y, X)
    np.testing.assert_array_equal(model.fuse(Z, X), fresh.fuse(Z, X))


def test_no_warning_on_ordinary_scores():
    with warnings.catch_warnings():
        warnings.simplefilter("error", OcfuseWarning)
        for fusion in ALL:
            fitted(fusion)


def test_a_fit_that_fails_leaves_no_fitted_fusion():
    Z, y, X = scores()
    model = LocalLpFusion(eta=2.0)
    with pytest.raises(InvalidInputError, match="eta"):
        model.fit(Z, y, X)
    with pytest.raises(NotFittedError):
        model.fuse(Z, X)


def may_turn_members_round(fusion):
    return isinstance(fusion, StackedFusion) or getattr(fusion, "nonneg", True) is False


@pytest.mark.parametrize(
    "fusion", [fusion for fusion in ALL if not may_turn_members_round(fusion)], ids=name_of
)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("labelled", [True, False])
def test_what_is_far_for_every_member_is_below_every_normal(fusion, seed, labelled):
    Z, y, X = scores(seed)
    if not labelled:
        if fusion.needs_anomalies:
            return
        Z, y, X = Z[y > 0], y[y > 0], X[y > 0]
    model = clone(fusion).fit(Z, y, X)
    rng = np.random.default_rng(seed)
    depth = np.array([1e2, 1e4, 1e6])
    far = Z[:3] - depth[:, np.newaxis] * rng.uniform(0.5, 1.0, size=(3, Z.shape[1]))
    places = np.vstack([X[0], 10 * X[1], 1e3 * X[2]])
    lowest = model.fuse(Z[y > 0], X[y > 0]).min()
    fused = model.fuse(far, places)
    if isinstance(fusion, MajorityVote):
        assert (fused <= lowest).all()
    else:
        assert (fused < lowest).all()
        assert (np.diff(fused) < 0).all()


def test_stacking_may_call_what_is_far_for_every_member_the_most_normal():
    # Two members that agree but for a difference, which is what tells the classes apart.
    rng = np.random.default_rng(0)
    y = np.where(np.arange(400) < 200, 1.0, -1.0)
    common = rng.uniform(0.0, 1.0, size=400)
    Z = np.column_stack([common + 0.3 * y, common])
    stacked = StackedFusion(LogisticRegression(C=100.0)).fit(Z, y)
    fused = stacked.fuse(np.vstack([Z, [[-1e5, -1e6]]]))
    assert fused[-1] > fused[:-1].max()


LOCAL = [
    CompetenceFusion(context_weight=1.0),
    CompetenceFusion(context_weight=1.0, locality=Locality()),
    LocalLpFusion(anchors=4),
    LocalLpFusion(anchors="query"),
]


@pytest.fixture(name="rows")
def _rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    Z = 1 - np.abs(X @ rng.normal(size=(2, 3)))
    y = np.r_[np.ones(120), -np.ones(30)]
    return Z, y, X, rng.normal(size=(150, 1))


@pytest.mark.parametrize("fusion", LOCAL)
def test_it_adds_to_the_squared_distance(fusion, rows):
    """Context is one more column for everything that looks for neighbours."""
    Z, y, X, C = rows
    both = np.hstack([X, C])
    with_context = fusion.fit(Z, y, X, context=C)
    scores, weights = with_context.fuse(Z, X, C), with_context.weights(X, C)
    norms = with_context.local_p(X, C)
    as_columns = fusion.fit(Z, y, both)
    np.testing.assert_array_equal(scores, as_columns.fuse(Z, both))
    np.testing.assert_array_equal(weights, as_columns.weights(both))
    np.testing.assert_array_equal(norms, as_columns.local_p(both))


@pytest.mark.parametrize("fusion", LOCAL)
def test_it_matters(fusion, rows):
    Z, y, X, C = rows
    fitted = fusion.fit(Z, y, X, context=3 * C)
    assert not np.allclose(fitted.weights(X, 3 * C), fitted.weights(X, np.zeros_like(C)))
    base, parts = fitted.contributions(Z, X, C)
    np.testing.assert_allclose(base + parts.sum(axis=1), fitted.fuse(Z, X, C))


def test_one_column_may_be_a_vector(rows):
    Z, y, X, C = rows
    fitted = CompetenceFusion().fit(Z, y, X, context=C[:, 0])
    assert (fitted.n_features_, fitted.n_context_) == (2, 1)
    np.testing.assert_array_equal(fitted.fuse(Z, X, C[:, 0]), fitted.fuse(Z, X, C))


def test_classifiers_of_known_anomalies_do_not_see_it(rows):
    Z, y, X, C = rows
    fusion = LabelledFusion(CompetenceFusion(context_weight=1.0))
    fitted = fusion.fit(Z, y, X, context=C)
    assert fitted.classifier_.n_features_in_ == 2
    assert fitted.joint_classifier_.n_features_in_ == 5
    assert (fitted.fusion_.n_features_, fitted.fusion_.n_context_) == (2, 1)
    assert not np.array_equal(fitted.fuse(Z, X, C), fitted.fuse(Z, X, -C))


def test_rules_without_places_ignore_it(rows):
    Z, _, X, C = rows
    np.testing.assert_array_equal(
        SumRule().fit(Z, context=C).fuse(Z, X, C), SumRule().fit(Z).fuse(Z)
    )


def test_it_is_needed_as_in_fit(rows):
    Z, y, X, C = rows
    fitted = CompetenceFusion().fit(Z, y, X, context=C)
    with pytest.raises(InvalidInputError, match=r"context must have 1 columns.*Pass context="):
        fitted.fuse(Z, X)
    with pytest.raises(InvalidInputError, match="context must have 1 columns"):
        fitted.fuse(Z, X, np.hstack([C, C]))
    with pytest.raises(InvalidInputError, match="context must have 150 rows"):
        fitted.fuse(Z, X, C[:3])
    with pytest.raises(InvalidInputError, match="context must be finite"):
        fitted.fuse(Z, X, np.full_like(C, np.nan))
    with pytest.raises(InvalidInputError, match=r"context must have 0 columns.*Leave it out"):
        CompetenceFusion().fit(Z, y, X).fuse(Z, X, C)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 30))
def test_areas_are_those_of_scikit_learn(seed, n, q):
    rng = np.random.default_rng(seed)
    normal, others = rng.integers(0, 5, (n, 3)), rng.integers(0, 5, (q, 3))
    truth = np.repeat([1, 0], [n, q])
    expected = [roc_auc_score(truth, column) for column in np.vstack([normal, others]).T]
    np.testing.assert_allclose(auc_of(normal, others), expected)
    np.testing.assert_array_equal(Ranked(others).below(normal), auc_of(normal, others))
    # to the bit what ranks of all rows together give
    ranks = rankdata(np.vstack([normal, others]), axis=0)[:n].sum(axis=0)
    np.testing.assert_array_equal(auc_of(normal, others), (ranks - n * (n + 1) / 2) / (n * q))


def test_ranks_do_not_mind_how_far_a_member_is_ahead():
    near = Evidence(np.array([[0.6], [0.7], [0.71]]), np.ones(1))
    far = Evidence(np.array([[0.6], [0.7], [1.0]]), np.ones(1))
    np.testing.assert_array_equal(near.by_rank(), far.by_rank())
    assert far.by_value()[2] > near.by_value()[2]


def test_votes_weigh_comparisons_and_ties_share_a_rank():
    auc = np.array([[0.9, 0.5], [0.6, 0.5], [0.8, 0.9]])
    np.testing.assert_allclose(Evidence(auc, np.array([1.0, 0.0])).by_rank(), [1, 1 / 3, 2 / 3])
    np.testing.assert_allclose(Evidence(auc, np.array([0.0, 2.0])).by_rank(), [0.5, 0.5, 1.0])


@pytest.mark.parametrize(
    ("auc", "vote"),
    [
        (np.ones(3), np.ones(1)),
        (np.ones((3, 2)), np.ones(3)),
        (np.ones((3, 2)), np.zeros(2)),
        (np.ones((3, 2)), np.array([2.0, -1.0])),
        (np.full((3, 1), np.nan), np.ones(1)),
    ],
)
def test_tables_that_do_not_fit_are_refused(auc, vote):
    with pytest.raises(InvalidInputError, match="Evidence needs"):
        Evidence(auc, vote)
