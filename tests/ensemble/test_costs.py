"""Members and fusions tell their costs, which are counted as they share them."""

from collections import Counter

import pytest
from sklearn.ensemble import IsolationForest

from ocfuse.detectors import GMM, KNN, KPCA, LOF, SVDD, Marginal, OneClassGP
from ocfuse.detectors.landmarks import MOST_KEPT
from ocfuse.detectors.pool import POOLS, make_pool
from ocfuse.detectors.training import MOST_DISTANCES as DISTANCES_AT_ONCE
from ocfuse.detectors.views import Compressed, Whitened
from ocfuse.ensemble.plan import RATES, Job, fit_cost
from ocfuse.fusion import make_fusion

SHAPES = [(100, 300), (2_000, 10), (2_001, 64), (50_000, 500), (500_000, 20)]
KINDS = ("fit", "score", "peak", "model")
SPHERES = [SVDD(width=width, landmarks=500) for width in (0.5, 1.0)]


class Counts:
    """Amounts by kind; those that are not there are 0."""

    def __init__(self, members, job, fusion=None):
        cost, self.unknown = fit_cost(members, make_fusion(fusion), job)
        self.fit, self.score = Counter(cost.fit_work), Counter(cost.score_work)
        self.peak, self.model = Counter(cost.peak_bytes()), Counter(cost.model_bytes)
        self.methods = cost.methods


def counted(*members, n=1_000, m=10):
    return Counts([(str(i), member) for i, member in enumerate(members)], Job(n, m))


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_named_member_is_known_and_every_count_has_a_rate(name, shape):
    counts = Counts(make_pool(name), Job(*shape, n_groups=7, n_tried=9))
    assert counts.unknown == ()
    for kind in KINDS:
        assert getattr(counts, kind).keys() <= RATES[kind].keys()
        assert all(amount >= 0 for amount in getattr(counts, kind).values())


def test_members_that_are_foreign_or_wrong_are_unknown():
    unknown = counted(KNN(5), IsolationForest(), KNN(0), Whitened(IsolationForest())).unknown
    assert unknown == ("1", "2", "3")


def test_neighbours_and_views_are_counted_once():
    few = [LOF(30), Compressed(KNN(5))]
    many = [LOF(30), KNN(5), KNN(1), Compressed(KNN(5)), Compressed(KNN(1))]
    for n, name in ((1_000, "square"), (10_000, "search")):
        one, more, raw = (counted(*members, n=n) for members in (few, many, few[:1]))
        assert one.fit[name] == more.fit[name] == 2 * raw.fit[name] > 0
        assert one.peak["view"] == more.peak["view"] == 8 * n * 10


def test_the_most_neighbours_count_whoever_comes_first():
    one, other = counted(KNN(1), LOF(100)), counted(LOF(100), KNN(1))
    assert one.peak == other.peak
    # indices and distances, and what the factor makes of them
    assert one.peak["neighbours"] == 2 * 16 * 1_000 * 100
    assert counted(KNN(100)).peak["neighbours"] == 16 * 1_000 * 100


def test_neighbours_of_other_rows_are_others():
    both = counted(KNN(5), KNN(5, max_samples=500))
    assert both.peak["square"] == 8 * (1_000**2 + 500**2)


def test_rows_that_are_not_learned_from_are_scored_in_blocks():
    few, many = (counted(KNN(5, max_samples=500), n=n) for n in (1_000, 10**6))
    assert few.peak["outside"] == 8 * 500 * 500
    assert many.peak["outside"] == 8 * DISTANCES_AT_ONCE
    assert counted(KNN(5)).peak["outside"] == 0


def test_what_kernel_members_keep_and_need_beside_the_kernel():
    square = 8 * 1_000**2
    mean, ratio, sphere = (counted(m) for m in (OneClassGP("mean"), OneClassGP("ratio"), SVDD()))
    assert ratio.model["kernel"] == square > 100 * mean.model["kernel"]
    assert mean.peak["factor"] == ratio.peak["factor"] == square
    assert counted(KPCA()).peak["spectrum"] == square
    assert sphere.peak["factor"] == sphere.peak["spectrum"] == 0


def test_kernels_of_one_width_are_kept_once():
    one, two = counted(KPCA(width=1.0)), counted(KPCA(width=1.0), OneClassGP(width=1.0))
    assert one.peak["kernel"] == two.peak["kernel"] == 8 * 1_000**2
    assert counted(KPCA(width=1.0), KPCA(width=0.5)).peak["kernel"] == 16 * 1_000**2


