"""The drift ratio tells wandering channels from restless ones."""

import numpy as np
import pytest

from ocfuse.exceptions import DriftWarning
from ocfuse.streaming import drift_ratio
from ocfuse.streaming.course import warn_of_drift


def test_by_hand():
    x = np.array([0.0, 2.0, 4.0, 6.0])[:, np.newaxis]
    # block means 1 and 5, their variance 4; variance within the blocks 1
    assert drift_ratio(x, n_blocks=2)[0] == pytest.approx(4.0)


def test_noise_stays_and_walks_wander():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 3))
    assert (drift_ratio(noise) < 0.05).all()
    assert (drift_ratio(np.cumsum(noise, axis=0)) > 0.5).all()


def test_units_do_not_matter_and_gaps_are_left_out():
    X = np.cumsum(np.random.default_rng(1).normal(size=(200, 2)), axis=0)
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    np.testing.assert_allclose(drift_ratio(1e6 * X - 5), drift_ratio(X), rtol=1e-6)
    np.testing.assert_allclose(drift_ratio(gaps), drift_ratio(X), rtol=0.2)


def test_constant_channels():
    steps = np.repeat([0.0, 1.0], 50)
    ratio = drift_ratio(np.column_stack([np.full(100, 0.1), steps]), n_blocks=2)
    assert ratio[0] == 0
    assert np.isinf(ratio[1])


def test_the_warning_names_channels():
    with pytest.warns(DriftWarning, match=r"above 0.3.*: warm \(2\)\. Do something\."):
        warn_of_drift(np.array([0.1, 2.0]), ["calm", "warm"], 0.3, "Do something.")


def phases(seed, n_runs=8, n=300, wander=0.0):
    """Runs of a machine whose load doubles half-way, one channel of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_runs, n, 3))
    X[:, n // 2 :, :2] += 20
    X[:, :, 1] += wander * rng.normal(size=(n_runs, 1))
    return X.reshape(-1, 3), np.repeat(np.arange(n_runs), n)


@pytest.mark.parametrize("n_runs", [2, 3, 8])
def test_phases_that_all_runs_have_are_no_drift(n_runs):
    X, runs = phases(0, n_runs)
    assert (drift_ratio(X[:300])[:2] > 10).all()  # one run cannot tell
    assert (drift_ratio(X, runs) < 0.3).all()


def test_phases_that_come_early_or_late_are_no_drift_by_context():
    rng = np.random.default_rng(1)
    lengths = rng.integers(200, 400, size=8)
    progress = np.concatenate([np.linspace(0, 1, n) for n in lengths])
    X = rng.normal(size=(len(progress), 2)) + 20 * (progress > 0.5)[:, np.newaxis]
    runs = np.repeat(np.arange(8), lengths)
    assert (drift_ratio(X, runs, context=progress) < 0.3).all()


@pytest.mark.parametrize("seed", range(5))
def test_levels_that_differ_from_run_to_run_are_drift(seed):
    ratio = drift_ratio(*phases(seed, wander=2.0))
    assert ratio[1] > 0.3 > max(ratio[0], ratio[2])


@pytest.mark.slow
def test_the_number_of_runs_does_not_matter():
    few, many = (
        np.mean([drift_ratio(*phases(seed, n_runs, wander=2.0))[1] for seed in range(60)])
        for n_runs in (2, 16)
    )
    assert few == pytest.approx(many, rel=0.3)


def test_constant_channels_of_several_runs():
    X = np.full((100, 1), 0.1)
    assert drift_ratio(X, np.repeat([0, 1], 50))[0] == 0
