"""How a system learns from what is known, without a look at the test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.members import Candidates, Chosen, OnValidation
from ocfuse.detectors.members import seeded
from ocfuse.fusion.base import BaseFusion
from ocfuse.scores import MinMax
from ocfuse.tuning.crossfit import fit_fusion
from ocfuse.tuning.search import PAPER_P, Search

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """What was learned: a score of rows, and what was chosen on the way.

    Parameters
    ----------
    score : callable
        Takes rows, returns scores, higher = more normal.
    choices : dict
        Settings that were chosen, as JSON.
    """

    score: Callable[[FloatArray], FloatArray]
    choices: dict[str, Any] = field(default_factory=dict)


class Recipe(Protocol):
    """A way to learn; its representation is its definition."""

    def learn(self, candidates: Candidates) -> Model:
        """Learn from what is known."""


@dataclass(frozen=True)
class TunedMember:
    """The member of a family that a criterion has chosen.

    Parameters
    ----------
    family : str
        "svdd", "gp", "kpca" or "gmm".
    criterion : str
        "rpau", "pseudo-negatives" or "labels".
    """

    family: str
    criterion: str

    def learn(self, candidates: Candidates) -> Model:
        """Take the member."""
        chosen = candidates.chosen(self.criterion)
        return _single(chosen, chosen.column(self.family))


@dataclass(frozen=True)
class BestMember:
    """The one member, of all families, that a criterion thinks best.

    Parameters
    ----------
    criterion : str
        "rpau", "pseudo-negatives" or "labels".
    """

    criterion: str

    def learn(self, candidates: Candidates) -> Model:
        """Take the member; of equal ones the first."""
        chosen = candidates.chosen(self.criterion)
        return _single(chosen, chosen.verdicts.index(max(chosen.verdicts)))


@dataclass(frozen=True)
class Fused:
    """A fusion of the four members that a criterion has chosen.

    If the fusion has a norm p, it is chosen by the same criterion.

    Parameters
    ----------
    fusion : fusion
        The fusion, not fitted.
    criterion : str
        "rpau", "pseudo-negatives" or "labels".
    """

    fusion: BaseFusion
    criterion: str

    def learn(self, candidates: Candidates) -> Model:
        """Choose p on the validation rows; learn the weights from the training rows."""
        chosen = candidates.chosen(self.criterion)
        fusion = seeded(self.fusion, candidates.known.seed)
        choices: dict[str, Any] = {"members": chosen.names}
        if "p" in fusion.get_params(deep=False):
            search = Search(OnValidation(self.criterion), grid={"p": PAPER_P})
            search.fit(chosen.rows, MinMax(), fusion, chosen.names, candidates.known.seed)
            fusion = search.best_fusion_
            choices["p"] = fusion.p
        normaliser, fitted = fit_fusion(chosen.learned, MinMax(), fusion)
        return Model(lambda X: fitted.fuse(normaliser.transform(chosen.scores(X)), X), choices)


@dataclass(frozen=True)
class Detector:
    """A whole detector, as a user calls it, on the training rows.

    Parameters
    ----------
    detector : estimator
        Has `fit` and `score_samples`.
    takes_labels : bool, default=False
        Give it all known anomalies too, those for validation included.
    """

    detector: Any
    takes_labels: bool = False

    def learn(self, candidates: Candidates) -> Model:
        """Fit it."""
        known = candidates.known
        detector = seeded(self.detector, known.seed)
        if not self.takes_labels:
            return Model(detector.fit(known.train).score_samples)
        parts = known.train, known.train_anomalies, known.validation_anomalies
        y = np.repeat([1, -1, -1], [len(part) for part in parts])
        return Model(detector.fit(np.vstack(parts), y).score_samples)


def _single(chosen: Chosen, column: int) -> Model:
    return Model(lambda X: chosen.scores(X)[:, column], {"member": chosen.names[column]})
