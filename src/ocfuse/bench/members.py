"""The paper's members: four families, one of each chosen on the validation rows."""

from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.trial import Known
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.members import Members
from ocfuse.detectors.mixture import GMM
from ocfuse.detectors.pools import WIDTHS, Pool
from ocfuse.detectors.svdd import SVDD
from ocfuse.scores import MinMax
from ocfuse.system.cache import remembering
from ocfuse.tuning.ballot import Ballot
from ocfuse.tuning.criterion import Criterion
from ocfuse.tuning.crossfit import ScoredRows
from ocfuse.tuning.families import best_of_each, family, keep_columns, keep_members
from ocfuse.tuning.named import make_criterion
from ocfuse.tuning.splits import Judged, Split
from ocfuse.tuning.verdicts import DIGITS, Verdict, judge_members

FloatArray = NDArray[np.float64]

#: Components of a mixture, and the first number and the step of the directions of KPCA.
COMPONENTS = range(1, 6)
FEWEST_DIRECTIONS, STEP = 2, 4
#: Share of the validation rows that are mirrored for pseudo-negatives.
MIRRORED = 0.5
#: Folds of rows: learned from, judged by; pseudo-negatives, which are judged by, have -1.
LEARNED, JUDGED, PSEUDO = 0, 1, -1


class OnValidation(Criterion):
    """Judge on the validation rows by a criterion, after learning from the others.

    Parameters
    ----------
    criterion : str or Criterion
        What judges.
    """

    def __init__(self, criterion: str | Criterion) -> None:
        self.criterion = criterion

    def check(self, rows: ScoredRows) -> None:
        """Refuse rows that say nothing to the criterion."""
        make_criterion(self.criterion).check(rows)

    def splits(self, rows: ScoredRows) -> list[Split]:
        """Return one split: the rows to learn from, and the others."""
        learned = rows.fold == LEARNED
        return [Split(rows.take(learned), rows.take(~learned))]

    def judge(self, parts: list[Judged]) -> Verdict:
        """Return what the criterion says."""
        return make_criterion(self.criterion).judge(parts)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Fitted members, one of each family, and the rows to learn a fusion from.

    Parameters
    ----------
    pool : Pool
        The members.
    rows : ScoredRows
        Their scores of all that is known.
    verdicts : list of (float, float)
        What the criterion says of each; higher is better.
    ties : list of int
        Candidates of the same family with the same verdict, by member.
    spread : list of float
        Lowest, median and highest value of the criterion, of all candidates.
    """

    pool: Pool
    rows: ScoredRows
    verdicts: list[Verdict]
    ties: list[int]
    spread: list[float]
    _scored: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the members, such as "kpca-0.5x6"."""
        return list(self.pool.names_)

    @property
    def values(self) -> list[float]:
        """What the criterion says of each, without what it breaks ties by."""
        return [value + 0.0 for value, _ in self.verdicts]  # 0 rather than -0

    @property
    def learned(self) -> ScoredRows:
        """The rows that are learned from, not those that judge."""
        return self.rows.take(self.rows.fold == LEARNED)

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the scores of all members; the same table is scored once."""
        for table, S in self._scored:
            if table is X:
                return S
        S = self.pool.score_samples(X)
        self._scored.append((X, S))
        return S

    def column(self, name: str) -> int:
        """Return the place of the member of a family."""
        return [family(member) for member in self.names].index(name)


class Candidates:
    """All candidates, fitted once to the training normals, from which criteria choose.

    Parameters
    ----------
    known : Known
        What may be learned from.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self._chosen: dict[str, Chosen] = {}

    def chosen(self, criterion: str) -> Chosen:
        """Return the best member of every family by a criterion, searched for once."""
        if criterion not in self._chosen:
            self._chosen[criterion] = self._choose(criterion)
        return self._chosen[criterion]

    @cached_property
    def pool(self) -> Pool:
        """The fitted candidates."""
        train = self.known.train
        return Pool(candidates(len(train))).fit(train, random_state=self.known.seed)

    @cached_property
    def rows(self) -> ScoredRows:
        """Everything that is known, scored by members that have not seen it."""
        known, pool = self.known, self.pool
        others = [known.train_anomalies, known.validation, known.validation_anomalies]
        X = np.vstack([*others, mirrored(known)])
        S = np.vstack([pool.honest_scores_, pool.score_samples(X)])
        counts = [len(known.train), *map(len, others)]
        counts.append(len(S) - sum(counts))
        return ScoredRows(
            S=S,
            y=np.repeat([1, -1, 1, -1, -1], counts),
            X=np.vstack([known.train, X]),
            fold=np.repeat([LEARNED, LEARNED, JUDGED, JUDGED, PSEUDO], counts),
            kind=np.repeat([-1, -1, -1, -1, 0], counts),
            seen=np.full_like(S, np.nan),
            ballot=Ballot({"mirror": 1.0}),
        )

    def _choose(self, criterion: str) -> Chosen:
        names = self.pool.names_
        with remembering():
            verdicts = judge_members(self.rows, OnValidation(criterion), MinMax())
        kept = best_of_each(names, verdicts)
        judged = list(zip(map(family, names), verdicts, strict=True))
        own = [judged[names.index(name)] for name in kept]
        values = [value + 0.0 for value, _ in verdicts]
        return Chosen(
            keep_members(self.pool, kept),
            keep_columns(self.rows, names, kept),
            [verdict for _, verdict in own],
            [judged.count(entry) - 1 for entry in own],
            [min(values), round(median(values), DIGITS), max(values)],
        )


def candidates(n: int) -> Members:
    """Return the candidates for n training rows, family by family.

    SVDD and GP of three widths, KPCA of three widths and 2, 6, 10, ... directions
    (at most the rank), mixtures of one to five Gaussians. What comes before the
    "-" of a name is the family.

    Parameters
    ----------
    n : int
        Number of training rows.

    Returns
    -------
    list of (name, estimator)
        The candidates, not fitted.

    Examples
    --------
    >>> from ocfuse.bench.members import candidates
    >>> [name for name, _ in candidates(8)][-8:]
    ['kpca-0.5x6', 'kpca-1x2', 'kpca-1x6', 'gmm-1', 'gmm-2', 'gmm-3', 'gmm-4', 'gmm-5']
    """
    directions = range(FEWEST_DIRECTIONS, max(n, FEWEST_DIRECTIONS + 1), STEP)
    return [
        *((f"svdd-{w:g}", SVDD(width=w)) for w in WIDTHS),
        *((f"gp-{w:g}", OneClassGP(width=w)) for w in WIDTHS),
        *((f"kpca-{w:g}x{r}", KPCA(r, width=w)) for w in WIDTHS for r in directions),
        *((f"gmm-{c}", GMM(c)) for c in COMPONENTS),
    ]


def mirrored(known: Known) -> FloatArray:
    """Return the negatives -x of a random half of the validation rows (Roth 2006).

    The rows are standardised, so that it is about the mean of the training normals.
    """
    n = len(known.validation)
    rng = np.random.default_rng(known.seed)
    return -known.validation[rng.permutation(n)[: max(1, round(MIRRORED * n))]]
