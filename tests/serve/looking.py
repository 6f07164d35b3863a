"""A service with the live page and nothing to score: tests publish what they like."""

import math
import threading
import time
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from ocfuse.serve.app import _answer_errors
from ocfuse.serve.dashboard import dashboard_router
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.middleware import Guard
from ocfuse.serve.overview import Overview
from ocfuse.serve.samples import Live, Sample
from ocfuse.serve.settings import Settings

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360f8cf500f0003860180345aba490000000049454e44ae426082"
)
TOKEN = "a-token-of-the-tests"


class Watched:
    """The page with its events, behind the guard.

    Parameters
    ----------
    path : Path or None
        File of events.
    token : str or None
        What pages must know.
    """

    def __init__(self, path=None, token=None):
        self.live, self.events = Live(), EventStore(path)
        self.overview = Overview(self.events)
        self.app = FastAPI(docs_url=None, redoc_url=None)
        _answer_errors(self.app)
        self.app.include_router(
            dashboard_router(self.live, self.events, self.overview, token=token)
        )
        self.door = Guard(self.app, Settings(models={"pump": Path("unused")}, token=token))
        self.n_seen = 0

    def publish(self, score=1.0, alarm=None, model="pump", stream="line-1", **more):
        """Publish a sample as the service does: first its event, then itself."""
        self.n_seen += 1
        source = model, stream
        if source not in {known for known, *_ in self.overview.figures()}:
            self.overview.connect(source)
        more = {"time": 1.79e9 + 0.1 * self.n_seen, "p_value": 0.5} | more
        sample = Sample(
            model, stream, self.n_seen, more.pop("time"), score, 0.0,
            is_anomaly=score is not None and score < 0, alarm=alarm, **more,
        )  # fmt: skip
        event = self.events.take(sample)
        if not math.isnan(sample.time):
            reading = sample.readings[0] if sample.readings else None
            self.overview.sample(source, sample.time, score, 0.0, channel=reading)
        self.live.publish(sample)
        return event

    def event(self, score=-1.0, **more):
        """Publish an alarm of two samples."""
        event = self.publish(score, "begin", **more)
        more.pop("thumbnail", None)
        self.publish(1.0, "end", **more)
        return event


class Running:
    """An application at an address of this machine, in a thread; used in ``with``.

    Attributes
    ----------
    address : str
        Where it is, such as ``"127.0.0.1:8000"``.
    """

    def __init__(self, app):
        config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)
        host, port = self.server.servers[0].sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    def __exit__(self, *reason):
        self.server.should_exit = True
        self.thread.join()
