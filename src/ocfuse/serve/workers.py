"""The threads of a service: each kind of work has its own, and waits for no other kind."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from ocfuse.serve.errors import ServeError

T = TypeVar("T")


class Workers:
    """Threads for rows, blocks of rows, streams, events, explanations and loading.

    A stream's answer waits for streams alone, and never for an explanation, a large request
    or a model that is loaded.
    """

    def __init__(self, threads: int, most_explanations: int) -> None:
        #: Reads requests, and scores those that are too large for a block.
        self.rows: Executor = ThreadPoolExecutor(threads, "rows")
        #: Scores blocks of rows of requests.
        self.blocks: Executor = ThreadPoolExecutor(threads, "score")
        #: Reads and scores rows of streams.
        self.streams: Executor = ThreadPoolExecutor(threads, "stream")
        #: Scores rows of streams by models that are tried: one thread, which nobody waits for.
        self.shadows: Executor = ThreadPoolExecutor(1, "shadow")
        #: Writes events: one thread, as there is one file.
        self.events: Executor = ThreadPoolExecutor(1, "events")
        #: Loads models that have changed.
        self.loading: Executor = ThreadPoolExecutor(1, "load")
        #: Explains: one thread, as it may take all that a core has.
        self.explanations = Bounded(ThreadPoolExecutor(1, "explain"), most_explanations)

    def close(self) -> None:
        """Finish what is under way, and begin nothing more."""
        self.explanations.close()
        before = (self.blocks, self.rows, self.streams, self.shadows, self.loading)
        for executor in (*before, self.events):
            executor.shutdown(wait=True, cancel_futures=True)


class Bounded:
    """Long tasks in an executor, of which at most `most` are under way or wait."""

    def __init__(self, executor: Executor, most: int) -> None:
        self._executor, self.most = executor, most
        self._under_way: set[threading.Event] = set()
        self._turn = threading.Lock()

    async def run(self, task: Callable[[threading.Event], T]) -> T:
        """Return the result of a task; refuse it if too many wait.

        The task gets an event, which is set when nobody waits for it any more: then it should
        end soon.
        """
        is_given_up = threading.Event()
        with self._turn:
            if len(self._under_way) >= self.most:
                raise ServeError(
                    429,
                    "too_many_explanations",
                    f"{self.most} explanations are under way or wait. Try again soon, or ask for "
                    "fewer rows.",
                    {"Retry-After": "5"},
                )
            self._under_way.add(is_given_up)
        try:
            future = self._executor.submit(task, is_given_up)
        except RuntimeError:
            self._forget(is_given_up)
            raise ServeError(503, "not_ready", "The service stops.") from None
        # of the task itself: one that nobody waits for any more still takes its thread
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
