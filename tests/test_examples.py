"""The examples of the documentation run, and keep the contracts that they show."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from examples.own_detector import Parzen
from examples.own_fusion import SteadyFusion

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("own_*.py")))
def test_it_runs(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "[ 1 -1 -1]" in capsys.readouterr().out


@parametrize_with_checks([Parzen()])
def test_the_detector_is_an_estimator(estimator, check):
    check(estimator)


def test_the_detectors_closed_form_equals_refits():
    X = np.random.default_rng(0).normal(size=(12, 2))
    whole = Parzen().fit(X)
    gram = whole.reference_.query(X)
    expected = [gram.kernel(0.5)[i][np.arange(12) != i].mean() for i in range(12)]
    out_of_fold = np.sort(expected)
    assert whole.offset_ == pytest.approx(out_of_fold[0])


def test_the_fusion_adds_up():
    Z = np.random.default_rng(0).random((30, 3)) * [1.0, 0.1, 3.0]
    fusion = clone(SteadyFusion()).fit(Z)
    assert np.argmax(fusion.weights(Z[:1])) == 1
    base, C = fusion.contributions(Z)
    np.testing.assert_allclose(base + C.sum(1), fusion.fuse(Z))
