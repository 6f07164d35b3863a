"""Streams, rows, explanations and loading: none waits for work of another kind."""

import asyncio
import json
import socket
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest

from ocfuse.exceptions import OcfuseWarning
from ocfuse.serve.errors import ServeError
from ocfuse.serve.routes import RequestHandler
from ocfuse.serve.scoring import RowScorer, RunScorer
from ocfuse.serve.telemetry import noted
from ocfuse.serve.workers import Bounded
from tests.serve.asking import ask, client_of, connect, get, refusal, rows, wait_until
from tests.serve.looking import Running

NORMAL = {"pressure": 0.0, "temperature": 20.0, "mode": "on"}
ODD = NORMAL | {"temperature": 60.0}


@pytest.fixture
def hold(monkeypatch):
    """Let explanations begin but not end; return events that tell of the one and of the other."""
    released, begun = threading.Event(), threading.Event()

    def wait(*given):
        begun.set()
        released.wait(60)
        raise MemoryError("released")

    monkeypatch.setattr(RowScorer, "explain", wait)
    monkeypatch.setattr(RunScorer, "explain", wait)
    yield SimpleNamespace(begun=begun, released=released)
    released.set()


def tell(stream, **message):
    stream.send(json.dumps(message))
    return json.loads(stream.recv(timeout=60))


@pytest.mark.slow
def test_nothing_waits_for_an_explanation_or_a_load(make_service, hold):
    service = make_service(threads=1)
    is_free = threading.Event()
    service.workers.loading.submit(is_free.wait, 60)
    with Running(service) as running, ThreadPoolExecutor(1) as client:
        address = f"http://{running.address}"
        question = client.submit(
            httpx.post, f"{address}/v1/explain", json={"rows": rows(1)}, timeout=60
        )
        assert hold.begun.wait(30)  # it is under way, and does not end
        with (
            connect(f"ws://{running.address}/v1/stream?stream=one") as plant,
            connect(f"ws://{running.address}/v1/stream?model=runs") as sensors,
        ):
            for stream in (plant, sensors):
                assert json.loads(stream.recv(timeout=60))["type"] == "ready"
            assert tell(plant, row=NORMAL)["type"] == "score"
            assert tell(plant, row=ODD)["alarm"] == "begin"
            assert tell(plant, row=NORMAL | {"mode": "never seen"})["type"] == "score"
            assert tell(sensors, row={"flow": 1, "current": 1})["type"] == "score"
            for body in ({"rows": rows(2)}, {"rows": rows(400)}, {"rows": [ODD | {"more": 1}]}):
                answer = httpx.post(f"{address}/v1/score", json=body, timeout=60)
                assert (answer.status_code, len(answer.json()["results"])) == (
                    200,
                    len(body["rows"]),
                )
            assert not question.done()
        # the stream is gone when the service has seen its end
        wait_until(lambda: get(f"{address}/v1/events").json()["events"][0]["state"] != "open")
        is_free.set()
        hold.released.set()


def test_explanations_whose_clients_have_left_make_room_for_others(make_service, hold):
    service = make_service(threads=1, limits={"explanations": 3, "seconds": 600})
    body = json.dumps({"rows": rows(1)}).encode()
    head = f"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with Running(service) as running:
        host, _, port = running.address.rpartition(":")
        clients = [socket.create_connection((host, int(port))) for _ in range(3)]
        for client in clients:
            client.sendall(head.encode() + body)
        assert _waits_for(service, 3)
        for client in clients:
            client.close()
        assert _waits_for(service, 1)  # the one that a thread is at
        hold.released.set()


def _waits_for(service, n_explanations):
    for _ in range(600):
        if len(service.workers.explanations._under_way) == n_explanations:
            return True
        time.sleep(0.1)
    return False


def test_a_stream_does_not_wait_for_large_requests(make_service):
    service = make_service(threads=1)
    is_free = threading.Event()
    for executor in (service.workers.rows, service.workers.blocks):
        executor.submit(is_free.wait, 60)
    try:
        with (
            Running(service) as running,
            connect(f"ws://{running.address}/v1/stream") as stream,
        ):
            assert json.loads(stream.recv(timeout=60))["type"] == "ready"
            assert tell(stream, row=ODD)["alarm"] == "begin"
            is_free.set()
    finally:
        is_free.set()


@pytest.mark.slow
def test_a_long_message_lets_other_streams_have_their_turn(make_service):
    """Its rows are worked on in parts, so that one thread is enough for two streams."""
    service = make_service({"message_bytes": 2**22}, threads=1)
    n_works = []
    submit = service.workers.streams.submit
    service.workers.streams.submit = lambda *work: n_works.append(1) or submit(*work)
    with Running(service) as running:
        for model, row in (
            ("runs", {"flow": 1, "current": 1}),
            ("plant", NORMAL | {"mode": "new"}),
        ):
            n_works.clear()
            with connect(
                f"ws://{running.address}/v1/stream?model={model}", max_size=None
            ) as stream:
                stream.recv(timeout=60)
                assert len(tell(stream, rows=[row] * 600)["results"]) == 600
            assert len(n_works) >= 3


