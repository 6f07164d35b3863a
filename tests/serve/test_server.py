"""The command as a process: its address, its end, a kill, a new model, TLS, a crowd."""

import contextlib
import json
import logging
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage

from ocfuse import load
from ocfuse.cli.runtime import ExitCode
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve import server as module
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.server import Server, open_socket
from ocfuse.serve.settings import Settings
from ocfuse.serve.telemetry import JsonLines, Sparing
from tests.cli.cases import process
from tests.serve.asking import ASKED, connect, get, rows

OPENSSL = shutil.which("openssl")
NORMAL = {"pressure": 0.0, "temperature": 20.0, "mode": "on"}
ODD = NORMAL | {"temperature": 60.0}
UPGRADE = (
    b"GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Serving:
    """`ocfuse serve` at a free port; used in ``with``."""

    def __init__(self, *words):
        self.words = words

    def __enter__(self):
        self.process = process("serve", *self.words, "--port", "0", "--json")
        told = self.process.stdout.readline()
        assert told, self.process.stderr.read()
        self.address = json.loads(told)["address"]
        self.socket_address = self.address.replace("http", "ws", 1)
        self.log = []  # read at once: a pipe that nobody reads would stop the service
        self.reading = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reading.start()
        return self

    def stop(self, number=signal.SIGTERM):
        """End it by a signal; return code and the lines of its log."""
        self.process.send_signal(number)
        self.process.wait(timeout=60)
        self.reading.join()
        return self.process.returncode, [json.loads(line) for line in self.log]

    def __exit__(self, *reason):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reading.join()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()


def tell(stream, **message):
    stream.send(json.dumps(message))
    return json.loads(stream.recv(timeout=60))


@pytest.mark.slow
def test_reload_drain_and_logs(model_files, tmp_path):
    """One process, as it takes seconds to start: a new model, then an end under load."""
    path = tmp_path / "plant.ocf"
    shutil.copy(model_files["plant"], path)
    failures, done = [], threading.Event()

    def ask_on(address):
        with httpx.Client(base_url=address, timeout=60) as client:
            while not done.wait(0.5):  # the new model is tried meanwhile, by who gives way to all
                try:
                    answer = client.post("/v1/score", json={"rows": rows(1)})
                except httpx.ConnectError:
                    return  # the door is closed: nothing was taken
                if answer.status_code != 200:
                    failures.append(answer.text)

    with Serving(path, "--reload", "0.1", "--events", tmp_path / "events.sqlite") as serving:
        clients = [threading.Thread(target=ask_on, args=[serving.address]) for _ in range(3)]
        for client in clients:
            client.start()
        first = get(f"{serving.address}/v1/model").json()["version"]
        model = load(path)
        model.detector_.set_threshold(0.2)
        model.save(path)
        end = time.monotonic() + 600  # it is tried in a process of its own first
        while get(f"{serving.address}/v1/model").json()["version"] == first:
            assert time.monotonic() < end
            time.sleep(0.2)
        with connect(f"{serving.socket_address}/v1/stream?stream=last") as stream:
            json.loads(stream.recv())
            assert tell(stream, row=ODD)["alarm"] == "begin"
            for _ in range(20):
                stream.send(json.dumps({"row": ODD}))
            json.loads(stream.recv(timeout=60))  # they have come
            done.set()
            code, lines = serving.stop()
            answers = []
            with pytest.raises(ConnectionClosed) as caught:  # noqa: PT012
                while True:
                    answers.append(json.loads(stream.recv(timeout=60)))
        for client in clients:
            client.join()
    assert code == 0
    assert failures == []
    assert [answer["type"] for answer in answers] == ["score"] * 19 + ["bye"]
    assert caught.value.rcvd.code == 1012
    told = {line["event"] for line in lines}
    assert {"model_loaded", "request", "alarm_begin"} <= told
    assert all(line["level"] == "info" for line in lines), lines
    store = EventStore(tmp_path / "events.sqlite")
    assert [(event.stream, event.state) for event in store.list()] == [("last", "interrupted")]
    store.close()


@pytest.fixture
def certificate(tmp_path):
    """Return the flags of a certificate for this machine, and a client that trusts it."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    subprocess.run(
        [
            *(OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    return ["--tls-cert", cert, "--tls-key", key], ssl.create_default_context(cafile=cert)


@pytest.mark.slow
def connected(address, **options):
    """Connect, again if need be: the client's threads share TLS, which fails on busy machines."""
    for _ in range(4):
        with suppress(InvalidMessage):
            return connect(address, **options)
    return connect(address, **options)


def test_token_tls_and_events_that_outlive_a_kill(model_files, tmp_path, certificate):
    tls, trusted = certificate
    token, path = tmp_path / "token", tmp_path / "events.sqlite"
    token.write_text(f"{ASKED}\n")
    words = [f"plant={model_files['plant']}", "--events", path, "--token-file", token, *tls]
    header = {"Authorization": f"Bearer {ASKED}"}
    with Serving(*words) as serving:
        assert serving.address.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=serving.address, verify=trusted, timeout=60) as client:
            assert client.get("/v1/model").status_code == 401
            answer = client.post("/v1/score", json={"rows": rows(1)}, headers=header)
            assert answer.status_code == 200
        address = f"{serving.socket_address}/v1/stream?stream=killed"
        with connected(address, additional_headers=header, ssl=trusted) as stream:
            json.loads(stream.recv())
            event = tell(stream, row=ODD)["event"]
            code, lines = serving.stop(signal.SIGKILL)
            assert code == -signal.SIGKILL
    assert ASKED not in json.dumps(lines)
    store = EventStore(path)
    (kept,) = store.list()
    assert (kept.id, kept.stream, kept.state) == (event, "killed", "interrupted")
    store.close()


