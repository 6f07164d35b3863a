"""Folders of the test's own, the archive's files rebuilt, and a small HTTP server."""

import csv
import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ocfuse.datasets.uci import UCI_SETS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder of the user's; the cache is empty too."""
    monkeypatch.setenv("OCFUSE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("OCFUSE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "uci").mkdir(parents=True)
    return tmp_path / "data"


def archive_text(data, name):
    """Write the rows of a CSV file as the archive does."""
    uci_set = UCI_SETS[name]
    codes = {word: code for code, word in uci_set.classes.items()}
    with open(data / "uci" / uci_set.csv_name, newline="") as file:
        rows = list(csv.reader(file))[1:]
    lines = []
    for number, (*values, label) in enumerate(rows, start=1):
        cells = [value or "?" for value in values]
        code = codes.get(label, label)
        cells = [code, *cells] if uci_set.label_first else [*cells, code]
        lines.append([str(number), *cells] if uci_set.has_id else cells)
    return "\n".join((uci_set.delimiter or " ").join(line) for line in lines)


def zipped(members):
    """Return the bytes of a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


class Server(ThreadingHTTPServer):
    """Serve `body`, with the faults that the path names; note what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = b""
        self.asked = []
        self.faults, self.may_answer = {}, threading.Event()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        fault = server.faults.get(len(server.asked), server.faults.get("always"))
        if isinstance(fault, int):
            return self.send_error(fault)
        if fault == "silent":
            return server.may_answer.wait(60)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if fault == "no range":
            start = 0
        if start >= len(server.body) and start:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.body)}")
            return self.end_headers()
        self.send_response(206 if start else 200)
        rest = server.body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if fault == "slow":
            self.wfile.write(rest[: len(rest) // 2])
            time.sleep(0.3)
            rest = rest[len(rest) // 2 :]
        self.wfile.write(rest[: len(rest) // 2] if fault == "cut" else rest)
        return None

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.may_answer.set()
        server.shutdown()
        thread.join()
