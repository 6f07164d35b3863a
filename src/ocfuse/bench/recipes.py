"""How a system learns from what is known, without a look at the test.

The paper searches the percentile rho of the min-max from 1 to 10 too. That is not
done: rho is 5 everywhere, so that the criteria choose members and p alone. How many
components its mixture has is not said; here one to five, by the criterion.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.members import Candidates, Chosen, OnValidation
from ocfuse.detectors.members import seeded
from ocfuse.fusion.base import BaseFusion
from ocfuse.scores import MinMax
from ocfuse.solvers.solution import Status
from ocfuse.tuning.crossfit import fit_fusion
from ocfuse.tuning.families import middle_best
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
        Settings that were chosen, what the criterion said of them, how many others were
        level ("ties"), and how well problems were solved; as JSON.
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
        column = chosen.column(self.family)
        return _single(chosen, column, chosen.ties[column])


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
        """Take the member; of equal ones the middle, in the order of the families."""
        chosen = candidates.chosen(self.criterion)
        column = middle_best(chosen.verdicts)
        rivals = zip(chosen.verdicts, chosen.ties, strict=True)
        level = sum(1 + ties for verdict, ties in rivals if verdict == chosen.verdicts[column])
        return _single(chosen, column, level - 1)


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
        choices: dict[str, Any] = {
            "members": chosen.names,
            "values": chosen.values,
            "ties": chosen.ties,
            "candidates": chosen.spread,
        }
        if "p" in fusion.get_params(deep=False):
            search = Search(OnValidation(self.criterion), grid={"p": PAPER_P})
            search.fit(chosen.rows, MinMax(), fusion, chosen.names, candidates.known.seed)
            fusion = search.best_fusion_
            choices |= {"p": fusion.p, **_chosen_p(search)}
        normaliser, fitted = fit_fusion(chosen.learned, MinMax(), fusion)
        choices |= certificate(fitted)
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


def certificate(fusion: BaseFusion) -> dict[str, float | None]:
    """Return how well the problems of a fitted fusion were solved, if it has any.

    Parameters
    ----------
    fusion : fusion
        The fitted fusion.

    Returns
    -------
    dict
        "gap", the largest certified one (None if it is not finite), and "solved", the
        share of problems that reached their tolerance.
    """
    gaps = np.atleast_1d(getattr(fusion, "gap_", []))
    if not len(gaps):
        return {}
    largest = float(np.max(gaps))
    status = np.atleast_1d(fusion.status_)
    return {
        "gap": float(f"{largest:.3g}") if np.isfinite(largest) else None,
        "solved": round(float(np.mean(status == str(Status.SOLVED))), 6),
    }


def _chosen_p(search: Search) -> dict[str, Any]:
    """Return what the criterion said of the norms: of the best, of the worst, and how many tied."""
    results, best = search.results_, search.best_index_
    is_level = (results["value"] == results["value"][best]) & (
        results["tie_break"] == results["tie_break"][best]
    )
    return {
        "p_value": search.best_value_ + 0.0,
        "p_lowest": float(results["value"].min()) + 0.0,
        "p_ties": int(is_level.sum()) - 1,
    }


def _single(chosen: Chosen, column: int, ties: int) -> Model:
    choices = {
        "member": chosen.names[column],
        "value": chosen.values[column],
        "ties": ties,
        "candidates": chosen.spread,
    }
    return Model(lambda X: chosen.scores(X)[:, column], choices)
