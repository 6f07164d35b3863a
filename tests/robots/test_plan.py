"""Plans of cells: which runs there are, and which cannot be."""

from collections import Counter

import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.robot_cell import CellPlan
from ocfuse.vision.trials import KINDS, find_kinds, type_of


def test_kinds_take_turns_and_numbers_are_unique():
    runs = list(CellPlan(train=3, validation=2, test=1, anomalous=12).runs())
    assert [run.trial for run in runs] == list(range(6 + 4 * 12))
    assert Counter(run.split for run in runs) == {"train": 3, "validation": 2, "test": 49}
    turns = Counter(run.kind for run in runs)
    for kinds in KINDS.values():
        assert {turns[kind] for kind in kinds} == {12 // len(kinds)}


def test_only_test_runs_go_wrong():
    plan = CellPlan(train=2, validation=1, test=1, anomalous=2, types=("3", "ball"))
    wrong = [run for run in plan.runs() if run.kind]
    assert {run.split for run in wrong} == {"test"}
    assert [run.kind for run in wrong] == ["open", "slow", "ball", "ball"]


def test_names_of_kinds_are_unique():
    names = [kind for kinds in KINDS.values() for kind in kinds]
    assert len(set(names)) == len(names)
    assert [type_of(kind) for kind in ("", *names)] == [0, *(t for t in KINDS for _ in KINDS[t])]
    assert find_kinds(["4", "1", "hand"]) == [*KINDS[1], *KINDS[4]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"types": ("5",)}, "no type or kind '5'"),
        ({"types": ("hnad",)}, "Choose from"),
        ({"n_frames": 3}, "10 to 2000"),
        ({"train": -1}, "train must be at least 0"),
        ({"train": 0, "types": ()}, "at least one run"),
    ],
)
def test_plans_that_cannot_be(change, words):
    facts = {"train": 1, "validation": 0, "test": 0, "anomalous": 1} | change
    with pytest.raises(InvalidInputError, match=words):
        CellPlan(**facts).check()
