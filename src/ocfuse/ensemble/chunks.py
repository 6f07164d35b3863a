"""Many rows in chunks, several at once: memory stays bounded and all cores work."""

import itertools
import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from ocfuse.threads import allowed_threads, few_threads, one_of_many

FloatArray: TypeAlias = NDArray[np.float64]

#: Up to so many rows are one chunk.
MOST_ALONE = 1000
#: Rows of the first of several, which makes what the others need, such as a search.
FIRST_ROWS = 100
#: Rows of the others: fewer would be slower, and what more take is given back to the system and
#: asked for again with every chunk, which costs a fifth of the time where pages are dear.
MOST_ROWS = 500


def in_chunks(
    compute: Callable[[slice], FloatArray], n: int, n_jobs: int | None, *, at_once: bool = True
) -> FloatArray:
    """Return what is computed of n rows, chunk by chunk.

    In the main thread the linear algebra library has one thread for each of several
    chunks, whether these are computed at once or one after another: the result is the
    same to the bit.

    Parameters
    ----------
    compute : callable
        Takes a slice of the rows and returns their results, one or one row of them each.
    n : int
        Number of rows.
    n_jobs : int or None
        Chunks at once; None for as many as the library may use threads.
    at_once : bool, default=True
        Whether chunks may be computed at once.

    Returns
    -------
    ndarray of n results
        The results.
    """
    if n <= MOST_ALONE:
        return compute(slice(0, n))
    chunks = _cut(n)
    # Only the main thread can tell the library; any other is itself one of many.
    is_main = threading.current_thread() is threading.main_thread()
    workers = allowed_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    workers = min(workers, len(chunks) - 1) if at_once and is_main else 1
    with few_threads(0), one_of_many():
        parts = [compute(chunks[0])]
        if workers == 1:
            parts += [compute(chunk) for chunk in chunks[1:]]
        else:
            run = Parallel(n_jobs=workers, require="sharedmem")
            parts += run(delayed(_alone)(compute, chunk) for chunk in chunks[1:])
    return np.concatenate(parts)


def _cut(n: int) -> list[slice]:
    """Return the chunks of n rows, which do not depend on the number of threads."""
    starts = [0, *range(FIRST_ROWS, n, MOST_ROWS), n]
    return [slice(begin, end) for begin, end in itertools.pairwise(starts)]


def _alone(compute: Callable[[slice], FloatArray], chunk: slice) -> FloatArray:
    with one_of_many():
        return compute(chunk)
