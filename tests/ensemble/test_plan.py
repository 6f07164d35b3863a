"""A plan adds up what the parts of a fit take, and refuses what cannot be done."""

import ast
import inspect
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from ocfuse import FusedDetector
from ocfuse.cost import Cost
from ocfuse.detectors import GMM, KNN, KPCA, LOF, SVDD, Marginal, OneClassGP, Pool
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.forest import Forest
from ocfuse.detectors.landmarks import MOST_KEPT
from ocfuse.detectors.pool import POOLS, make_pool
from ocfuse.detectors.training import MOST_DISTANCES as DISTANCES_AT_ONCE
from ocfuse.detectors.views import Compressed, Whitened
from ocfuse.ensemble import plan as planning
from ocfuse.ensemble.plan import RATES, Job, fit_cost, make_plan, require_memory, shape_of
from ocfuse.exceptions import InvalidInputError, NotEnoughMemoryError, OcfuseError
from ocfuse.fusion import CompetenceFusion, LabelledFusion, make_fusion
from ocfuse.fusion.locality import Locality
from ocfuse.groups import Groups
from ocfuse.tuning import Search
from tests.counting import peak_bytes

#: The forest holds little, and counting takes it ten times as long.
NO_FOREST = [each for each in make_pool("default") if each[0] != "iforest"]
#: What is learned: members, rows, columns, groups, search.
FITS = {
    "default": (NO_FOREST, 500, 20, None, None),
    "few landmarks": (NO_FOREST, 1_200, 10, None, None),
    # kernel values of few columns are held in double precision
    "landmarks": ([SVDD(landmarks=300), KPCA(landmarks=300)], 2_000, 5, None, None),
    "groups": ("light", 1_000, 50, 6, None),
    "search": ("light", 700, 100, None, "pseudo-negatives"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_plan_holds(name):
    """Bytes that were asked for; the memory of processes is measured by `make bench-scale`."""
    members, n, m, groups, tune = FITS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, m)) + rng.normal(size=(n, m))
    runs = None if groups is None else np.arange(n) % groups
    detector = FusedDetector(members, random_state=0, tune=tune)
    # what is imported when it is first needed is no part of a plan
    clone(detector).fit(X[:60], groups=None if runs is None else runs[:60])
    peak = peak_bytes(lambda: clone(detector).fit(X, groups=runs))
    assert peak <= detector.plan((n, m), groups=groups).fit_bytes <= 3 * peak


@pytest.mark.parametrize(
    ("pool", "n", "m", "gigabytes"),
    [
        # what processes took that learned from so many rows; rates were not fitted to the first two
        ("default", 1_000_000, 20, 2.14),
        ("default", 200_000, 64, 1.28),
        ("default", 300_000, 10, 0.65),
        ("forest", 5_000, 512, 0.168),
        ("default", 1_000, 10, 0.090),
    ],
)
def test_a_plan_is_enough_for_many_rows_and_few(pool, n, m, gigabytes):
    members = [Forest()] if pool == "forest" else pool
    planned = make_plan(members, Job(n, m)).fit_bytes / 1e9
    assert gigabytes <= planned <= 2 * gigabytes


def test_what_a_plan_says():
    plan = make_plan("default", Job(500, 10))
    assert (plan.pool, plan.method, len(plan.members)) == ("default", "exact", 16)
    plan = make_plan("default", Job(1_000, 10))
    assert (plan.pool, plan.method, len(plan.members)) == ("default", "landmarks", 16)
    plan = make_plan("default", Job(20_000, 512))
    assert (plan.pool, plan.method, len(plan.members)) == ("large", "landmarks", 12)
    text = str(plan)
    assert "20,000 rows of 512 columns" in text
    assert "12 members of pool 'large'" in text
    assert "unknown" not in text
    assert make_plan("light", Job(1_000, 10)).method == ""


def test_more_rows_columns_and_members_cost_more():
    small = make_plan("light", Job(5_000, 50))
    for other in (
        make_plan("light", Job(10_000, 50)),
        make_plan("light", Job(5_000, 100)),
        make_plan("wide", Job(5_000, 50)),
    ):
        assert other.fit_bytes > small.fit_bytes
        assert other.fit_seconds > small.fit_seconds
        assert other.model_bytes > small.model_bytes


