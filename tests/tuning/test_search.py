"""Search: what is tried, what is picked, what is shared."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion import LocalLpFusion, LpFusion, SumRule
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.locality import Locality
from ocfuse.scores import MinMax, ZScore
from ocfuse.system.progress import show_progress
from ocfuse.tuning import RPAU, Criterion, Search
from ocfuse.tuning.search import PAPER_P, make_search
from tests.tuning.cases import scored_rows


class Constant(Criterion):
    """All are alike."""

    def judge(self, parts):
        return 1.0, 0.0


class CountingMinMax(MinMax):
    """Count fits."""

    fits = 0

    def fit(self, S, sample_weight=None):
        type(self).fits += 1
        return super().fit(S, sample_weight)


class TestGrid:
    def test_default_is_the_papers(self):
        search = Search().fit(scored_rows(), MinMax(), LpFusion())
        assert search.results_["param_fusion__p"] == list(PAPER_P)
        assert len(PAPER_P) == 9

    @pytest.mark.slow
    def test_nested_fusion(self):
        search = Search(grid={"p": [1.5, 4.0]})
        search.fit(scored_rows(), MinMax(), LabelledFusion(LocalLpFusion(eta=0.7)))
        assert list(search.best_params_) == ["fusion__fusion__p"]
        assert search.best_fusion_.fusion.eta == 0.7
        assert search.best_fusion_.fusion.p == search.best_params_["fusion__fusion__p"]

    @pytest.mark.slow
    def test_parts_that_are_none_have_parameters(self):
        given = LabelledFusion()
        grid = {"kappa": [1.0, 4.0], "agreement": [3], "rho": [5.0]}
        search = Search(grid=grid).fit(scored_rows(), MinMax(), given)
        assert list(search.best_params_) == [
            "fusion__fusion__locality__kappa",
            "fusion__fusion__agreement",
            "normaliser__rho",
        ]
        assert len(search.results_["params"]) == 2
        assert given.fusion is None

    def test_whole_parts(self):
        own = LpFusion(p=3)
        search = Search(grid={"fusion": ["sum", own], "normaliser": ["min-max", ZScore()]})
        search.fit(scored_rows(), MinMax(), SumRule())
        assert len(search.results_["value"]) == 4
        assert not hasattr(own, "w_")
        assert not isinstance(search.best_fusion_, str)

    def test_values_may_be_an_array(self):
        search = Search(grid={"p": np.array([1.5, 2.0])})
        search.fit(scored_rows(), MinMax(), LpFusion())
        assert type(search.best_params_["fusion__p"]) is float

    @pytest.mark.parametrize(
        ("grid", "error", "message"),
        [
            ({"gamma": [1]}, InvalidInputError, "'gamma'.*fusion__fusion__p"),
            ({"fusion__p": [2]}, InvalidInputError, "fusion__fusion__p"),
            ({"fusion": [SumRule()], "p": [2]}, InvalidInputError, "Invalid parameter"),
            ({"p": 2}, InvalidTypeError, "list of values"),
            ({"p": "2"}, InvalidTypeError, "list of values"),
            ({"p": []}, InvalidInputError, "no values"),
            ({"p": [2], "fusion__fusion__p": [2]}, InvalidInputError, "twice"),
            ([2, 4], InvalidTypeError, "dict of lists"),
            ({"p": [0.5]}, InvalidInputError, "p must be"),
        ],
    )
    def test_refused(self, grid, error, message):
        fusion = LabelledFusion(LocalLpFusion(locality=Locality()))
        with pytest.raises(error, match=message):
            Search(grid=grid).fit(scored_rows(), MinMax(), fusion)

    def test_short_name_of_two(self):
        fusion = LabelledFusion(LabelledFusion(LpFusion()))
        with pytest.raises(InvalidInputError, match="fusion__fusion__share, fusion__share"):
            Search(grid={"share": [0.5]}).fit(scored_rows(), MinMax(), fusion)

    def test_nothing_to_choose(self):
        with pytest.raises(InvalidInputError, match="SumRule has no parameter p"):
            Search().fit(scored_rows(), MinMax(), SumRule())


class TestChoice:
    def test_results_are_consistent(self):
        search = Search(RPAU()).fit(scored_rows(), MinMax(), LpFusion())
        results = search.results_
        assert {len(column) for column in results.values()} == {9}
        assert sorted(results["rank"]) == list(range(1, 10))
        assert results["rank"][search.best_index_] == 1
        assert results["value"][search.best_index_] == results["value"].max()
        assert search.best_value_ == results["value"].max()
        assert search.best_params_ == results["params"][search.best_index_]
        assert (results["seconds"] > 0).all()

    def test_value_is_that_of_the_criterion(self):
        rows = scored_rows()
        search = Search().fit(rows, MinMax(), LpFusion())
        for p, value in zip(PAPER_P, search.results_["value"], strict=True):
            alone = search.criterion_.value(rows, MinMax(), LpFusion(p=p))
            assert value == pytest.approx(alone, abs=1e-9)

    def test_ties_go_to_the_p_closest_to_two(self):
        for grid, expected in (({"p": [100, 4, 4 / 3, 8]}, 4 / 3), ({"p": PAPER_P[::-1]}, 2.0)):
            search = Search(Constant(), grid=grid).fit(scored_rows(), MinMax(), LpFusion())
            assert search.best_params_ == {"fusion__p": expected}

    def test_other_ties_go_to_the_first(self):
        search = Search(Constant(), grid={"rho": [7, 3]}).fit(scored_rows(), MinMax(), SumRule())
        assert search.best_params_ == {"normaliser__rho": 7}
        assert search.best_normaliser_.rho == 7

    def test_deterministic(self):
        searches = [
            Search("stability", {"p": [4 / 3, 2]}).fit(scored_rows(), MinMax(), LocalLpFusion())
            for _ in range(2)
        ]
        np.testing.assert_array_equal(*(search.results_["value"] for search in searches))

    def test_finds_a_setting_that_is_right(self):
        """One good member among eight: the even share drowns it."""
        rng = np.random.default_rng(0)
        rows = scored_rows(d=8, n=300, n_pseudo=300)
        rows.S[:, :-1] = rng.normal(size=(600, 7))
        search = Search(grid={"fusion": [LpFusion(p=1.1), "sum"]}).fit(rows, MinMax(), SumRule())
        assert search.best_index_ == 0
        values = search.results_["value"]
        assert values[0] > values[1] + 0.02

    def test_table(self):
        search = Search(grid={"p": [2, 4]})
        with pytest.raises(NotFittedError):
            search.to_markdown()
        lines = search.fit(scored_rows(), MinMax(), LpFusion()).to_markdown().split("\n")
        assert lines[0] == "| fusion__p | value |"
        assert len(lines) == 4


class TestSharing:
    def test_candidates_share_the_normaliser(self):
        CountingMinMax.fits = 0
        grid = {"p": [4 / 3, 2, 4], "rho": [1.0, 5.0]}
        Search(grid=grid).fit(scored_rows(), CountingMinMax(), LpFusion())
        assert CountingMinMax.fits == 4 * 2  # folds x values of rho

    def test_nothing_given_is_changed(self):
        normaliser, fusion, search = MinMax(), LpFusion(), Search(RPAU(), grid={"p": [3]})
        before = [clone(part).get_params() for part in (normaliser, fusion)]
        search.fit(scored_rows(), normaliser, fusion)
        assert [part.get_params() for part in (normaliser, fusion)] == before
        assert search.grid == {"p": [3]}

    def test_progress(self):
        told = []
        with show_progress(lambda *step: told.append(step)):
            Search().fit(scored_rows(), MinMax(), LpFusion())
        assert told[0] == ("tuning", "PseudoNegativeAUC", 0, 9)
        assert told[-1] == ("tuning", "PseudoNegativeAUC", 9, 9)


class TestMembers:
    NAMES = ("svdd-0.25", "svdd-1", "gmm", "gmm-3")

    def test_best_of_each_family(self):
        search = Search(select_members=True)
        search.fit(scored_rows(), MinMax(), LpFusion(), list(self.NAMES))
        # of the shared rows, later members are better; "gmm" has no "-" and is a family too
        assert search.members_ == ["svdd-1", "gmm-3"]
        results = search.member_results_
        assert results["family"] == ["svdd", "svdd", "gmm", "gmm"]
        assert results["kept"].tolist() == [False, True, False, True]
        assert (np.diff(results["value"]) > 0).all()

    def test_p_is_searched_on_those(self):
        rows = scored_rows()
        both = Search(select_members=True).fit(rows, MinMax(), LpFusion(), list(self.NAMES))
        rows = scored_rows()
        kept = rows.only([1, 3])
        alone = Search().fit(kept, MinMax(), LpFusion())
        np.testing.assert_array_equal(both.results_["value"], alone.results_["value"])

    def test_rules_have_nothing_else_to_choose(self):
        search = Search("rpau", select_members=True)
        search.fit(scored_rows(), MinMax(), SumRule(), list(self.NAMES))
        assert search.best_params_ == {}
        assert len(search.members_) == 2

    def test_stability_cannot_judge_one_member(self):
        with pytest.raises(InvalidInputError, match="halves of the members"):
            Search("stability", select_members=True).fit(scored_rows(), MinMax(), LpFusion())


def test_make_search():
    assert isinstance(make_search("rpau").criterion, RPAU)
    assert isinstance(make_search(RPAU("percent")).criterion, RPAU)
    search = Search("labels")
    assert make_search(search) is not search
    for tune in ("auc", Search("auc")):
        with pytest.raises(InvalidInputError, match="'labels'"):
            make_search(tune)
    for tune in (True, 2, RPAU, Search):
        with pytest.raises(InvalidTypeError, match="tune must be"):
            make_search(tune)


@pytest.mark.parametrize("fusion", [LpFusion(), LocalLpFusion(anchors=5)])
def test_pseudo_negatives_may_judge_without_being_learned_from(fusion):
    """As in the paper: the weights are those of normals alone, with the norm that was chosen."""
    X = load_iris().data[:50]
    search = Search("pseudo-negatives", grid={"p": [4 / 3, 4]}, learn_negatives=False)
    found = FusedDetector("light", fusion=fusion, tune=search, random_state=0).fit(X)
    p = found.search_.best_params_["fusion__p"]
    fixed = clone(fusion).set_params(p=p)
    alone = FusedDetector("light", fusion=fixed, negatives=None, random_state=0).fit(X)
    np.testing.assert_array_equal(found.weights(X), alone.weights(X))
    np.testing.assert_array_equal(found.score_samples(X), alone.score_samples(X))
    assert found.offset_ == alone.offset_
    both = clone(search).set_params(learn_negatives=True)
    other = FusedDetector("light", fusion=fusion, tune=both, random_state=0).fit(X)
    assert (other.weights(X) != found.weights(X)).any()
    # they judged: the value is an AUC against them
    assert 0.5 < found.search_.best_value_ <= 1.0


def test_of_equal_settings_the_middle_of_a_list_is_taken():
    grid = {"p": [1.5, 4.0, 2.5], "rho": [float(rho) for rho in range(1, 11)]}
    search = Search(Constant(), grid=grid).fit(scored_rows(), MinMax(), LpFusion())
    # 1.5 and 2.5 are as near to 2: the first
    assert search.best_params_ == {"fusion__p": 1.5, "normaliser__rho": 5.0}
