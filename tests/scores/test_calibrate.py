"""Probabilities from normals alone and from labels."""

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import LabelCalibrator, TailCalibrator, TailProbability

LAW = settings(deadline=None, max_examples=25)
labelled = st.lists(
    st.tuples(st.integers(-50, 50).map(float), st.sampled_from([1, -1])), min_size=2, max_size=30
).filter(lambda rows: len({label for _, label in rows}) == 2)
ALL = [
    TailCalibrator(),
    LabelCalibrator(),
    LabelCalibrator("platt"),
    LabelCalibrator("isotonic"),
    LabelCalibrator("platt", prior=0.001),
    LabelCalibrator("isotonic", prior=0.001),
]
every = pytest.mark.parametrize("calibrator", ALL, ids=repr)


def two_gaussians(n_normal, n_anomaly, distance, seed):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n_normal + n_anomaly)
    scores[n_normal:] -= distance
    return scores, np.repeat([1, -1], [n_normal, n_anomaly])


def true_probability(scores, share, distance):
    odds = stats.norm.pdf(scores) * (1 - share) / (stats.norm.pdf(scores + distance) * share)
    return odds / (1.0 + odds)


@every
@given(rows=labelled, scale=st.sampled_from([1e-6, 1.0, 1e6]))
@LAW
def test_probabilities_increase_with_the_score(calibrator, rows, scale):
    scores, y = (np.array(column) for column in zip(*rows, strict=True))
    fitted = clone(calibrator).fit(scale * scores, y)
    P = fitted.predict_proba(scale * np.linspace(-200.0, 200.0, 201))
    assert P.shape == (201, 2)
    assert np.all((P >= 0) & (P <= 1))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert np.all(np.diff(P[:, 1]) >= 0)


@every
def test_contract(calibrator):
    scores, y = two_gaussians(80, 60, 2.0, 0)
    fitted = clone(calibrator)
    assert fitted.fit(scores, y) is fitted
    np.testing.assert_array_equal(fitted.classes_, [-1, 1])
    batch = fitted.predict_proba(scores)
    single = np.vstack([fitted.predict_proba([score]) for score in scores])
    np.testing.assert_allclose(batch, single, rtol=1e-13)
    assert fitted.predict_proba([]).shape == (0, 2)
    # normals are the second column
    assert batch[y > 0, 1].mean() > batch[y < 0, 1].mean() + 0.2 * batch[y > 0, 0].mean()


@every
def test_saved_and_loaded(calibrator):
    scores, y = two_gaussians(80, 60, 2.0, 1)
    fitted = clone(calibrator).fit(scores, y)
    data = skops.io.dumps(fitted)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    rows = np.linspace(-9.0, 9.0, 50)
    np.testing.assert_array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))


@every
def test_unfitted(calibrator):
    with pytest.raises(NotFittedError):
        clone(calibrator).predict_proba([1.0])


# -- from normals alone --------------------------------------------------------------------


def test_tail_is_uniform_on_normals_and_strictly_inside():
    rng = np.random.default_rng(2)
    fitted = TailCalibrator().fit(-rng.gamma(2.0, 1.0, 3000))
    normal = fitted.predict_proba(-rng.gamma(2.0, 1.0, 3000))[:, 1]
    assert stats.kstest(normal, "uniform").statistic < 0.05
    far = fitted.predict_proba(-np.logspace(1, 50, 60))[:, 1]
    assert np.all(np.diff(far) < 0)
    assert np.all(far > 0)


def test_tail_is_the_normaliser_of_one_column():
    scores = np.random.default_rng(3).standard_normal(50)
    rows = np.linspace(-6.0, 6.0, 30)
    column = TailProbability().fit(scores[:, np.newaxis]).transform(rows[:, np.newaxis])
    np.testing.assert_array_equal(
        TailCalibrator().fit(scores).predict_proba(rows)[:, 1], column[:, 0]
    )


def test_tail_uses_normals_only():
    scores, y = two_gaussians(60, 20, 5.0, 4)
    rows = np.linspace(-6.0, 3.0, 30)
    np.testing.assert_array_equal(
        TailCalibrator().fit(scores, y).predict_proba(rows),
        TailCalibrator().fit(scores[y > 0]).predict_proba(rows),
    )


