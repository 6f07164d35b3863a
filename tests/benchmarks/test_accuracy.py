"""The instrument that accuracy is measured with: splits, cache, summaries."""

import numpy as np
import pytest

pytest.importorskip("pyod")

from benchmarks.accuracy import experiment, rivals, splits, systems
from benchmarks.accuracy.definition import key
from benchmarks.accuracy.measures import Scores, measure
from benchmarks.accuracy.results import gather
from benchmarks.accuracy.sets import family_means
from ocfuse.lab.paper import Cell, run_cells

BLOBS = 20.0 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])


def blob(X):
    """Return which of the four blobs every anomaly is in."""
    return np.argmin(((X[:, np.newaxis] - BLOBS) ** 2).sum(axis=2), axis=1)


def as_set(X):
    return {tuple(row) for row in X}


@pytest.fixture(params=[(300, 120), (5000, 3000)], ids=["small", "large"])
def data(request, monkeypatch):
    """Normals about the origin and four kinds of anomalies; all rows are different."""
    n, m = request.param
    rng = np.random.default_rng(0)
    found = rng.normal(size=(n, 2)), BLOBS[np.arange(m) % 4] + rng.normal(size=(m, 2))
    monkeypatch.setattr(splits, "rows", lambda name: found)
    return found


def test_pure_split(data):
    n, m = (len(X) for X in data)
    split = splits.pure("any", 3)
    share = splits.SHARES
    used = min(n, 1000)
    assert len(split.train) == round(share[0] * used)
    assert len(split.train) + len(split.validation) == round(sum(share) * used)
    assert split.is_normal.sum() == min(n - round(sum(share) * used), 1000)
    assert (~split.is_normal).sum() == min(m, 1000)
    assert not as_set(split.train) & as_set(np.vstack([split.validation, split.test]))
    assert not as_set(split.validation) & as_set(split.test)
    assert as_set(split.test[~split.is_normal]) <= as_set(data[1])
    np.testing.assert_array_equal(split.train, splits.pure("any", 3).train)
    assert as_set(split.train) != as_set(splits.pure("any", 4).train)
    assert as_set(split.train) != as_set(splits.pure("other", 3).train)


def test_labelled_splits_share_their_test_and_hide_kinds(data):
    few, many = (splits.labelled("any", count, 1) for count in (5, 20))
    np.testing.assert_array_equal(few.test, many.test)
    np.testing.assert_array_equal(few.is_new, many.is_new)
    five, twenty = (split.train[split.y < 0] for split in (few, many))
    assert (len(five), len(twenty)) == (5, 20)
    assert as_set(five) <= as_set(twenty)
    assert not as_set(twenty) & as_set(many.test)
    seen = set(blob(twenty))
    assert len(seen) == 2
    new = many.test[many.is_new]
    assert not seen & set(blob(new))
    known = many.test[~many.is_normal & ~many.is_new]
    assert set(blob(known)) == seen


def test_dirty_splits_differ_in_the_hidden_rows_only(data):
    clean, dirty = (splits.dirty("any", share, 2) for share in (0.0, 0.1))
    np.testing.assert_array_equal(clean.test, dirty.test)
    assert not as_set(clean.train) & as_set(data[1])
    hidden = as_set(dirty.train) - as_set(clean.train)
    assert len(hidden) == pytest.approx(0.1 * len(dirty.train), abs=1)
    assert hidden <= as_set(data[1]) - as_set(dirty.test)


