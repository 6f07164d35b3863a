"""One fit of a pool: members on shared distances, and their out-of-fold scores."""

import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from copy import copy
from itertools import chain, islice, takewhile
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib.parallel import effective_n_jobs, get_active_backend
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape, guessed_cost
from ocfuse.detectors.base import (
    MANY_ROWS,
    BaseDetector,
    Folds,
    KernelDetector,
    core_rows,
    interleaved_folds,
    lower_quantile,
    out_of_fold_scores,
)
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.members import (
    Members,
    check_scores,
    finite_scores,
    givers_first,
    is_shared,
    knows_closed_form,
    lowest_score,
    own_scores,
)
from ocfuse.detectors.views import Viewed
from ocfuse.exceptions import InvalidInputError, MemberError, MemberWarning
from ocfuse.system.threads import allowed_threads, is_single, one_of_many

#: Called with the stage, the member, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, str, int, int], None]
#: Row numbers of one fold in the core: train, test; and rows outside the core to test.
CoreFold: TypeAlias = tuple[IntArray, IntArray, IntArray]
#: Member, rows, their scores, and the error that there is instead of them.
FoldOutcome: TypeAlias = tuple[str, IntArray, FloatArray, Exception | None]

Stage: TypeAlias = Literal["fit", "out-of-fold scores"]
#: Stage, member, what came of it, and the error that there is instead.
Step: TypeAlias = tuple[Stage, str, Any, Exception | None]

#: A function and its arguments.
Call: TypeAlias = tuple[Any, ...]
_run: ContextVar[Callable[[Iterable[Call]], Iterator[Any]] | None]
_run = ContextVar("run", default=None)

#: Distances held at once while rows are scored.
MOST_DISTANCES = 8_000_000


