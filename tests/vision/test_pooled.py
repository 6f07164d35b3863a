import numpy as np
import pytest
from scipy.stats import spearmanr

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import Groups
from ocfuse.vision import PooledMembers
from ocfuse.vision.pooled import _principal, pooled_detector
from tests.vision.cases import features


def light(**settings):
    return PooledMembers(FusedDetector("light", random_state=0), **settings)


@pytest.mark.slow
def test_held_out_pictures_are_scored_by_what_has_not_seen_them():
    """Not even the principal components."""
    normal, fold = features(60), Groups(np.arange(60) % 3, are_folds=True)
    held_out, _ = light().fit(normal, fold)
    inside = fold.label == 1
    rest = light().learn(normal, fold, rows=np.flatnonzero(~inside))
    assert np.allclose(held_out[inside], rest.score(normal.take(inside)))
    changed = normal.take(slice(None))
    changed.pooled[inside] *= 9
    again = light().learn(changed, fold, rows=np.flatnonzero(~inside))
    assert (again.components_ == rest.components_).all()


def test_one_group_alone_can_be_learned():
    """As in the folds of two groups."""
    held_out, _ = light().fit(features(60), Groups(np.arange(60) // 30, are_folds=True))
    assert np.isfinite(held_out).all()


def test_no_more_pictures_than_wanted_are_learned():
    member = light(max_pictures=30).learn(features(90), Groups(np.arange(90) % 3))
    assert len(member.detector_.training_scores_) == 30
    with pytest.raises(InvalidInputError, match="max_pictures"):
        light(max_pictures=3).learn(features(90), Groups(np.arange(90) % 3))


@pytest.mark.slow
def test_no_two_members_say_the_same():
    """Of rows as they see them: principal components of one scale."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 12)) @ rng.normal(size=(12, 12))
    mean, components = _principal(rows[:60], 12)
    rows = (rows - mean) @ components
    known, fresh = np.split(rows / rows[:60].std(axis=0), 2)
    said = [member.fit(known).score_samples(fresh) for _, member in pooled_detector().members]
    said = np.column_stack(said)
    alike = np.abs(spearmanr(said).statistic) - np.eye(said.shape[1])
    assert alike.max() < 0.9999
