"""FusedDetector.prune: members that change no score are not computed."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.cli.model_card import facts, print_summary
from ocfuse.detectors import GMM, KNN, Marginal
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import SingleBest
from ocfuse.tables import TableDetector

MEMBERS = {"gmm": GMM(n_components=1), "knn": KNN(), "marginal": Marginal()}
X = np.random.default_rng(0).normal(size=(120, 3))
NEW = np.random.default_rng(1).normal(size=(50, 3)) * [1, 1, 9]


@pytest.fixture(scope="module")
def trusting():
    return FusedDetector(MEMBERS, random_state=0).fit(X)


@pytest.fixture(scope="module")
def single():
    return FusedDetector(MEMBERS, fusion=SingleBest(), random_state=0).fit(X)


def test_only_the_chosen_member_of_a_single_best_is_left(single):
    pruned = deepcopy(single).prune()
    chosen = pruned.pool_.names_[int(np.argmax(pruned.fusion_.weights(X[:1])))]
    assert [name for name, _ in pruned.pool_.members_] == [chosen]
    assert set(pruned.pool_.constants_) == set(MEMBERS) - {chosen}
    np.testing.assert_array_equal(pruned.score_samples(NEW), single.score_samples(NEW))
    assert pruned.offset_ == single.offset_
    assert pruned.pruned_change_ == 0.0


def test_where_every_member_counts_nothing_changes(trusting):
    pruned = deepcopy(trusting).prune()
    assert not pruned.pool_.constants_
    assert pruned.offset_ == trusting.offset_
    np.testing.assert_array_equal(pruned.score_samples(NEW), trusting.score_samples(NEW))


@pytest.mark.parametrize("fusion", ["min", "max", "median"])
def test_members_of_rules_stay_if_they_would_count_elsewhere(fusion):
    # the lowest of three scores is each member's somewhere
    detector = FusedDetector(MEMBERS, fusion=fusion, random_state=0).fit(X)
    assert not detector.prune().pool_.constants_


@pytest.mark.parametrize("tol", [0.1, 0.5, 2.0, 1e9])
def test_scores_of_training_rows_change_by_no_more_than_is_allowed(trusting, tol):
    pruned = deepcopy(trusting).prune(tol)
    gone = list(pruned.pool_.constants_)
    assert len(pruned.pool_.members_) == len(MEMBERS) - len(gone) >= 1
    assert pruned.pruned_change_ <= tol
    moved = np.abs(pruned.training_scores_ - trusting.training_scores_).max()
    assert moved == pytest.approx(pruned.pruned_change_)
    # the rate that is promised is that of the scores as they are now
    share = np.mean(pruned.normal_scores_ < pruned.offset_)
    assert share <= pruned.false_alarm_rate
    if tol == 1e9:
        assert len(gone) == 2


def test_more_go_with_more_tolerance(trusting):
    left = [len(deepcopy(trusting).prune(tol).pool_.members_) for tol in (0.0, 0.5, 2.0, 1e9)]
    assert left == sorted(left, reverse=True)
    again = deepcopy(trusting).prune(1e9)
    names = list(again.pool_.constants_)
    assert list(again.prune(1e9).pool_.constants_) == names  # one stays


def test_members_that_are_gone_are_not_asked(single, monkeypatch):
    pruned = deepcopy(single).prune()
    kept = {type(member) for _, member in pruned.pool_.members_}
    for kind in {GMM, KNN, Marginal} - kept:
        monkeypatch.setattr(kind, "score_query", None)
    assert np.isfinite(pruned.score_samples(NEW)).all()
    assert pruned.explain(NEW[:1]).member_names == list(MEMBERS)


def test_a_fit_brings_all_members_back(single):
    fitted = deepcopy(single).prune().fit(X)
    np.testing.assert_array_equal(fitted.score_samples(NEW), single.score_samples(NEW))
    assert len(fitted.pool_.members_) == len(MEMBERS)


def test_model_files_hold_what_is_left(trusting, tmp_path):
    pruned = deepcopy(trusting).prune(1e9)
    whole, small = trusting.save(tmp_path / "whole.ocf"), pruned.save(tmp_path / "small.ocf")
    assert small.stat().st_size < whole.stat().st_size
    found = load(small)
    np.testing.assert_array_equal(found.score_samples(NEW), pruned.score_samples(NEW))
    assert found.pool_.constants_ == pruned.pool_.constants_


def test_a_threshold_of_other_rows_is_not_moved(trusting, single):
    calibrated = deepcopy(trusting).calibrate(NEW)
    before = calibrated.pool_
    with pytest.raises(InvalidInputError, match="prune, and then call calibrate"):
        calibrated.prune(1e9)
    assert calibrated.pool_ is before
    assert len(deepcopy(single).calibrate(NEW).prune().pool_.members_) == 1


def test_what_is_gone_cannot_be_adapted(trusting):
    with pytest.raises(InvalidInputError, match="adapt, and then call prune"):
        deepcopy(trusting).prune(1e9).adapt(NEW)


def test_a_model_tells_what_is_gone(capsys):
    frame = pd.DataFrame(X, columns=list("abc"))
    model = TableDetector(FusedDetector(MEMBERS, fusion=SingleBest(), random_state=0)).fit(frame)
    assert facts(model)["pruned"] is None
    gone = list(model.prune().detector_.pool_.constants_)
    assert facts(model)["pruned"] == {"members": gone, "largest_change": 0.0}
    print_summary(model)
    shown = capsys.readouterr().out
    assert f"{', '.join(gone)}: scores of training rows changed by 0 at most" in shown


@pytest.mark.parametrize("tol", [-1.0, np.nan, "much"])
def test_a_tolerance_is_a_number(trusting, tol):
    with pytest.raises(InvalidInputError, match="tol"):
        deepcopy(trusting).prune(tol)
