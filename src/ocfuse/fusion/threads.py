"""Work in one thread, where the order in which threads end would show in the result."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_TURN = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of BLAS and OpenMP inside.

    Callers in several threads take turns: the limit is one of the whole process,
    and they would restore each other's.
    """
    with _TURN, _thread_pools().limit(limits=1):
        yield


@cache
def _thread_pools() -> Any:
    """Find the libraries that have threads; it takes milliseconds, so it is done once."""
    return ThreadpoolController()
