"""Let a detector learn from rows in other coordinates."""

from dataclasses import replace
from typing import Any, ClassVar

from sklearn.base import clone

from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gram import FloatArray, Gram, Query, View
from ocfuse.exceptions import InvalidTypeError


class Viewed(BaseDetector):
    """A detector of this package on the rows as a view shows them.

    A subclass names the `view`. Members of a pool that learn from the same
    rows in the same view share it, its distances, kernels and neighbours.

    Parameters
    ----------
    detector : BaseDetector
        A detector of this package; it is cloned, never fitted. It says how many
        rows are learned from and what the false alarm rate is.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector fitted to the rows in the view.
    """

    #: What the rows are seen through.
    view: ClassVar[type[View]]

    detector_: BaseDetector

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    @property
    def max_samples(self) -> int | None:  # type: ignore[override]
        """The number of rows that the detector learns from."""
        # A pool asks before it checks the detector.
        samples: int | None = getattr(self.detector, "max_samples", None)
        return samples

    @property
    def false_alarm_rate(self) -> float:  # type: ignore[override]
        """The false alarm rate of the detector."""
        return float(self.detector.false_alarm_rate)

    def rows_of(self, n: int) -> int:
        """Return how many of n rows the detector learns from."""
        # A pool asks before it checks the detector.
        return self.detector.rows_of(n) if isinstance(self.detector, BaseDetector) else n

    def sharing_order(self) -> tuple[int, int]:
        """Return the place of the detector among those that share the view."""
        order: tuple[int, int] = self.detector.sharing_order()
        return order

    def cost(self, shape: Shape) -> Cost:
        """Return what it takes to learn from rows, and to score one."""
        name = self.view.__name__
        inside: Cost = self.detector.cost(replace(shape, view=name))
        return Cost(shared={("view", name, shape.rows): self._view_cost(shape)}) + inside

    def _view_cost(self, shape: Shape) -> Cost:
        """Return the cost of the rows in the view, which members share."""
        size = NUMBER * shape.cells
        return Cost(
            fit_work={"view": shape.fits() * shape.cells},
            score_work={"view": shape.columns},
            fit_bytes={"view": shape.held * size},
            model_bytes={"view": size},
        )

    def _check_parameters(self) -> None:
        if not isinstance(self.detector, BaseDetector):
            raise InvalidTypeError(
                "detector must be a detector of this package, such as KPCA(). "
                f"Got {self.detector!r}. Others can follow a transformer of scikit-learn in a "
                "pipeline."
            )
        self.detector._check_parameters()

    def _fit(self, gram: Gram) -> None:
        self.detector_ = clone(self.detector).fit_gram(gram.view(self.view))

    def _score(self, query: Query) -> FloatArray:
        return self.detector_.score_query(query.view(self.view))
