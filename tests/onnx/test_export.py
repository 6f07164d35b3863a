"""An exported model scores as the model itself does."""

import json
import warnings

import numpy as np
import onnx
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import OneClassSVM

import ocfuse.onnx
from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.members import from_pyod
from ocfuse.detectors.neighbours import ALP, KNN, LOF
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import Compressed, Whitened
from ocfuse.encoder import cell_warnings_off
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion import CompetenceFusion, LabelledFusion, LocalLpFusion, TrustFusion
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.stacking import StackedFusion
from ocfuse.onnx.export import to_onnx
from ocfuse.streaming import StreamDetector
from ocfuse.tables import TableDetector
from tests.onnx.cases import assert_same, run, session


def fitted(detector, *args, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detector.fit(*args, **more)


def rows(n=120, m=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) @ rng.normal(size=(m, m))


def asked(X, n=40, seed=1):
    """Rows near, within and far from those of training, and some of these themselves."""
    rng = np.random.default_rng(seed)
    spread = rng.choice([0.3, 1.0, 4.0, 1e3], size=(n, 1))
    return np.vstack([X.mean(axis=0) + spread * rng.normal(size=(n, X.shape[1])), X[:10]])


@pytest.fixture(scope="module")
def light():
    return FusedDetector("light", random_state=0).fit(rows())


def plant(n=200, seed=0):
    """A table with text, truth, an id, a column without any value, and gaps in one column."""
    rng = np.random.default_rng(seed)
    mode = rng.choice(["idle", "run", "stop"], n, p=[0.3, 0.65, 0.05])
    flow = np.where(mode == "run", 5.0, 1.0) + rng.normal(0, 0.3, n)
    table = pd.DataFrame(
        {
            "part id": [f"p{i}" for i in range(n)],
            "flow": flow,
            "temp": 20 + 2 * flow + rng.normal(0, 0.2, n),
            "mode": mode,
            "wide open": rng.random(n) < 0.4,
            "note": np.full(n, np.nan),
            "noise": rng.normal(size=n),
        }
    )
    table.loc[::7, "noise"] = np.nan
    return table


def odd_plant(n=60, seed=1):
    """Fresh rows with gaps where training had none, words that are new, and a blank row."""
    table = plant(n, seed).astype({"mode": object, "wide open": object})
    rng = np.random.default_rng(seed)
    for name in ("flow", "temp", "mode", "wide open"):
        table.loc[rng.random(n) < 0.25, name] = None
    table.loc[3, "mode"] = "broken"
    table.loc[4:9, "note"] = 1.0
    table.loc[5, ["flow", "temp", "mode", "wide open", "note", "noise"]] = None
    return table


@pytest.mark.parametrize("members", ["light", "default", "wide"])
def test_pools(members):
    X = rows()
    assert_same(FusedDetector(members, random_state=0).fit(X), asked(X))


@pytest.mark.slow
def test_what_an_update_has_learned_is_exported():
    X = rows(640)
    detector = fitted(FusedDetector(random_state=0), X[:600]).update(X[600:])
    assert_same(detector, asked(X))


def test_large_pool_and_kernels_by_landmarks():
    X = rows(2100, 5)
    detector = FusedDetector("default", random_state=0).fit(X)
    assert detector.pool_.pool_name_ == "large"
    assert_same(detector, asked(X))


@pytest.mark.parametrize(
    "member",
    [
        KNN(7, method="mean"),
        KNN(3, max_samples=50),
        LOF((5, 10)),
        ALP(),
        SVDD(),
        SVDD(landmarks=30, max_samples=60),
        *(OneClassGP(statistic) for statistic in ("mean", "variance", "predictive", "ratio")),
        OneClassGP(landmarks=30, max_samples=60),
        OneClassGP("ratio", landmarks=30, max_samples=60),
        KPCA(0.9, width=0.5),
        Whitened(KPCA(landmarks=30, max_samples=60)),
        Compressed(LOF(10)),
    ],
    ids=str,
)
def test_members(member):
    X = rows()
    detector = FusedDetector([("own", member), ("knn", KNN(5))], random_state=0)
    assert_same(fitted(detector, X), asked(X))


def test_a_gaussian_process_in_several_blocks(monkeypatch):
    monkeypatch.setattr("ocfuse.detectors.landmarks.BLOCK_ROWS", 40)
    X = rows(150)
    member = OneClassGP(landmarks=20, max_samples=60)
    detector = FusedDetector([("gp", member)], fusion="sum", random_state=0).fit(X)
    assert len(detector.pool_.members_[0][1].blocks_.parts) == 4
    assert_same(detector, asked(X))


@pytest.mark.parametrize(
    "fusion",
    [
        *("sum", "max", "min", "median", "trimmed-mean", "product", "vote", "competence"),
        *("trust", "lp", "local-lp", "single-best", "least-squares", "aom", "cascade", "stacking"),
    ],
)
@pytest.mark.parametrize("normaliser", ["min-max", "tail"])
def test_fusions_and_normalisers(fusion, normaliser):
    X = rows(100, 3)
    detector = FusedDetector("light", fusion=fusion, normaliser=normaliser, random_state=0)
    assert_same(fitted(detector, X), asked(X))


@pytest.mark.parametrize("shape", [(90, 1), (40, 60), (100, 300)])
def test_few_and_many_columns(shape):
    X = rows(*shape)
    assert_same(fitted(FusedDetector("light", random_state=0), X), asked(X))


def test_rows_on_a_grid_tie_as_they_do_in_training():
    X = np.round(rows(300, 3) * 2)
    assert_same(fitted(FusedDetector("light", random_state=0), X), np.round(asked(X) * 2))


def test_whitened_rows_on_a_grid_may_tie_otherwise():
    # which of equally near rows comes first hangs on the last bit of a product of matrices
    X = np.round(rows(300, 3) * 2)
    detector = fitted(FusedDetector("default", random_state=0), X)
    assert_same(detector, np.round(asked(X) * 2), rtol=1e-2)


@pytest.mark.parametrize("gaps", ["judge", "alarm"])
def test_gaps(light, gaps):
    Q = asked(rows())
    Q[np.random.default_rng(2).random(Q.shape) < 0.3] = np.nan
    Q[0] = np.nan
    assert_same(light.set_gaps(gaps), Q)
    light.set_gaps("judge")


def test_gaps_that_are_refused_and_infinity_have_no_score(light):
    Q = asked(rows())
    Q[0, 1], Q[1, 2] = np.nan, np.inf
    found = run(light.set_gaps("refuse"), Q)
    light.set_gaps("judge")
    assert np.isnan(found["score"][:2]).all()
    assert np.isnan(found["p_value"][:2]).all()
    assert found["label"][:2].tolist() == [-1, -1]
    np.testing.assert_allclose(found["score"][2:], light.score_samples(Q[2:]), rtol=1e-5)


def test_gaps_in_training_are_no_news():
    X = rows()
    X[::5, 1] = np.nan
    Q = asked(X[:, [0, 0, 2, 3]])
    Q[::3, 1] = np.nan
    Q[::4, 2] = np.nan
    assert_same(fitted(FusedDetector("light", random_state=0), X), Q)


@pytest.mark.parametrize("members", ["light", "default"])
def test_a_frame_with_text(members):
    detector = fitted(FusedDetector(members, random_state=0), plant())
    found = assert_same(detector, odd_plant())
    assert np.isfinite(found["score"]).all()


def test_a_model_of_tables_takes_text_by_its_names(tmp_path):
    model = fitted(TableDetector(FusedDetector("light", random_state=0)), plant())
    path = ocfuse.onnx.export(model, tmp_path / "model.onnx")
    names = [each.name for each in onnx.load(path).graph.input]
    assert names == ["flow", "temp", "mode", "wide open", "note", "noise"]
    assert_same(model, odd_plant())


def test_spellings_of_truth_and_of_gaps():
    detector = fitted(FusedDetector("light", random_state=0), plant())
    table = pd.concat([plant(1)] * 3).assign(**{"wide open": ["True", "TRUE", "true"]})
    assert len(set(run(detector, table)["score"])) == 1
    gaps = pd.concat([plant(1)] * 3).assign(mode=["", "NaN", "n/a"])
    assert len(set(run(detector, gaps)["score"])) == 1


@pytest.mark.parametrize("scale", ["robust", "none"])
def test_codes_of_categories_in_an_array(scale):
    rng = np.random.default_rng(0)
    X = np.column_stack([rows(), rng.choice([1.0, 2.5, 40.0], 120)])
    Q = np.column_stack([asked(X[:, :4]), rng.choice([1.0, 2.5, 3.0, np.nan], 50)])
    encoder = FeatureEncoder(scale, categories=[4])
    assert_same(fitted(FusedDetector("light", encoder=encoder, random_state=0), X), Q)


def test_single_precision(light):
    X = asked(rows()).astype(np.float32)
    found = run(light, X, single=True)
    want = light.score_samples(X.astype(np.float64))
    np.testing.assert_allclose(found["score"], want, rtol=1e-5, atol=1e-6)


def test_after_calibration_pruning_and_another_threshold():
    X = rows()
    detector = FusedDetector("light", fusion="single-best", random_state=0).fit(X).prune()
    assert detector.pool_.constants_
    assert_same(detector.calibrate(rows(200, seed=5)).set_threshold(0.2), asked(X))


def test_groups():
    X = rows(160)
    detector = FusedDetector("light", random_state=0)
    assert_same(fitted(detector, X, groups=np.arange(160) // 20), asked(X))


@pytest.mark.parametrize(
    "fusion", [None, LabelledFusion(TrustFusion(), RandomForestClassifier(9, random_state=0))]
)
def test_labelled_anomalies(fusion):
    X = rows(200)
    y = np.where(np.arange(200) < 170, 1, -1)
    X[170:] += 3.0
    detector = fitted(FusedDetector("light", fusion=fusion, random_state=0), X, y)
    assert type(detector.fusion_) is LabelledFusion
    assert_same(detector, asked(X[:170]))


def test_context_is_a_further_input():
    X, when = rows(150), np.linspace(0, 1, 150)
    X[:, 0] += 5 * when
    detector = FusedDetector("light", fusion=TrustFusion(context_weight=1.0), random_state=0)
    fitted(detector, X, context=when)
    Q, moments = asked(X), np.r_[np.linspace(-1, 2, 48), np.nan, np.inf][:, np.newaxis]
    found = session(to_onnx(detector)).run(["score"], {"X": Q, "context": moments})[0]
    want = detector.score_samples(Q[:48], moments[:48])
    np.testing.assert_allclose(found[:48], want, rtol=1e-5, atol=1e-6)
    assert np.isnan(found[48:]).all()


@pytest.mark.parametrize(
    "direction", [{0: "high"}, {1: "low", 3: "high"}, dict.fromkeys(range(4), "low")], ids=str
)
def test_one_side(direction):
    X = rows(200)
    detector = fitted(FusedDetector("light", direction=direction, random_state=0), X)
    Q = asked(X)
    Q[::7, 1] = np.nan
    assert_same(detector, Q)


def test_limits_make_alarms_and_change_no_score():
    X = rows()
    limits = {0: (None, np.quantile(X[:, 0], 0.8)), 2: (np.quantile(X[:, 2], 0.2), None)}
    detector = fitted(FusedDetector("light", limits=limits, random_state=0), X)
    Q = np.vstack([X, X + X.std(axis=0)])
    Q[::9, 2] = np.nan
    found = run(detector, Q)
    with cell_warnings_off():
        want, label = detector.score_samples(Q), detector.predict(Q)
    np.testing.assert_allclose(found["score"], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["label"], label)
    assert (found["label"] != np.where(found["score"] < detector.offset_, -1, 1)).any()


def test_limits_of_a_column_that_is_left_out():
    table = plant().assign(serial=np.arange(200))
    detector = fitted(FusedDetector("light", limits={"serial": (None, 9e9)}, random_state=0), table)
    with pytest.raises(InvalidInputError, match=r"not learned from cannot be exported.*serial"):
        to_onnx(detector)


def test_no_rows_at_all(light):
    assert all(len(run(light, rows()[:0])[name]) == 0 for name in ("score", "label", "p_value"))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_tables_and_settings(data):
    n, m = data.draw(st.integers(60, 120)), data.draw(st.integers(1, 6))
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * 10.0 ** rng.integers(-3, 4, m) + rng.normal(size=m) * 100
    Q = X[rng.integers(0, n, 30)] + rng.normal(size=(30, m)) * X.std(axis=0)
    share = data.draw(st.sampled_from([0.0, 0.0, 0.2]))
    X[(rng.random(X.shape) < share) & (np.arange(n) > 2)[:, np.newaxis]] = np.nan
    Q[rng.random(Q.shape) < share] = np.nan
    names = ["gmm-1", "gmm-3", "knn-5", "lof-20", "maha", "wknn-5", "wlof", "marginal", "iforest"]
    names += ["cknn-1", "svdd-1", "gp-1"]
    # in few columns what kernel PCA misses is hardly more than rounding
    names += ["kpca-1"] if m > 2 else []
    members = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    detector = FusedDetector(
        ",".join(members),
        fusion=data.draw(st.sampled_from([None, "competence", "sum", "median"])),
        normaliser=data.draw(st.sampled_from(["min-max", "z-score", "robust-z", "tail"])),
        encoder=data.draw(st.sampled_from(["standard", "robust", "none"])),
        false_alarm_rate=0.2,
        random_state=seed,
    )
    assert_same(fitted(detector, X), Q)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_frames(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    n, n_texts = data.draw(st.integers(60, 120)), data.draw(st.integers(1, 3))
    has_gaps = data.draw(st.booleans())

    def table(n, share):
        frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
        for j in range(n_texts):
            words = np.array(["left", "right", "up", "true", "1", "so rare"][: 2 + 2 * (j % 3)])
            frame[f"text {j}"] = rng.choice(words, n).astype(object)
        return frame.mask(rng.random(frame.shape) < share)

    train, asked_for = table(n, 0.1 * has_gaps), table(30, data.draw(st.sampled_from([0, 0.3])))
    asked_for.loc[0, "text 0"] = "never seen"
    gaps = data.draw(st.sampled_from(["judge", "alarm"]))
    encoder = FeatureEncoder(gaps=gaps, categories=[f"text {j}" for j in range(n_texts)])
    detector = FusedDetector("gmm-3,knn-5,marginal", encoder=encoder, random_state=0)
    assert_same(fitted(detector, train), asked_for)


def test_what_the_file_says_of_itself(light, tmp_path):
    model = onnx.load(ocfuse.onnx.export(light, tmp_path / "model.onnx"))
    facts = {each.key: each.value for each in model.metadata_props}
    assert facts["ocfuse.version"] == ocfuse.__version__
    assert json.loads(facts["ocfuse.columns"])[0] == {
        "name": "0",
        "kind": "number",
        "input": "number",
    }
    assert json.loads(facts["ocfuse.threshold"]) == light.offset_
    assert json.loads(facts["ocfuse.false_alarm_rate"]) == 0.05
    assert {each.op_type for each in model.graph.node}.isdisjoint({"TreeEnsemble", "LabelEncoder"})
    assert {each.domain for each in model.opset_import} == {""}


# -- what cannot be written -----------------------------------------------------


def test_members_of_others_are_named():
    members = [("svm", OneClassSVM()), ("knn", KNN(5))]
    detector = fitted(FusedDetector(members, random_state=0), rows())
    with pytest.raises(InvalidInputError, match=r"svm \(OneClassSVM\).*light"):
        to_onnx(detector)


def test_members_of_pyod_are_named():
    pyod = pytest.importorskip("pyod.models.hbos")
    members = [("hbos", from_pyod(pyod.HBOS())), ("knn", KNN(5))]
    with pytest.raises(InvalidInputError, match=r"hbos \(PyodDetector\)"):
        to_onnx(fitted(FusedDetector(members, random_state=0), rows()))


@pytest.mark.parametrize(
    ("fusion", "words"),
    [
        (StackedFusion(GaussianNB()), "of classifiers LogisticRegression can"),
        (LabelledFusion(classifier=GaussianNB()), "ExtraTreesClassifier and Random"),
        (CompetenceFusion(locality=Locality()), "leave locality out"),
        (LocalLpFusion(anchors="query"), "give a number of anchors"),
    ],
    ids=["stacking", "labelled", "locality", "query"],
)
def test_fusions_that_cannot(fusion, words):
    y = np.r_[np.full(50, 1), np.full(10, -1)]
    detector = fitted(FusedDetector("light", fusion=fusion, random_state=0), rows(60), y)
    with pytest.raises(InvalidInputError, match=words):
        to_onnx(detector)


def test_streams_and_what_is_not_fitted():
    with pytest.raises(InvalidTypeError, match="Got StreamDetector"):
        to_onnx(StreamDetector())
    with pytest.raises(Exception, match="not fitted"):
        to_onnx(FusedDetector())


@pytest.mark.parametrize(
    ("name", "value"),
    [("by", "machine"), ("season", "day"), ("time", "when")],
)
def test_options_that_are_not_written_are_refused(light, name, value):
    setattr(light, name, value)
    try:
        with pytest.raises(InvalidInputError, match=f"A detector with {name} cannot"):
            to_onnx(light)
    finally:
        delattr(light, name)


@pytest.mark.parametrize("given", [{"by": "machine"}, {"time": "when", "season": "day"}])
def test_what_is_usual_for_whom_and_when_is_refused(given):
    when = pd.date_range("2026-01-01", periods=300, freq="h")
    table = plant(300).assign(machine=["north", "south", "west"] * 100, when=when)
    model = fitted(TableDetector(FusedDetector("light", random_state=0), **given), table)
    with pytest.raises(InvalidInputError, match=f"A detector with .*{list(given)[-1]} cannot"):
        to_onnx(model)


def test_what_an_encoder_learns_beyond_what_is_known_is_refused(light):
    light.encoder_.usual_by_machine_ = {"a": 1.0}
    try:
        with pytest.raises(InvalidInputError, match=r"encoder_\.usual_by_machine_"):
            to_onnx(light)
    finally:
        del light.encoder_.usual_by_machine_
