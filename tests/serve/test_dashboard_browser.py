"""The live page in a real browser, and before a real service that is killed and comes back."""

import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

from ocfuse.serve.database import Choice
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.samples import Sample
from tests.serve.asking import connect, get, wait_until
from tests.serve.looking import PNG, TOKEN, Running, Watched

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed"),
    # Playwright's event loop and pipes are closed when the interpreter ends, not before
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}=1+1"
MEMBERS = {f"member-{i:02}": 0.3 - 0.1 * i for i in range(12)}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server():
    """Return a server that lets every test have an application of its own."""

    async def app(scope, receive, send):
        await server.app(scope, receive, send)

    with Running(app) as server:
        yield server


@pytest.fixture
def watched(server):
    watched = Watched()
    server.app = watched.door
    yield watched
    watched.events.close()


@pytest.fixture(scope="module")
def window(browser):
    """Return the window that most tests look through: a new one takes longer than they do."""
    window = browser.new_page()
    window.set_default_timeout(60_000)
    return window


@pytest.fixture
def visit(window, server):
    """Open the page; at the end nothing may have been complained about or asked of others."""
    # a page that is left while a busy machine still makes its link is no fault
    complaints, expected = [], ["closed before the connection is established"]
    notice = {
        "console": lambda message: complain(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "dialog": lambda dialog: complaints.append(dialog.message),
        "request": lambda request: asked(request.url),
    }

    def visit(state="live", complaint=None, color_scheme="light", reduced_motion="no-preference"):
        expected.append(complaint)
        window.set_viewport_size({"width": 1200, "height": 900})
        window.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        window.goto(f"http://{server.address}/")
        window.locator(f"#link[data-state={state}]").wait_for()
        return window

    def complain(text):
        if not any(words is not None and words in text for words in expected):
            complaints.append(text)

    def asked(url):
        if not url.removeprefix("blob:").startswith(f"http://{server.address}/") or TOKEN in url:
            complaints.append(url)

    for event, listener in notice.items():
        window.on(event, listener)
    yield visit
    for event, listener in notice.items():
        window.remove_listener(event, listener)
    # as somebody else would find it
    window.evaluate("localStorage.clear(); sessionStorage.clear()")
    window.goto("about:blank")
    assert complaints == []


def in_state(page, state):
    page.locator(f"#state[data-state={state}]").wait_for()


def colour(page, selector, what):
    return page.evaluate(
        "([s, what]) => getComputedStyle(document.querySelector(s))[what]", [selector, what]
    )


def shown_ids(page):
    found = page.locator("#table tbody:visible").evaluate_all("rows => rows.map(r => r.dataset.id)")
    return [int(number) for number in found]


# The three promises


def test_an_alarm_is_shown_at_once(watched, window, visit):
    """It does not wait behind a burst of samples: they come in few messages."""
    told = []

    window.once("websocket", lambda socket: socket.on("framereceived", lambda it: told.append(it)))
    watched.publish()
    page = visit()
    in_state(page, "normal")
    for _ in range(3):
        told.clear()
        for _ in range(300):
            watched.publish(contributions=MEMBERS)
        event = watched.publish(-2.0, "begin", contributions=MEMBERS)
        in_state(page, "alarm")
        assert 0 < len(told) < 30  # about 3
        page.locator(f"#table tbody[data-id='{event}']").wait_for()
        assert page.locator("#state-title").inner_text().startswith("ALARM since")
        assert page.title().startswith("▲ ALARM")
        assert "pump · line-1" in page.locator("#say").inner_text()
        watched.publish(1.0, "end")
        in_state(page, "unacknowledged")
        watched.events.acknowledge(event, "Ada")
        in_state(page, "normal")


#: Imports once what takes long, and is a service after each line: one that ends is followed.
SERVICE = """
import os, sys
from pathlib import Path
import uvicorn
from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Settings
model, port = sys.argv[1:]
while events := sys.stdin.readline().strip():
    if child := os.fork():
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    app = create_app(Settings(models={"plant": Path(model)}, events=Path(events)))
    uvicorn.run(app, port=int(port), log_level="warning")
    break
"""
NORMAL = {
    "part": "P",
    "when": "2024-02-01 00:00:00",
    "pressure": 0,
    "temperature": 20,
    "mode": "on",
}


class Service:
    """A service of a real model, in a process of its own that can be killed."""

    def __init__(self, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.events = None
        arguments = [model, str(self.port)]
        self.parent = subprocess.Popen(
            [sys.executable, "-c", SERVICE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.child = None

    def start(self):
        self.parent.stdin.write(f"{self.events}\n")
        self.parent.stdin.flush()
        self.child = int(self.parent.stdout.readline())
        end = time.monotonic() + 120  # a busy machine takes its time
        while True:
            try:
                get(f"http://127.0.0.1:{self.port}/readyz")
                return
            except httpx.TransportError:
                assert time.monotonic() < end
                time.sleep(0.05)

    def kill(self):
        os.kill(self.child, signal.SIGKILL)
        self.child = None
        assert int(self.parent.stdout.readline()) == signal.SIGKILL

    def stop(self):
        if self.child is not None:
            self.kill()

    def stream(self):
        return connect(f"ws://127.0.0.1:{self.port}/v1/stream?model=plant&stream=line&min_rows=1")


@pytest.fixture(scope="module")
def all_services(plant_folder):
    service = Service(plant_folder / "model.ocf")
    yield service
    service.parent.communicate()


@pytest.fixture
def service(all_services, tmp_path):
    """Return a service with events of its own, not started yet; what it imports, it has."""
    all_services.events = tmp_path / "events.db"
    yield all_services
    all_services.stop()


def score(stream, **changes):
    stream.send(json.dumps({"row": NORMAL | changes}))
    while (answer := json.loads(stream.recv(timeout=60)))["type"] != "score":
        pass
    return answer


def events_of(service):
    return get(f"http://127.0.0.1:{service.port}/v1/events").json()["events"]


def test_nothing_is_lost_when_the_service_is_killed(service, browser):
    service.start()
    page = browser.new_page()
    try:
        page.goto(f"http://127.0.0.1:{service.port}/")
        with service.stream() as stream:
            for _ in range(20):
                assert score(stream)["is_anomaly"] is False
            in_state(page, "normal")
            first = score(stream, temperature=60)
            in_state(page, "alarm")
            assert score(stream)["alarm"] == "end"
            in_state(page, "unacknowledged")
            page.locator("#who").fill("Ada")
            page.get_by_role("button", name=f"Acknowledge event {first['event']}").click()
            page.locator(f"[data-id='{first['event']}'] .known:has-text('Ada')").wait_for()
            in_state(page, "normal")
            page.get_by_role("button", name="Comment", exact=True).click()
            page.keyboard.type("valve stuck")
            page.keyboard.press("Control+Enter")
            page.locator(".comments .text", has_text="valve stuck").wait_for()
            left_open = score(stream, temperature=70)["event"]
            page.locator(f"#table tbody[data-id='{left_open}']").wait_for()
            service.kill()
        page.locator("#link[data-state=reconnecting]").wait_for()
        page.get_by_role("heading", name="Not connected").wait_for()
        store = EventStore(service.events)
        missed = [store.begin(Sample("plant", "line", i, 1.7e9 + i, -1.0, 0.0)) for i in range(3)]
        store.end(missed[0])
        store.close()
        service.start()
        with service.stream() as stream:
            late = score(stream, temperature=65)["event"]
            score(stream)
            page.locator("#link[data-state=live]").wait_for()
            page.locator(f"#table tbody[data-id='{late}'] [data-state=ended]").wait_for()
            in_state(page, "interrupted")  # though samples come, and are normal
            page.get_by_role("button", name="Acknowledge all").click()
            in_state(page, "normal")
        wait_until(lambda: events_of(service)[0]["n_rows"] == 2)  # kept when the stream has ended
        listed = events_of(service)
        assert shown_ids(page) == [event["id"] for event in listed]
        assert {first["event"], left_open, *missed, late} == set(shown_ids(page))
        states = dict(zip(shown_ids(page), page.locator(".badge").all_inner_texts(), strict=True))
        assert states[left_open] == "interrupted"
        assert states[missed[0]] == "ended"
        page.reload()
        row = page.locator(f"[data-id='{first['event']}']")
        assert "Ada" in row.locator(".known").inner_text()
        row.get_by_role("button", name="1 comment").click()
        assert row.locator(".comments .text").all_inner_texts() == ["valve stuck"]
    finally:
        page.close()
        service.stop()
    store = EventStore(service.events)
    assert [event.as_json() for event in store.list()] == listed
    store.close()


#: A client that is in alarm, until it is killed.
CLIENT = """
import json, sys, time
from websockets.sync.client import connect
normal = json.loads(sys.argv[2])
with connect(sys.argv[1], open_timeout=60) as stream:
    for row in [normal] * 3 + [normal | {"temperature": 60}] * 2:
        stream.send(json.dumps({"row": row}))
    for _ in range(6):
        told = stream.recv()
    print(json.loads(told)["event"], flush=True)
    sys.stdin.read()
"""


def test_no_headline_calls_an_alarm_normal_whose_client_or_service_is_killed(service, browser):
    service.start()
    page = browser.new_page()
    address = f"ws://127.0.0.1:{service.port}/v1/stream?model=plant&stream=line&min_rows=1"
    command = [sys.executable, "-c", CLIENT, address, json.dumps(NORMAL)]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        first = int(client.stdout.readline())
        page.goto(f"http://127.0.0.1:{service.port}/")
        in_state(page, "alarm")
        page.evaluate(
            """() => {
                const state = document.getElementById('state');
                window.seen = [];
                const note = () => window.seen.push(
                    state.dataset.state, document.getElementById('state-title').textContent);
                const changes = { attributes: true, childList: true, subtree: true };
                new MutationObserver(note).observe(state, changes);
            }"""
        )
        client.kill()
        in_state(page, "interrupted")
        assert page.locator("#state-title").inner_text().startswith("Alarm interrupted at")
        assert "Source gone" in page.locator("#state-more").inner_text()
        assert page.title().startswith("▲ Interrupted")
        service.kill()
        page.get_by_role("heading", name="Not connected").wait_for()
        assert "Alarm interrupted" in page.locator("#state-more").inner_text()
        service.start()
        in_state(page, "interrupted")
        told = get(f"http://127.0.0.1:{service.port}/v1/streams").json()["streams"]
        assert [(one["state"], one["event"]) for one in told] == [("interrupted", first)]
        with service.stream() as stream:  # a restart in alarm
            score(stream, temperature=70)
            in_state(page, "alarm")
            service.kill()
        service.start()
        in_state(page, "interrupted")
        page.get_by_role("button", name="Acknowledge all 2").click()
        page.get_by_role("dialog", name="Who are you?").wait_for()
        page.keyboard.type("Ada")
        page.keyboard.press("Enter")
        in_state(page, "silent")
        seen = page.evaluate("window.seen")
        assert "interrupted" in seen
        assert not [words for words in seen if "normal" in words.lower()]
    finally:
        client.kill()
        client.communicate()
        page.close()


# What is shown


def test_hostile_text_is_text(watched, visit):
    watched.publish(model=HOSTILE, stream=HOSTILE, contributions={HOSTILE: -1.0})
    page = visit()
    event = watched.publish(
        -1.0, "begin", model=HOSTILE, stream=HOSTILE, contributions={HOSTILE: -1.0}
    )
    in_state(page, "alarm")
    watched.events.comment(event, HOSTILE, HOSTILE)
    watched.events.acknowledge(event, HOSTILE)
    page.get_by_role("button", name="1 comment").click()
    name = f"{HOSTILE} · {HOSTILE}"
    assert page.locator("#source option").nth(1).inner_text() == f"▲ {name}"
    assert page.locator("td.stream").inner_text() == name
    assert page.locator(".comments .text").inner_text() == HOSTILE
    assert HOSTILE in page.locator(".comments .by").inner_text()
    assert HOSTILE in page.locator(".known").inner_text()
    assert HOSTILE in page.locator("td.members").text_content()
    page.locator("#members-panel summary").click()
    page.locator("#members th[scope=row]", has_text=HOSTILE).wait_for()
    assert page.locator("main script, main img").count() == 0
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_numbers_are_those_of_the_samples(watched, visit):
    watched.publish(0.25, p_value=0.125, local_p=1.5, drift=0.75, contributions=MEMBERS)
    page = visit()
    page.locator("#now-score:has-text('0.25')").wait_for()
    page.locator("#drift:has-text('0.75')").wait_for()
    page.locator("#members-panel summary").click()
    shown = [
        page.locator(f"#{name}").inner_text() for name in ("now-threshold", "now-p", "local-p")
    ]
    assert shown == ["0", "0.125", "1.5"]
    rows = page.locator("#members tbody tr:visible")
    assert rows.count() == 8
    assert rows.first.inner_text().replace("\t", " ").split() == ["member-11", "\N{MINUS SIGN}0.8"]
    page.get_by_role("button", name="Show all 12").click()
    assert rows.count() == 12
    watched.publish(0.5, drift=1.25)
    page.locator("#drift.far:has-text('1.25')").wait_for()
    assert page.evaluate(
        """() => ['chart', 'local-p-trend', 'drift-trend'].every((id) => {
            const canvas = document.getElementById(id);
            const { width, height } = canvas;
            const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
            return data.some((value) => value > 0);
        })"""
    )


def test_the_chart_is_read_by_keys_and_stands_still_meanwhile(watched, visit):
    for i in range(10):
        watched.publish(float(i), "end", time=1000.0 + i)
    page = visit()
    in_state(page, "normal")
    page.locator("#read:has-text('score 9,')").wait_for()
    chart = page.locator("#chart")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    page.locator("#read:has-text('score 8,')").wait_for()
    watched.publish(99.0, time=1010.0)
    page.keyboard.press("ArrowLeft")
    page.locator("#read:has-text('score 7,')").wait_for()
    assert "score 7, threshold 0, p-value 0.5, normal" in chart.get_attribute("aria-valuetext")
    page.keyboard.press("Home")
    page.locator("#read:has-text('score 0,')").wait_for()
    assert chart.get_attribute("aria-valuenow") == "0"
    page.keyboard.press("End")
    page.locator("#read:has-text('score 9,')").wait_for()
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    page.locator("#read:has-text('score 99,')").wait_for()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Follow").click()


def test_other_streams_in_alarm_are_named(watched, visit):
    watched.publish(stream="line-1")
    page = visit()
    in_state(page, "normal")
    watched.publish(-1.0, "begin", stream="line-2")
    page.get_by_role("button", name="pump · line-2").click()
    in_state(page, "alarm")
    assert page.locator("#source option:checked").inner_text() == "▲ pump · line-2"
    page.locator("#who").fill("Ada")
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    page.locator("#state-more:has-text('Acknowledged by Ada')").wait_for()
    page.go_back()
    in_state(page, "normal")


def test_all_streams_of_a_line_are_on_one_screen_and_lead_to_each(watched, visit):
    reading = {"name": "flow", "words": "flow 1.5 (usual 2.0 +- 0.1)", "value": 1.5, "usual": 2.0}
    for i in range(1, 13):
        watched.publish(float(i), stream=f"line-{i}")
    watched.publish(-1.0, "begin", stream="line-10", readings=[reading])
    page = visit()
    cards = page.locator("#streams a")
    cards.nth(11).wait_for()
    names = cards.locator(".name").all_inner_texts()
    assert names == [f"pump · line-{i}" for i in range(1, 13)]  # as people count
    counts = page.locator("#streams-count").inner_text()
    assert counts == "12 streams: 1 in alarm, 11 normal"
    alarmed = page.locator("#streams a[data-state=alarm]")
    assert "flow 1.5 (usual 2.0 ± 0.1)" in alarmed.inner_text()
    assert "since" in alarmed.inner_text()
    assert alarmed.locator("polyline").get_attribute("points")
    assert page.evaluate("document.documentElement.scrollHeight") <= 900 + 500
    alarmed.focus()
    page.keyboard.press("Enter")
    in_state(page, "alarm")
    assert page.locator("#state-what li").all_inner_texts() == ["flow 1.5 (usual 2.0 ± 0.1)"]
    page.locator("#source").select_option(label="All streams")
    alarmed.wait_for()


def test_channels_that_matter_come_first_with_what_is_usual(watched, visit):
    names = ["flow", "speed", "current", "level"]
    channels = [{"name": name, "low": 0.0, "high": 2.0} for name in names]
    watched.live.introduce(("pump", "line-1"), channels)
    watched.publish(values=[1.0, 1.0, 1.0, 1.0])
    page = visit()
    shown = page.locator("#channels h3")
    shown.nth(2).wait_for()
    assert shown.all_inner_texts() == ["flow", "speed", "current"]
    reading = {"name": "level", "words": "level 5.0 (usual 1.0 +- 0.5)", "kind": "level"}
    watched.publish(-1.0, "begin", values=[1.0, 1.0, 1.0, 5.0], readings=[reading])
    page.locator("#channels h3:has-text('level')").wait_for()
    first = page.locator("#channels li").first
    sync_api.expect(first.locator(".value.far")).to_have_text("5")
    assert "usual 0 to 2" in first.inner_text()
    page.get_by_role("button", name="Show all 4").click()
    assert shown.all_inner_texts() == ["level", "flow", "speed", "current"]


def test_a_sensor_in_trouble_is_drawn_first_though_no_sample_comes(watched, visit):
    names = ["flow", "speed", "current", "level"]
    channels = [{"name": name, "low": 0.0, "high": 2.0} for name in names]
    watched.live.introduce(("pump", "line-1"), channels)
    for _ in range(5):
        watched.publish(values=[1.0, 1.0, 1.0, 1.0])
    page = visit()
    page.locator("#channels h3").nth(2).wait_for()
    text = "channel level missing since row 3"
    about = "missing", ("pump", "line-1"), 1.79e9, text, [{"name": "level", "words": text}]
    number = watched.events.raise_event(*about)
    page.locator("#channels li").first.locator("h3:has-text('level')").wait_for()
    page.wait_for_function(
        """() => [...document.querySelectorAll("#channels canvas")].every((canvas) =>
          canvas.width && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
            .data.some((byte) => byte))"""
    )
    row = page.locator(f"#table tbody[data-id='{number}']").inner_text()
    assert "goes on" in row
    assert text in row


def test_the_api_is_told_on_a_page_of_our_own(watched, visit, server):
    page = visit()
    page.get_by_role("link", name="API").click()
    page.locator("article", has_text="/v1/streams").wait_for()
    fold = page.locator("article", has_text="/v1/events/acknowledge").locator("summary").first
    fold.click()
    page.locator("pre:has-text('up_to')").first.wait_for()


def test_events_are_filtered_older_ones_fetched_and_saved(watched, visit, server):
    for i in range(230):
        watched.event(-1.0 - i, stream=f"line-{i % 2}")
    watched.events.acknowledge(229, "=Ada")
    page = visit()
    page.locator("#source").select_option(label="pump · line-0")
    page.locator("#table tbody").nth(199).wait_for()
    assert shown_ids(page) == list(range(230, 30, -1))
    page.get_by_role("button", name="Show older events").click()
    page.locator("#table tbody").nth(229).wait_for()
    assert shown_ids(page) == list(range(230, 0, -1))
    assert page.locator("#older").is_hidden()
    page.locator("#show-state").select_option("new")
    assert 229 not in shown_ids(page)
    page.locator("#show-source").select_option("this")
    assert shown_ids(page) == [i for i in range(229, 0, -2) if i != 229]
    assert page.locator("#events-count").inner_text() == "114 events"
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    saved = download.value.path().read_bytes().decode()
    assert saved == "".join(watched.events.csv(Choice(stream="line-0", acknowledged=False)))
    page.locator("#show-state").select_option("all")
    page.locator("#show-source").select_option("all")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_bytes().decode())))
    assert [int(row["id"]) for row in rows] == shown_ids(page)[::-1]
    assert rows[228]["acknowledged_by"] == "'=Ada"


def test_pictures_are_shown(watched, visit):
    watched.event(thumbnail=PNG)
    page = visit()
    picture = page.get_by_role("button", name="Picture of event 1")
    picture.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog", name="Picture of the event").is_visible()
    sync_api.expect(page.locator("#picture-img")).to_have_js_property("naturalWidth", 1)
    page.keyboard.press("Escape")
    assert page.locator("#picture").is_hidden()


def test_trouble_is_told(watched, visit, monkeypatch):
    watched.event()
    page = visit()
    monkeypatch.setattr(watched.events, "_failure", "disk is full")
    watched.publish(stream="other")
    page.locator("#trouble:has-text('disk is full')").wait_for()
    monkeypatch.undo()
    watched.publish(stream="another")
    page.locator("#trouble").wait_for(state="hidden")


def test_an_event_gets_a_verdict_by_whom_it_is_told(watched, visit):
    event = watched.event()
    page = visit()
    page.evaluate("localStorage.clear()")
    page.locator("#who").fill("")
    row = page.locator(f"tbody[data-id='{event}']")
    row.get_by_role("button", name="Verdict", exact=True).click()
    page.get_by_label(f"Comment on event {event}").fill("tool changed")
    verdicts = row.get_by_role("group", name=f"Verdict on event {event}")
    verdicts.get_by_role("button", name="False alarm").click()
    page.get_by_label("Your name").last.fill("Ada")  # who has not said it yet is asked
    page.keyboard.press("Enter")
    row.locator(".comments .text:has-text('False alarm: tool changed')").wait_for()
    row.locator(".known:has-text('Ada')").wait_for()
    known = watched.events.get(event).verdict
    assert (known.kind, known.who, known.text) == ("false alarm", "Ada", "tool changed")
    verdicts.get_by_role("button", name="Real").click()
    row.get_by_role("button", name="Real", exact=True).first.wait_for()
    row.locator(".comments .text").nth(1).wait_for()
    assert watched.events.get(event).verdict.kind == "real"
    pressed = verdicts.locator("[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["Real"]


def test_a_refused_comment_is_told(watched, visit):
    event = watched.event()
    page = visit(complaint="422")
    page.get_by_role("button", name="Comment", exact=True).click()
    text = page.get_by_label(f"Comment on event {event}")
    text.fill("   ")
    page.get_by_role("button", name="Send").click()
    page.locator("#failed:has-text('1 to 2000 characters')").wait_for()
    assert text.input_value() == "   "
    text.fill("better")
    page.get_by_role("button", name="Send").click()
    page.locator(".comments .text:has-text('better')").wait_for()
    assert page.locator("#failed").is_hidden()


def test_a_token_is_asked_for_once(server, visit):
    secret = Watched(token=TOKEN)
    server.app = secret.door
    event = secret.event(thumbnail=PNG)
    page = visit("stopped")
    dialog = page.get_by_role("dialog", name="This service has a token")
    page.locator("#token").fill("wrong-one-of-the-tests")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#token")).to_have_value("")  # polling would need 'unsafe-eval'
    dialog.wait_for()
    page.locator("#token").fill(TOKEN)
    page.get_by_role("button", name="Show the page").click()
    page.locator("#link[data-state=live]").wait_for()
    page.get_by_role("button", name=f"Picture of event {event}").wait_for()
    page.locator("#who").fill("Ada")
    page.get_by_role("button", name=f"Acknowledge event {event}").click()
    page.locator(".known:has-text('Ada')").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    assert download.value.path().read_bytes().decode() == "".join(secret.events.csv())
    page.reload()
    page.locator("#link[data-state=live]").wait_for()
    assert dialog.is_hidden()
    secret.events.close()


# Who reads it, and on what


def test_narrow_screens_need_no_scrolling_aside(watched, visit):
    long = "a-very-long-name-without-any-space-" * 4
    for i in range(3):
        watched.event(-123456.789, model=long, stream=f"{long}{i}", contributions={long: -1.0})
    watched.publish(-1.0, "begin", model=long, stream=long, contributions=MEMBERS, thumbnail=PNG)
    watched.events.comment(1, long * 5, long)
    page = visit()
    page.get_by_role("button", name="1 comment").click()
    page.get_by_role("button", name="Picture of event 4").wait_for()
    reading = {"name": long, "words": f"{long} 5.0 (usual 1.0 +- 0.5)", "kind": "level"}
    watched.live.introduce(("pump", "line-1"), [{"name": long}] * 3)
    watched.publish(-1.0, "begin", values=[1.0], readings=[reading])
    for address in ("#/", "#/pump/line-1"):
        page.goto(page.url.partition("#")[0] + address)
        for width in (1100, 1000, 800, 360):
            page.set_viewport_size({"width": width, "height": 780})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.evaluate(
        """() => [...document.querySelectorAll('main button, main select, main input')]
            .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24)
            .map((one) => one.outerHTML)"""
    )
    assert small == []


CUT = """() => [...document.querySelectorAll('main *')].filter((node) => {
    const texts = [...node.childNodes].filter((one) => one.nodeType === 3 && one.data.trim());
    if (!texts.length || !node.checkVisibility() || node.closest('.hidden, option')) return false;
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect(), box = node.getBoundingClientRect();
    const around = (node.closest('.card, .panel, .state') || node).getBoundingClientRect();
    const isHidden = getComputedStyle(node).overflow === 'hidden' &&
        (node.scrollWidth > node.clientWidth || text.height > box.height + 1);
    return isHidden || text.right > around.right + 1;
}).map((node) => [node.className || node.tagName, node.textContent, node.title])"""


@pytest.mark.parametrize("width", [1200, 800, 360])
def test_names_of_streams_channels_and_members_are_not_cut(watched, visit, width):
    source = {"model": "packaging-hall-2", "stream": "filling-machine-east-side-07"}
    names = [
        "Chiller 3 condenser water return temperature_degC",
        "hydraulic_unit_2_pressure_after_filter_bar",
        "vibration_drive_end_bearing_mm_s",
    ]
    contributions = {f"{name} in whitened columns": -0.1 for name in names}
    reading = {"name": names[0], "words": f"{names[0]} 31.41 (usual 27.90 +- 0.31)"}
    for i in range(4):
        watched.publish(stream=f"line-{i}")
    key = tuple(source.values())
    watched.live.introduce(key, [{"name": name, "low": 25.125, "high": 28.4375} for name in names])
    about = source | {"values": [31.41, 27.0, 27.0], "readings": [reading]}
    watched.publish(-1.0, "begin", contributions=contributions, **about)
    page = visit()
    page.set_viewport_size({"width": width, "height": 780})
    card = page.locator("#streams a[data-state=alarm]")
    card.locator(".channel:has-text('31.41 (usual 27.90 ± 0.31)')").wait_for()
    assert page.evaluate(CUT) == []
    assert card.locator(".name").get_attribute("title") == " · ".join(source.values())
    card.click()
    page.locator("#channels h3").nth(2).wait_for()
    page.locator("#members-panel summary").click()
    page.locator("#members th[scope=row]").nth(2).wait_for()
    assert page.evaluate(CUT) == []
    chosen = page.locator("#source")
    assert chosen.get_attribute("title") == "▲ " + " · ".join(source.values())


def test_very_long_names_end_with_dots_and_have_a_title(watched, visit):
    long = "a-very-long-name-without-any-space-" * 8
    reading = {"name": long, "words": f"{long} 5.0 (usual 1.0 +- 0.5)"}
    watched.publish(stream="line-2")
    watched.publish(-1.0, "begin", model=long, stream=long, readings=[reading])
    page = visit()
    page.set_viewport_size({"width": 360, "height": 780})
    page.locator("#streams a[data-state=alarm] .channel:has-text('usual')").wait_for()
    cut = page.evaluate(CUT)
    assert {name for name, *_ in cut} == {"name", "channel"}
    assert all(title == text for _, text, title in cut)


CONTRASTS = """() => {
    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = (c) => c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
    const behind = (node) => {
        for (let one = node; one; one = one.parentElement) {
            const back = parse(getComputedStyle(one).backgroundColor);
            if (back.length === 3 || back[3] === 1) return back;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const node of document.querySelectorAll('body *')) {
        const isText = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        if (!isText || !node.checkVisibility()) continue;
        if (node.closest('.hidden, noscript, option')) continue;
        const a = luminance(parse(getComputedStyle(node).color)), b = luminance(behind(node));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) poor.push([node.id || node.className, node.textContent, ratio]);
    }
    return poor;
}"""


def test_text_stands_out_in_dark_and_light(watched, visit):
    watched.event(thumbnail=PNG)
    watched.events.acknowledge(1, "Ada")
    watched.events.comment(1, "said")
    watched.publish(-1.0, "begin", drift=2.0, contributions=MEMBERS)
    watched.publish(-1.0, "begin", stream="other", drift=2.0, contributions=MEMBERS)
    watched.overview.leave(("pump", "other"), "lost")
    watched.events.end(3, state="interrupted")
    watched.events.raise_event("missing", ("pump", "third"), 1.0, "channel flow missing")
    page = visit(color_scheme="dark")
    page.locator("#streams a[data-state=interrupted]").wait_for()
    assert page.evaluate(CONTRASTS) == []
    page.goto(page.url.partition("#")[0] + "#/pump/line-1")
    in_state(page, "alarm")
    page.get_by_role("button", name="1 comment").click()
    page.locator("#drift.far").wait_for()
    backs = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        backs.append(colour(page, "body", "backgroundColor"))
        assert page.evaluate(CONTRASTS) == []
    dark, light = backs
    assert dark != light
    page.get_by_role("button", name="Switch between light and dark").click()
    assert colour(page, "body", "backgroundColor") == dark
    assert page.evaluate(CONTRASTS) == []
    page.reload()
    assert colour(page, "body", "backgroundColor") == dark
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    assert colour(page, "body", "backgroundColor") == light


def test_everything_has_a_name_and_is_reached_by_tab(watched, visit):
    watched.event(thumbnail=PNG)
    watched.publish(contributions=MEMBERS)
    page = visit()
    page.set_viewport_size({"width": 1300, "height": 900})  # with a table of events
    page.evaluate("document.getElementById('members-panel').open = true")
    page.get_by_role("button", name="Show all 12").wait_for()
    for role, name in [
        ("heading", "not acknowledged"), ("combobox", "Stream"), ("combobox", "Time shown"),
        ("slider", "Score over time"), ("img", "Drift over time"), ("table", "Events"),
        ("textbox", "Your name"), ("status", None), ("columnheader", "Lowest score"),
    ]:  # fmt: skip
        assert page.get_by_role(role, name=name).first.is_visible()
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("(document.activeElement.id || document.activeElement.ariaLabel || '')")
        )
    order = ["source", "theme", "acknowledge", "window", "pause", "chart", "members-all"]
    order += ["show-source", "show-state", "who", "csv", "Acknowledge event 1"]
    assert [one for one in reached if one in order][: len(order)] == order


def test_the_focus_is_not_lost(watched, visit):
    watched.event()
    page = visit()
    page.locator("#who").fill("Ada")
    page.get_by_role("button", name="Acknowledge event 1").focus()
    page.keyboard.press("Enter")
    page.locator(".known:has-text('Ada')").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Comment"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    watched.event()
    page.locator("#table tbody[data-id='2']").wait_for()
    assert page.evaluate("document.activeElement.id") == "text-1"


def test_nothing_moves_for_those_who_ask_for_that(watched, visit):
    page = visit(reduced_motion="reduce")
    page.evaluate("document.getElementById('link').dataset.state = 'reconnecting'")
    assert page.evaluate("document.getAnimations().length") == 0


def test_memory_of_the_page_is_bounded(watched, visit):
    page = visit()
    kept = page.evaluate(
        """async () => {
            const { Samples } = await import('./static/samples.js');
            const samples = new Samples(100);
            const push = (i) => samples.push({ time: i, score: i, contributions: {} });
            for (let i = 0; i < 1000; i++) push(i);
            const full = [samples.length, samples.at('time', samples.first), samples.lastTime,
                          samples.nearest(950.4) - samples.first, samples.shares.length];
            samples.merge([{ time: 990, score: -1 }, { time: 991, score: -2 }]);
            const merged = [samples.length, samples.lastTime, samples.at('score', samples.end - 2)];
            push(5);  // the clock begins anew
            return [full, merged, [samples.length, samples.lastTime]];
        }"""
    )
    assert kept == [[100, 900, 999, 50, 100], [92, 991, -1], [1, 5]]


def test_hundreds_of_events_in_a_burst_are_all_shown(watched, visit):
    page = visit()
    thread = threading.Thread(target=lambda: [watched.event() for _ in range(300)])
    thread.start()
    thread.join()
    page.locator("#table tbody[data-id='300'] [data-state=ended]").wait_for()
    assert shown_ids(page) == list(range(300, 0, -1))
