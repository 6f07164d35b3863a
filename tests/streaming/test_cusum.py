"""Sums of small deviations, of a run and live."""

import math
from functools import partial

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import Cusum, cusum, events, run_score

NAN = math.nan


def test_cusum_finds_what_no_single_score_shows():
    rng = np.random.default_rng(0)
    normal, weak = rng.normal(size=500), rng.normal(size=500) - 1
    limit = cusum(normal, 0.0, 0.5).min()
    assert (weak < normal.min()).mean() < 0.05
    assert (cusum(weak, 0.0, 0.5) < limit).mean() > 0.8


def test_cusum_by_hand():
    np.testing.assert_allclose(cusum([-1, -1, NAN, 5], 0.0, 0.25), [-0.75, -1.5, -1.5, 0.0])


def test_live_is_as_of_the_run():
    scores = np.random.default_rng(1).normal(size=100)
    scores[::9] = NAN
    sums = Cusum(0.1, 0.2)
    assert [sums.update(score) for score in scores] == cusum(scores, 0.1, 0.2).tolist()


@pytest.mark.parametrize("given", [{"slack": -1}, {"slack": NAN}, {"centre": NAN}, {"centre": "0"}])
def test_unusable_settings_are_refused(given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        cusum([0.0], **{"centre": 0.0} | given)


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], 1.0, ["low"], [[1.0], [1.0, 2.0]]])
def test_scores_are_those_of_one_run(scores):
    for take in (partial(cusum, centre=0.0), partial(events, enter=0.0), run_score):
        with pytest.raises(InvalidInputError, match="one run"):
            take(scores)