def test_who_keeps_a_connection_for_nothing_is_closed(make_service, monkeypatch):
    """Headers that drip in or have no end, and pings whose answers nobody reads."""
    service = make_service({"seconds": 0.5}, reload_seconds=0)
    server = Server(service, print)
    listening = open_socket(Settings({"m": Path("m")}, port=0))
    thread = threading.Thread(target=server.run, args=[[listening]], daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    host, port = listening.getsockname()
    with (
        socket.create_connection((host, port)) as slow,
        connect(f"ws://{host}:{port}/v1/stream") as stream,
    ):
        json.loads(stream.recv())
        slow.settimeout(60)
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with suppress(ConnectionResetError):
            assert slow.recv(100) == b""
        assert tell(stream, row=NORMAL)["type"] == "score"
        with socket.create_connection((host, port)) as wordy, suppress(ConnectionError):
            wordy.settimeout(60)
            wordy.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000)
            assert b" 400 " in wordy.recv(100)
        monkeypatch.setattr(Server, "most_unread", 50_000)
        pings = (b"\x89\xfd" + bytes(4) + b"p" * 125) * 500
        with socket.create_connection((host, port)) as deaf:
            deaf.settimeout(60)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.sendall(UPGRADE)
            with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012
                for _ in range(1000):
                    deaf.sendall(pings)
    server.should_exit = True
    thread.join()


@contextlib.contextmanager
def served(service):
    """Serve in this process as the command does; give the address."""
    server = Server(service, print)
    listening = open_socket(Settings({"m": Path("m")}, port=0))
    thread = threading.Thread(target=server.run, args=[[listening]], daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server, listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n[",
    ],
    ids=["nothing", "half of the headers", "half of the body"],
)
def test_a_crowd_of_half_open_connections_keeps_nobody_out(make_service, monkeypatch, half):
    """Every request is answered while they are there, and a stream goes on."""
    monkeypatch.setattr(module.Connections, "most_silent", 100)
    with (
        served(make_service({"requests": 100}, reload_seconds=0)) as (server, where),
        contextlib.ExitStack() as opened,
        connect(f"ws://{where[0]}:{where[1]}/v1/stream") as stream,
        httpx.Client(base_url=f"http://{where[0]}:{where[1]}", timeout=60) as patient,
    ):
        json.loads(stream.recv(timeout=60))
        assert patient.get("/v1/model").status_code == 200
        for i in range(300):
            one = opened.enter_context(socket.create_connection(where))
            one.sendall(half)
            if i % 100 == 99:
                assert tell(stream, row=NORMAL)["type"] == "score"
                answer = httpx.post(
                    f"http://{where[0]}:{where[1]}/v1/score", json={"rows": rows(1)}, timeout=60
                )
                assert answer.status_code == 200
                assert patient.get("/v1/model").status_code == 200
        assert len(server.server_state.connections) < 220


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((256, 256), 256), ((256, 1024), 1024), ((1024, 2**20), 4096), ((-1, -1), 4096)],
)
def test_the_process_asks_for_as_many_files_as_it_may_have(monkeypatch, limits, expected):
    resource, asked = pytest.importorskip("resource"), []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, values: asked.append(values))
    assert module.most_files() == expected
    assert asked == ([] if limits[0] in (expected, -1) else [(expected, limits[1])])