def test_few_rows_of_many_columns_are_learned_again_in_folds():
    few, enough = (make_plan("light", Job(300, m)) for m in (101, 100))
    assert few.fit_seconds > 4 * enough.fit_seconds


def test_few_groups_and_few_anomalies_prevent_that():
    once = make_plan("light", Job(300, 101, n_groups=5)).fit_seconds
    assert make_plan("light", Job(300, 101, n_groups=6)).fit_seconds > 4 * once
    none, few, enough = (make_plan("light", Job(300, 101, a)).fit_seconds for a in (0, 9, 10))
    assert none == enough > 4 * few


@pytest.mark.parametrize("n", [1_000, 5_000])
def test_groups_take_longer_and_more_memory(n):
    alone, grouped = (make_plan("default", Job(n, 50, n_groups=g)) for g in (None, 8))
    assert grouped.fit_seconds > 1.5 * alone.fit_seconds
    assert grouped.fit_bytes > 1.2 * alone.fit_bytes
    assert (grouped.model_bytes, grouped.score_seconds) == (alone.model_bytes, alone.score_seconds)
    # as many folds as groups; members on whitened rows would have four without groups, too
    alone, two, many = (make_plan("large", Job(n, 50, n_groups=g)) for g in (None, 2, 8))
    assert alone.fit_seconds < two.fit_seconds < many.fit_seconds
    folds = make_plan(Pool("default", n_folds=8), Job(n, 50, n_groups=8))
    assert folds.fit_seconds > grouped.fit_seconds


def test_a_search_takes_longer_with_more_to_try():
    tuned = [None, "rpau", Search(grid={"p": np.geomspace(1.1, 9, 10), "n_neighbors": range(20)})]
    plans = [FusedDetector("light", tune=tune).plan((5_000, 50)) for tune in tuned]
    assert [plan.job.n_tried for plan in plans] == [0, 9, 200]
    assert plans[0].fit_seconds < plans[1].fit_seconds < plans[2].fit_seconds
    assert plans[0].fit_bytes < plans[1].fit_bytes == plans[2].fit_bytes
    assert "5,000 rows of 50 columns with 200 settings tried" in str(plans[2])


def test_labels_and_groups_are_counted():
    X, y = np.zeros((50, 3)), np.repeat([1, np.nan, -1], [20, 18, 12])
    for rows in (X, X.shape):
        for groups in (8, np.arange(50) % 8, Groups(np.arange(50) % 8)):
            plan = FusedDetector("light").plan(rows, y, groups)
            assert plan.job == Job(38, 3, n_anomalies=12, n_groups=8)
    assert (plan.n_rows, plan.n_columns) == (38, 3)
    assert "38 rows of 3 columns in 8 groups" in str(plan)
    with pytest.raises(InvalidInputError, match=r"from 2 to the 50 rows.*Got 1\."):
        FusedDetector().plan(X, groups=1)
    with pytest.raises(InvalidInputError, match="shape"):
        FusedDetector().plan((50, 3), groups=np.arange(49))
    with pytest.raises(InvalidInputError, match="n_folds must be a whole number"):
        FusedDetector(Pool("light", n_folds=1)).plan(X)


def test_foreign_members_are_unknown_and_said_to_be():
    plan = make_plan([("mine", IsolationForest())], Job(1_000, 10))
    assert plan.unknown == ("mine",)
    assert plan.pool is None
    assert "mine: counted as a copy of the rows only" in str(plan)
    more = make_plan([("mine", IsolationForest()), ("knn", KNN())], Job(1_000, 10))
    less = make_plan([("knn", KNN())], Job(1_000, 10))
    rows = 8 * 1_000 * 10
    assert more.fit_bytes - less.fit_bytes >= rows  # held, and those of a fold
    assert more.model_bytes - less.model_bytes >= rows


