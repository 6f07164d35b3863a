"""Every public estimator that learns is saved and loaded, and answers the same to the last bit.

A new one that is not made like the others of its package fails here until it has a case.
"""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import ocfuse.detectors
import ocfuse.ensemble
import ocfuse.fusion
import ocfuse.negatives
import ocfuse.scores
import ocfuse.streaming
import ocfuse.tables
import ocfuse.tuning
import ocfuse.vision
from benchmarks.hardening.models import FEW, MEMBERS, fitted_models, kinds, pictures, plant
from ocfuse import FusedDetector, detectors, load, scores, streaming, tables, vision
from ocfuse.groups import Groups
from ocfuse.persistence import save
from ocfuse.tuning import Search
from tests.vision.cases import Blocks, runs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] > 0.8, -1, 1)
S = X[:, 0]
PACKAGES = (
    ocfuse.detectors,
    ocfuse.ensemble,
    ocfuse.fusion,
    ocfuse.negatives,
    ocfuse.scores,
    ocfuse.streaming,
    ocfuse.tables,
    ocfuse.tuning,
    ocfuse.vision,
)
PUBLIC = {
    kind
    for package in PACKAGES
    for kind in (getattr(package, name) for name in package.__all__)
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and not inspect.isabstract(kind)
    if hasattr(kind, "fit") or hasattr(kind, "learn")
}


def few(**options):
    return FusedDetector(FEW, random_state=0, **options)


def detected(model):
    return model.fit(X), lambda model: model.score_samples(X)


def fused(rule):
    return rule.fit(X, Y, X), lambda rule: rule.fuse(X, X)


def normalised(normaliser):
    return normaliser.fit(X), lambda normaliser: normaliser.transform(3 * X)


def calibrated(calibrator):
    return calibrator.fit(S, Y), lambda calibrator: calibrator.predict_proba(S)


def on_patches(name):
    seen = pictures(12)
    return fitted_models()[name], lambda member: member.score(seen)


def whole(model, rows=X):
    def answers(model):
        found = model.explain(rows[:3])
        return model.score_samples(rows), model.p_values(rows), model.weights(rows), repr(found)

    return model, answers


def conformal():
    return scores.ConformalCalibrator().fit(S), lambda calibrator: calibrator.p_values(S)


def course():
    progress = np.linspace(0, 1, 40)
    return streaming.Course(5).fit(X, progress), lambda one: one.transform(X, progress)


def stream():
    rows, run = np.concatenate([plant(30, i) for i in range(4)]), np.repeat(np.arange(4), 30)
    model = streaming.StreamDetector(few(), windows=(3,))
    return model.fit(rows, runs=run), lambda model: model.score_samples(rows, run)


def table():
    model = tables.TableDetector(few()).fit(kinds(40))
    return model, lambda model: model.score(kinds(8))


def search():
    model = few(tune=Search(grid={"p": [2, 4]})).fit(X)
    return model.search_, lambda search: repr(search.results_)


def pooled():
    seen = pictures(30)
    member = vision.PooledMembers(few())
    return member.learn(seen, Groups(np.arange(30) % 3)), lambda member: member.score(seen)


def of_pictures():
    frames, run, progress = runs(4, 6)
    members = [("gaussian", vision.PatchGaussian()), ("knn", vision.PatchKNN())]
    model = vision.PictureDetector(Blocks(), members=members, false_alarm_rate=0.2, random_state=0)
    fitted = model.fit(frames, groups=run, context=progress)
    return fitted, lambda model: model.score_samples(frames, progress)


#: How each is learned and asked, by the class.
CASES = {
    detectors.Compressed: lambda: detected(detectors.Compressed(detectors.KPCA())),
    detectors.GMM: lambda: detected(detectors.GMM(2, random_state=0)),
    detectors.Pool: lambda: detected(detectors.Pool(MEMBERS)),
    detectors.Whitened: lambda: detected(detectors.Whitened(detectors.KNN())),
    FusedDetector: lambda: whole(fitted_models()["members"]),
    scores.ConformalCalibrator: conformal,
    scores.LabelCalibrator: lambda: calibrated(scores.LabelCalibrator("isotonic")),
    scores.TailCalibrator: lambda: calibrated(scores.TailCalibrator()),
    streaming.Course: course,
    streaming.StreamDetector: stream,
    streaming.StreamTable: lambda: (
        fitted_models()["stream"],
        lambda model: model.score(plant(8, 9)),
    ),
    tables.TableDetector: table,
    Search: search,
    vision.PatchGaussian: lambda: on_patches("patches"),
    vision.PatchKNN: lambda: on_patches("nearest patches"),
    vision.PictureDetector: of_pictures,
    vision.PooledMembers: pooled,
}
#: And by the package, for those that can be made without arguments.
USUAL = {"detectors": detected, "fusion": fused, "scores": normalised}
WHOLE = {
    "labels": lambda: whole(fitted_models()["labelled"]),
    "groups": lambda: whole(few().fit(X, None, np.arange(40) % 8)),
    "tuned": lambda: whole(few(tune="pseudo-negatives").fit(X)),
    "categories": lambda: whole(fitted_models()["categories"], kinds(40)),
    "default pool": lambda: whole(fitted_models()["default"]),
}


def case_of(kind):
    if kind in CASES:
        return CASES[kind]()
    return USUAL[kind.__module__.split(".")[1]](kind())


def check(model, answer, folder):
    path = save(model, folder / "model.ocf")
    loaded = load(path, trusted=["tests.vision.cases.Blocks"])
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    given, found = answer(model), answer(loaded)
    for one, other in zip(given, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(PUBLIC, key=lambda kind: kind.__name__))
@pytest.mark.filterwarnings("ignore")  # there are few rows, on purpose
def test_public_estimators(kind, tmp_path):
    check(*case_of(kind), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.filterwarnings("ignore")
def test_what_a_detector_was_given(name, tmp_path):
    check(*WHOLE[name](), tmp_path)
