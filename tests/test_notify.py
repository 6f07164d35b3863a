"""Alarms reach real receivers on this machine, in order, each at least once, over restarts."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.notify import (
    Alarm,
    LineJournal,
    Notifier,
    Notifiers,
    Route,
    named_apart,
    routes_of,
    sign,
    verify,
)
from tests.hook import Hook

ALARM = Alarm(
    7,
    "begin",
    model="motor",
    stream="line-9",
    begin="2026-01-01T05:19:50Z",
    severity=4.2,
    score=-8.24,
    threshold=-3.2,
    p_value=0.001,
    text="speed_rpm 1,438 (usual 1,450 +- 3)",
    channels=[{"name": "speed_rpm", "words": "speed_rpm 1,438 (usual 1,450 +- 3)"}],
)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Memory:
    """A journal of alarms in memory."""

    name = "memory"

    def __init__(self, *alarms: Alarm) -> None:
        self.alarms = list(alarms)

    @property
    def position(self) -> int:
        return len(self.alarms)

    def after(self, position: int) -> Sequence[tuple[int, Alarm]]:
        return [(i + 1, self.alarms[i]) for i in range(position, len(self.alarms))]


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Notifier, "first_wait", 0.01)
    monkeypatch.setattr(Notifier, "longest_wait", 0.02)


@contextmanager
def notifying(route: Route, journal: Any, path: Path | None = None) -> Iterator[Notifiers]:
    found = Notifiers([route], journal, path)
    try:
        yield found
    finally:
        found.close()


def test_a_webhook_gets_begin_and_end_in_order_and_signed(hook: Hook) -> None:
    journal = Memory()
    with notifying(Route(hook.url, secret="shared by both"), journal) as all_routes:
        journal.alarms += [ALARM, replace(ALARM, phase="end", end="2026-01-01T05:20:10Z")]
        all_routes.wake()
        begin, end = hook.wait_for(2)
    assert [begin["phase"], end["phase"]] == ["begin", "end"]
    assert begin["id"] == "memory-7-begin-2026-01-01T05:19:50Z"
    assert begin["channels"][0]["words"] == "speed_rpm 1,438 (usual 1,450 +- 3)"
    headers, body = hook.got[0]
    assert headers["Idempotency-Key"] == begin["id"]
    assert verify(body, headers["Ocfuse-Signature"], "shared by both")
    assert not verify(body, headers["Ocfuse-Signature"], "another")


@pytest.mark.parametrize("answers", [[500, 503], [429, 408], [404, 302]])
def test_what_does_not_arrive_is_sent_again_before_what_follows(
    hook: Hook, answers: list[int]
) -> None:
    hook.answers = list(answers)
    journal = Memory()
    with notifying(Route(hook.url), journal) as all_routes:
        journal.alarms += [ALARM, replace(ALARM, event=8)]
        all_routes.wake()
        assert [message["event"] for message in hook.wait_for(2)] == [7, 8]


def test_a_message_that_is_refused_again_and_again_lets_others_through(hook: Hook) -> None:
    hook.answers = [400] * Notifier.most_refusals
    journal, results = Memory(), []
    found = Notifiers([Route(hook.url)], journal, None, lambda _, result: results.append(result))
    journal.alarms += [ALARM, replace(ALARM, event=8)]
    found.wake()
    assert [message["event"] for message in hook.wait_for(1)] == [8]
    found.close()
    assert results == ["failed"] * (Notifier.most_refusals - 1) + ["refused", "delivered"]
    assert (found.all[0].n_delivered, found.all[0].n_refused) == (1, 1)


def test_alarms_of_the_time_that_nothing_ran_are_told_after_a_restart(
    hook: Hook, tmp_path: Path
) -> None:
    progress, journal = tmp_path / "progress.json", Memory(replace(ALARM, event=1))
    with notifying(Route(hook.url), journal, progress):
        pass  # what was there before the route is no news
    assert not hook.got
    journal.alarms.append(ALARM)
    with notifying(Route(hook.url), journal, progress):
        assert [message["event"] for message in hook.wait_for(1)] == [7]
    journal.alarms.append(replace(ALARM, phase="interrupted"))
    with notifying(Route(hook.url), journal, progress):
        assert [message["phase"] for message in hook.wait_for(2)] == ["begin", "interrupted"]
    with notifying(Route(hook.url), journal, progress):
        pass
    assert len(hook.got) == 2


def test_a_receiver_that_is_down_gets_all_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    progress, journal = tmp_path / "progress.json", Memory()
    with notifying(Route(f"http://127.0.0.1:{port}/"), journal, progress) as all_routes:
        journal.alarms.append(ALARM)
        all_routes.wake()
    assert all_routes.all[0].trouble is not None
    assert "refused" in all_routes.all[0].trouble
    hook = Hook()
    try:
        # the same route by name, at another address
        route = Route(hook.url, name="http://127.0.0.1")
        with notifying(route, journal, progress):
            assert [message["event"] for message in hook.wait_for(1)] == [7]
    finally:
        hook.close()


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["begin", "end", "interrupted", "note"])),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_an_end_is_told_after_its_begin_whenever_the_process_restarts(
    changes: list[tuple[int, Any]], n_first: int
) -> None:
    journal = Memory(*(replace(ALARM, event=event, phase=phase) for event, phase in changes))
    told: list[tuple[int | str, str]] = []
    notifier = Notifier(Route("http://127.0.0.1/"), journal, None)
    notifier._progress.position = 0

    class Keeps:
        def deliver(self, message: Any) -> None:
            if len(told) == n_first:
                told.append(("", "restart"))
                raise OSError("down")
            told.append((message["event"], message["phase"]))

    notifier._receiver = Keeps()
    try:
        notifier.deliver_all()
    except OSError:
        notifier.deliver_all()
    is_on: set[int | str] = set()
    for event, phase in told:
        if phase == "begin":
            assert event not in is_on
            is_on.add(event)
        elif phase in ("end", "interrupted"):
            assert event in is_on
            is_on.remove(event)
    last = {event: phase for event, phase in changes if phase != "note"}
    assert is_on == {event for event, phase in last.items() if phase == "begin"}


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ({"min_severity": 4.0}, True),
        ({"min_severity": 5.0}, False),
        ({"streams": ["line-*"]}, True),
        ({"streams": ["press-*", "oven"]}, False),
        ({"kinds": ["missing"]}, False),
        ({"models": ["mot?r"]}, True),
    ],
)
def test_a_route_takes_what_fits_severity_kind_model_and_stream(
    route: dict[str, Any], expected: bool
) -> None:
    assert Route("https://example.org/", **route).wants(ALARM) is expected


def test_an_alarm_that_grows_severe_is_told_then(hook: Hook) -> None:
    journal = Memory()
    with notifying(Route(hook.url, min_severity=4.0), journal) as all_routes:
        mild = replace(ALARM, severity=2.0)
        journal.alarms += [mild, ALARM, ALARM, replace(ALARM, phase="end")]
        all_routes.wake()
        assert [message["phase"] for message in hook.wait_for(2)] == ["begin", "end"]
    assert len(hook.got) == 2


def test_a_mail_names_the_channel_in_its_subject_and_text() -> None:
    mails: list[Any] = []

    class Sink:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
            mails.append(envelope)
            return "250 OK" if len(mails) > 1 else "451 try again"

    port = free_port()
    sink = Controller(Sink(), hostname="127.0.0.1", port=port)
    sink.start()
    try:
        to = f"smtp://127.0.0.1:{port}/?to=shift@example.org&to=boss@example.org&from=cell@example.org"
        journal = Memory()
        done, results = threading.Event(), []

        def note(route: str, result: str) -> None:
            results.append(result)
            if result == "delivered":
                done.set()

        found = Notifiers([Route(to)], journal, None, note)
        journal.alarms.append(ALARM)
        found.wake()
        assert done.wait(20)
        found.close()
    finally:
        sink.stop()
    text = mails[-1].content.decode()
    assert mails[-1].rcpt_tos == ["shift@example.org", "boss@example.org"]
    assert "Subject: line-9: speed_rpm 1,438 (usual 1,450 +- 3)" in text
    assert "threshold -3.2" in text
    assert results == ["failed", "delivered"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed")
    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    process = subprocess.Popen([program, "-c", settings], stderr=subprocess.DEVNULL)
    yield port
    process.terminate()
    process.wait()


def test_a_broker_has_the_message_when_it_counts_as_delivered(broker: int) -> None:
    mqtt = pytest.importorskip("paho.mqtt.client")
    got: list[Any] = []
    has_subscribed, has_come = threading.Event(), threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_connect = lambda *_: client.subscribe("plant/#", 1)
    client.on_subscribe = lambda *_: has_subscribed.set()
    client.on_message = lambda _, __, message: (got.append(message), has_come.set())
    client.connect_async("127.0.0.1", broker)
    client.loop_start()
    try:
        assert has_subscribed.wait(20)
        journal = Memory()
        route = Route(f"mqtt://127.0.0.1:{broker}/plant/alarms", body="{{ stream }} {{ text }}")
        with notifying(route, journal) as all_routes:
            journal.alarms.append(ALARM)
            all_routes.wake()
            assert has_come.wait(20)
    finally:
        client.disconnect()
        client.loop_stop()
    assert got[0].topic == "plant/alarms"
    assert got[0].payload == b"line-9 speed_rpm 1,438 (usual 1,450 +- 3)"


def test_a_file_of_events_is_read_line_by_line_whatever_else_it_has(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n": 1}\nno json\n{"n": 2}\n{"n"')
    journal = LineJournal(path, lambda record: replace(ALARM, event=record["n"]))
    found = journal.after(0)
    assert [alarm.event for _, alarm in found] == [1, 2]
    assert journal.after(found[0][0])[0][1].event == 2
    assert journal.after(found[1][0]) == []


def test_routes_of_a_file_have_their_secrets_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("in a file\n")
    monkeypatch.setenv("HOOK", "in the environment")
    first, second = routes_of(
        [
            {"to": "https://example.org/a", "secret-file": str(secret), "streams": "line-*"},
            {"to": "https://example.org/b", "secret-env": "HOOK", "min-severity": 3},
        ]
    )
    assert (first.secret, second.secret) == ("in a file", "in the environment")
    assert first.name != second.name
    assert "in a file" not in repr(first)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "needs to ="),
        ({"to": "ftp://example.org"}, "can be sent to https://"),
        ({"to": "https://"}, "can be sent to https://"),
        ({"to": "mqtt://me:pw@example.org/topic"}, "password"),
        ({"to": "https://example.org", "min-severty": 2}, "Did you mean 'min-severity'"),
        ({"to": "https://example.org", "min-severity": "high"}, "cannot be 'high'"),
        ({"to": "https://example.org", "phases": ["start"]}, "phase"),
        ({"to": "https://example.org", "secret-env": "NO_SUCH_NAME_1"}, "NO_SUCH_NAME_1"),
    ],
)
def test_a_route_that_is_wrong_is_refused_in_words(table: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as found:
        routes_of([table])
    assert ":pw@" not in str(found.value)


@pytest.mark.parametrize(
    "route",
    [
        {"to": "https://example.org", "body": "{{ nothing }}"},
        {"to": "https://example.org", "body": "{% if %}"},
        {"to": "smtp://example.org/", "subject": "x"},
        {"to": "smtp://example.org/?to=a@b.c", "text": "{{ ''.__class__.__mro__ }}"},
        {"to": "mqtt://example.org/"},
        {"to": "mqtt://example.org/plant/#"},
    ],
)
def test_a_route_that_could_not_deliver_is_refused_at_the_start(route: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Notifier(Route(**route), Memory(), None)


def test_names_of_routes_differ() -> None:
    routes = named_apart([Route("https://example.org/a"), Route("https://example.org/b")])
    assert [route.name for route in routes] == ["https://example.org", "https://example.org 2"]


def test_an_old_signature_is_not_taken() -> None:
    assert not verify(b"{}", sign(b"{}", "secret", now=0.0), "secret")
    assert not verify(b"{}", "t=x,v1=y", "secret")
