"""What the live page asks for, without a browser."""

import csv
import io
import json
import re
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ocfuse.serve.app import learn_command
from ocfuse.serve.dashboard import FILES, DashboardConnection, Viewers
from ocfuse.serve.errors import CloseCode
from ocfuse.serve.event_rows import packed
from ocfuse.serve.settings import Settings
from tests.serve.asking import connect, wait_until
from tests.serve.looking import PNG, TOKEN, Running, Watched


@pytest.fixture
def watched():
    watched = Watched()
    yield watched
    watched.events.close()


@pytest.fixture(scope="module")
def server():
    """Return a server that lets every test have an application of its own."""

    async def app(scope, receive, send):
        await server.app(scope, receive, send)

    with (
        Running(app) as server,
        httpx.Client(base_url=f"http://{server.address}", timeout=60) as client,
    ):
        server.client = client
        yield server


@pytest.fixture
def client(server, watched):
    server.app = watched.door
    return server.client


@pytest.fixture
def look_on(server, watched):
    server.app = watched.door
    return lambda **more: connect(f"ws://{server.address}/v1/live", **more)


def send(socket, **message):
    socket.send(json.dumps(message))


def hello(socket, **more):
    send(socket, **{"type": "hello", "store": None, "after": None, "source": None} | more)


def receive(socket, kind):
    """Return the next message of a kind."""
    while True:
        message = json.loads(socket.recv(timeout=60))
        if message["type"] == kind:
            return message


def closed_with(socket):
    """Return the code that the service closes a connection with."""
    with pytest.raises(ConnectionClosed) as closed:
        receive(socket, "never")
    return closed.value.rcvd.code


def told(socket, known, until):
    """Add the events that a page is told of, until one has come."""
    while until not in known:
        message = receive(socket, "events")
        known |= {event["id"]: event for event in message["events"]}
    return message["change"]


# Files


def test_the_page_and_its_files(client):
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for name in set(FILES) - {"page.html"}:
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 200
        again = client.get(f"/static/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_files_name_nothing_from_elsewhere(client):
    for name in FILES:
        text = client.get(f"/static/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]", text)
        asked = re.findall(r'(?:from|import) "\./([^"]+)"|(?:src|href)="static/([^"]+)"', text)
        assert {one or other for one, other in asked} <= set(FILES)
    assert not re.search(
        r"<script(?! type=\"module\" src)|<style| style=| on\w+=", client.get("/").text
    )


@pytest.mark.parametrize("name", ["nothing.js", "..%2fdashboard.py", "%2e%2e/app.py", "", "page"])
def test_only_listed_files_are_served(client, name):
    answer = client.get(f"/static/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


# Events


def test_events_are_listed(watched, client):
    ids = [watched.event(-float(i), model=f"m{i % 2}") for i in range(1, 6)]
    found = client.get("/v1/events")
    assert found.headers["cache-control"] == "no-store"
    assert [event["id"] for event in found.json()["events"]] == ids[::-1]
    assert found.json() == {
        "events": [event.as_json() for event in watched.events.list()],
        "trouble": None,
    }

    def numbers(query):
        return [event["id"] for event in client.get(f"/v1/events?{query}").json()["events"]]

    assert numbers("limit=2") == ids[:2:-1]
    assert numbers(f"limit=2&before={ids[2]}") == [ids[1], ids[0]]
    assert numbers(f"after={ids[2]}") == ids[3:]
    assert numbers("model=m1&state=ended&acknowledged=false") == ids[::-2]
    assert numbers("state=open") == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "before=x", "state=odd", "acknowledged=7", f"after={2**70}"]
)
def test_wrong_questions_are_refused(client, query):
    answer = client.get(f"/v1/events?{query}")
    assert answer.status_code == 422
    assert query.split("=")[0] in answer.json()["error"]["message"]


