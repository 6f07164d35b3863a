"""Who may come in, and every limit with its refusal."""

import asyncio
import json
import logging
import threading

import httpx
import pytest

from ocfuse.serve.app import create_app
from ocfuse.serve.middleware import is_own
from ocfuse.serve.settings import Settings
from tests.serve.asking import ASKED, ask, client_of, refusal, rows

RIGHT = {"Authorization": f"Bearer {ASKED}"}


@pytest.fixture(scope="module")
def guarded(model_files):
    service = create_app(Settings({"plant": model_files["plant"]}, token=ASKED))
    yield service
    service.close()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {ASKED[:-1]}"},
        {"Authorization": f"Bearer {ASKED}x"},
        {"Authorization": ASKED},
        {"Authorization": f"Basic {ASKED}"},
        {"Authorization": "Bearer \xff"},
        {"Cookie": f"token={ASKED}"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/model", "/metrics", "/openapi.json", "/v1/events", "/no"])
def test_without_the_token_nobody_comes_in(guarded, headers, path):
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    answer = ask(guarded, path, headers=raw)
    assert refusal(answer, 401) == "no_token"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_with_the_token(guarded):
    assert ask(guarded, "/v1/score", {"rows": rows()}, headers=RIGHT).status_code == 200
    assert (
        ask(guarded, "/v1/model", headers={"Authorization": f"bearer {ASKED}"}).status_code == 200
    )
    # any name of the machine will do: who has the token is no page of another site
    assert ask(guarded, "/v1/model", headers=RIGHT | {"Host": "plant.example"}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_token(guarded, path):
    assert ask(guarded, path).status_code == 200


def test_the_token_is_not_logged(guarded, caplog):
    with caplog.at_level(logging.DEBUG):
        ask(guarded, "/v1/model", headers=RIGHT)
        ask(guarded, f"/v1/model?model={ASKED}", headers={"Authorization": f"Bearer {ASKED}x"})
        ask(guarded, f"/{ASKED}", headers=RIGHT)
    ours = [vars(record) for record in caplog.records if record.name.startswith("ocfuse")]
    assert [record["about"]["status"] for record in ours] == [200, 401, 404]
    assert ASKED not in str(ours)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "10.0.0.1", "", "[::1"])
def test_names_of_other_machines_are_refused(service, host):
    assert refusal(ask(service, "/v1/model", headers={"Host": host}), 421) == "wrong_host"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:8000", "LOCALHOST:1"])
def test_names_of_this_machine(service, host):
    assert ask(service, "/v1/model", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:81", "http://["]
)
def test_pages_of_other_sites_may_not_send_rows(service, origin):
    answer = ask(service, "/v1/score", {"rows": rows()}, headers={"Origin": origin})
    assert refusal(answer, 403) == "wrong_origin"


