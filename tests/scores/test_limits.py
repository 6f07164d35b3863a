"""The threshold from few scores holds for Gaussian scores, and one odd run does not move it."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import prediction_limit


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_the_rate_is_about_right_for_ten_gaussian_scores(rate):
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 11))
    alarms = [row[10] < prediction_limit(row[:10], rate) for row in draws]
    assert rate < np.mean(alarms) < 2.5 * rate  # the price of being robust


def test_one_odd_score_hardly_matters():
    scores = np.random.default_rng(1).normal(size=12)
    odd = scores.copy()
    odd[odd.argmin()] = -1e6
    assert prediction_limit(odd) == prediction_limit(scores)


def test_units_carry_over():
    scores = np.random.default_rng(2).normal(size=9)
    assert prediction_limit(3 * scores - 7) == pytest.approx(3 * prediction_limit(scores) - 7)


@pytest.mark.parametrize(("scores", "rate"), [([1.0, 2.0, np.nan], 0.05), ([1, 2, 3], 0.5)])
def test_unusable_input_is_refused(scores, rate):
    with pytest.raises(InvalidInputError):
        prediction_limit(scores, rate)
