"""Work in one thread, where several would be slower or would change the last bits."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController

_turn = threading.RLock()
_thread = threading.local()


class _Process:
    """State of the whole process."""

    is_single = False


def allowed_threads() -> int:
    """Return how many threads compiled code may start.

    OMP_NUM_THREADS if that is set, which is how joblib keeps its workers apart,
    else the cores that this process may use. One in a thread that is `one_of_many`.
    """
    if getattr(_thread, "is_one_of_many", False):
        return 1
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_of_many() -> Iterator[None]:
    """Let compiled code that is called from this thread start no others: there are others."""
    before = getattr(_thread, "is_one_of_many", False)
    _thread.is_one_of_many = True
    try:
        yield
    finally:
        _thread.is_one_of_many = before


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of BLAS and OpenMP inside.

    Where the order in which threads end would show in the result. Callers in
    several threads take turns: the limit is one of the whole process, and they
    would restore each other's. Inside of `one_thread_throughout` nobody waits.
    """
    if _Process.is_single:
        with _limit("openmp"):  # which each thread has for itself
            yield
        return
    with _turn, _limit():
        yield


@contextmanager
def one_thread_throughout() -> Iterator[None]:
    """Use one thread of BLAS inside, whichever thread asks; for the main thread to call.

    For programs that work in several threads of their own, of which none may wait for
    another one's matrices.
    """
    with _limit("blas"):
        _Process.is_single = True
        try:
            yield
        finally:
            _Process.is_single = False


@contextmanager
def few_threads(work: int) -> Iterator[None]:
    """Use one thread of BLAS and OpenMP inside if there are less than 2**28 multiplications.

    On two busy cores a mixture of 400 rows took 0.36 s in two threads and 0.02 s in one. Only in
    the main thread: callers in several threads would wait for each other, and nothing but time
    is at stake.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if work >= 2**28 or not is_main:
        yield
        return
    with _limit():
        yield


def is_single(kind: str | None = "blas") -> bool:
    """Return whether a kind of library, or all, work in the thread that calls them alone."""
    return all(library.num_threads == 1 for library in _thread_pools(kind).lib_controllers)


def _limit(kind: str | None = None) -> AbstractContextManager[Any]:
    """Return what keeps the libraries to one thread, if they have more: it takes time to ask."""
    if is_single(kind):
        return nullcontext()
    return cast(AbstractContextManager[Any], _thread_pools(kind).limit(limits=1))


@cache
def _thread_pools(kind: str | None = None) -> Any:
    """Find the libraries that have threads; it takes milliseconds, so it is done once."""
    return ThreadpoolController() if kind is None else _thread_pools().select(user_api=kind)
