"""What a part of a detector takes, from shapes alone: nothing is fitted.

A detector and a fusion answer `cost(shape)`, a new one brings its own, and a plan
(`ocfuse.ensemble.plan`) adds them up. Work and bytes are by kind, such as "square" for
the distances of all rows to each other: what one of a kind takes was measured, and is in
`ocfuse.ensemble.plan.RATES`. The kinds "seconds" and "bytes" are what they say.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

#: Amounts by kind.
Amounts: TypeAlias = Mapping[str, float]

#: Bytes of a number.
NUMBER = 8
#: What is done with a distance once it is there, in columns.
EXTRA = 16


@dataclass(frozen=True)
class Shape:
    """What a member or a fusion learns from.

    Parameters
    ----------
    rows, columns : int
        Rows that are learned from, and their columns.
    folds : int, default=0
        How often it learns again without a fold, to score the rows of that; 0 if it scores
        rows left out in closed form.
    scored : int, default=0
        Rows that are not learned from and are scored at once.
    view : str, default="raw"
        The coordinates of the rows: members share what they compute in the same ones.
    """

    rows: int
    columns: int
    folds: int = 0
    scored: int = 0
    view: str = "raw"

    def fits(self, power: int = 1) -> float:
        """Return how often work is done that grows with a power of the rows.

        It is 1 for all rows, and for every fold the share of the rows outside it, to the power.
        """
        return 1 + self.folds * self._share**power

    @property
    def held(self) -> float:
        """How often what is made of the rows is held: by the fit, and by one of its folds."""
        return 1 + self._share

    @property
    def cells(self) -> int:
        """Numbers in the rows."""
        return self.rows * self.columns

    @property
    def _share(self) -> float:
        return 1 - 1 / self.folds if self.folds else 0.0


@dataclass(frozen=True)
class Cost:
    """Work and bytes of one part, each by kind.

    Costs are added; of what several parts share, the most that one of them asks for counts.

    Parameters
    ----------
    fit_work, score_work : mapping of str to float, optional
        Operations of the fit, with all its folds, and of scoring one row.
    fit_bytes : mapping of str to float, optional
        Bytes that are held until the fit ends.
    scratch_bytes : mapping of str to float, optional
        Bytes that are held for a moment: of several parts, which take turns, the most count.
    model_bytes : mapping of str to float, optional
        Bytes of what is fitted.
    shared : mapping of hashable to Cost, optional
        What other parts may use too, by a key that is equal for all of them.
    methods : frozenset of str, optional
        How kernels see the rows: "exact" or "landmarks".
    is_guess : bool, default=False
        Whether the part does not know its cost.

    Examples
    --------
    >>> mine = Cost(fit_work={"seconds": 2.0}, model_bytes={"bytes": 800})
    >>> (mine + mine).fit_work
    {'seconds': 4.0}
    """

    fit_work: Amounts = field(default_factory=dict)
    score_work: Amounts = field(default_factory=dict)
    fit_bytes: Amounts = field(default_factory=dict)
    scratch_bytes: Amounts = field(default_factory=dict)
    model_bytes: Amounts = field(default_factory=dict)
    shared: Mapping[Hashable, "Cost"] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()
    is_guess: bool = False

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            _added(self.fit_work, other.fit_work),
            _added(self.score_work, other.score_work),
            _added(self.fit_bytes, other.fit_bytes),
            _most(self.scratch_bytes, other.scratch_bytes),
            _added(self.model_bytes, other.model_bytes),
            {
                key: _larger(self.shared.get(key), other.shared.get(key))
                for key in [*self.shared, *other.shared]
            },
            self.methods | other.methods,
            self.is_guess or other.is_guess,
        )

    def total(self) -> "Cost":
        """Return the cost with what is shared counted once, and nothing shared any more."""
        return sum(self.shared.values(), replace(self, shared={}))

    def peak_bytes(self) -> dict[str, float]:
        """Return the bytes held at most during the fit, by kind."""
        return _added(self.fit_bytes, self.scratch_bytes)


def guessed_cost(shape: Shape) -> Cost:
    """Return the cost of a part that does not know its own: no work, and the bytes of the rows."""
    size = NUMBER * shape.cells
    return Cost(fit_bytes={"bytes": shape.held * size}, model_bytes={"bytes": size}, is_guess=True)


def _added(some: Amounts, others: Amounts) -> dict[str, float]:
    return {kind: some.get(kind, 0) + others.get(kind, 0) for kind in [*some, *others]}


def _most(some: Amounts, others: Amounts) -> dict[str, float]:
    return {kind: max(some.get(kind, 0), others.get(kind, 0)) for kind in [*some, *others]}


def _larger(one: Cost | None, other: Cost | None) -> Cost:
    """Return the most of each kind, of two parts that are one."""
    if one is None or other is None:
        return one or other or Cost()
    return Cost(
        _most(one.fit_work, other.fit_work),
        _most(one.score_work, other.score_work),
        _most(one.fit_bytes, other.fit_bytes),
        _most(one.scratch_bytes, other.scratch_bytes),
        _most(one.model_bytes, other.model_bytes),
    )