def test_acknowledge_and_comment(watched, client):
    event = watched.event()
    answer = client.post(f"/v1/events/{event}/acknowledge", json={"who": "Ada"})
    assert answer.json()["acknowledged"]["who"] == "Ada"
    client.post(f"/v1/events/{event}/acknowledge", json={"who": "Bo"})
    answer = client.post(f"/v1/events/{event}/comment", json={"who": "Bo", "text": " mended "})
    assert answer.json() == watched.events.get(event).as_json()
    assert answer.json()["acknowledged"]["who"] == "Ada"
    assert [(said["who"], said["text"]) for said in answer.json()["comments"]] == [("Bo", "mended")]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("999/comment", {"text": "a"}, 404),
        ("999/acknowledge", {"who": "Ada"}, 404),
        ("0/acknowledge", {"who": "Ada"}, 422),
        (f"{10**30}/acknowledge", {"who": "Ada"}, 422),
        ("1/acknowledge", {}, 422),
        ("1/acknowledge", {"who": ""}, 422),
        ("1/acknowledge", {"who": " \n"}, 422),
        ("acknowledge", {"who": "", "model": "pump", "stream": "line-1", "up_to": 9}, 422),
        ("1/comment", {}, 422),
        ("1/comment", {"text": ""}, 422),
        ("1/comment", {"text": "  \n "}, 422),
        ("1/comment", {"text": "a" * 2001}, 422),
        ("1/comment", {"text": "a", "who": "b" * 201}, 422),
        ("1/comment", {"text": "a", "when": 1}, 422),
        ("1/comment", ["text"], 422),
        ("1/acknowledge", {"who": None}, 422),
    ],
)
def test_what_cannot_be_said(watched, client, path, content, status):
    watched.event()
    answer = client.post(f"/v1/events/{path}", json=content)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "message"}
    assert watched.events.get(1).notes == ()


def test_all_events_of_a_stream_up_to_the_last_one_seen_are_acknowledged_at_once(watched, client):
    first, second = watched.event(), watched.event()
    other, later = watched.event(stream="line-2"), watched.event()
    assert watched.overview.streams()[0]["state"] == "unacknowledged"
    said = {"who": "Ada", "model": "pump", "stream": "line-1", "up_to": second}
    answer = client.post("/v1/events/acknowledge", json=said)
    assert answer.json() == {"acknowledged": 2}
    known = {event.id: event.acknowledgement for event in watched.events.list()}
    assert known[first].who == known[second].who == "Ada"
    assert known[other] is known[later] is None
    client.post("/v1/events/acknowledge", json=said | {"up_to": later})
    listed = client.get("/v1/streams").json()["streams"]
    assert [(one["stream"], one["state"]) for one in listed] == [
        ("line-1", "normal"),
        ("line-2", "unacknowledged"),
    ]


