"""The threads of a service: each kind of work has its own, and waits for no other kind."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from ocfuse.serve.errors import ServeError

T = TypeVar("T")

#: Seconds after which it is worth to ask for an explanation again.
RETRY_SECONDS = 5


class Workers:
    """Threads for rows, blocks of rows, streams, events, explanations and loading.

    A stream's answer waits for streams alone, and never for an explanation, a large request
    or a model that is loaded.

    Parameters
    ----------
    threads : int
        Threads for blocks of rows of requests, for requests that are read or large, and for
        streams; as many of each.
    most_explanations : int
        Explanations under way or waiting; more are refused.

    Attributes
    ----------
    rows : Executor
        Reads requests, and scores those that are too large for a block.
    blocks : Executor
        Scores blocks of rows of requests.
    streams : Executor
        Reads and scores rows of streams.
    events : Executor
        Writes events: one thread, as there is one file.
    loading : Executor
        Loads models that have changed.
    explanations : Bounded
        Explains: one thread, as it may take all that a core has.
    """

    def __init__(self, threads: int, most_explanations: int) -> None:
        self.rows: Executor = ThreadPoolExecutor(threads, "rows")
        self.blocks: Executor = ThreadPoolExecutor(threads, "score")
        self.streams: Executor = ThreadPoolExecutor(threads, "stream")
        self.events: Executor = ThreadPoolExecutor(1, "events")
        self.loading: Executor = ThreadPoolExecutor(1, "load")
        self.explanations = Bounded(ThreadPoolExecutor(1, "explain"), most_explanations)

    def close(self) -> None:
        """Finish what is under way, and begin nothing more."""
        self.explanations.close()
        for executor in (self.blocks, self.rows, self.streams, self.loading, self.events):
            executor.shutdown(wait=True, cancel_futures=True)


class Bounded:
    """Long works, of which no more wait than can be done soon.

    Parameters
    ----------
    executor : Executor
        Where they are done.
    most : int
        Works under way or waiting.
    """

    def __init__(self, executor: Executor, most: int) -> None:
        self._executor, self.most = executor, most
        self._under_way: set[threading.Event] = set()
        self._turn = threading.Lock()

    async def run(self, task: Callable[[threading.Event], T]) -> T:
        """Return what a work gives; refuse it if too many wait.

        Parameters
        ----------
        task : callable
            The work. It is given an event, which is set when nobody waits for it any more:
            then it should end soon.
        """
        is_given_up = threading.Event()
        with self._turn:
            if len(self._under_way) >= self.most:
                raise ServeError(
                    429,
                    "too_many_explanations",
                    f"{self.most} explanations are under way or wait. Try again soon, or ask for "
                    "fewer rows.",
                    {"Retry-After": str(RETRY_SECONDS)},
                )
            self._under_way.add(is_given_up)
        try:
            future = self._executor.submit(task, is_given_up)
        except RuntimeError:
            self._forget(is_given_up)
            raise ServeError(503, "not_ready", "The service stops.") from None
        # of the work itself: what nobody waits for any more still takes its thread
        future.add_done_callback(lambda done: self._forget(is_given_up))
        try:
            return await asyncio.wrap_future(future)
        finally:
            is_given_up.set()

    def close(self) -> None:
        """Give up what is under way, and begin nothing more."""
        with self._turn:
            under_way = list(self._under_way)
        for is_given_up in under_way:
            is_given_up.set()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _forget(self, is_given_up: threading.Event) -> None:
        with self._turn:
            self._under_way.discard(is_given_up)
