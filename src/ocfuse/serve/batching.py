"""Rows of many requests, scored in one call."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from ocfuse.serve.scorers import Cells, Scores


@dataclass
class Waiting:
    """Rows of one request, and who waits for their scores."""

    rows: Sequence[Cells]
    future: asyncio.Future[Scores]


class Batcher:
    """Score the rows that wait together.

    While a block of rows is scored, those that come wait for each other, and are the next
    block. So rows wait only when there is something to wait for, and blocks grow with the
    load.

    Parameters
    ----------
    score : callable
        Scores rows; called in another thread.
    executor : Executor
        Where these threads are.
    most_rows : int
        Most rows of one block.
    seconds : float, default=0.0
        How long the first row may wait for others.
    tell : callable, optional
        Told the numbers of rows and of requests of every block.
    """

    def __init__(
        self,
        score: Callable[[Sequence[Cells]], Scores],
        executor: Executor,
        most_rows: int,
        seconds: float = 0.0,
        tell: Callable[[int, int], None] | None = None,
    ) -> None:
        self._score, self._executor = score, executor
        self.most_rows, self.seconds = most_rows, seconds
        self._tell = tell
        self._waiting: deque[Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    def apart(self, executor: Executor, most_rows: int, seconds: float = 0.0) -> "Batcher":
        """Return one that scores alike, but whose rows wait for none of these."""
        return Batcher(self._score, executor, most_rows, seconds, self._tell)

    async def score(self, rows: Sequence[Cells]) -> Scores:
        """Return the scores of rows, which were scored with others that came.

        Parameters
        ----------
        rows : sequence of tuple
            Features, at most `most_rows` of them.

        Returns
        -------
        Scores
            As if they had been scored alone, but for rounding.
        """
        waiting = Waiting(rows, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await waiting.future

    async def _work(self) -> None:
        """Score until nobody waits."""
        try:
            await asyncio.sleep(self.seconds)  # even 0 lets those in who are at the door
            while self._waiting:
                block = self._take()
                if block:
                    await self._answer(block)
        finally:
            self._task = None

    def _take(self) -> list[Waiting]:
        """Return who is next; requests that were given up are passed over."""
        block: list[Waiting] = []
        n = 0
        while self._waiting:
            n += len(self._waiting[0].rows)
            if block and n > self.most_rows:
                break
            waiting = self._waiting.popleft()
            if waiting.future.done():
                n -= len(waiting.rows)
            else:
                block.append(waiting)
        return block

    async def _answer(self, block: list[Waiting]) -> None:
        rows = [row for waiting in block for row in waiting.rows]
        if self._tell is not None:
            self._tell(len(rows), len(block))
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(self._executor, self._score, rows)
        except Exception as error:
            if len(block) == 1:
                _fail(block[0], error)
                return
            for waiting in block:  # one of them is to blame: each alone
                await self._answer([waiting])
            return
        begin = 0
        for waiting in block:
            end = begin + len(waiting.rows)
            if not waiting.future.done():
                waiting.future.set_result(scores.part(slice(begin, end)))
            begin = end


def _fail(waiting: Waiting, error: Exception) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(error)
