"""Results of array functions, cached inside one fit."""

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

_results: ContextVar[dict[Any, Any] | None] = ContextVar("results", default=None)


@contextmanager
def caching() -> Iterator[None]:
    """Keep the results of `cached` functions until the outermost block ends."""
    token = _results.set({} if (kept := _results.get()) is None else kept)
    try:
        yield
    finally:
        _results.reset(token)


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of arrays and numbers return, while `caching`, what it did before.

    An argument with an attribute `digest` is known by that. Nobody may write into the result.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        """Look the result up first."""
        results = _results.get()
        if results is None:
            return function(*args, **kwargs)
        key = (
            function.__module__,
            function.__qualname__,
            *map(_key, args),
            *((name, _key(kwargs[name])) for name in sorted(kwargs)),
        )
        if key not in results:
            results[key] = function(*args, **kwargs)
        found: R = results[key]
        return found

    return wrapper


def digest(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return what tells an array from others."""
    content = np.ascontiguousarray(array).data
    return array.shape, array.dtype.str, hashlib.sha256(content).digest()


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return digest(value)
    # What is made of a large array may know its digest.
    return type(value), getattr(value, "digest", value)
