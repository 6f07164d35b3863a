"""The paper's system as an estimator: what its tables have, what it refuses, where it is used."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import ocfuse
from ocfuse import paper
from ocfuse.exceptions import InvalidInputError, NotEnoughMemoryError
from ocfuse.lab.paper.repetitions import draw
from ocfuse.lab.paper.systems import SYSTEMS, make_context
from ocfuse.paper import PaperDetector
from ocfuse.tuning.search import PAPER_P, PAPER_RHO
from tests.ensemble.test_conformance import fails_as_documented

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

IRIS = load_iris()
X = IRIS.data
y = np.where(IRIS.target == 2, 1, -1)
SETOSA = X[:50]


@pytest.fixture(scope="module")
def detector():
    return PaperDetector(random_state=0).fit(SETOSA)


@pytest.mark.parametrize(
    ("protocol", "name", "settings"),
    [
        ("pure", "Pure2 RPAU", {}),
        ("pure", "Pure1 RPAU", {"solver": "frank-wolfe"}),
        ("pure", "Pure2 pseudo-negative", {"tuning": "pseudo-negatives"}),
        ("non-pure", "Non-pure2", {}),
        ("non-pure", "Non-pure1", {"solver": "frank-wolfe"}),
    ],
)
def test_scores_are_those_of_the_row_of_the_tables(protocol, name, settings):
    split = draw(y, "iris", protocol, 1)
    context = make_context(X, split)
    model = SYSTEMS[protocol][name].recipe.learn(context.candidates)
    known = protocol == "non-pure"
    train = [*split.train, *split.train_anomalies]
    judged = [*split.validation, *split.validation_anomalies]
    detector = PaperDetector(**settings, random_state=1).fit(
        X[train],
        y[train] if known else None,
        X_validation=X[judged],
        y_validation=y[judged] if known else None,
    )
    assert detector.pool_.names_ == model.choices["members"]
    assert (detector.p_, detector.rho_) == (model.choices["p"], model.choices["rho"])
    found = detector.score_samples(X[[*split.test, *split.test_anomalies]])
    # Frank-Wolfe stops at a gap: what is rounded otherwise before shows after it
    exactly = {"rtol": 1e-7, "atol": 1e-9} if "solver" not in settings else {"rtol": 1e-4}
    np.testing.assert_allclose(found, model.score(context.trial.test), **exactly)
    words = {"rpau": "RPAU", "pseudo-negatives": "pseudo-negative", "labels": "Non-pure"}
    for rule in ("Sum rule", "Min rule", "Single-best"):
        beside = SYSTEMS[protocol][f"{rule} {words[detector.criterion_]}"]
        theirs = beside.recipe.learn(context.candidates).score(context.trial.test)
        rival = detector.compare_[rule]
        if rule == "Single-best":  # not scaled there
            theirs = rival.normaliser_.transform(theirs[:, np.newaxis])[:, 0]
        ours = rival.score_samples(X[[*split.test, *split.test_anomalies]])
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9, err_msg=rule)


def test_the_previous_work_has_one_weight_vector(detector):
    whole = PaperDetector(scope="global", random_state=0).fit(SETOSA)
    weights = whole.fusion_.weights(whole.training_)
    assert (weights == weights[0]).all()
    assert not (detector.fusion_.weights(detector.training_)[1:] == weights[0]).all()


def test_members_are_one_of_each_family_and_p_one_of_nine(detector):
    assert [name.partition("-")[0] for name in detector.pool_.names_] == [
        *("svdd", "gp", "kpca", "gmm")
    ]
    assert detector.p_ in PAPER_P
    assert detector.best_member_ in detector.pool_.names_
    assert detector.rho_ in PAPER_RHO
    assert detector.search_.n_candidates == 90


def test_the_validation_share_is_held_out(detector):
    assert len(detector.validation_rows_) == 11
    assert len(detector.training_rows_) == 39
    assert not set(detector.validation_rows_) & set(detector.training_rows_)
    np.testing.assert_allclose(
        np.sort(detector.score_samples(SETOSA[detector.validation_rows_])),
        np.sort(detector.normal_scores_),
        rtol=1e-9,
    )


def test_pseudo_negatives_never_reach_the_weights():
    fixed = {"p": 2.0, "scope": "global", "random_state": 0}
    by = {t: PaperDetector(t, **fixed).fit(SETOSA) for t in ("rpau", "pseudo-negatives")}
    learned = {t: d.fusion_.weights(d.training_[:1]) for t, d in by.items()}
    if by["rpau"].pool_.names_ == by["pseudo-negatives"].pool_.names_:
        np.testing.assert_array_equal(*learned.values())
    refit = clone(by["pseudo-negatives"].fusion_)
    found = by["pseudo-negatives"]
    Z = found.normaliser_.transform(found.pool_.out_of_fold_scores_)
    refit.fit(Z, X=found.training_)
    np.testing.assert_allclose(refit.weights(found.training_[:1]), learned["pseudo-negatives"])


def test_given_settings_are_not_searched():
    found = PaperDetector(p=4.0, rho=2.0, random_state=0).fit(SETOSA)
    assert (found.p_, found.rho_, found.search_.n_candidates) == (4.0, 2.0, 1)


def test_rho_is_searched_alone_if_p_is_given():
    found = PaperDetector(scope="global", p=2.0, random_state=0).fit(SETOSA)
    assert found.search_.n_candidates == 10
    assert found.rho_ in range(1, 11)


def test_anomalies_of_other_species_score_lower(detector):
    found = detector.predict(X[50:])
    assert (found < 0).mean() > 0.9
    for rival in detector.compare_.values():
        assert rival.score_samples(X[50:]).shape == (100,)


def test_a_model_file_gives_the_same_scores(detector, tmp_path):
    detector.save(tmp_path / "paper.ocf")
    loaded = ocfuse.load(tmp_path / "paper.ocf")
    assert isinstance(loaded, PaperDetector)
    np.testing.assert_array_equal(loaded.score_samples(X), detector.score_samples(X))
    assert sorted(loaded.compare_) == sorted(detector.compare_)


def test_it_can_be_cloned_and_explained(detector):
    assert clone(detector).get_params() == detector.get_params()
    explanation = detector.explain(X[100:102])
    assert explanation.member_names == detector.pool_.names_
    assert detector.set_params(p=None).p is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"p": 0.5}, "p must be a number in"),
        ({"rho": 60}, "rho must be"),
        ({"tuning": "auc"}, "tuning must be one of"),
        ({"solver": "simplex"}, "solver must be one of"),
        ({"scope": "everywhere"}, "scope must be one of"),
        ({"validation": 0.0}, "validation must be"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(InvalidInputError, match=words):
        PaperDetector(**settings).fit(SETOSA)


@pytest.mark.parametrize(
    ("rows", "labels", "more", "words"),
    [
        (SETOSA, np.ones(50), {}, "Leave out y for the pure mode"),
        (X, np.where(np.arange(150) < 1, -1, 1), {}, "at least 2 -1"),
        (SETOSA[:6], None, {}, "5 normal rows to learn from and 2 to choose by"),
        (SETOSA, None, {"groups": np.arange(50)}, "takes no groups"),
        (SETOSA, None, {"context": np.arange(50)}, "takes no context"),
        (
            SETOSA,
            None,
            {"X_validation": X[45:60], "y_validation": [1] * 5 + [-1] * 10},
            "in y and in y_validation, or in neither",
        ),
        (SETOSA, None, {"X_validation": X[:5, :2]}, "Expected 4"),
    ],
)
def test_bad_rows(rows, labels, more, words):
    with pytest.raises(InvalidInputError, match=words):
        PaperDetector().fit(rows, labels, **more)


def test_rows_whose_grid_does_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(paper, "available_bytes", lambda: 3_000_000)
    with pytest.raises(NotEnoughMemoryError, match=r"Use at most 9\d rows"):
        PaperDetector().fit(X[:120])


def test_a_fit_that_fails_leaves_the_detector_as_it_was(detector):
    before = detector.score_samples(X[:3])
    with pytest.raises(InvalidInputError):
        detector.fit(SETOSA[:3])
    np.testing.assert_array_equal(detector.score_samples(X[:3]), before)


@pytest.mark.slow
@parametrize_with_checks(
    # at rho = 5 a training row lies on the threshold: rounding decides
    [PaperDetector(p=2.0, rho=4.0, random_state=0)]
)
def test_checks_of_scikit_learn(estimator, check):
    fails_as_documented(estimator, check)
