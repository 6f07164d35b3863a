"""The paper's members and how systems learn: candidates, choices, certificates."""

from types import SimpleNamespace

import numpy as np
import pytest

from ocfuse.fusion.lp import LpFusion
from ocfuse.fusion.rules import SumRule
from ocfuse.lab.paper.repetitions import draw, prepare
from ocfuse.lab.paper.systems import BestMember, Fused, certificate
from ocfuse.metrics import auc
from ocfuse.paper import Candidates, OnValidation, candidates, mirrored
from ocfuse.tuning.splits import family
from tests.lab.paper.cases import load_toy


@pytest.fixture(scope="module")
def pure():
    data = load_toy("toy")
    return Candidates(prepare(data.X, draw(data.y, "toy", "pure", 0)).known)


@pytest.fixture(scope="module")
def labelled():
    data = load_toy("toy")
    return Candidates(prepare(data.X, draw(data.y, "toy", "non-pure", 0)).known)


def test_grid_is_the_paper_s():
    names = [name for name, _ in candidates(20)]
    assert len(names) == len(set(names))
    assert [n for n in names if family(n) == "svdd"] == ["svdd-0.25", "svdd-0.5", "svdd-1"]
    assert [n for n in names if n.startswith("kpca-1x")] == [
        "kpca-1x2",
        "kpca-1x6",
        "kpca-1x10",
        "kpca-1x14",
        "kpca-1x18",
    ]
    assert {family(name) for name in names} == {"svdd", "gp", "kpca", "gmm"}
    assert dict(candidates(20))["kpca-0.5x6"].get_params()["subspace"] == 6


def test_half_of_the_validation_rows_is_mirrored(pure):
    found = mirrored(pure.known)
    rows = {tuple(row) for row in -pure.known.validation}
    assert len(found) == round(0.5 * len(pure.known.validation))
    assert {tuple(row) for row in found} <= rows
    assert len({tuple(row) for row in found}) == len(found)


@pytest.mark.slow
def test_rows_are_what_is_known(labelled):
    known, rows = labelled.known, labelled.rows
    learned = rows.take(rows.fold == 0)
    np.testing.assert_array_equal(learned.X, np.vstack([known.train, known.train_anomalies]))
    assert (learned.y > 0).sum() == len(known.train)
    judged = rows.take(rows.fold == 1)
    expected = np.vstack([known.validation, known.validation_anomalies])
    np.testing.assert_array_equal(judged.X, expected)
    np.testing.assert_allclose(judged.S, labelled.pool.score_samples(expected), rtol=1e-10)
    # training rows are scored by members that have not seen them
    np.testing.assert_array_equal(learned.S[: len(known.train)], labelled.pool.out_of_fold_scores_)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["rpau", "pseudo-negatives"])
def test_one_of_each_family_is_chosen(pure, criterion):
    chosen = pure.chosen(criterion)
    assert [family(name) for name in chosen.names] == ["svdd", "gp", "kpca", "gmm"]
    assert pure.chosen(criterion) is chosen
    X = pure.known.validation
    assert chosen.scores(X) is chosen.scores(X)
    columns = [pure.pool.names_.index(name) for name in chosen.names]
    np.testing.assert_allclose(chosen.scores(X), pure.pool.score_samples(X)[:, columns])


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["pseudo-negatives", "labels"])
def test_chosen_has_the_best_area_of_its_family(pure, labelled, criterion):
    found = pure if criterion == "pseudo-negatives" else labelled
    rows = found.rows.take(found.rows.fold == (-1 if found is pure else 1))
    normals = found.rows.take((found.rows.fold == 1) & (found.rows.y > 0))
    anomalies = rows.take(rows.y < 0)
    y = np.repeat([1, -1], [len(normals.y), len(anomalies.y)])
    names = found.pool.names_
    areas = [auc(y, s) for s in np.vstack([normals.S, anomalies.S]).T]
    chosen = found.chosen(criterion)
    for name, (value, _) in zip(chosen.names, chosen.verdicts, strict=True):
        best = max(a for n, a in zip(names, areas, strict=True) if family(n) == family(name))
        assert value == pytest.approx(best, abs=1e-9)
        assert areas[names.index(name)] == pytest.approx(best, abs=1e-9)


def test_judged_rows_are_not_learned_from(labelled):
    (split,) = OnValidation("labels").splits(labelled.rows)
    assert (split.learned.fold == 0).all()
    assert (split.rows.fold != 0).all()
    assert len(split.learned.y) + len(split.rows.y) == len(labelled.rows.y)


def test_ties_and_spread_of_the_criterion(labelled):
    chosen, names = labelled.chosen("labels"), labelled.pool.names_
    rows = labelled.rows.take(labelled.rows.fold == 1)
    areas = [round(auc(rows.y, s), 9) for s in rows.S.T]
    assert chosen.spread[0] == pytest.approx(min(areas))
    assert chosen.spread[1] == pytest.approx(np.median(areas))
    assert chosen.spread[2] == pytest.approx(max(areas))
    assert max(chosen.ties) > 0  # few anomalies: the AUC has few values
    for name, ties in zip(chosen.names, chosen.ties, strict=True):
        best = areas[names.index(name)]
        level = [n for n, a in zip(names, areas, strict=True) if a == best]
        level = [n for n in level if family(n) == family(name)]
        assert ties == len(level) - 1
        assert name == level[(len(level) - 1) // 2]


def test_certificate_of_many_problems():
    fitted = SimpleNamespace(gap_=np.array([1e-6, 0.01234, 1e-5]), status_=["solved"] * 3)
    assert certificate(fitted) == {"gap": 0.0123, "solved": 1.0}
    fitted.status_[1] = "max iterations"
    assert certificate(fitted)["solved"] == pytest.approx(2 / 3, abs=1e-6)
    fitted.gap_[0] = np.inf
    assert certificate(fitted)["gap"] is None


def test_rules_have_no_certificate():
    assert certificate(SumRule()) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
def test_unsolved_problem_is_seen(labelled):
    solved, unsolved = (
        Fused(LpFusion(tol=tol, solver="frank-wolfe-paper"), "labels").learn(labelled).choices
        for tol in (0.5, 1e-12)
    )
    assert solved["solved"] == 1.0
    assert unsolved["solved"] == 0.0
    assert unsolved["gap"] > 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
def test_choices_have_the_values_that_chose(pure):
    chosen = pure.chosen("pseudo-negatives")
    choices = Fused(LpFusion(), "pseudo-negatives").learn(pure).choices
    assert choices["values"] == [value for value, _ in chosen.verdicts]
    assert choices["candidates"][2] == max(choices["values"])
    assert choices["p_lowest"] <= choices["p_value"] <= 1.0
    assert 0 <= choices["p_ties"] <= 8
    single = BestMember("pseudo-negatives").learn(pure).choices
    assert single["value"] == max(choices["values"])


def test_single_best_of_equal_ones_is_the_middle():
    chosen = SimpleNamespace(
        verdicts=[(1.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.0, 0.0)],
        values=[1.0, 0.5, 1.0, 1.0],
        ties=[2, 9, 1, 0],
        names=["a", "b", "c", "d"],
        spread=[0.5, 1.0, 1.0],
    )
    choices = BestMember("labels").learn(SimpleNamespace(chosen=lambda by: chosen)).choices
    # level are a with 2 others, c with 1, and d
    assert (choices["member"], choices["ties"]) == ("c", 5)
