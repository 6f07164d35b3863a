"""Tables at addresses: a web server, S3 as pyarrow speaks it, and file systems of fsspec."""

import gc
import http.server
import io
import json
import tempfile
import threading
import urllib.parse
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ocfuse.cli.app import app
from ocfuse.exceptions import MissingPackageError, TableError
from ocfuse.tables import open_source, remote

CSV = b"x,y\n1,2\n3,4\n"
LISTING = """<?xml version="1.0"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>
<KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{keys}
</ListBucketResult>"""
KEY = "<Contents><Key>{key}</Key><Size>{size}</Size></Contents>"


def parquet():
    file = io.BytesIO()
    pd.DataFrame({"x": range(5)}).to_parquet(file)
    return file.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve files by name, and those below /bucket as S3 does."""

    files: ClassVar = {
        "/data/rows.csv": CSV,
        "/data/rows.parquet": parquet(),
        "/data/cut.csv": CSV,
        "/private.csv": CSV,
        "/bucket/day/a.csv": CSV,
        "/bucket/day/b.csv": CSV,
        "/bucket/day/notes.md": b"not a table",
        "/bucket/rows.parquet": parquet(),
    }

    def log_message(self, *args):
        """Keep quiet."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        asked = urllib.parse.parse_qs(query)
        if path == "/moved.csv":
            return self.answer(302, b"", Location="/data/rows.csv")
        if path == "/private.csv" and self.headers.get("Authorization") != "Basic bWU6aHVzaA==":
            return self.answer(401, b"")
        if "list-type" in asked:
            return self.answer(200, self.listing(asked.get("prefix", [""])[0]))
        content = self.files.get(path)
        if content is None:
            return self.answer(404, b"")
        if "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            whole, content = len(content), content[first : last + 1]
            where = f"bytes {first}-{first + len(content) - 1}/{whole}"
            return self.answer(206, content, **{"Content-Range": where})
        return self.answer(200, content, extra=9 if path.endswith("cut.csv") else 0)

    def listing(self, prefix):
        keys = [(n.removeprefix("/bucket/"), len(c)) for n, c in self.files.items()]
        found = [KEY.format(key=k, size=s) for k, s in keys if k.startswith(prefix or "/")]
        return LISTING.format(count=len(found), keys="".join(found)).encode()

    def answer(self, code, content, extra=0, **headers):
        self.send_response(code)
        headers |= {"Content-Length": len(content) + extra, "ETag": '"e"'}
        headers |= {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture(scope="module")
def port():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def s3(port, monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return f"?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{port}"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["data/rows.csv", "moved.csv", "data/rows.csv?signature=a%2Fb"])
def test_a_table_on_the_web(port, name):
    source = open_source(f"http://127.0.0.1:{port}/{name}")
    assert source.columns == ["x", "y"]
    assert source.name == name.split("/")[-1].split("?")[0]
    assert source.read()["y"].tolist() == ["2", "4"]
    assert source.read()["y"].tolist() == ["2", "4"]  # as often as is wanted


def test_parquet_on_the_web(port):
    source = open_source(f"http://127.0.0.1:{port}/data/rows.parquet")
    assert source.read()["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_user_and_a_password_are_for_the_server_alone(port):
    assert len(open_source(f"http://me:hush@127.0.0.1:{port}/private.csv").read()) == 2
    with pytest.raises(TableError, match="the server says 401"):
        open_source(f"http://127.0.0.1:{port}/private.csv")


def test_the_copy_is_deleted_with_the_table(port, scratch):
    source = open_source(f"http://127.0.0.1:{port}/data/rows.csv")
    assert [path.name for path in scratch.rglob("*.csv")] == ["rows.csv"]
    del source
    gc.collect()
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.csv", "none.csv cannot be read: the server says 404 .*Look at the address, or down"),
        ("data/cut.csv", r"was cut off after 12 of 21 bytes\. Try again"),
    ],
)
def test_files_that_do_not_come_are_refused_and_leave_nothing(port, scratch, name, words):
    with pytest.raises(TableError, match=words) as refused:
        open_source(f"http://me:hush@127.0.0.1:{port}/{name}?signature=hush")
    assert "hush" not in str(refused.value)
    assert not list(scratch.iterdir())


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(TableError, match=r"http://127\.0\.0\.1:9/t\.csv cannot be read: "):
        open_source("http://127.0.0.1:9/t.csv")


