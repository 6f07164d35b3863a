"""Requests to an application without a server, and patience with one that has a server."""

import asyncio
import time
from functools import partial

import httpx
from websockets.sync import client as websockets

from tests.cli.cases import plant

HOST = "http://127.0.0.1"
#: Open a connection; a busy machine takes its time.
connect = partial(websockets.connect, open_timeout=60)
#: Ask without reading the certificates of the machine, which takes longer than the answer.
get = partial(httpx.get, timeout=60, verify=False)


def client_of(app):
    """Return a client that calls an application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=HOST, timeout=60)


def ask(app, path, content=None, *, method=None, **more):
    """Ask once; content that is no text or bytes is sent as JSON."""

    async def asked():
        async with client_of(app) as client:
            kind = "content" if isinstance(content, bytes | str) else "json"
            body = {} if content is None else {kind: content}
            word = method or ("GET" if content is None else "POST")
            return await client.request(word, path, **body, **more)

    return asyncio.run(asked())


def refusal(answer, status):
    """Return the code of a refusal, having seen that it has the right form and tells nothing."""
    assert answer.status_code == status, answer.text
    content = answer.json()
    assert set(content) == {"error"}
    assert set(content["error"]) == {"code", "message"}
    assert "Traceback" not in answer.text
    assert ".py" not in answer.text
    assert "/tmp" not in answer.text
    return content["error"]["code"]


def wait_until(is_true):
    """Wait for what another thread or process does in its own time."""
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def rows(n=3, seed=5):
    """Return rows of the plant as JSON has them."""
    return plant(n, seed).to_dict("records")


ASKED = "abcdef0123456789-token"
