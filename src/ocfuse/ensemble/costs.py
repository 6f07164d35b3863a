"""What members do, counted from shapes alone: nothing is fitted.

Counts of operations and of bytes have names, and `ocfuse.ensemble.rates` has
what one of each costs, as it was measured. A member counts for itself by the
function registered for its class; any other is unknown.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, TypeAlias

from ocfuse.detectors import kpca
from ocfuse.detectors.base import MANY_ROWS, N_FOLDS, KernelDetector
from ocfuse.detectors.forest import Forest
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import MOST_DISTANCES
from ocfuse.detectors.landmarks import BLOCK_ROWS, MOST_KEPT, MOST_VALUES
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.members import Members, knows_closed_form
from ocfuse.detectors.mixture import (
    GMM,
    MOST_DIRECTIONS,
    MOST_DIRECTIONS_OF_SEVERAL,
    ROWS_PER_DIRECTION,
)
from ocfuse.detectors.neighbours import KNN, LOF
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.training import MOST_DISTANCES as DISTANCES_AT_ONCE
from ocfuse.detectors.viewed import Viewed
from ocfuse.detectors.whitened import Mahalanobis
from ocfuse.detectors.whitening import Whitening
from ocfuse.ensemble.holdout import N_REFITS, is_refitted
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.locality import MOST_REFERENCE_ROWS
from ocfuse.nearest.search import MOST_ROWS, numbers_looked_at

Terms: TypeAlias = defaultdict[str, float]

#: Bytes of a number, and of a neighbour with its distance.
NUMBER, NEIGHBOUR = 8, 16
#: What is done with a distance, in columns.
EXTRA = 16
#: Pseudo-negatives and training rows that are scored together, at least.
SCORED_ROWS = 2000
#: The rows as they are, which every member sees that is on no view.
RAW = "raw"


@dataclass(frozen=True)
class Job:
    """What is learned from, and what makes a fit longer.

    Attributes
    ----------
    n_rows, n_columns : int
        Rows that are not anomalies, and columns.
    n_anomalies : int
        Rows that are.
    n_groups : int or None
        Groups of rows, with which all members learn fold by fold; None without.
    n_tried : int
        Settings that a search tries.
    """

    n_rows: int
    n_columns: int
    n_anomalies: int = 0
    n_groups: int | None = None
    n_tried: int = 0


@dataclass(frozen=True)
class Place:
    """Where a member learns: rows, those outside, columns, folds (0 in closed form), the view."""

    rows: int
    outside: int
    columns: int
    folds: int
    view: str = RAW

    def fits(self, power: int = 1) -> float:
        """Return how many times the work is done that grows with a power of the rows."""
        return 1 + self.folds * self._share**power

    @property
    def held(self) -> float:
        """How many times what is made of the rows is held: by the fit, and by one of its folds."""
        return 1 + self._share

    @property
    def _share(self) -> float:
        return 1 - 1 / self.folds if self.folds else 0.0


@dataclass
class Counts:
    """Operations of a fit and of a scored row, bytes of a fit and of the model, by name."""

    fit: Terms = field(default_factory=lambda: defaultdict(float))
    score: Terms = field(default_factory=lambda: defaultdict(float))
    peak: Terms = field(default_factory=lambda: defaultdict(float))
    model: Terms = field(default_factory=lambda: defaultdict(float))
    unknown: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    #: What several members share is counted once.
    shared: set[tuple[Any, ...]] = field(default_factory=set)

    def is_new(self, *what: Any) -> bool:
        """Tell whether something shared has not been counted yet."""
        if what in self.shared:
            return False
        self.shared.add(what)
        return True


def count_costs(members: Members, job: Job, n_folds: int = N_FOLDS) -> Counts:
    """Return what a fit will take in which no row is left out.

    Parameters
    ----------
    members : list of (name, estimator)
        The members.
    job : Job
        What they learn from.
    n_folds : int, default=4
        Folds of the members that learn fold by fold.

    Returns
    -------
    Counts
        The counts.
    """
    counts = _count_once(members, job, n_folds)
    n = job.n_rows
    if is_refitted((n, job.n_columns), job.n_anomalies, job.n_groups):
        # everything but the search is learned again in folds
        part = _count_once(members, replace(job, n_rows=n - n // N_REFITS, n_tried=0), n_folds)
        for name, amount in part.fit.items():
            counts.fit[name] += N_REFITS * amount
    return counts


def _count_once(members: Members, job: Job, n_folds: int) -> Counts:
    counts = Counts()
    for name, member in members:
        if _is_ours_and_sound(member):
            place = _place(member, job, n_folds)
            _count_parts(counts, place)
            count(member, counts, place)
        else:
            counts.unknown.append(name)
    _count_frame(counts, len(members), job)
    return counts


@singledispatch
def count(member: Any, counts: Counts, place: Place) -> None:
    """Add what a member costs."""


@count.register
def _(member: Viewed, counts: Counts, place: Place) -> None:
    view = member.view
    inside = replace(place, view=view.__name__)
    if counts.is_new("view", view.__name__, place.rows):
        cells = place.rows * place.columns
        counts.fit["view"] += place.fits() * cells
        counts.score["view"] += place.columns
        counts.peak["view"] += place.held * NUMBER * cells
        counts.model["view"] += NUMBER * cells
        if view is Whitening:
            _count_whitening(counts, place)
    count(member.detector, counts, inside)


@count.register
def _(member: Mahalanobis, counts: Counts, place: Place) -> None:
    if counts.is_new("view", Whitening.__name__, place.rows):
        _count_whitening(counts, place)


@count.register
def _count_kernel(member: KernelDetector, counts: Counts, place: Place) -> None:
    n = place.rows
    if member.landmarks is not None and member.needs_landmarks(n):
        counts.methods.add("landmarks")
        _count_landmarks(member, counts, place, min(n, member.landmarks))
        return
    counts.methods.add("exact")
    columns = _columns(member, n)
    # other kernels than KPCA need no spectrum
    kind = "spectrum" if isinstance(member, kpca.KPCA) else "factor"
    counts.fit[kind] += place.fits(3) * n**3
    counts.score["kernel"] += n * (1 + columns)
    counts.model["kernel"] += NUMBER * n * columns
    _count_square(counts, place)
    if counts.is_new("kernel", place.view, n, member.width):
        counts.peak["kernel"] += place.held * NUMBER * n * n
    if not isinstance(member, SVDD):
        counts.peak[kind] = max(counts.peak[kind], NUMBER * n * n)


@count.register
def _(member: SVDD, counts: Counts, place: Place) -> None:
    _count_kernel(member, counts, place)
    if member.landmarks is not None and member.needs_landmarks(place.rows):
        # coordinates are kept while the sphere is looked for, one width after another
        values = min(place.rows * member.landmarks, MOST_KEPT)
        counts.fit["sphere"] += place.fits() * values
        counts.peak["sphere"] = max(counts.peak["sphere"], NUMBER * values)


@count.register
def _(member: OneClassGP, counts: Counts, place: Place) -> None:
    _count_kernel(member, counts, place)
    n, m = place.rows, place.columns
    if member.landmarks is None or not (member.in_blocks and member.needs_landmarks(n)):
        return
    size, most = min(n, member.landmarks), min(n, BLOCK_ROWS)
    counts.fit["landmark cube"] += place.fits() * n * most * size
    counts.peak["landmark work"] = max(counts.peak["landmark work"], NUMBER * most * (most + size))
    if counts.is_new("blocks", place.view, n):
        # a row is compared with those of its block, and all rows are kept
        counts.score["landmark distances"] += most * m
        counts.peak["landmarks"] += place.held * NUMBER * n * m
        counts.model["landmarks"] += NUMBER * n * m


@count.register(KNN)
@count.register(LOF)
def _(member: Any, counts: Counts, place: Place) -> None:
    n, m = place.rows, place.columns
    k = -member.sharing_order()[1]
    counts.score["neighbour"] += k
    if not counts.is_new("neighbours", place.view, n):
        return
    counts.peak["neighbours"] += place.held * NEIGHBOUR * n * k
    if n**2 <= MOST_DISTANCES:
        _count_square(counts, place)
        return
    numbers = numbers_looked_at(n, m)
    counts.fit["search"] += place.fits(2) * n * numbers
    counts.peak["search"] += place.held * NUMBER * n * m
    counts.score["search"] += numbers
    counts.score["cells"] += n > MOST_ROWS


@count.register
def _(member: GMM, counts: Counts, place: Place) -> None:
    n, m = place.rows, place.columns
    is_one = member.n_components == 1
    most = MOST_DIRECTIONS if is_one else MOST_DIRECTIONS_OF_SEVERAL
    r = min(m, most, max(1, n // ROWS_PER_DIRECTION))
    c = member.n_components or member.max_components * (member.max_components + 1) // 2
    counts.fit["directions"] += place.fits() * n * m * min(n, m) * (r < m)
    counts.fit["gaussian" if is_one else "gaussians"] += place.fits() * c * n * r * r
    counts.score["gaussians"] += c * r * r + r * m
    counts.peak["rows"] = max(counts.peak["rows"], NUMBER * n * m)
    counts.model["wide"] += NUMBER * (c * r * r + r * m)


@count.register
def _(member: Marginal, counts: Counts, place: Place) -> None:
    cells = place.rows * place.columns
    counts.fit["tails"] += place.fits() * cells * math.log2(place.rows + 1)
    counts.score["tails"] += place.columns * math.log2(place.rows + 1)
    counts.peak["tails"] += place.held * NUMBER * cells
    counts.model["tails"] += NUMBER * cells


@count.register
def _(member: Forest, counts: Counts, place: Place) -> None:
    counts.fit["trees"] += 1 + place.folds
    counts.fit["paths"] += place.rows
    counts.score["trees"] += 1
    counts.peak["trees"] += 1
    counts.model["trees"] += 1


def _is_ours_and_sound(member: Any) -> bool:
    """Tell whether the costs of a member are known; what is wrong with it `fit` will say."""
    inner = member.detector if isinstance(member, Viewed) else member
    if count.dispatch(type(inner)) is count.dispatch(object):
        return False
    try:
        member._check_parameters()
    except InvalidInputError:
        return False
    return True


def _place(member: Any, job: Job, n_folds: int) -> Place:
    rows, m = member.rows_of(job.n_rows), job.n_columns
    if job.n_groups is not None:
        folds = min(n_folds, job.n_groups)
    else:
        folds = 0 if knows_closed_form(member, rows, m) else min(n_folds, rows)
    return Place(rows, job.n_rows - rows, m, folds)


def _count_parts(counts: Counts, place: Place) -> None:
    """Count the rows of a fold: those learned from, and those held out."""
    if place.folds and counts.is_new("parts", place.rows):
        counts.peak["cell"] += NUMBER * place.rows * place.columns


def _count_whitening(counts: Counts, place: Place) -> None:
    n, m = place.rows, place.columns
    r = min(n, m)  # rows span no more directions than there are rows
    counts.fit["whitening"] += place.fits() * (n + m) * r * r
    counts.score["whitening"] += r * m
    counts.peak["wide"] += NUMBER * r * m
    counts.model["wide"] += NUMBER * r * m


def _count_landmarks(member: KernelDetector, counts: Counts, place: Place, size: int) -> None:
    n, m = place.rows, place.columns
    columns = _columns(member, size)
    counts.fit["landmark products"] += place.fits() * n * size * size
    counts.fit["landmark cube"] += (1 + place.folds) * size**3
    counts.score["landmark products"] += columns * size
    # members of one width share the factor of the landmarks and the sums over the rows
    matrices = 1 + 2 * counts.is_new("landmarks of a width", place.view, n, size, member.width)
    # a fold has as many landmarks
    counts.peak["landmarks"] += (1 + (place.folds > 0)) * NUMBER * matrices * size * size
    blocks = 3 if isinstance(member, OneClassGP) else 2
    work = NUMBER * blocks * min(n * size, MOST_VALUES)
    counts.peak["landmark work"] = max(counts.peak["landmark work"], work)
    counts.model["landmarks"] += NUMBER * columns * size
    if counts.is_new("landmarks", place.view, n, size):
        counts.fit["landmark distances"] += place.fits() * n * size * m
        counts.score["landmark distances"] += size * m
        counts.model["landmarks"] += NUMBER * size * m


def _columns(member: KernelDetector, size: int) -> float:
    """Return what multiplies the kernel values of a row: directions, a whole factor or a vector."""
    if isinstance(member, kpca.KPCA):
        return min(kpca.DEFAULT_SHARE * size, kpca.MOST_DIRECTIONS)
    is_whole = isinstance(member, OneClassGP) and member.statistic != "mean"
    return size if is_whole else 1.0


def _count_square(counts: Counts, place: Place) -> None:
    """Count a matrix of the distances of all rows to each other."""
    if counts.is_new("square", place.view, place.rows):
        n, m = place.rows, place.columns
        counts.fit["square"] += place.fits(2) * n * n * (m + EXTRA)
        counts.score["square"] += n * (m + EXTRA)
        counts.peak["square"] += place.held * NUMBER * n * n
        # rows that are not learned from are scored, block by block
        held = NUMBER * min(place.outside * n, DISTANCES_AT_ONCE)
        counts.peak["outside"] = max(counts.peak["outside"], held)


def _count_frame(counts: Counts, d: int, job: Job) -> None:
    """Count what is done around the members: encoding, pseudo-negatives, the fusion, a search."""
    n, m = job.n_rows, job.n_columns
    near = min(n, MOST_REFERENCE_ROWS)
    cells, scores = n * m, n * d
    fusion = "fusion" if n <= MANY_ROWS else "fusion of many"
    _add(counts.fit, {"start": 1, "member": d, "cell": cells, "score": scores})
    _add(counts.fit, {fusion: near * cells})
    _add(counts.score, {"row": 1, "member": d, "cell": m, fusion: near * (m + EXTRA)})
    _add(counts.peak, {"start": 1, "wide": NUMBER * m * min(n, m)})
    _add(counts.model, {"start": 1})
    # some thousand pseudo-negatives and training rows are scored, and the latter kept
    _add(counts.peak, {"column": NUMBER * m * max(near, SCORED_ROWS)})
    _add(counts.model, {"column": NUMBER * m * near})
    for terms in (counts.peak, counts.model):
        _add(terms, {"cell": NUMBER * cells, "score": NUMBER * scores})
    _add(counts.fit, {"tried": job.n_tried * scores})
    # every fold has rows of its own to learn from and to judge by, pseudo-negatives among them
    rows = N_FOLDS * (n + SCORED_ROWS) * (job.n_tried > 0)
    _add(counts.peak, {"splits": NUMBER * rows * m})


def _add(terms: Terms, amounts: dict[str, float]) -> None:
    for name, amount in amounts.items():
        terms[name] += amount