def test_half_a_character_is_refused_or_told(watched, client):
    event = watched.event(stream="\ud83d")
    answer = client.post(
        f"/v1/events/{event}/comment", content=b'{"text": "\\ud800", "who": ""}',
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert answer.status_code in (200, 422)
    assert client.get("/v1/events").status_code == 200


def test_a_verdict_is_told_and_its_rows_come_as_json_and_csv(watched, client):
    event = watched.event()
    said = {"who": "Ada", "verdict": "false alarm", "comment": "tool changed"}
    answer = client.post(f"/v1/events/{event}/verdict", json=said).json()
    assert {k: v for k, v in answer["verdict"].items() if k != "time"} == said
    assert answer["acknowledged"]["who"] == "Ada"
    for bad in ({"who": " "}, {"verdict": "maybe"}, {"comment": "x" * 2001}, {"why": 1}):
        refused = client.post(f"/v1/events/{event}/verdict", json=said | bad)
        assert refused.status_code == 422
    assert client.post("/v1/events/99/verdict", json=said).status_code == 404
    told = client.get("/v1/events", params={"verdict": "false alarm"}).json()["events"]
    assert [one["id"] for one in told] == [event]
    assert client.get("/v1/events", params={"verdict": "real"}).json()["events"] == []
    assert client.get(f"/v1/events/{event}/rows").status_code == 404
    rows = [{"seq": 4, "time": 1.0, "score": -1.0, "values": {"x": 2.0}, "is_event": True}]
    watched.events.keep_rows(event, packed(rows), 1)
    address = f"/v1/events/{event}/rows"
    assert client.get(address).json() == {"event": event, "columns": [], "rows": rows}
    answer = client.get(address, params={"format": "csv"})
    assert answer.text == "seq,time,score,is_event,x\r\n4,1.0,-1.0,1,2.0\r\n"
    assert client.get(address, params={"format": "xml"}).status_code == 422
    (counts,) = client.get("/v1/verdicts").json()["models"]
    assert (counts["model"], counts["false_alarm"], counts["usable"]) == ("pump", 1, 1)
    assert counts["command"] is None  # the events are in memory


def test_the_command_that_learns_names_files_without_their_folders():
    models = {"pump": Path("/secret/pump v2.ocf"), "fan": Path("fan.ocf")}
    settings = Settings(models=models, events=Path("/secret/events.db"))
    assert learn_command(settings, "fan") == (
        "ocfuse fit TRAINING_DATA --events events.db --model fan.ocf --out fan-new.ocf"
    )
    assert learn_command(settings, "pump") == (
        "ocfuse fit TRAINING_DATA --events events.db --model 'pump v2.ocf' "
        "--out 'pump v2-new.ocf' --served-as pump"
    )
    assert learn_command(settings, "gone") is None


@pytest.mark.parametrize("what", ["acknowledge", "comment"])
def test_pages_of_other_sites_cannot_say_anything(watched, client, look_on, what):
    event = watched.event()
    headers = {"Origin": "https://evil.example"}
    answer = client.post(f"/v1/events/{event}/{what}", json={"text": "x"}, headers=headers)
    assert answer.status_code == 403
    with pytest.raises(InvalidStatus, match="403"), look_on(origin="https://evil.example"):
        pass
    assert watched.events.get(event).notes == ()


def test_csv_is_the_store(watched, client):
    for i in range(5):
        watched.event(-float(i + 1), model="=cmd()" if i == 3 else "pump")
    watched.events.comment(2, "@sum", "Ada")
    answer = client.get("/v1/events.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    assert answer.text == "".join(watched.events.csv())
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [int(row["id"]) for row in rows] == [1, 2, 3, 4, 5]
    assert rows[3]["model"] == "'=cmd()"
    assert len(client.get("/v1/events.csv?model=pump").text.splitlines()) == 5


def test_thumbnails(watched, client):
    event = watched.event(thumbnail=PNG)
    answer = client.get(f"/v1/events/{event}/thumbnail")
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    assert answer.headers["x-content-type-options"] == "nosniff"
    plain = watched.event()
    assert client.get(f"/v1/events/{plain}/thumbnail").status_code == 404


def test_the_documentation_names_every_answer(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/v1/streams", "/v1/events", "/v1/events.csv", "/v1/events/{number}/thumbnail",
        "/v1/events/acknowledge", "/v1/events/{number}/acknowledge", "/v1/events/{number}/comment",
        "/v1/events/{number}/verdict", "/v1/events/{number}/rows", "/v1/verdicts",
    }  # fmt: skip
    for methods in paths.values():
        for described in methods.values():
            assert {"200", "401"} <= set(described["responses"])
            assert described["summary"]
            assert described["description"]


def test_a_token_is_needed(server, client, look_on):
    secret = Watched(token=TOKEN)
    server.app = secret.door
    event = secret.event(thumbnail=PNG)
    assert client.get("/").status_code == client.get("/static/page.js").status_code == 200
    for path in ("events", "events.csv", f"events/{event}/thumbnail"):
        assert client.get(f"/v1/{path}").status_code == 401
        shown = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get(f"/v1/{path}", headers=shown).status_code == 200
    assert client.post(f"/v1/events/{event}/acknowledge", json={}).status_code == 401
    for wrong in (None, "", TOKEN[:-1], 7, "\ud800"):
        with look_on() as socket:
            hello(socket, token=wrong)
            assert closed_with(socket) == CloseCode.UNKNOWN_TOKEN
    with look_on() as socket:
        hello(socket, token=TOKEN)
        receive(socket, "welcome")
    secret.events.close()


# The socket


def test_a_new_page_gets_the_latest_events_and_then_all_changes(watched, look_on):
    watched.event()
    with look_on() as socket:
        hello(socket)
        assert receive(socket, "welcome")["store"] == watched.events.name
        first = receive(socket, "events")
        assert first["is_first"]
        assert not first["has_older"]
        assert first["events"] == [event.as_json() for event in watched.events.list()]
        known = {}
        told(socket, known, watched.event())
        watched.events.comment(1, "said")
        told(socket, known, 1)
        assert known[1]["comments"][0]["text"] == "said"


def test_only_the_latest_events_come_first(watched, look_on):
    for _ in range(DashboardConnection.most_events + 1):
        watched.event()
    with look_on() as socket:
        hello(socket)
        first = receive(socket, "events")
        assert len(first["events"]) == DashboardConnection.most_events
        assert first["has_older"]


@pytest.mark.slow
def test_a_page_that_comes_back_gets_all_it_missed(watched, look_on):
    known = {}
    last = watched.event()
    with look_on() as socket:
        hello(socket)
        change = told(socket, known, last)
    for i in range(450):  # more than one message, and changes of what was known
        last = watched.event(-1.0 - i)
    watched.events.acknowledge(1, "Ada")
    with look_on() as socket:
        hello(socket, store=watched.events.name, after=change)
        told(socket, known, last)
        while known[1]["acknowledged"] is None:
            message = receive(socket, "events")
            known |= {event["id"]: event for event in message["events"]}
            assert not message["is_first"]
    assert known == {event.id: event.as_json() for event in watched.events.list(limit=1000)}


@pytest.mark.parametrize(
    ("store", "after"), [("other", 5), (None, 5), ("", -1), (7, "7"), ("", True)]
)
def test_a_page_that_knows_another_file_starts_anew(watched, look_on, store, after):
    watched.event()
    with look_on() as socket:
        hello(socket, store=watched.events.name if store == "" else store, after=after)
        assert receive(socket, "events")["is_first"]


def test_samples_of_the_chosen_stream(watched, look_on):
    for i in range(3):
        watched.publish(float(i), contributions={"knn": 0.1}, time=100.0 + i, alarm="end")
    with look_on() as socket:
        hello(socket, source=["pump", "line-1"])
        assert receive(socket, "streams")["sources"] == [["pump", "line-1"]]
        before = receive(socket, "history")
        assert [sample["score"] for sample in before["samples"]] == [0.0, 1.0, 2.0]
        assert before["samples"][0]["contributions"] == {"knn": 0.1}
        watched.publish(None, stream="line-2")
        while (told := receive(socket, "streams"))["sources"] == [["pump", "line-1"]]:
            pass
        assert told["sources"] == [["pump", "line-1"], ["pump", "line-2"]]
        watched.publish(5.0, time=float("nan"))
        watched.publish(float("-inf"), drift=float("inf"))
        watched.publish(7.0)
        scores = []
        while len(scores) < 2:
            scores += [sample["score"] for sample in receive(socket, "samples")["samples"]]
        assert scores == [None, 7.0]
        send(socket, type="watch", source=["pump", "line-2"])
        assert receive(socket, "history")["source"] == ["pump", "line-2"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", '{"type": "watch"}', b'{"type": "hello"}'),
        *("[" * 2000, "x" * (DashboardConnection.longest_message + 1)),
    ],
)
def test_what_is_no_hello_is_refused(look_on, watched, text):
    with look_on() as socket:
        socket.send(text)
        assert closed_with(socket) == CloseCode.REFUSED
    assert not watched.live.has_viewers


def test_unknown_messages_end_the_connection(look_on):
    with look_on() as socket:
        hello(socket)
        send(socket, type="shout")
        assert closed_with(socket) == CloseCode.REFUSED


def test_viewers_are_counted_and_forgotten(look_on, watched, monkeypatch):
    monkeypatch.setattr(Viewers, "most_viewers", 1)
    with look_on() as socket:
        hello(socket)
        receive(socket, "streams")
        assert watched.live.has_viewers
        with look_on() as second:
            hello(second)
            assert closed_with(second) == CloseCode.TRY_LATER
    wait_until(lambda: not watched.live.has_viewers)
    with look_on() as socket:
        hello(socket)
        receive(socket, "welcome")


def test_strangers_keep_no_page_out(look_on, monkeypatch):
    monkeypatch.setattr(Viewers, "most_strangers", 2)
    with look_on() as first, look_on() as second, look_on() as page:
        assert closed_with(first) == CloseCode.REFUSED
        hello(page)
        receive(page, "welcome")
        hello(second)  # who was slow, but not the slowest
        receive(second, "welcome")


def test_trouble_is_told(client, look_on, watched, monkeypatch):
    with look_on() as socket:
        hello(socket)
        receive(socket, "streams")
        monkeypatch.setattr(watched.events, "_failure", "disk is full")
        watched.publish()
        assert "disk is full" in receive(socket, "trouble")["message"]
        assert "disk is full" in client.get("/v1/events").json()["trouble"]
        monkeypatch.undo()
        watched.publish(stream="other")
        assert receive(socket, "trouble")["message"] is None