def test_a_file_that_the_disk_has_no_room_for_is_refused(port, monkeypatch):
    usage = remote.shutil.disk_usage("/")
    monkeypatch.setattr(remote.shutil, "disk_usage", lambda path: usage._replace(free=5))
    with pytest.raises(TableError, match=r"has 12 bytes, but .* TMPDIR"):
        open_source(f"http://127.0.0.1:{port}/data/rows.csv")


def test_a_file_on_s3(s3):
    assert open_source("s3://bucket/day/a.csv" + s3).read()["x"].tolist() == ["1", "3"]
    assert len(open_source("s3://bucket/rows.parquet" + s3).read()) == 5


def test_a_folder_on_s3(s3):
    source = open_source("s3://bucket/day/" + s3)
    assert source.name == "day"
    assert source.read()["file"].tolist() == ["a.csv", "a.csv", "b.csv", "b.csv"]


def test_what_is_not_on_s3_is_named(s3):
    with pytest.raises(TableError, match=r"There is no file s3://bucket/none\.csv\."):
        open_source("s3://bucket/none.csv" + s3)


def test_files_by_their_address(tmp_path):
    (tmp_path / "a b.csv").write_bytes(CSV)
    assert open_source((tmp_path / "a b.csv").as_uri()).read()["x"].tolist() == ["1", "3"]
    with pytest.raises(TableError, match="There is no file"):
        open_source((tmp_path / "none.csv").as_uri())


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    for name in ("/runs/a.csv", "/runs/b.csv"):
        with files.open(name, "wb") as file:
            file.write(CSV)
    yield files
    files.store.clear()


def test_other_addresses_are_read_by_fsspec(memory):
    assert open_source("memory://runs/a.csv").read()["y"].tolist() == ["2", "4"]
    assert len(open_source("memory://runs").read()) == 4
    with pytest.raises(TableError, match=r"There is no file memory://runs/none\.csv"):
        open_source("memory://runs/none.csv")


def test_addresses_that_nobody_knows_are_refused(memory):
    with pytest.raises(TableError, match=r"nowhere://a\.csv cannot be read"):
        open_source("nowhere://a.csv")


def test_the_extra_is_named_where_fsspec_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingPackageError, match=r"to read memory://.*\[remote\]"):
        open_source("memory://runs/a.csv")


def test_commands_read_addresses(port, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    monkeypatch.setitem(Handler.files, "/train.csv.gz", packed(rows))
    monkeypatch.setitem(Handler.files, "/new.csv", rows[:9].to_csv(index=False).encode())
    monkeypatch.chdir(tmp_path)
    run, address = CliRunner(), f"http://127.0.0.1:{port}"
    fitted = run.invoke(
        app, ["fit", f"{address}/train.csv.gz", "-o", "m.ocf", "--members", "light", "--quiet"]
    )
    assert fitted.exit_code == 0, fitted.output
    scored = run.invoke(app, ["score", "m.ocf", f"{address}/new.csv", "-o", "s.jsonl", "--quiet"])
    assert scored.exit_code in (0, 1), scored.output
    lines = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    assert len(lines) == 9
    explained = run.invoke(app, ["explain", "m.ocf", f"{address}/new.csv", "--row", "0"])
    assert "score" in explained.output
    missing = run.invoke(app, ["score", "m.ocf", f"{address}/none.csv"])
    assert isinstance(missing.exception, TableError)
    assert "the server says 404" in str(missing.exception)


def packed(rows):
    file = io.BytesIO()
    rows.to_csv(file, index=False, compression="gzip")
    return file.getvalue()