def test_own_pages_may(service):
    answer = ask(service, "/v1/score", {"rows": rows()}, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 200


def test_long_bodies(make_service):
    small = make_service({"body_bytes": 200})
    answer = ask(small, "/v1/score", {"rows": rows(10)})
    assert refusal(answer, 413) == "body_too_large"

    async def pieces():
        for _ in range(1000):
            yield b" " * 100
            sent.append(100)

    sent = []
    answer = ask(small, "/v1/score", method="POST", **{"content": None})
    assert answer.status_code == 400

    async def sent_in_pieces():
        async with client_of(small) as client:
            return await client.post("/v1/score", content=pieces())

    # nobody said how long it is: it is refused on the way
    assert refusal(asyncio.run(sent_in_pieces()), 413) == "body_too_large"
    lying = {"Content-Length": "9" * 4000}
    answer = ask(small, "/v1/score", b"{}", headers=lying)
    assert refusal(answer, 413) == "body_too_large"


def test_bodies_of_notes(make_service):
    small = make_service({"body_bytes": 200})

    async def pieces():
        for _ in range(10):
            yield b" " * 100

    async def commented():
        async with client_of(small) as client:
            said = {"Content-Type": "application/json"}
            return await client.post("/v1/events/1/comment", content=pieces(), headers=said)

    assert refusal(asyncio.run(commented()), 413) == "body_too_large"
    packed = {"Content-Encoding": "gzip"}
    answer = ask(small, "/v1/events/1/comment", {"text": "x"}, headers=packed)
    assert refusal(answer, 415) == "compressed"


def test_a_client_that_leaves_is_no_fault(service, caplog):
    """It is counted, and nobody is called for it."""
    path = "/v1/score"
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    messages = [{"type": "http.request", "body": b"{", "more_body": True},
                {"type": "http.disconnect"}]  # fmt: skip
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    with caplog.at_level(logging.INFO):
        asyncio.run(service({**scope, "headers": headers}, receive, send))
    assert [record.about["status"] for record in caplog.records if record.msg == "request"] == [499]
    assert not [record for record in caplog.records if record.msg == "fault"]


def test_rows_columns_and_nesting(make_service):
    small = make_service({"rows": 2, "columns": 6, "nesting": 3})
    assert refusal(ask(small, "/v1/score", {"rows": rows(3)}), 413) == "too_many_rows"
    wide = [row | {f"c{j}": 1 for j in range(5)} for row in rows(1)]
    assert refusal(ask(small, "/v1/score", {"rows": wide}), 422) == "too_many_columns"
    assert refusal(ask(small, "/v1/score", {"rows": [[[[]]]]}), 422) == "nested_too_deep"
    assert ask(small, "/v1/score", {"rows": rows(2)}).status_code == 200


def test_explained_rows(make_service):
    small = make_service({"explained_rows": 2})
    assert refusal(ask(small, "/v1/explain", {"rows": rows(3)}), 413) == "too_many_rows"
    answer = ask(small, "/v1/explain?at=2&at=0", {"rows": rows(3)})
    assert len(answer.json()["results"]) == 2


def test_a_request_that_takes_too_long(make_service):
    hasty = make_service({"seconds": 0.2})

    async def endlessly():
        yield b'{"rows": '
        await asyncio.Event().wait()

    async def asked():
        async with client_of(hasty) as client:
            return await client.post("/v1/score", content=endlessly())

    assert refusal(asyncio.run(asked()), 408) == "took_too_long"


def test_scoring_that_takes_too_long(make_service, monkeypatch):
    hasty, is_answered = make_service({"seconds": 0.2}), threading.Event()
    scorer = hasty.registry.get("plant").scorer
    monkeypatch.setattr(scorer, "read", lambda rows: is_answered.wait(60))
    odd = [row | {"extra": 1} for row in rows(1)]
    assert refusal(ask(hasty, "/v1/score", {"rows": odd}), 408) == "took_too_long"
    is_answered.set()


def test_too_many_requests_at_a_time(make_service):
    busy = make_service({"requests": 2})
    guard = busy._guarded.app

    async def asked():
        release = threading.Event()
        for _ in range(busy.settings.threads):
            busy.workers.blocks.submit(release.wait, 60)
        async with client_of(busy) as client:
            first = [asyncio.create_task(client.post("/v1/score", json={"rows": rows(1)}))
                     for _ in range(2)]  # fmt: skip
            while guard.n_requests < 2 or guard._arriving:
                await asyncio.sleep(0.01)
            refused = await client.post("/v1/score", json={"rows": rows(1)})
            probes = [await client.get(path) for path in ("/healthz", "/readyz", "/metrics")]
            release.set()
            done = await asyncio.gather(*first)
            after = await client.post("/v1/score", json={"rows": rows(1)})
        return refused, probes, [*done, after]

    refused, probes, done = asyncio.run(asked())
    assert refusal(refused, 429) == "too_many_requests"
    assert refused.headers["retry-after"] == "1"
    assert [answer.status_code for answer in (*probes, *done)] == [200] * 6


def test_a_request_that_does_not_come_whole_gives_way(make_service):
    """Who opens many and finishes none keeps nobody out."""
    busy = make_service({"requests": 3})

    async def asked():
        release = asyncio.Event()

        async def waiting():
            yield b'{"rows": '
            await release.wait()
            yield json.dumps(rows(1)).encode() + b"}"

        async with client_of(busy) as client:
            half = [asyncio.create_task(client.post("/v1/score", content=waiting()))
                    for _ in range(3)]  # fmt: skip
            while len(busy._guarded.app._arriving) < 3:
                await asyncio.sleep(0.01)
            answers = [await client.post("/v1/score", json={"rows": rows(1)}) for _ in range(2)]
            release.set()
            return answers, await asyncio.gather(*half)

    answers, half = asyncio.run(asked())
    assert [answer.status_code for answer in answers] == [200, 200]
    assert refusal(half[0], 408) == "gave_way"  # the oldest; one place was enough
    assert [answer.status_code for answer in half[1:]] == [200, 200]


def test_the_client_with_most_unfinished_requests_gives_way(make_service):
    guard, gone = make_service()._guarded.app, []

    class Unfinished:
        def give_way(self):
            gone.append(guard._arriving[self])

    bodies = [Unfinished() for _ in "abbc"]
    guard._arriving = dict(zip(bodies, "abbc", strict=True))
    guard._make_room()
    assert gone == ["b"]


def test_answers_say_what_browsers_must_not_do(service):
    headers = ask(service, "/v1/model").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-request-id"]
    assert "server" not in headers


def test_paths_lead_nowhere(service):
    for path in (
        "/../../etc/passwd",
        "/static/../settings.py",
        "/static/%2e%2e/app.py",
        "/v1/",
        "/v1/model/",
    ):
        assert refusal(ask(service, httpx.URL(f"http://127.0.0.1{path}")), 404) == "not_found"
    answer = ask(service, "/v1/model?model=..%2F..%2Fetc%2Fpasswd")
    assert refusal(answer, 422) == "bad_argument"


def test_origins():
    assert is_own("https://PUMP:8000", "pump:8000")
    for other in ("null", "", "http://pump", "http://pump:80001", "http://[", "http://x@pump:8000"):
        assert not is_own(other, "pump:8000")
    assert not is_own("null", "")
