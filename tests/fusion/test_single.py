"""The single best member."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import SingleBest
from tests.fusion.cases import scores


def test_best_by_auc():
    Z, y, X = scores(d=5)
    model = SingleBest().fit(Z, y)
    quality = [roc_auc_score(y, z) for z in Z.T]
    np.testing.assert_allclose(model.quality_, quality)
    assert model.best_ == int(np.argmax(quality))
    np.testing.assert_array_equal(model.fuse(Z), Z[:, model.best_])
    assert model.weights(X)[0, model.best_] == 1.0


def test_best_by_average_precision_of_the_anomalies():
    Z, y, _ = scores(d=5)
    model = SingleBest("average-precision").fit(Z, y)
    np.testing.assert_allclose(model.quality_, [average_precision_score(y < 0, -z) for z in Z.T])


def test_weights_can_change_the_choice():
    Z = np.array([[0.9, 0.5], [0.1, 0.6], [0.5, 0.55]])
    y = [1, 1, -1]
    assert SingleBest().fit(Z, y, sample_weight=[3, 1, 1]).best_ == 0
    assert SingleBest().fit(Z, y, sample_weight=[1, 3, 1]).best_ == 1


def test_the_first_of_equals():
    assert SingleBest().fit([[1.0, 1.0], [0.0, 0.0]], [1, -1]).best_ == 0


def test_unknown_criterion():
    with pytest.raises(InvalidInputError, match="'auc', 'average-precision'"):
        SingleBest("f1").fit([[1.0], [0.0]], [1, -1])
