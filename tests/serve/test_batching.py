import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ocfuse.serve.scoring import Batcher, Scores

#: A row that no kernel can score.
BAD = 666


class Kernel:
    """Score a row by its number, when it may, and never two blocks at a time."""

    def __init__(self):
        self.blocks = []
        self.lock, self.may_go_on = threading.Lock(), threading.Event()
        self.may_go_on.set()

    def __call__(self, rows):
        assert self.lock.acquire(blocking=False)
        assert self.may_go_on.wait(60)
        self.blocks.append([row[0] for row in rows])
        self.lock.release()
        if any(row[0] == BAD for row in rows):
            raise ValueError("bad row")
        values = [float(row[0]) for row in rows]
        return Scores(values, values, [False] * len(values))


@pytest.fixture
def executor():
    with ThreadPoolExecutor(4) as executor:
        yield executor


def run(batcher, requests):
    async def all_of_them():
        tasks = [batcher.score([(i,) for i in request]) for request in requests]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_waiting_rows_share_a_block(executor):
    kernel, told = Kernel(), []
    batcher = Batcher(kernel, executor, 16, tell=lambda *n: told.append(n))
    found = run(batcher, [[i] for i in range(40)])
    assert [scores.score for scores in found] == [[float(i)] for i in range(40)]
    assert [len(block) for block in kernel.blocks] == [16, 16, 8]
    assert told == [(16, 16), (16, 16), (8, 8)]


def test_requests_are_not_torn_apart(executor):
    kernel = Kernel()
    found = run(Batcher(kernel, executor, 8), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9] * 20])
    assert [scores.score for scores in found[:3]] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert kernel.blocks == [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9] * 20]


def test_a_failure_is_that_of_one_request(executor):
    found = run(Batcher(Kernel(), executor, 64), [[1], [BAD], [2]])
    assert [scores.score for scores in (found[0], found[2])] == [[1.0], [2.0]]
    assert isinstance(found[1], ValueError)


def test_requests_that_are_given_up_are_not_scored(executor):
    kernel = Kernel()
    kernel.may_go_on.clear()
    batcher = Batcher(kernel, executor, 1)

    async def give_up():
        tasks = [asyncio.create_task(batcher.score([(i,)])) for i in range(3)]
        await asyncio.sleep(0)  # all of them ask now; the first block has begun
        tasks[1].cancel()
        kernel.may_go_on.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(give_up())
    assert kernel.blocks == [[0], [2]]