# -- from labels ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n_normal", "n_anomaly"), [(200, 3), (40, 40), (5, 1)])
@pytest.mark.parametrize("distance", [0.5, 3.0, 50.0])
def test_platt_is_the_maximum_of_the_smoothed_likelihood(n_normal, n_anomaly, distance):
    scores, y = two_gaussians(n_normal, n_anomaly, distance, 5)
    fitted = LabelCalibrator("platt").fit(scores, y)
    if fitted.slope_ == 0.0:
        assert np.cov(scores, y)[0, 1] <= 0
        return
    target = np.where(y > 0, (n_normal + 1) / (n_normal + 2), 1 / (n_anomaly + 2))
    residual = target - expit(fitted.slope_ * scores + fitted.intercept_)
    assert abs(residual.sum()) < 1e-5
    assert abs(residual @ scores) < 1e-4


def test_platt_finds_the_true_probability():
    # two Gaussians of one width: the logistic form is right
    scores, y = two_gaussians(20_000, 20_000, 2.0, 6)
    rows = np.linspace(-4.0, 2.0, 30)
    P = LabelCalibrator("platt").fit(scores, y).predict_proba(rows)
    np.testing.assert_allclose(P[:, 1], true_probability(rows, 0.5, 2.0), atol=0.02)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.parametrize("prior", [0.01, 0.7])
def test_prior_moves_the_share_of_anomalies(method, prior):
    scores, y = two_gaussians(20_000, 10_000, 2.0, 7)
    fitted = LabelCalibrator(method, prior=prior).fit(scores, y)
    rows = np.linspace(-3.0, 1.0, 30)
    expected = true_probability(rows, prior, 2.0)
    np.testing.assert_allclose(fitted.predict_proba(rows)[:, 1], expected, atol=0.06)
    plain = LabelCalibrator(method).fit(scores, y).predict_proba(rows)[:, 1]
    same = LabelCalibrator(method, prior=1 / 3).fit(scores, y).predict_proba(rows)[:, 1]
    np.testing.assert_allclose(same, plain)


def test_isotonic_beats_platt_where_its_form_is_wrong():
    rng = np.random.default_rng(8)

    def draw(n):
        scores = np.r_[rng.standard_normal(n), 4.0 * rng.standard_normal(n) - 3.0]
        return scores, np.repeat([1, -1], n)

    def log_loss(method):
        P = LabelCalibrator(method).fit(*train).predict_proba(test[0])
        return -np.mean(np.log(P[np.arange(len(P)), (test[1] > 0).astype(int)]))

    train, test = draw(500), draw(2000)
    assert log_loss("isotonic") < log_loss("platt") - 0.05


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_separable_classes_do_not_give_certainty(method):
    P = LabelCalibrator(method).fit([0.0, 1.0, 2.0, 10.0], [-1, 1, 1, 1]).predict_proba([0.0, 10.0])
    assert np.all((P > 0.01) & (P < 0.99))


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_scores_the_wrong_way_round_give_a_flat_probability(method):
    fitted = LabelCalibrator(method).fit([3.0, 2.0, 1.0, 0.0], [-1, -1, 1, 1])
    P = fitted.predict_proba([-5.0, 1.5, 9.0])
    np.testing.assert_allclose(P, 0.5, atol=1e-9)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_equal_scores_give_the_smoothed_share(method):
    P = LabelCalibrator(method).fit([1.0] * 4, [1, 1, 1, -1]).predict_proba([0.0, 1.0, 2.0])
    np.testing.assert_allclose(P[:, 1], (3 * 4 / 5 + 1 / 3) / 4)


@pytest.mark.parametrize(
    ("n_normal", "n_anomaly", "chosen"),
    [(500, 49, "platt"), (49, 500, "platt"), (50, 50, "isotonic")],
)
def test_auto(n_normal, n_anomaly, chosen):
    assert LabelCalibrator().fit(*two_gaussians(n_normal, n_anomaly, 2.0, 9)).method_ == chosen


def test_wrong_parameters():
    scores, y = two_gaussians(10, 10, 2.0, 10)
    with pytest.raises(InvalidInputError, match="'platt', 'isotonic', 'auto'"):
        LabelCalibrator("sigmoid").fit(scores, y)
    for prior in (0.0, 1.0, "0.1"):
        with pytest.raises(InvalidInputError, match="prior"):
            LabelCalibrator(prior=prior).fit(scores, y)


def test_wrong_labels():
    with pytest.raises(InvalidInputError, match="TailCalibrator"):
        LabelCalibrator().fit([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="no -1"):
        LabelCalibrator().fit([1.0, 2.0], [1, 1])
    with pytest.raises(InvalidInputError, match="at least one row"):
        TailCalibrator().fit([])
