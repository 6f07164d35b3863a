"""Rows mean the same whichever way they are read and however many are scored together."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocfuse import load
from ocfuse.exceptions import CellsWarning, InvalidInputError, ModelFileError
from ocfuse.serve.errors import ServeError
from ocfuse.serve.scoring import Batcher, Scores, scorer_of
from ocfuse.serve.stream import RowFeed
from ocfuse.serve.telemetry import noted, with_notes
from tests.cli.cases import plant, with_anomalies
from tests.serve.asking import rows

cells = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-5, 5)
    | st.sampled_from(["on", " on ", "off", "new", "1.5", "", "NaN", 10**400, 1e308, float("inf")])
)
NAMES = ["pressure", "temperature", "mode", "part", "when", "other"]
names = st.sampled_from(NAMES)


@pytest.fixture(scope="module")
def plain(model_files):
    return load(model_files["plant"])


@given(row=st.dictionaries(names, cells))
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_quick_reading_agrees_with_the_schema(plain, row):
    scorer = scorer_of(plain)
    quick = scorer.plain([row])
    if quick is None:
        return
    with noted():
        features = scorer.read([row])
    assert scorer.cells_of(features) == [tuple(map(_as_read, quick[0]))]


def _as_read(cell):
    return cell if isinstance(cell, str) else float(cell)


def test_usual_rows_are_read_quickly(plain):
    assert scorer_of(plain).plain(rows(5)) is not None
    assert scorer_of(plain).plain([[0.1, 20, "on"]]) == [(0.1, 20, "on")]


def test_scores_are_those_of_the_model(plain):
    frame = with_anomalies()
    direct = plain.score(frame)
    scorer = scorer_of(plain)
    together = scorer.score_cells(scorer.plain(frame.to_dict("records")))
    np.testing.assert_allclose(together.score, direct["score"], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(together.p_value, direct["p_value"])
    assert together.is_anomaly == direct["is_anomaly"].tolist()
    assert any(together.is_anomaly)


def test_arrays_may_be_lists_or_named(model_files):
    detector = load(model_files["array"])
    scorer = scorer_of(detector)
    X = np.random.default_rng(3).normal(size=(4, 3))
    lists = scorer.score_cells(scorer.plain(X.tolist()))
    named = [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in X.tolist()]
    np.testing.assert_allclose(lists.score, detector.score_samples(X), rtol=0, atol=1e-10)
    assert scorer.score(scorer.read(named)).score == pytest.approx(lists.score, abs=1e-10)
    with pytest.raises(InvalidInputError, match="3 values"):
        scorer.read([[1.0]])
    with pytest.warns(CellsWarning, match="x1: no value"):
        scorer.read([[1.0, None, 2.0]])


def test_a_row_must_name_all_columns_whatever_others_do(plain, model_files):
    whole, partial = rows(1)[0], {"pressure": 1.0, "mode": "on"}
    for some in ([partial], [whole, partial], [partial, whole]):
        with pytest.raises(InvalidInputError, match="Missing: temperature"):
            scorer_of(plain).read(some)
    runs = scorer_of(load(model_files["runs"]))
    with pytest.raises(InvalidInputError, match="Missing: current"):
        runs.frame([{"flow": 1, "current": None}, {"flow": 1}])


def test_shares_add_up(plain):
    scorer = scorer_of(plain)
    found = scorer.plain(rows(3))
    contributions, local_p = scorer.shares(found)
    why = plain.explain(plant(3, 5))
    np.testing.assert_allclose(contributions, why.contributions, atol=1e-9)
    np.testing.assert_allclose(local_p, why.local_p, atol=1e-9)


def test_what_is_no_model_of_rows_is_refused(model_files):
    with pytest.raises(ModelFileError, match="cannot be served"):
        scorer_of(object())
    detector = load(model_files["array"])
    detector.context_scale_ = "something"
    with pytest.raises(ModelFileError, match="context"):
        scorer_of(detector)


@pytest.mark.slow
@given(given=st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, cells)), min_size=1, max_size=8))
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_rows_of_streams_are_read_together_as_alone(plain, given):
    feed = RowFeed(scorer_of(plain), None, None)

    def told(found):
        # a gap is None or NaN, by what else the column holds
        rows = (one.content if isinstance(one, ServeError) else repr(one) for one in found)
        return [str(row).replace("None", "nan") for row in rows]

    alone = [with_notes(feed._read, [row])[0][0] for row in given]
    assert told(with_notes(feed._read, given)[0]) == told(alone)


@pytest.mark.slow
def test_a_bad_row_is_found_in_few_steps(plain, monkeypatch):
    scorer = scorer_of(plain)
    read, sizes = scorer.read, []
    monkeypatch.setattr(scorer, "read", lambda rows: sizes.append(len(rows)) or read(rows))
    odd = [row | {"other": 1} for row in rows(256)]
    feed = RowFeed(scorer, None, None)
    assert not any(isinstance(one, ServeError) for one in with_notes(feed._read, odd)[0])
    assert sizes == [256]
    odd[77]["pressure"] = "high"
    found, notes = with_notes(feed._read, odd)
    assert [i for i, one in enumerate(found) if isinstance(one, ServeError)] == [77]
    assert len(sizes) < 30
    sizes.clear()
    with_notes(feed._read, [row | {"pressure": "high"} for row in odd])
    assert len(sizes) < 1.3 * len(odd)
    assert len(notes) == 1


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
    kernel, counts = Kernel(), []
    batcher = Batcher(kernel, executor, 16, report=lambda *n: counts.append(n))
    found = run(batcher, [[i] for i in range(40)])
    assert [scores.score for scores in found] == [[float(i)] for i in range(40)]
    assert [len(block) for block in kernel.blocks] == [16, 16, 8]
    assert counts == [(16, 16), (16, 16), (8, 8)]


def test_requests_are_not_torn_apart(executor):
    kernel = Kernel()
    found = run(Batcher(kernel, executor, 8), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9] * 20])
    assert [scores.score for scores in found[:3]] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert kernel.blocks == [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9] * 20]


def test_a_failure_is_that_of_one_request(executor):
    found = run(Batcher(Kernel(), executor, 64), [[1], [BAD], [2]])
    assert [scores.score for scores in (found[0], found[2])] == [[1.0], [2.0]]
    assert isinstance(found[1], ValueError)


def test_requests_whose_turn_comes_too_late_are_refused(executor):
    """Those that wait behind a slow block are told so, and the queue is short again."""
    kernel = Kernel()
    kernel.may_go_on.clear()
    batcher = Batcher(kernel, executor, 1, most_wait=0.05)

    async def wait_too_long():
        tasks = [asyncio.create_task(batcher.score([(i,)])) for i in range(4)]
        await asyncio.sleep(0.1)
        late = asyncio.create_task(batcher.score([(9,)]))
        await asyncio.sleep(0)
        kernel.may_go_on.set()
        return await asyncio.gather(*tasks, late, return_exceptions=True)

    first, *waited, late = asyncio.run(wait_too_long())
    assert (first.score, late.score) == ([0.0], [9.0])
    assert [(error.status, error.code) for error in waited] == [(503, "overloaded")] * 3
    assert waited[0].headers == {"Retry-After": "1"}
    assert kernel.blocks == [[0], [9]]


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
