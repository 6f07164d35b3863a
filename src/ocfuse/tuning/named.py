"""Criteria by name."""

from typing import Any

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.tuning.areas import LabelledAUC, PseudoNegativeAUC
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.rpau import RPAU
from ocfuse.tuning.stability import Stability

_NAMED: dict[str, type[Criterion]] = {
    "pseudo-negatives": PseudoNegativeAUC,
    "labels": LabelledAUC,
    "rpau": RPAU,
    "stability": Stability,
}


def make_criterion(criterion: Any) -> Criterion:
    """Return the criterion of a name, or the object itself.

    Parameters
    ----------
    criterion : str or Criterion
        "pseudo-negatives", "labels", "rpau" or "stability", or an object.

    Returns
    -------
    Criterion
        The criterion.

    Examples
    --------
    >>> from ocfuse.tuning import make_criterion
    >>> make_criterion("rpau")
    RPAU()
    """
    names = ", ".join(repr(name) for name in _NAMED)
    if isinstance(criterion, str):
        if criterion not in _NAMED:
            raise InvalidInputError(not_one_of("A criterion", criterion, _NAMED, ", or an object"))
        return _NAMED[criterion]()
    if not isinstance(criterion, Criterion):
        raise InvalidTypeError(
            f"A criterion must be one of {names}, or an object such as RPAU(). Got {criterion!r}."
        )
    return criterion
