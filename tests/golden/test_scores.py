"""Scores, p-values and explanations after a fit are those that were recorded.

Bit for bit where the machine computes like the one that recorded them: `tests.golden.record`
says when, and what is compared elsewhere. After a change of scores on purpose, run
``python -m tests.golden.write``.
"""

import numpy as np
import pytest

from tests.golden.cases import CASES, asked, fitted
from tests.golden.record import (
    ANSWERS,
    SINGLE,
    TOLERANCE,
    WORDS,
    agrees,
    differences,
    environment,
    read_answers,
)

ENVIRONMENT, RECORDED = read_answers(ANSWERS)
IS_SAME_MACHINE = environment() == ENVIRONMENT


def test_every_case_is_recorded():
    assert set(CASES) == set(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_recorded(name):
    case = CASES[name]
    if case.is_iterated and not IS_SAME_MACHINE:
        pytest.skip("this fit stops at a tolerance, and elsewhere on a machine that rounds so")
    model, kinds = fitted(case)
    found = asked(case, model) | {"warnings": kinds}
    assert not differences(found, RECORDED[name], 0.0 if IS_SAME_MACHINE else case.elsewhere)


@pytest.mark.parametrize("tolerance", [0.0, TOLERANCE, SINGLE])
def test_a_difference_is_found(tolerance):
    found = {"scores": [1.0, np.nan, 300.0], "names": ["a"], "rows": [1, 2]}
    assert not differences(found, dict(found), tolerance)
    for change in (
        {"scores": [1.0, np.nan, 300.1]},
        {"scores": [1.0, 2.0, 300.0]},
        {"scores": [1.0, np.nan]},
        {"names": ["b"]},
        {"rows": [1, 3]},
        {"more": 1},
    ):
        assert len(differences(found | change, found, tolerance)) == 1


def test_only_another_machine_may_round_otherwise():
    found, expected = {"scores": [1.0 + 1e-14], WORDS: ["1.0"]}, {"scores": [1.0], WORDS: ["0.9"]}
    assert len(differences(found, expected)) == 2
    assert not differences(found, expected, TOLERANCE)
    assert not agrees([1.0 + 1e-8], [1.0], TOLERANCE)