def blocks(n: int, n_reference: int) -> Iterator[slice]:
    """Cut n rows so that a block's distances to the training rows fit in memory."""
    step = max(1, MOST_DISTANCES // n_reference)
    for begin in range(0, n, step):
        yield slice(begin, min(n, begin + step))


def cost_of(estimator: Any, n: int, m: int, n_folds: int, n_groups: int | None = None) -> Cost:
    """Return what it takes to fit one member to n rows of m columns, and to score unseen ones.

    Unless the member is of this package or has a method `cost` of its own, that is a guess, and
    so it is if its parameters are wrong. With groups all members learn fold by fold.
    """
    if not _is_sound(estimator):
        return guessed_cost(Shape(n, m, min(n_folds, n)))
    rows = estimator.rows_of(n) if is_shared(estimator) else n
    if n_groups is not None:
        folds = min(n_folds, n_groups)
    else:
        folds = 0 if knows_closed_form(estimator, rows, m) else min(n_folds, rows)
    shape = Shape(rows, m, folds, min(n - rows, max(1, MOST_DISTANCES // rows)))
    cost: Cost = estimator.cost(shape)
    if folds:  # the rows of a fold: those learned from, and those held out
        part = Cost(fit_bytes={"cell": NUMBER * shape.cells})
        cost += Cost(shared={("parts", rows): part})
    return cost


def _is_sound(estimator: Any) -> bool:
    """Return whether a member can be asked for its cost; `fit` says what is wrong with it."""
    if not is_shared(estimator):
        return callable(getattr(estimator, "cost", None))
    try:
        estimator._check_parameters()
    except InvalidInputError:
        return False
    return True


class Ledger:
    """Count the steps of a training, and keep the reasons why members were left out."""

    def __init__(self, steps: dict[str, int], drop: bool, progress: Progress | None) -> None:
        self.dropped: dict[str, str] = {}
        self._left = steps
        self._total = sum(steps.values())
        self._drop = drop
        self._progress = progress

    def step(self, stage: Stage, name: str) -> None:
        """Count a step of a member, and report it."""
        self._left[name] -= 1
        if self._progress is not None:
            self._progress(stage, name, self._total - sum(self._left.values()), self._total)

    def alive(self, members: Members) -> Members:
        """Return the members that have not failed."""
        return [(name, member) for name, member in members if name not in self.dropped]

    @contextmanager
    def attempt(self, stage: Stage, name: str) -> Iterator[None]:
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
    """The rows that some members learn from, `size` of all, their Gram and their folds.

    The other parameters are those of `Training`.
    """

    def __init__(
        self,
        X: FloatArray,
        size: int,
        n_folds: int,
        fold_of: IntArray | None,
        withheld: BoolArray | None = None,
    ) -> None:
        self.rows = core_rows(len(X), size)
        self.outside = np.setdiff1d(np.arange(len(X)), self.rows)
        self._gram: Gram | None = None
        self._n_folds = n_folds
        self._fold_of = fold_of
        self._withheld = withheld

    def gram(self, X: FloatArray) -> Gram:
        """Return the Gram of the core, made when first asked for, from all training rows."""
        if self._gram is None:
            self._gram = Gram(X if len(self.rows) == len(X) else X[self.rows])
        return self._gram

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes its own Gram: the rows are sent once, distances never.
        return vars(self) | {"_gram": None}

    def folds(self) -> Iterator[CoreFold]:
        """Yield every fold; rows outside are in one only if rows come in groups."""
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

    Members may be fitted in place. `fold_of` is the fold of each row, if rows come in groups: every
    member then goes by these `n_folds`, also one that knows a closed form. `withheld` (n, folds)
    are the rows that are not learned from while a fold is held out, by default its own.
    `progress` is called at every step, from the calling thread.

    `scores` are the out-of-fold scores of each member, and `lowest` is what -inf counts as, for
    each member that is not of this package.
    """

    def __init__(
        self,
        members: Members,
        X: FloatArray,
        n_folds: int,
        fold_of: IntArray | None,
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
        steps = {name: 1 + self._out_of_fold_steps(member) for name, member in members}
        self._ledger = Ledger(steps, drop, progress)

    @property
    def dropped(self) -> dict[str, str]:
        """Why a member was left out, in the order of the members."""
        why = self._ledger.dropped
        return {name: why[name] for name, _ in self.members if name in why}

    def run(self, n_jobs: int | None = None) -> Members:
        """Fit all members and fill `scores`; return those that did not fail."""
        cores: defaultdict[int, Members] = defaultdict(list)
        others = []
        for name, member in self.members:
            if not is_shared(member):
                others.append((name, member))
                continue
            with self._ledger.attempt("fit", name):
                member._check_parameters()
                cores[member.rows_of(len(self._X))].append((name, member))
        for size, members in cores.items():
            core = Core(self._X, size, self._n_folds, self._fold_of, self._withheld)
            self._run_core(core, givers_first(members))
        if others:
            self._run_others(others, n_jobs)
        for name, member in self._ledger.alive(self.members):
            with self._ledger.attempt("out-of-fold scores", name):
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
        closed = [name for name, member in members if self._is_closed(member)]
        is_elsewhere = _run.get() is not None or effective_n_jobs(jobs_apart()) > 1
        is_spread = is_elsewhere and len(core.rows) > MANY_ROWS
        parts = families(members) if is_spread else []
        # Elsewhere all begins at once; here each fold when its scores are asked for.
        with self._tasks(core, parts, members, closed) as results:
            gram = core.gram(self._X)
            for step in _learned_here(core, self._X, members, closed) if not parts else ():
                self._take_step(core, step)
            for steps, known in islice(results, len(parts)):
                join_to(gram.reference, _fitted(steps), known)
                for step in steps:
                    self._take_step(core, step)
            for outcomes in results:
                self._take_fold(outcomes)
        fitted = dict(self.members)
        members = [(name, fitted[name]) for name, _ in members]
        if self._fold_of is None:
            # No member has seen the rows outside the core.
            self._score_outside(gram.reference, core.outside, members)
        for name, member in self._ledger.alive(members):
            out_of_fold = self.scores[name][core.rows]
            member.offset_ = lower_quantile(out_of_fold, member.false_alarm_rate)

    def _tasks(
        self, core: Core, parts: list[Members], members: Members, closed: list[str]
    ) -> AbstractContextManager[Any]:
        """Return what members elsewhere have learned, then the scores of every fold."""
        folded = [(name, member) for name, member in members if name not in closed]
        # A worker keeps what calls share: with a core of its own, a part returns its findings only.
        is_here = _run.get() is None
        learned = (
            (_learned_apart, core if is_here else copy(core), self._X, part, closed)
            for part in parts
        )
        scored = (
            (_score_fold, core, self._X, fold, self._ledger.alive(folded))
            for fold in (core.folds() if folded else ())
        )
        return results_of(chain(learned, scored), n_jobs=jobs_apart())

    def _take_step(self, core: Core, step: Step) -> None:
        """Note a fitted member, or its scores in closed form."""
        stage, name, result, error = step
        with self._ledger.attempt(stage, name):
            _raise(error)
            if stage == "fit":
                result.n_features_in_ = self._X.shape[1]
                self._replace(name, result)
            else:
                self.scores[name][core.rows] = result
            self._ledger.step(stage, name)

    def _take_fold(self, outcomes: list[FoldOutcome]) -> None:
        """Note the scores of one fold."""
        for name, rows, scores, error in outcomes:
            if name not in self.dropped:
                with self._ledger.attempt("out-of-fold scores", name):
                    _raise(error)
                    self.scores[name][rows] = scores
                    self._ledger.step("out-of-fold scores", name)

    def _score_outside(self, reference: Reference, rows: IntArray, members: Members) -> None:
        """Score rows that are not behind the Gram."""
        for block in blocks(len(rows), reference.n_rows):
            query = reference.query(self._X[rows[block]])
            for name, member in self._ledger.alive(members):
                with self._ledger.attempt("out-of-fold scores", name):
                    self.scores[name][rows[block]] = member.score_query(query)

    def _run_others(self, members: Members, n_jobs: int | None) -> None:
        """Fit and score members that know no Gram, each on its own."""
        calls: Iterable[Call] = ((_outcome, member.fit, self._X) for _, member in members)
        with results_of(calls, n_jobs=n_jobs, prefer="threads") as fits:
            for (name, _), (member, error) in zip(members, fits, strict=True):
                with self._ledger.attempt("fit", name):
                    _raise(error)
                    self._replace(name, member)
                    self._ledger.step("fit", name)
                    if self._is_closed(member):
                        # There a row is not its own neighbour.
                        factor = member.negative_outlier_factor_
                        self.scores[name] = np.asarray(factor, dtype=np.float64)
                        self._ledger.step("out-of-fold scores", name)
        tasks = [
            (name, member, train, test)
            for name, member in self._ledger.alive(members)
            if not self._is_closed(member)
            for train, test in self._folds()
        ]
        calls = (
            (_outcome, _fit_and_score, member, self._X, train, test)
            for _, member, train, test in tasks
        )
        with results_of(calls, n_jobs=n_jobs, prefer="threads") as results:
            for (name, _, _, test), (scores, error) in zip(tasks, results, strict=True):
                self._take_fold([(name, test, scores, error)])

    def _replace(self, name: str, fitted: Any) -> None:
        """Take a member as it was fitted, which another process does to a copy."""
        self.members = [(n, fitted if n == name else member) for n, member in self.members]

    def _folds(self) -> Folds:
        if self._fold_of is None:
            return interleaved_folds(len(self._X), self._n_folds)
        folds = []
        for f in np.unique(self._fold_of):
            tested = self._fold_of == f
            withheld = tested if self._withheld is None else self._withheld[:, f]
            folds.append((np.flatnonzero(~withheld), np.flatnonzero(tested)))
        return folds

    def _out_of_fold_steps(self, member: Any) -> int:
        if self._is_closed(member):
            return 1
        size = member.max_samples if is_shared(member) and self._fold_of is None else None
        # A core may have fewer rows than there are folds.
        return min(self._n_folds, size) if isinstance(size, int) else self._n_folds

    def _is_closed(self, member: Any) -> bool:
        return self._fold_of is None and knows_closed_form(member, *self._X.shape)


def _learned(core: Core, X: FloatArray, members: Members, closed: list[str]) -> Iterator[Step]:
    """Fit members, then score the rows left out by those that have a closed form."""
    gram = core.gram(X)
    fitted = []
    for name, member in members:
        _, error = _outcome(member.fit_gram, gram)
        if error is None:
            fitted.append((name, member))
        yield "fit", name, member, error
    for name, member in fitted:
        if name in closed:
            yield "out-of-fold scores", name, *_outcome(out_of_fold_scores, member, gram, ())


def _learned_here(core: Core, X: FloatArray, members: Members, closed: list[str]) -> Iterable[Step]:
    """Do the same; from many rows, members of each view learn in a thread of their own.

    What views have in common, the rows, is there before. BLAS has one thread for all of them.
    """
    views = families(members, kernels_apart=False)
    n_threads = min(allowed_threads(), len(views))
    if n_threads == 1 or len(core.rows) <= MANY_ROWS or not is_single():
        return _learned(core, X, members, closed)
    core.gram(X)

    def learn(some: Members) -> list[Step]:
        with one_of_many():
            return list(_learned(core, X, some, closed))

    with ThreadPoolExecutor(n_threads) as run:
        begun = [run.submit(copy_context().run, learn, some) for some in views]
        return [step for done in begun for step in done.result()]


def _learned_apart(
    core: Core, X: FloatArray, members: Members, closed: list[str]
) -> tuple[list[Step], dict[str, Any]]:
    """Do the same in another process; return also what is known of the rows."""
    steps = list(_learned(core, X, members, closed))
    return steps, part_from(core.gram(X).reference, _fitted(steps))


def _fitted(steps: list[Step]) -> list[Any]:
    return [member for stage, _, member, error in steps if stage == "fit" and error is None]


def _score_fold(core: Core, X: FloatArray, fold: CoreFold, members: Members) -> list[FoldOutcome]:
    """Score the rows of one fold by members fitted on the other folds."""
    train, test, outside = fold
    if not len(train):
        raise InvalidInputError(
            "While a fold of groups is held out, no row is left to learn from. Use more rows, "
            "a larger max_samples if it is set, or a smaller purge if there is one."
        )
    gram = core.gram(X)
    part, query = gram.fold(train, test)
    scores = {name: np.empty(len(test) + len(outside)) for name, _ in members}
    errors: dict[str, Exception] = {}
    models: Members = []
    for name, member in members:
        with _noted(errors, name):
            model = member.fit_fold(part, gram)
            if len(test):
                scores[name][: len(test)] = model.score_query(query)
            models.append((name, model))
    for block in blocks(len(outside), part.reference.n_rows):
        query = part.reference.query(X[outside[block]])
        for name, model in models:
            with _noted(errors, name):
                scores[name][len(test) :][block] = model.score_query(query)
    rows = np.concatenate([core.rows[test], outside])
    return [(name, rows, scores[name], errors.get(name)) for name, _ in members]


@contextmanager
def _noted(errors: dict[str, Exception], name: str) -> Iterator[None]:
    """Keep the error of a member: it must not end the others."""
    try:
        yield
    except Exception as error:
        errors.setdefault(name, error)


def _fit_and_score(estimator: Any, X: FloatArray, train: IntArray, test: IntArray) -> FloatArray:
    scores = own_scores(clone(estimator).fit(X[train]), X[test])
    return check_scores(scores, len(test), far_allowed=True)


def _outcome(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """Return the result and the error of a call: a thread must not end the others."""
    try:
        return function(*args), None
    except Exception as error:
        return None, error


@contextmanager
def running_tasks(run: Callable[[Iterable[Call]], Iterator[Any]]) -> Iterator[None]:
    """Let `run` carry out the tasks of a fit inside, instead of joblib.

    It is given calls and yields their results in order. What calls share is one object.
    """
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


@contextmanager
def results_of(calls: Iterable[Call], **options: Any) -> Iterator[Iterator[Any]]:
    """Yield the results of calls, which joblib runs with these options, if nobody else does.

    After an error no further call begins, and those that run are waited for: left alone, joblib
    would warn of results that nobody takes.
    """
    run = _run.get()
    if run is not None:
        yield run(calls)
        return
    is_over = False
    begun = takewhile(lambda _: not is_over, calls)
    parallel = Parallel(return_as="generator", **options)
    results = parallel(delayed(function)(*args) for function, *args in begun)
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


def jobs_apart() -> int | None:
    """Return the `n_jobs` of tasks that share what they compute unless they run elsewhere.

    One after another they find what those before have left. Only where joblib is told to work
    in other processes, or on other machines, each goes by itself.
    """
    is_here = getattr(get_active_backend()[0], "supports_sharedmem", False)
    return 1 if is_here and _run.get() is None else None


def families(members: Members, *, kernels_apart: bool = True) -> list[Members]:
    """Part members so that those which compute the same things stay together.

    Kernels on the rows as they are share only these with the others, and may stand apart.
    """
    found: defaultdict[Any, Members] = defaultdict(list)
    for name, member in members:
        is_apart = kernels_apart and isinstance(member, KernelDetector)
        kind = member.view if isinstance(member, Viewed) else is_apart
        found[kind].append((name, member))
    return list(found.values())


def part_from(reference: Reference, members: Iterable[BaseDetector]) -> dict[str, Any]:
    """Remove the training rows from fitted members; return what is known of the rows by now."""
    for member in members:
        if getattr(member, "reference_", None) is reference:
            del member.reference_
    own = ("X", "centre", "scale")  # known to every process by itself
    return {k: v for k, v in vars(reference).items() if k not in own and not k.startswith("_")}


def join_to(reference: Reference, members: Iterable[BaseDetector], known: dict[str, Any]) -> None:
    """Give members the same rows again, and these what was found out about them."""
    for member in members:
        member.__dict__.setdefault("reference_", reference)
    for name, value in known.items():
        if isinstance(value, dict):
            getattr(reference, name).update(value)
        elif value is not None:
            setattr(reference, name, value)
