"""What a criterion says of a fusion, and of each member alone."""

from typing import Any, TypeAlias

from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.rules import SumRule
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.crossfit import ScoredRows
from ocfuse.tuning.splits import ScaledSplit

Verdict: TypeAlias = tuple[float, float]

#: Digits after the point to which values must differ, not to be equal.
DIGITS = 10


def judge(criterion: Criterion, splits: list[ScaledSplit], fusion: BaseFusion) -> Verdict:
    """Return the value of a fusion and what breaks ties; higher is better."""
    value, second = criterion.judge([split.judged(fusion) for split in splits])
    return round(float(value), DIGITS), round(float(second), DIGITS)


def judge_members(rows: ScoredRows, criterion: Criterion, normaliser: Any) -> list[Verdict]:
    """Judge every member by its own score."""
    verdicts = []
    for j in range(rows.S.shape[1]):
        own = rows.only([j])
        criterion.check(own)
        splits = [split.scaled(normaliser) for split in criterion.splits(own)]
        verdicts.append(judge(criterion, splits, SumRule()))
    return verdicts
