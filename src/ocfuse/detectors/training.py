"""One fit of a pool: members on shared distances, and scores of rows unseen by them."""

import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from ocfuse.detectors.base import (
    Folds,
    IndexArray,
    core_rows,
    honest_scores,
    interleaved_folds,
    lower_quantile,
)
from ocfuse.detectors.gram import FloatArray, Gram, Reference
from ocfuse.detectors.members import (
    Members,
    check_scores,
    finite_scores,
    givers_first,
    is_shared,
    knows_closed_form,
    lowest_score,
    own_scores,
    self_excluded,
)
from ocfuse.exceptions import InvalidInputError, MemberError, MemberWarning

#: Called with the stage, the member, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, str, int, int], None]
BoolArray: TypeAlias = NDArray[np.bool_]
#: Row numbers of one fold in the core: train, test; and rows outside the core to test.
CoreFold: TypeAlias = tuple[IndexArray, IndexArray, IndexArray]

#: Distances held at once while rows are scored.
MOST_DISTANCES = 8_000_000

FIT, HONEST = "fit", "honest scores"


def blocks(n: int, n_reference: int) -> Iterator[slice]:
    """Cut n rows so that a block's distances to the training rows fit in memory."""
    step = max(1, MOST_DISTANCES // n_reference)
    for begin in range(0, n, step):
        yield slice(begin, min(n, begin + step))


class Ledger:
    """Count the steps of a training and keep the members that failed.

    Parameters
    ----------
    steps : dict
        Number of steps of each member.
    drop : bool
        Leave out a member that fails rather than raise.
    progress : callable, optional
        Told about every step.

    Attributes
    ----------
    dropped : dict
        Why a member was left out.
    """

    def __init__(self, steps: dict[str, int], drop: bool, progress: Progress | None) -> None:
        self.dropped: dict[str, str] = {}
        self._left = steps
        self._total = sum(steps.values())
        self._drop = drop
        self._progress = progress

    def step(self, stage: str, name: str) -> None:
        """Tell that a member has done one step."""
        self._left[name] -= 1
        if self._progress is not None:
            self._progress(stage, name, self._total - sum(self._left.values()), self._total)

    def alive(self, members: Members) -> Members:
        """Return the members that have not failed."""
        return [(name, member) for name, member in members if name not in self.dropped]

    @contextmanager
    def attempt(self, stage: str, name: str) -> Iterator[None]:
        """Turn a failure into an error or a warning that names the member."""
        try:
            yield
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if not self._drop:
                raise MemberError(
                    f"Member {name!r} failed ({stage}). {reason} "
                    "Use on_error='drop' to go on without it."
                ) from error
            self.dropped[name] = reason
            self._left[name] = 0
            message = f"Member {name!r} failed ({stage}) and is left out. {reason}"
            warnings.warn(message, MemberWarning, stacklevel=2)


class Core:
    """The rows that some members learn from, their Gram and their folds.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        All training rows.
    size : int
        Number of rows to learn from.
    n_folds : int
        Number of folds without groups.
    fold_of : ndarray of shape (n,), optional
        The fold of each row, if rows come in groups.
    withheld : ndarray of shape (n, number of folds), optional
        Rows that are not learned from while a fold is held out; by default its own.
    """

    def __init__(
        self,
        X: FloatArray,
        size: int,
        n_folds: int,
        fold_of: IndexArray | None,
        withheld: BoolArray | None = None,
    ) -> None:
        self.rows = core_rows(len(X), size)
        self.outside = np.setdiff1d(np.arange(len(X)), self.rows)
        self.gram = Gram(X[self.rows])
        self._n_folds = n_folds
        self._fold_of = fold_of
        self._withheld = withheld

    def folds(self) -> Iterator[CoreFold]:
        """Return every fold; rows outside are in one only if rows come in groups."""
        if self._fold_of is None:
            for train, test in interleaved_folds(len(self.rows), self._n_folds):
                yield train, test, self.outside[:0]
            return
        fold = self._fold_of[self.rows]
        for f in np.unique(self._fold_of):
            outside = self.outside[self._fold_of[self.outside] == f]
            kept = fold != f if self._withheld is None else ~self._withheld[self.rows, f]
            yield np.flatnonzero(kept), np.flatnonzero(fold == f), outside


class Training:
    """Fit members and score each training row by members that have not seen it.

    Parameters
    ----------
    members : list of (name, estimator)
        Estimators that may be fitted in place.
    X : ndarray of shape (n, m)
        Training rows.
    n_folds : int
        Number of folds without groups.
    fold_of : ndarray of shape (n,), optional
        The fold of each row, if rows come in groups: every member then goes
        by these folds, also one that knows a closed form.
    drop : bool
        Leave out a member that fails rather than raise.
    progress : callable, optional
        Told about every step, from the calling thread.
    withheld : ndarray of shape (n, number of folds), optional
        Rows that are not learned from while a fold is held out; by default its own.

    Attributes
    ----------
    scores : dict
        Honest scores of each member.
    lowest : dict
        What -inf counts as, for each member that is not of this package.
    """

    def __init__(
        self,
        members: Members,
        X: FloatArray,
        n_folds: int,
        fold_of: IndexArray | None,
        drop: bool = False,
        progress: Progress | None = None,
        withheld: BoolArray | None = None,
    ) -> None:
        self.members = members
        self.scores = {name: np.full(len(X), np.nan) for name, _ in members}
        self.lowest: dict[str, float] = {}
        self._X = X
        self._n_folds = min(n_folds, len(X)) if fold_of is None else len(np.unique(fold_of))
        self._fold_of = fold_of
        self._withheld = withheld
        steps = {name: 1 + self._honest_steps(member) for name, member in members}
        self._ledger = Ledger(steps, drop, progress)

    @property
    def dropped(self) -> dict[str, str]:
        """Why a member was left out, in the order of the members."""
        why = self._ledger.dropped
        return {name: why[name] for name, _ in self.members if name in why}

    def run(self, n_jobs: int | None = None) -> Members:
        """Fit all members and fill `scores`; return those that did not fail."""
        cores: defaultdict[int, Members] = defaultdict(list)
        for name, member in filter(lambda pair: is_shared(pair[1]), self.members):
            with self._ledger.attempt(FIT, name):
                member._check_parameters()
                cores[len(core_rows(len(self._X), member.max_samples))].append((name, member))
        for size, members in cores.items():
            core = Core(self._X, size, self._n_folds, self._fold_of, self._withheld)
            self._run_core(core, givers_first(members))
        self._run_others([pair for pair in self.members if not is_shared(pair[1])], n_jobs)
        for name, member in self._ledger.alive(self.members):
            with self._ledger.attempt(HONEST, name):
                if not is_shared(member):
                    self.lowest[name] = lowest_score(self.scores[name])
                    self.scores[name] = finite_scores(self.scores[name], self.lowest[name])
                check_scores(self.scores[name], len(self._X))
        alive = self._ledger.alive(self.members)
        if not alive:
            reasons = "; ".join(f"{name!r}: {why}" for name, why in self.dropped.items())
            raise MemberError(f"Every member failed. {reasons}")
        return alive

    def _run_core(self, core: Core, members: Members) -> None:
        """Fit and score members that learn from the same rows, on one Gram."""
        for name, member in members:
            with self._ledger.attempt(FIT, name):
                member.fit_gram(core.gram)
                member.n_features_in_ = self._X.shape[1]
                self._ledger.step(FIT, name)
        for name, member in self._ledger.alive(members):
            if self._is_closed(member):
                with self._ledger.attempt(HONEST, name):
                    self.scores[name][core.rows] = honest_scores(member, core.gram, ())
                    self._ledger.step(HONEST, name)
        folded = [(name, member) for name, member in members if not self._is_closed(member)]
        for fold in core.folds() if folded else ():
            self._run_fold(core, fold, folded)
        if self._fold_of is None:
            # No member has seen the rows outside the core.
            self._score_outside(core.gram.reference, core.outside, members)
        for name, member in self._ledger.alive(members):
            honest = self.scores[name][core.rows]
            member.offset_ = lower_quantile(honest, member.false_alarm_rate)

    def _run_fold(self, core: Core, fold: CoreFold, members: Members) -> None:
        """Score the rows of one fold by members fitted on the other folds."""
        train, test, outside = fold
        if not len(train):
            raise InvalidInputError(
                "While a fold of groups is held out, no row is left to learn from. Use more rows, "
                "a larger max_samples if it is set, or a smaller purge if there is one."
            )
        part, query = core.gram.fold(train, test)
        models: Members = []
        for name, member in self._ledger.alive(members):
            with self._ledger.attempt(HONEST, name):
                model = clone(member).fit_gram(part)
                if len(test):
                    self.scores[name][core.rows[test]] = model.score_query(query)
                models.append((name, model))
                self._ledger.step(HONEST, name)
        self._score_outside(part.reference, outside, models)

    def _score_outside(self, reference: Reference, rows: IndexArray, members: Members) -> None:
        """Score rows that are not behind the Gram."""
        for block in blocks(len(rows), reference.n_rows):
            query = reference.query(self._X[rows[block]])
            for name, member in self._ledger.alive(members):
                with self._ledger.attempt(HONEST, name):
                    self.scores[name][rows[block]] = member.score_query(query)

    def _run_others(self, members: Members, n_jobs: int | None) -> None:
        """Fit and score members that know no Gram, each on its own."""
        if not members:
            return
        run = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        with _results(
            run, (delayed(_outcome)(_fit, member, self._X) for _, member in members)
        ) as fits:
            for (name, member), (_, error) in zip(members, fits, strict=True):
                with self._ledger.attempt(FIT, name):
                    _raise(error)
                    self._ledger.step(FIT, name)
                    if self._is_closed(member):
                        self.scores[name] = self_excluded(member)
                        self._ledger.step(HONEST, name)
        tasks = [
            (name, member, train, test)
            for name, member in self._ledger.alive(members)
            if not self._is_closed(member)
            for train, test in self._folds()
        ]
        calls = (
            delayed(_outcome)(_fit_and_score, member, self._X, train, test)
            for _, member, train, test in tasks
        )
        with _results(run, calls) as results:
            for (name, _, _, test), (scores, error) in zip(tasks, results, strict=True):
                if name not in self.dropped:
                    with self._ledger.attempt(HONEST, name):
                        _raise(error)
                        self.scores[name][test] = scores
                        self._ledger.step(HONEST, name)

    def _folds(self) -> Folds:
        if self._fold_of is None:
            return interleaved_folds(len(self._X), self._n_folds)
        folds = []
        for f in np.unique(self._fold_of):
            tested = self._fold_of == f
            withheld = tested if self._withheld is None else self._withheld[:, f]
            folds.append((np.flatnonzero(~withheld), np.flatnonzero(tested)))
        return folds

    def _honest_steps(self, member: Any) -> int:
        if self._is_closed(member):
            return 1
        size = member.max_samples if is_shared(member) and self._fold_of is None else None
        # A core may have fewer rows than there are folds.
        return min(self._n_folds, size) if isinstance(size, int) else self._n_folds

    def _is_closed(self, member: Any) -> bool:
        return self._fold_of is None and knows_closed_form(member)


def _fit(estimator: Any, X: FloatArray) -> None:
    estimator.fit(X)


def _fit_and_score(
    estimator: Any, X: FloatArray, train: IndexArray, test: IndexArray
) -> FloatArray:
    scores = own_scores(clone(estimator).fit(X[train]), X[test])
    return check_scores(scores, len(test), far_allowed=True)


def _outcome(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """Return the result and the error of a call: a thread must not end the others."""
    try:
        return function(*args), None
    except Exception as error:
        return None, error


@contextmanager
def _results(run: Parallel, calls: Iterable[Any]) -> Iterator[Any]:
    """Run calls; after an error begin no further one, and wait for those that run.

    Left alone, joblib would warn of results that nobody takes.
    """
    is_over = False
    results = run(takewhile(lambda _: not is_over, calls))
    try:
        yield results
    except Exception:
        is_over = True
        deque(results, maxlen=0)
        raise
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # if somebody interrupts
            results.close()


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
