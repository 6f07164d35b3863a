"""Fusions by name."""

from collections.abc import Callable
from typing import Any

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.cascade import CascadeFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.lp import LeastSquaresFusion, LpFusion
from ocfuse.fusion.rules import (
    AverageOfMaximum,
    MajorityVote,
    MaxRule,
    MedianRule,
    MinRule,
    ProductRule,
    SingleBest,
    SumRule,
    TrimmedMean,
)
from ocfuse.fusion.stacking import StackedFusion
from ocfuse.fusion.trust import TrustFusion

_NAMED: dict[str, Callable[[], BaseFusion]] = {
    "sum": SumRule,
    "mean": SumRule,  # the sum on the scale of one member
    "product": ProductRule,
    "max": MaxRule,
    "min": MinRule,
    "median": MedianRule,
    "vote": MajorityVote,
    "trimmed-mean": TrimmedMean,
    "aom": AverageOfMaximum,
    "trust": TrustFusion,
    "competence": CompetenceFusion,
    "lp": LpFusion,
    "least-squares": LeastSquaresFusion,
    "local-lp": LocalLpFusion,
    "labelled": LabelledFusion,
    "cascade": CascadeFusion,
    "stacking": StackedFusion,
    "single-best": SingleBest,
}


def make_fusion(spec: str | BaseFusion | None = None) -> BaseFusion:
    """Return a fusion for a name, an object or None.

    Parameters
    ----------
    spec : str, fusion object or None
        "sum" or "mean" (the same), "product", "max", "min", "median", "vote", "trimmed-mean",
        "aom", "trust", "competence", "lp", "least-squares", "local-lp", "labelled", "cascade",
        "stacking" or "single-best", each with default parameters. An object is returned unchanged.
        None is ``TrustFusion()``.

    Returns
    -------
    BaseFusion
        The fusion, not fitted.

    Examples
    --------
    >>> from ocfuse.fusion import make_fusion
    >>> make_fusion("trimmed-mean")
    TrimmedMean()
    """
    if spec is None:
        return TrustFusion()
    if isinstance(spec, str):
        if spec not in _NAMED:
            raise InvalidInputError(not_one_of("fusion", spec, _NAMED, ", or an object"))
        return _NAMED[spec]()
    return _checked(spec)


def _checked(spec: Any) -> BaseFusion:
    """Refuse what has not the whole contract; a class is not an object yet."""
    if not isinstance(spec, BaseFusion):
        raise InvalidTypeError(
            f"fusion must be a name or a fusion object, such as LpFusion(p=2). Got {spec!r}. "
            "Derive a fusion of your own from ocfuse.fusion.base.BaseFusion; the page "
            '"extending" of the documentation shows how.'
        )
    return spec
