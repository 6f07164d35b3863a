"""What recipes tell of their choices."""

from types import SimpleNamespace

import numpy as np
import pytest

from ocfuse.fusion.lp import LpFusion
from ocfuse.fusion.rules import SumRule
from ocfuse.lab.paper.repetitions import draw
from ocfuse.lab.paper.systems import BestMember, Fused, certificate, make_context
from tests.bench.cases import load_toy


def toy(protocol):
    data = load_toy("toy")
    return make_context(data.X, draw(data.y, "toy", protocol, 0)).candidates


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
def test_unsolved_problem_is_seen():
    candidates = toy("non-pure")
    solved, unsolved = (
        Fused(LpFusion(tol=tol, solver="frank-wolfe-paper"), "labels").learn(candidates).choices
        for tol in (0.5, 1e-12)
    )
    assert solved["solved"] == 1.0
    assert unsolved["solved"] == 0.0
    assert unsolved["gap"] > 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
def test_choices_have_the_values_that_chose():
    pure = toy("pure")
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