def test_few_files_are_shared_out():
    """With few files to open, fewer connections are kept; busy ones are never closed."""

    class Connected:
        client, closed = ("a", 1), False

        def __init__(self, cycle=None):
            self.cycle = cycle
            self.transport = SimpleNamespace(abort=lambda: gone.append(self))

    gone, connections = [], module.Connections(most=4)
    busy = [Connected(SimpleNamespace(response_complete=False)) for _ in range(3)]
    known = Connected(SimpleNamespace(response_complete=True))
    silent = [Connected() for _ in range(3)]
    for one in (known, *busy, *silent):
        connections.add(one)
    assert gone == [known, silent[0], silent[1]]
    assert set(connections) == {*busy, silent[2]}


def test_one_fault_many_times_is_a_few_lines():
    """A thousand strangers must not fill the disk; how many there were is told."""
    now = [0.0]
    sparing, lines = Sparing(lambda: now[0]), []

    def log(level, words, **about):
        record = logging.LogRecord("uvicorn.error", level, "", 0, words, (), None)
        record.about = about
        if sparing.filter(record):
            lines.append(json.loads(JsonLines().format(record)))

    for _ in range(1000):
        log(logging.WARNING, "Invalid HTTP request received.")
        log(logging.INFO, "request")
    assert Counter(line["event"] for line in lines) == {
        "Invalid HTTP request received.": 20, "request": 1000,
    }  # fmt: skip
    now[0] = 61.0
    log(logging.INFO, "request")
    assert lines[-1]["left_out_before"] == {"Invalid HTTP request received.": 980}
    log(logging.WARNING, "Invalid HTTP request received.")
    assert "left_out_before" not in lines[-1]
    assert lines[-1]["level"] == "warning"


def test_signals_are_a_wish(service):
    server = Server(service, print)
    before = signal.getsignal(signal.SIGINT)
    with server.capture_signals():
        signal.raise_signal(signal.SIGINT)
        assert (server.should_exit, server.force_exit, server.signal) == (True, False, 2)
        signal.raise_signal(signal.SIGTERM)  # who sends two has no patience left
        assert server.force_exit
    assert signal.getsignal(signal.SIGINT) is before


def test_what_does_not_start(run_command, model_files, tmp_path, monkeypatch):
    monkeypatch.delenv("OCFUSE_TOKEN", raising=False)
    monkeypatch.setattr("ocfuse.serve.telemetry.write_lines", lambda **more: None)
    plant = model_files["plant"]
    (tmp_path / "bad.pem").write_text("nonsense")
    for words, expected in (
        ([plant, "--host", "0.0.0.0"], "needs a token"),
        ([plant, "--tls-cert", "cert.pem"], "both"),
        ([plant, f"again={plant}", plant], "another name"),
        ([tmp_path / "none.ocf"], "No such file"),
        ([plant, "--tls-cert", tmp_path / "bad.pem", "--tls-key", tmp_path / "bad.pem"], "PEM"),
        ([plant, "--events", tmp_path / "none" / "events.sqlite"], "no folder"),
    ):
        code, out, err = run_command("serve", *words, "--port", "0")
        assert (code, out) == (ExitCode.BAD_DATA, "")
        assert expected in err


def test_an_address_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match="--port"):
            open_socket(Settings({"m": Path("m")}, port=port))


def test_help_names_the_limits(run_command):
    code, out, _ = run_command("serve", "--help")
    assert code == 0
    assert all(word in out for word in ("--max-rows", "--token-file", "--tls-cert", "--keep-days"))