def test_standardised_on_the_normals_only(data):
    scaled = splits.labelled("any", 20, 0).scaled()
    normals = scaled.train[scaled.y > 0]
    np.testing.assert_allclose(normals.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(normals.std(axis=0), 1.0)


def test_measures_of_a_perfect_and_of_an_inverted_score(data):
    split = splits.pure("any", 0)
    perfect = np.where(split.is_normal, 1.0, 0.0)
    validation = np.ones(len(split.validation))
    found = measure(Scores(validation, perfect, 0.0, 0.0), split)
    assert (found["auc"], found["gmean"], found["ap"], found["false_alarms"]) == (100, 100, 100, 0)
    assert found["auc_new"] is None
    assert measure(Scores(validation, -perfect, 0.0, 0.0), split)["auc"] == 0
    with pytest.raises(ValueError, match="must be finite"):
        measure(Scores(validation, perfect * np.nan, 0.0, 0.0), split)


class Nearness:
    """Score rows by minus their squared distance from the origin."""

    def fit(self, X):
        return self

    def score_samples(self, X):
        return -(X**2).sum(axis=1)


class Asserting:
    """Fail as LSCP does."""

    def fit(self, X):
        raise AssertionError("few neighbours")


def test_experiment_runs_once_until_definition_or_data_change(data, tmp_path, monkeypatch):
    def run(digest="1", content="rows"):
        def near(context):
            runs.append(digest)
            return context.run(Nearness(), scaled=False)

        made = [
            systems._alone("nearness", "rule", digest, near),
            systems._alone("broken", "rival", "1", rivals.whole(lambda seed: Asserting())),
        ]
        monkeypatch.setitem(experiment.SYSTEMS, "families", lambda name, seed: made)
        monkeypatch.setattr(experiment, "content", lambda name: content)
        return run_cells(experiment.Accuracy(), [cell], tmp_path)

    runs = []
    cell = Cell("families", "pure", "any", 0)
    first = run()
    assert run() == first
    assert runs == ["1"]
    results = gather(first)
    assert results.column("nearness") > 99
    split = splits.pure("any", 0)
    assert results.prevalence == pytest.approx(100 * np.mean(~split.is_normal))
    assert results.failures == {("broken", "any", "AssertionError: few neighbours"): 1}
    run("2")
    assert runs == ["1", "2"]
    run("2", "other rows")
    assert runs == ["1", "2", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("part", experiment.SYSTEMS)
def test_systems_have_names_and_keys_of_their_own(part, monkeypatch):
    monkeypatch.setattr(experiment, "content", lambda name: name)
    found, other = (
        experiment.Accuracy().systems(Cell(part, "0", name, 0)) for name in ("14_glass", "D5_iris")
    )
    assert len({system.name for system in found}) == len(found)
    assert not {system.key for system in found} & {system.key for system in other}


def test_keys_depend_on_kind_and_definition():
    keys = {key(kind, name) for kind in ("members", "ours", "rival", "both") for name in "ab"}
    assert len(keys) == 8


def stored(name, seed, **auc):
    results = {system: {"auc": value} for system, value in auc.items() if value is not None}
    results |= {system: {"failure": "X"} for system, value in auc.items() if value is None}
    groups = {"sum": "rule", "max": "rule"}
    runs = {s: {"group": groups.get(s, "member"), "results": {s: r}} for s, r in results.items()}
    return {"set": name, "seed": seed, "prevalence": 50.0, "runs": runs}


@pytest.fixture
def results():
    return gather(
        [
            stored("14_glass", 0, sum=60.0, max=70.0, a=90.0, b=80.0),
            stored("14_glass", 1, sum=80.0, max=70.0, a=90.0, b=None),
            stored("D4_glass", 0, sum=80.0, max=80.0, a=70.0, b=90.0),
            stored("4_breastw", 0, sum=90.0, max=70.0, a=95.0, b=90.0),
        ]
    )


def test_means_over_seeds_leave_failures_out(results):
    assert results.sets == ["14_glass", "D4_glass", "4_breastw"]
    np.testing.assert_allclose(results.column("sum"), [70, 80, 90])
    np.testing.assert_allclose(results.column("b"), [80, 90, 90])
    assert results.failures == {("b", "14_glass", "X"): 1}
    np.testing.assert_allclose(results.best_member, [90, 90, 95])


def test_tasks_of_one_family_count_as_one(results):
    found = results.by_family()
    assert found.sets == ["breastw", "glass"]
    np.testing.assert_allclose(found.column("sum"), [90, 75])
    np.testing.assert_allclose(found.column("b"), [90, 85])
    np.testing.assert_allclose(found.prevalence, [50, 50])


def test_family_means_leave_out_what_is_missing():
    names = ["14_glass", "D4_glass", "4_breastw"]
    table = np.array([[1.0, np.nan], [3.0, 5.0], [7.0, np.nan]])
    np.testing.assert_array_equal(family_means(names, table), [[7.0, np.nan], [2.0, 5.0]])


def test_costly_rivals_are_left_out_where_they_would_be_most_of_the_whole():
    first, second = ({s.name for s in systems.families("14_glass", seed)} for seed in (0, 1))
    assert first - second == {"PyOD LSCP"}
    assert first - {s.name for s in systems.dirty("14_glass", 0)} == {"PyOD LSCP", "PyOD SUOD"}
