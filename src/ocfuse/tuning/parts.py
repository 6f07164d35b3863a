"""A normaliser and a fusion as one estimator, whose parameters a grid may name."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.local import LocalLpFusion
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.named import make_fusion
from ocfuse.scores import make_normaliser

Candidate = dict[str, Any]


class Parts(BaseEstimator):  # type: ignore[misc]
    """A normaliser and a fusion, not fitted.

    Parameters
    ----------
    normaliser : normaliser
        Brings member scores to one scale.
    fusion : fusion
        Makes one score of them.
    """

    def __init__(self, normaliser: Any, fusion: Any) -> None:
        self.normaliser = normaliser
        self.fusion = fusion

    def written_out(self) -> "Parts":
        """Return a copy in which nested parts that are None have their defaults."""
        parts: Parts = clone(self)
        pending = [parts.fusion]
        while pending:
            fusion = pending.pop()
            if isinstance(fusion, LocalLpFusion) and fusion.locality is None:
                fusion.locality = Locality()
            if isinstance(fusion, CompetenceFusion) and fusion.locality is None:
                fusion.locality = Locality(kappa=1.0)
            if isinstance(fusion, LabelledFusion) and fusion.fusion is None:
                fusion.fusion = make_fusion()
            pending.extend(
                value for value in fusion.get_params(deep=False).values() if _has_parameters(value)
            )
        return parts

    def changed(self, candidate: Candidate) -> "Parts":
        """Return a copy with the parameters of a candidate."""
        parts: Parts = clone(self)
        own = {key: clone(value, safe=False) for key, value in candidate.items()}
        # whole parts first: by name they have no parameters yet
        for key, make in (("normaliser", make_normaliser), ("fusion", make_fusion)):
            if key in own:
                own[key] = make(own[key])
        try:
            parts.set_params(**own)
        except ValueError as error:  # a whole part of the grid may lack what others have
            raise InvalidInputError(f"grid cannot be used. {error}") from error
        return parts

    def full_name(self, key: str) -> str:
        """Return the parameter that a key of a grid stands for."""
        known: dict[str, Any] = self.get_params(deep=True)
        if key in known:
            return key
        found = [name for name in known if name.rpartition("__")[2] == key]
        # of a fusion rather than of its parts, such as a classifier
        direct = [name for name in found if set(name.split("__")[:-1]) == {"fusion"}]
        if len(found) == 1 or len(direct) == 1:
            return (direct or found)[0]
        if found:
            raise InvalidInputError(
                f"{key!r} in grid may stand for {', '.join(found)}. Give one of these names."
            )
        raise InvalidInputError(
            f"Neither {type(self.normaliser).__name__} nor {type(self.fusion).__name__} has "
            f"{key!r}, which grid names. They have {', '.join(sorted(known))}. "
            "Members are chosen among those of the pool, by select_members."
        )


def candidates(grid: Mapping[str, Sequence[Any]], parts: Parts) -> list[Candidate]:
    """Return every combination of the values of a grid, by full names."""
    if not isinstance(grid, Mapping):
        raise InvalidTypeError(
            f'grid must be a dict of lists, such as {{"p": [4 / 3, 2, 4]}}. Got {grid!r}.'
        )
    named: dict[str, list[Any]] = {}
    for key, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise InvalidTypeError(f"grid[{key!r}] must be a list of values. Got {values!r}.")
        name = parts.full_name(key)
        if name in named or not len(values):
            reason = "names a parameter twice" if name in named else "has no values"
            raise InvalidInputError(f"grid[{key!r}] {reason}. Give one list per parameter.")
        named[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [dict(zip(named, values, strict=True)) for values in product(*named.values())]


def _has_parameters(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)