def test_more_explanations_than_can_wait_are_refused(make_service, hold):
    service = make_service({"explanations": 2})

    async def asked():
        async with client_of(service) as client:
            body = {"rows": rows(1)}
            waiting = [asyncio.create_task(client.post("/v1/explain", json=body)) for _ in range(2)]
            while len(service.workers.explanations._under_way) < 2:
                await asyncio.sleep(0.01)
            refused = await client.post("/v1/explain", json=body)
            scored = await client.post("/v1/score", json=body)
            for task in waiting:
                task.cancel()
            hold.released.set()
            await asyncio.gather(*waiting, return_exceptions=True)
            return refused, scored

    refused, scored = asyncio.run(asked())
    assert refusal(refused, 429) == "too_many_explanations"
    assert int(refused.headers["Retry-After"]) > 0
    assert scored.status_code == 200


def test_an_explanation_is_bounded_by_rows_and_columns(make_service):
    service = make_service({"explained_cells": 7})
    answer = ask(service, "/v1/explain", {"rows": rows(3)})
    assert refusal(answer, 413) == "too_many_rows"
    assert "At most 2 rows of this model's 3 columns" in answer.text
    answer = ask(service, "/v1/explain?at=0&at=2", {"rows": rows(3)})
    assert len(answer.json()["results"]) == 2


def test_rows_are_explained_in_parts_as_at_once(make_service, monkeypatch):
    service = make_service()
    monkeypatch.setattr(RequestHandler, "explained_part", 1000)
    whole = ask(service, "/v1/explain", {"rows": rows(7)}).json()["results"]
    monkeypatch.setattr(RequestHandler, "explained_part", 7)
    parts = ask(service, "/v1/explain", {"rows": rows(7)}).json()["results"]
    assert [one["words"] for one in parts] == [one["words"] for one in whole]
    assert [one["score"] for one in parts] == pytest.approx([one["score"] for one in whole])


def test_an_explanation_that_nobody_waits_for_ends(make_service, monkeypatch):
    service = make_service({"seconds": 0.2})
    monkeypatch.setattr(RequestHandler, "explained_part", 1)
    n_parts, go_on, explain = [], threading.Event(), RowScorer.explain

    def slowly(scorer, features):
        n_parts.append(len(features))
        go_on.wait(30)
        return explain(scorer, features)

    monkeypatch.setattr(RowScorer, "explain", slowly)
    assert refusal(ask(service, "/v1/explain", {"rows": rows(5)}), 408) == "took_too_long"
    go_on.set()
    service.workers.close()
    assert n_parts == [1]


def test_a_work_is_refused_once_the_service_stops():
    works = Bounded(ThreadPoolExecutor(1), 1)
    works.close()
    with pytest.raises(ServeError) as caught:
        asyncio.run(works.run(lambda is_given_up: None))
    assert caught.value.status == 503


def test_notes_are_those_of_their_own_thread():
    """And threads that collect them are inside at the same time."""
    both_inside = threading.Barrier(2, timeout=60)

    def collect(name):
        with noted() as notes:
            both_inside.wait()
            with noted() as inner:
                warnings.warn(f"inner {name}", OcfuseWarning, stacklevel=1)
            warnings.warn(f"about  {name}", OcfuseWarning, stacklevel=1)
            warnings.warn(f"about {name}", OcfuseWarning, stacklevel=1)
            warnings.warn("of somebody else", UserWarning, stacklevel=1)
            both_inside.wait()
        return inner, notes

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(collect, "ab"))
    assert found == [([f"inner {name}"], [f"about {name}"]) for name in "ab"]


def test_others_warn_as_before_while_notes_are_taken_and_after():
    is_inside, is_done = threading.Event(), threading.Event()

    def collect():
        with noted() as notes:
            is_inside.set()
            is_done.wait(30)
        return notes

    before = warnings.filters[:], warnings.showwarning
    with ThreadPoolExecutor(1) as threads:
        notes = threads.submit(collect)
        is_inside.wait(30)
        is_done.set()
        assert notes.result() == []
    assert (warnings.filters[:], warnings.showwarning) == before
    with pytest.warns(OcfuseWarning, match="mine"):
        warnings.warn("mine", OcfuseWarning, stacklevel=1)


def test_a_filter_that_somebody_left_behind_hides_no_note():
    """Two threads that catch warnings may put back each other's filters."""
    with noted() as notes:
        warnings.simplefilter("ignore", OcfuseWarning)
        with noted() as inner:
            warnings.warn("seen", OcfuseWarning, stacklevel=1)
    assert (inner, notes) == (["seen"], [])
