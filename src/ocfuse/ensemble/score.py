"""How rows are scored: encode, members, normalise, fuse, chunk by chunk.

`ScoreChain` is the one way from rows to scores. Whatever scores rows goes through it:
`FusedDetector`, held-out folds of a fit, explanations, reports and services. Only this module
cuts rows into chunks and blocks.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from joblib import effective_n_jobs

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.pool import Pool
from ocfuse.encoder import FeatureEncoder, check_table, take_rows
from ocfuse.fusion.base import BaseFusion
from ocfuse.system.packages import needed
from ocfuse.system.threads import allowed_threads, few_threads, one_of_many
from ocfuse.validation import check_context, require_context

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

T = TypeVar("T")

#: Rows of a table that a detector is given at a time: members of others, which see them all at
#: once, may need memory for each pair of these and of training rows. Scores of a row in blocks of
#: other sizes differ by rounding alone, by less than 1e-10.
BLOCK_ROWS = 2_000


@dataclass(frozen=True)
class Trace:
    """What the steps of the chain make of n rows."""

    X: Any  # as they were given
    encoded: FloatArray  # (n, e), what the members see
    context: FloatArray | None  # (n, k), in the units of the features
    member_scores: FloatArray  # (n, d), in the members' own units
    normalised: FloatArray  # (n, d), on one scale
    score: FloatArray  # (n,), fused

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: IntArray) -> "Trace":
        """Return the trace of some rows."""
        return Trace(
            take_rows(self.X, rows),
            self.encoded[rows],
            None if self.context is None else self.context[rows],
            self.member_scores[rows],
            self.normalised[rows],
            self.score[rows],
        )

    @classmethod
    def join(cls, traces: Sequence["Trace"]) -> "Trace":
        """Return the trace of all rows, from those of some at a time."""
        contexts = [trace.context for trace in traces if trace.context is not None]
        tables = [trace.X for trace in traces]
        is_frame = hasattr(tables[0], "iloc")
        return cls(
            needed("pandas", "to join tables").concat(tables) if is_frame else _joined(tables),
            _joined([trace.encoded for trace in traces]),
            _joined(contexts) if contexts else None,
            _joined([trace.member_scores for trace in traces]),
            _joined([trace.normalised for trace in traces]),
            _joined([trace.score for trace in traces]),
        )


class ContextScale:
    """Bring context to the units of m standardised features.

    A column is centred, divided by its standard deviation (1 if it is constant) and
    multiplied by ``sqrt(m / k)``: two training rows are, on average, as far apart in
    their k columns of context as in their m features.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Context of the training rows.
    n_features : int
        The number m.
    """

    def __init__(self, values: FloatArray, n_features: int) -> None:
        spread = values.std(axis=0)
        is_constant = spread <= 1e-13 * np.abs(values).max(axis=0, initial=0.0)
        unit = np.sqrt(n_features / values.shape[1])
        self.centre = values.mean(axis=0)
        self.factor = unit / np.where(is_constant, 1.0, spread)

    def transform(self, values: FloatArray) -> FloatArray:
        """Return context in the units of the features."""
        return np.asarray((values - self.centre) * self.factor)


_TRACES: ContextVar[list[Trace] | None] = ContextVar("traces", default=None)


@contextmanager
def keep_traces(traces: list[Trace] | None) -> Iterator[None]:
    """Append the trace of all rows that detectors score inside a ``with`` block to a list.

    Who shows more of rows than their scores need not score them again. Explanations are not
    kept; with None nothing is.
    """
    token = _TRACES.set(traces)
    try:
        yield
    finally:
        _TRACES.reset(token)


@dataclass(frozen=True)
class ScoreChain:
    """The fitted steps from rows to scores, in their order."""

    encoder: FeatureEncoder
    pool: Pool
    normaliser: Any
    fusion: BaseFusion
    context_scale: ContextScale | None  # None if training had no context
    n_jobs: int | None = None  # chunks that are scored at once, see `in_chunks`

    @classmethod
    def of(cls, detector: "FusedDetector") -> "ScoreChain":
        """Return the chain of a fitted detector."""
        return cls(
            detector.encoder_,
            detector.pool_,
            detector.normaliser_,
            detector.fusion_,
            detector.context_scale_,
            detector.n_jobs,
        )

    # -- rows as the encoder has read them ----------------------------------

    def score_rows(self, X: Any, codes: FloatArray, context: Any = None) -> FloatArray:
        """Return the fused scores of rows X, and keep their trace if somebody asks for it."""
        kept = _TRACES.get()
        if kept is None:
            return self.score(codes, context)
        with keep_traces(None):  # a member may be a detector itself
            kept.append(self.trace(check_table(X), codes, context))
        return kept[-1].score

    def score(self, codes: FloatArray, context: Any = None) -> FloatArray:
        """Return the fused scores of rows.

        `codes`, of shape (n, m), is what ``encoder.read`` returned, `context` as `FusedDetector`
        is given it.
        """
        C = self.scaled(context, len(codes))
        return _joined(self._in_chunks(lambda rows: self._steps(codes, C, rows)[-1], len(codes)))

    def normalised_scores(self, codes: FloatArray) -> FloatArray:
        """Return the member scores of rows on one scale; `codes` as in `score`."""

        def compute(rows: slice) -> FloatArray:
            """Return those of some rows."""
            S = self.pool.score_samples(self.encoder.encode(codes[rows]))
            Z: FloatArray = self.normaliser.transform(S)
            return Z

        return _joined(self._in_chunks(compute, len(codes)))

    def trace(
        self, X: Any, codes: FloatArray, context: Any = None, cells: FloatArray | None = None
    ) -> Trace:
        """Return what every step makes of rows X; `codes` and `context` as in `score`.

        `cells` are the numbers if they were measured, see `FeatureEncoder.encode`.
        """
        C = self.scaled(context, len(codes))
        parts = self._in_chunks(partial(self._steps, codes, C, cells=cells), len(codes))
        E, S, Z, score = map(_joined, zip(*parts, strict=True))
        return Trace(X, E, C, S, Z, score)

    def scaled(self, context: Any, n: int) -> FloatArray | None:
        """Return the context of n rows in the units of the features, or refuse it."""
        scale = self.context_scale
        values = np.empty((n, 0)) if context is None else check_context(context, n)
        require_context(values.shape[1], 0 if scale is None else len(scale.centre))
        return None if scale is None else scale.transform(values)

    # -- rows that are encoded ----------------------------------------------

    def score_encoded(self, E: FloatArray, C: FloatArray | None) -> FloatArray:
        """Return the fused scores of encoded rows at once, with their scaled context."""
        return self.fuse(self.pool.score_samples(E), E, C)[1]

    def shares(self, E: FloatArray, C: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return what each member adds to the scores of encoded rows, (n, d), and the norm there.

        The norm is NaN if the fusion has none; the context is in the units of the features.
        """
        Z = self.normaliser.transform(self.pool.score_samples(E))
        _, contributions = self.fusion.contributions(Z, E, C)
        return contributions, self.fusion.local_p(E, C)

    def fuse(
        self, S: FloatArray, E: FloatArray, C: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return member scores of encoded rows on one scale, and the fused scores."""
        Z: FloatArray = self.normaliser.transform(S)
        return Z, self.fusion.fuse(Z, E, C)

    def _steps(
        self,
        codes: FloatArray,
        C: FloatArray | None,
        rows: slice,
        cells: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return encoded rows, their member scores, the same on one scale, and fused scores."""
        E = self.encoder.encode(codes[rows], None if cells is None else cells[rows])
        S = self.pool.score_samples(E)
        return E, S, *self.fuse(S, E, None if C is None else C[rows])

    def _in_chunks(self, compute: Callable[[slice], T], n: int) -> list[T]:
        """Compute chunk by chunk; members of others, which may not like it, get all rows."""
        if n == 1 or not self.pool.is_own:
            return [compute(slice(0, n))]
        return in_chunks(compute, n, self.n_jobs)


def in_chunks(
    compute: Callable[[slice], T],
    n: int,
    n_jobs: int | None,
    *,
    most_alone: int = 1000,
    first_rows: int = 100,
    most_rows: int = 500,
) -> list[T]:
    """Return what is computed of n rows, chunk by chunk, in their order.

    Up to `most_alone` rows are one chunk. Else the first, which makes what the others need, such
    as a search, has `first_rows`, and the others have `most_rows`: fewer would be slower, and what
    more take is given back to the system and asked for again with every chunk, which costs a fifth
    of the time where pages are dear. Chunks do not depend on the number of threads.

    In the main thread the linear algebra library has one thread for each of several
    chunks, whether these are computed at once, `n_jobs` of them, or one after another: the
    result is the same to the bit. None is as many as the library may use threads.
    """
    if n <= most_alone:
        return [compute(slice(0, n))]
    starts = [0, *range(first_rows, n, most_rows), n]
    chunks = [slice(begin, end) for begin, end in itertools.pairwise(starts)]
    # Only the main thread can tell the library; any other is itself one of many.
    is_main = threading.current_thread() is threading.main_thread()
    workers = allowed_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    workers = min(workers, len(chunks) - 1) if is_main else 1
    with few_threads(0), one_of_many():
        first, others = compute(chunks[0]), chunks[1:]
        if workers == 1:
            return [first, *map(compute, others)]
        with ThreadPoolExecutor(workers) as pool:
            try:
                return [first, *pool.map(partial(_alone, compute), others)]
            except BaseException:  # Ctrl-C too: what has begun is waited for, the rest is not
                pool.shutdown(cancel_futures=True)
                raise


def blocks(start: int, stop: int) -> Iterator[slice]:
    """Yield the rows from `start` to `stop` as blocks of at most `BLOCK_ROWS`."""
    for first in range(start, stop, BLOCK_ROWS):
        yield slice(first, min(first + BLOCK_ROWS, stop))


def takes_numbers(detector: "FusedDetector") -> bool:
    """Return whether all columns of a detector are numbers that it learns from."""
    encoder = detector.encoder_
    return not (encoder.categorical_.any() or encoder.ignored_.any())


def score_numbers(detector: "FusedDetector", X: FloatArray) -> FloatArray:
    """Return the scores of rows of a detector that `takes_numbers`, block by block.

    Without names, which must be compared and take longer than the score of a row.
    """
    chain = ScoreChain.of(detector)
    return np.concatenate([chain.score(chain.encoder.read(X[rows])) for rows in blocks(0, len(X))])


def score_in_blocks(detector: "FusedDetector", table: Any) -> FloatArray:
    """Return the scores of a table of any length, also of none, block by block."""
    parts = [detector.score_samples(take_rows(table, rows)) for rows in blocks(0, len(table))]
    return np.concatenate([*parts, np.zeros(0)])


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _alone(compute: Callable[[slice], T], chunk: slice) -> T:
    with one_of_many():
        return compute(chunk)