class Own(BaseDetector):
    """A detector that is new, and knows what it takes."""

    max_samples, false_alarm_rate = None, 0.05

    def cost(self, shape):
        assert (shape.rows, shape.columns, shape.folds) == (1_000, 10, 4)
        return Cost(
            fit_work={"seconds": 50.0},
            score_work={"seconds": 0.25},
            fit_bytes={"bytes": 7e6, "square": 8e6},
            model_bytes={"bytes": 3e6},
            shared={"a table of mine": Cost(model_bytes={"bytes": 9e6})},
        )

    def _fit(self, gram):
        raise AssertionError("a plan fits nothing")

    _score = _fit


class Unsized(Own):
    cost = BaseDetector.cost


def test_a_new_detector_brings_its_own_cost():
    job = Job(1_000, 10)
    one, two = (
        make_plan([("knn", KNN())] + [(f"own{i}", Own()) for i in range(n)], job) for n in (1, 2)
    )
    assert one.unknown == two.unknown == ()
    assert two.fit_seconds - one.fit_seconds == pytest.approx(50, abs=0.1)
    assert two.score_seconds - one.score_seconds == pytest.approx(250, abs=0.1)
    # what they share is counted once, and what has a rate by its rate
    assert two.model_bytes - one.model_bytes == pytest.approx(3e6, rel=0.1)
    none = make_plan([("knn", KNN())], job)
    assert one.model_bytes - none.model_bytes == pytest.approx(12e6, rel=0.1)
    square = planning.RATES["peak"]["square"]
    assert two.fit_bytes - one.fit_bytes == pytest.approx(7e6 + 8e6 * square, rel=0.1)


def test_a_detector_of_anyone_that_tells_its_cost_is_counted():
    class Foreign(IsolationForest):
        def cost(self, shape):
            return Cost(fit_work={"seconds": 1e3})

    plan = make_plan([("mine", Foreign())], Job(1_000, 10))
    assert plan.unknown == ()
    assert plan.fit_seconds == pytest.approx(1e3, rel=0.01)


def test_a_detector_that_does_not_tell_its_cost_is_unknown():
    assert make_plan([("mine", Unsized())], Job(1_000, 10)).unknown == ("mine",)


def test_a_kind_of_work_without_a_rate_is_refused():
    class Odd(Own):
        def cost(self, shape):
            return Cost(fit_work={"magic": 1.0})

    with pytest.raises(InvalidInputError, match=r"in 'seconds' and 'bytes'\. Got 'magic'"):
        make_plan([Odd()], Job(1_000, 10))


def test_the_plan_knows_no_detector_by_name():
    tree = ast.parse(inspect.getsource(planning))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found = {module for module in modules if module.startswith("ocfuse.detectors")}
    allowed = {"base", "members", "pool", "training"}
    assert found <= {f"ocfuse.detectors.{name}" for name in allowed}


def test_the_fusion_says_how_many_rows_it_keeps():
    many = Job(50_000, 40)
    size = 8 * 40 * planning.RATES["model"]["reference"]
    model = {
        name: make_plan("light", many, fusion).model_bytes
        for name, fusion in {
            "default": None,
            "sum": "sum",
            "scale": CompetenceFusion(),
            "both": CompetenceFusion(locality=Locality()),
            "labelled": LabelledFusion(),
        }.items()
    }
    assert model["default"] == model["scale"] == model["labelled"]
    assert model["scale"] - model["sum"] == pytest.approx(5_000 * size, abs=2)
    assert model["both"] - model["scale"] == pytest.approx(2_000 * size, abs=2)
    X = np.random.default_rng(0).normal(size=(5_100, 2))
    fitted = CompetenceFusion(locality=Locality()).fit(X, X=X)
    assert (len(fitted.scale_.X), len(fitted.locality_.X_)) == (5_000, 2_000)


def test_a_detector_plans_with_its_fusion():
    plans = [FusedDetector("light", fusion=fusion).plan((3_000, 40)) for fusion in (None, "sum")]
    assert plans[0].model_bytes > plans[1].model_bytes
    assert plans[0].score_seconds > plans[1].score_seconds
    with pytest.raises(InvalidInputError, match="fusion"):
        FusedDetector("light", fusion="suum").plan((300, 4))


