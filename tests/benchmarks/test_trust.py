"""Training of trust, and results by family."""

import json

import numpy as np
import pytest

from benchmarks.accuracy import sets
from benchmarks.accuracy.systems import FOLDS
from benchmarks.trust.tasks import MADE, Draw, Record, made_anomalies, split
from benchmarks.trust.train import by_family, fused_auc, minimised
from ocfuse.fusion.trust import FEATURES, read_coefficients


def records(n=12):
    """Tasks in which the member with the highest first feature is the only good one."""
    names = ["D5_iris", "14_glass", "segment-0"]
    rng = np.random.default_rng(0)
    found = []
    for i in range(n):
        good = i % 4
        behaviour = np.zeros((4, len(FEATURES)))
        behaviour[:, 0] = -0.25
        behaviour[good, 0] = 0.75
        values = rng.exponential(size=(200, 4))
        is_normal = np.arange(200) < 100
        values[100:, good] += 3.0
        found.append(Record(Draw(names[i % 3], "plain", i), behaviour, values, is_normal, 0.7, 1.0))
    return found


def test_the_feature_of_good_members_gets_a_positive_coefficient():
    found = records()
    b = minimised(found)
    assert b[0] > 1.0
    np.testing.assert_allclose(b[1:], 0, atol=1e-6)
    assert min(fused_auc(r, b) - fused_auc(r, 0 * b) for r in found) > 0.05
    np.testing.assert_array_equal(minimised(records()), b)


def test_families_count_alike():
    found = records(4)
    means = by_family(found, np.array([1.0, 5.0, 7.0, 3.0]))
    # sorted by name: D5_iris twice, glass, segment
    assert sorted(means.tolist()) == [2.0, 5.0, 7.0]


def test_every_task_has_one_family_and_one_fold():
    stored = json.loads(sets.FAMILIES.read_text(encoding="utf-8"))
    tasks = [name for found in stored.values() for name in found["sets"]]
    assert len(tasks) == len(set(tasks)) == 172
    assert {sets.fold(name) for name in tasks} == set(range(8))
    assert sets.family("14_glass") == sets.family("D4_glass") == sets.family("prnn_fglass-0")


def test_no_family_is_judged_by_what_was_learned_from_it():
    stored = json.loads(sets.FAMILIES.read_text(encoding="utf-8"))
    for f in range(8):
        learned = json.loads((FOLDS / f"fold-{f}.json").read_text(encoding="utf-8"))
        judged = {name for name, found in stored.items() if found["fold"] == f}
        assert not judged & set(learned["families"])
        assert np.isfinite(read_coefficients(str(FOLDS / f"fold-{f}.json"))).all()


@pytest.mark.parametrize("kind", MADE)
def test_made_anomalies(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * [1, 10, 0.1, 0] + 5
    made = made_anomalies(X, kind, rng, 50)
    assert made.shape == (50, 4)
    assert np.isfinite(made).all()


@pytest.mark.parametrize("how", ["plain", "varied"])
def test_splits_are_fixed_and_share_no_row(data, how):
    draws = [split(Draw("vehicle-0", how, seed)) for seed in (3, 3, 4)]
    for one, same, other in zip(*draws, strict=True):
        np.testing.assert_array_equal(one, same)
        assert one.shape != other.shape or (one != other).any()
    train, normals, _ = draws[0]
    assert not {row.tobytes() for row in train} & {row.tobytes() for row in normals}
