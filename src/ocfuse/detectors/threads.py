"""Little work is done in one thread: two that wait for each other are slower."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

#: Multiplications below which one thread is used. On two busy cores a mixture
#: of 400 rows took 0.36 s in two threads and 0.02 s in one.
LEAST_FOR_THREADS = 2**28


@contextmanager
def few_threads(work: int) -> Iterator[None]:
    """Use one thread of BLAS and OpenMP inside if there are few multiplications to do.

    Only in the main thread: the limit is one of the whole process, and callers
    in several threads would restore each other's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if work >= LEAST_FOR_THREADS or not is_main:
        yield
        return
    with _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> Any:
    """Find the libraries that have threads; it takes milliseconds, so it is done once."""
    return ThreadpoolController()