def test_shapes():
    assert shape_of((30, 4)) == shape_of((np.int64(30), np.int64(4))) == (30, 4)
    assert shape_of(np.zeros((30, 4))) == (30, 4)
    assert shape_of([[1.0, 2.0], [3.0, 4.0]]) == (2, 2)
    frame = pd.DataFrame({"a": np.arange(5_000), "b": np.arange(5_000) % 7})
    assert shape_of(frame) == (5_000, 2)
    frame["b"] = frame["b"].astype(str)
    assert shape_of(frame) == (5_000, 9)  # seven, and one for rare and new ones
    with pytest.raises(InvalidInputError, match="rows and columns"):
        shape_of((0, 4))


def test_a_fit_that_needs_more_than_there_is_is_refused(monkeypatch):
    monkeypatch.setattr(planning, "available_bytes", lambda: 2 * 10**9)
    plan = make_plan("default", Job(1_000_000, 500))
    assert not plan.is_possible
    with pytest.raises(NotEnoughMemoryError) as caught:
        require_memory(plan)
    assert isinstance(caught.value, OcfuseError)
    assert isinstance(caught.value, MemoryError)
    words = str(caught.value)
    assert "1,000,000 rows of 500 columns" in words
    assert "Got 2.0 GB" in words
    rows = plan.possible_rows
    assert f"Use at most {rows:,} rows" in words
    assert f"Use at most {rows:,} rows" in str(plan)
    require_memory(make_plan("default", Job(rows, 500)))  # what it advises will do
    assert not make_plan("default", Job(rows + rows // 50, 500)).is_possible


def test_columns_that_are_too_many_for_any_rows(monkeypatch):
    monkeypatch.setattr(planning, "available_bytes", lambda: 10**9)
    plan = make_plan("default", Job(1_000, 100_000))
    assert plan.possible_rows == 0
    assert planning.advice(plan).startswith("Use fewer columns")


def test_the_detector_plans_and_refuses_before_it_learns(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 3))
    monkeypatch.setattr(planning, "available_bytes", lambda: 1)
    monkeypatch.setattr(planning, "SMALL", 0)
    detector = FusedDetector("light")
    assert detector.plan(X) == make_plan("light", Job(50, 3))
    with pytest.raises(NotEnoughMemoryError, match="50 rows of 3 columns"):
        detector.fit(X)
    assert not hasattr(detector, "pool_")
    with pytest.raises(NotEnoughMemoryError, match="38 rows of 3 columns in 5 groups"):
        detector.fit(X, np.repeat([1, 0, -1], [20, 18, 12]), groups=np.arange(50) % 5)


def test_the_light_pool_is_advised_only_where_it_helps(monkeypatch):
    plan = make_plan("default", Job(100_000, 500))
    light = make_plan("light", Job(100_000, 500))
    between = (light.fit_bytes + plan.fit_bytes) // 2
    for room, helps in ((between, True), (light.fit_bytes // 2, False)):
        monkeypatch.setattr(planning, "available_bytes", lambda room=room: room)
        assert ("light" in planning.advice(make_plan("default", Job(100_000, 500)))) == helps


@pytest.mark.parametrize("room", [None, 0, 10**6])
def test_small_data_is_never_refused(monkeypatch, room):
    monkeypatch.setattr(planning, "available_bytes", lambda: room)
    require_memory(make_plan("default", Job(500, 30)))


def test_a_plan_is_a_table_in_notebooks():
    plan = FusedDetector("light").plan((1000, 5))
    page = plan._repr_html_()
    assert page.startswith("<p>1,000 rows of 5 columns</p><table>")
    assert "<td>members</td><td>4 members of pool &#x27;light&#x27;</td>" in page


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
    both = counted(KNN(5, max_samples=400), KNN(5, max_samples=500))
    assert both.peak["square"] == 8 * (400**2 + 500**2)


def test_distances_of_more_rows_are_not_kept_for_neighbours():
    assert "square" not in counted(KNN(5)).peak
    assert counted(KPCA()).peak["square"] == 8 * 1_000**2


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
    # of so many rows 300 directions are kept
    expected = [8 * 500, 8 * 500 + in_blocks, 300 * 8 * 500, 8 * 500**2]
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
