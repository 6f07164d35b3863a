"""Boosted one-class support vector machines."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals import BoostedSVM
from tests.bench.rivals.cases import islands


def spoilt(seed):
    """Return islands whose first ten rows are scattered outliers."""
    X = islands(seed)[0]
    X[:10] = np.random.default_rng(seed).uniform(-9, 9, (10, 2))
    return X


@pytest.mark.parametrize("loss", ["robust", "exponential"])
@pytest.mark.parametrize("seed", range(3))
def test_weights_add_up_to_one(loss, seed):
    model = BoostedSVM(loss=loss, random_state=seed).fit(spoilt(seed))
    assert model.weights_.shape == (20,)
    assert model.weights_.min() >= 0
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.row_weights_.min() > 0
    assert model.row_weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_outliers_weigh_less_than_under_the_exponential_loss(seed):
    X = spoilt(seed)
    robust = BoostedSVM(random_state=0).fit(X).row_weights_[:10].sum()
    plain = BoostedSVM(loss="exponential", random_state=0).fit(X).row_weights_[:10].sum()
    assert robust < plain


@pytest.mark.parametrize("mixing", [0.2, 0.5, 0.8])
def test_slope_is_the_derivative_of_the_loss(mixing):
    margin, h = np.linspace(-0.99, 0.99, 34), 1e-6

    def loss(f):
        modified = np.where(f >= 0, np.exp(-np.abs(f)), 2.0 - np.exp(-np.abs(f)))
        return mixing * modified + (1.0 - mixing) * (1.0 - f) ** 2 / 2

    slope = (loss(margin - h) - loss(margin + h)) / (2 * h)
    np.testing.assert_allclose(BoostedSVM(mixing=mixing)._slope(5 * margin, 5.0), slope, rtol=1e-4)


def test_rows_in_dispute_count_most_and_hopeless_ones_little_more_than_others():
    rejected, disputed, accepted = BoostedSVM()._slope(np.array([-9.0, 0.0, 9.0]), 9.0)
    assert accepted < rejected < disputed
    assert rejected / accepted == pytest.approx(2.4, abs=0.05)


def test_score_is_the_average_of_the_machines():
    X, rows, _ = islands(0)
    one = BoostedSVM(n_rounds=1, random_state=0).fit(X)
    assert one.weights_.tolist() == [1.0]
    model = BoostedSVM(random_state=0).fit(X)
    far = model.score_samples([[500.0, 500.0]])
    np.testing.assert_allclose(far, [-1.0])  # every machine says so
    assert model.coef_.min() >= 0
    assert np.isfinite(model.score_samples(rows)).all()


def test_false_alarm_rate_holds_on_fresh_rows():
    rng = np.random.default_rng(2)
    model = BoostedSVM(false_alarm_rate=0.1, random_state=0).fit(rng.normal(size=(400, 3)))
    alarms = (model.predict(rng.normal(size=(2000, 3))) == -1).mean()
    assert 0.05 < alarms < 0.15


@pytest.mark.parametrize(
    "parameters",
    [{"nu": 1.0}, {"n_rounds": 0}, {"mixing": 0.0}, {"loss": "hinge"}, {"width": 0.0}],
    ids=str,
)
def test_parameters_that_cannot_be_used(parameters):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        BoostedSVM(**parameters).fit(islands(0)[0])