def test_kernels_are_exact_up_to_the_switch_and_then_go_by_landmarks():
    few, many = (counted(KPCA(landmarks=1000), n=n) for n in (2_000, 2_001))
    assert few.methods == {"exact"}
    assert few.peak["square"] == 8 * 2_000**2
    assert many.methods == {"landmarks"}
    assert many.peak["square"] == many.fit["spectrum"] == 0


def test_spheres_on_landmarks_keep_the_coordinates_of_their_rows_once():
    one, two = counted(SVDD(landmarks=500), n=9_000), counted(*SPHERES, n=9_000)
    assert one.peak["sphere"] == two.peak["sphere"] == 8 * 9_000 * 500
    assert two.fit["sphere"] == 2 * one.fit["sphere"] > 0
    assert counted(SVDD(landmarks=500), n=2_000).peak["sphere"] == 0
    many = counted(SVDD(landmarks=500), n=10**6)
    assert many.peak["sphere"] == 8 * MOST_KEPT


def test_what_is_kept_of_landmarks_differs_between_kernels():
    kept = [
        counted(member, n=9_000).model["landmarks"] - 8 * 500 * 10
        for member in (
            SVDD(landmarks=500),
            OneClassGP(landmarks=500),
            KPCA(landmarks=500),
            OneClassGP("ratio", landmarks=500),
        )
    ]
    in_blocks = 8 * 9_000 * 10
    expected = [8 * 500, 8 * 500 + in_blocks, 0.3 * 8 * 500**2, 8 * 500**2]
    assert kept == pytest.approx(expected)


def test_groups_are_learned_fold_by_fold():
    members = [("kernel", KPCA(landmarks=500)), ("neighbours", KNN(5)), ("tails", Marginal())]
    alone, grouped = (Counts(members, Job(9_000, 10, n_groups=g)) for g in (None, 8))
    for term, times in (("landmark products", 4), ("landmark cube", 5), ("tails", 4)):
        assert grouped.fit[term] == times * alone.fit[term] > 0
    assert grouped.fit["search"] == (1 + 4 * 0.75**2) * alone.fit["search"] > 0
    for term, times in (("landmarks", 2), ("neighbours", 1.75), ("cell", 2), ("tails", 1.75)):
        assert grouped.peak[term] == times * alone.peak[term] > 0
    assert grouped.methods == {"landmarks"}


def test_the_mean_of_a_process_goes_by_blocks_which_all_widths_share():
    means = [OneClassGP(width=width, landmarks=1000) for width in (0.5, 1.0)]
    one, two = counted(means[0], n=20_000), counted(*means, n=20_000)
    variance = counted(OneClassGP("variance", landmarks=1000), n=20_000)
    work = 20_000 * 1_000 * 1_000
    assert one.fit["landmark cube"] - variance.fit["landmark cube"] == work
    assert two.fit["landmark cube"] == 2 * one.fit["landmark cube"]
    assert two.score["landmark distances"] == one.score["landmark distances"] == 2 * 1_000 * 10
    kept = 8 * 1_000 * (1_000 - 1)  # of the variance
    assert one.model["landmarks"] + kept - variance.model["landmarks"] == 8 * 20_000 * 10
    more = counted(means[0], n=40_000)
    assert more.fit["landmark cube"] - one.fit["landmark cube"] == work
    assert counted(means[0], n=2_000).fit["landmark cube"] == 0


def test_members_without_a_closed_form_are_fitted_in_folds():
    closed, folded = (counted(GMM(1), n=n, m=10).fit["gaussian"] / n for n in (2_001, 2_000))
    assert folded == 4 * closed


@pytest.mark.parametrize("name", ["default", "light"])
def test_cost_is_linear_in_many_rows(name):
    n = 200_000
    members = make_pool("large" if name == "default" else name)
    once, twice = (Counts(members, Job(rows, 64)) for rows in (n, 2 * n))
    for kind in KINDS:
        for term, amount in getattr(twice, kind).items():
            assert amount <= 2.2 * getattr(once, kind)[term], (kind, term)


@pytest.mark.parametrize("name", ["default", "paper", "wide"])
def test_cost_is_linear_in_columns_where_rows_are_fewer(name):
    once, twice = (Counts(make_pool(name), Job(100, m)) for m in (10_000, 20_000))
    for kind in KINDS:
        for term, amount in getattr(twice, kind).items():
            assert amount <= 2.1 * getattr(once, kind)[term], (kind, term)
