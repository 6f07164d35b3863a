"""Pictures of the live page for the documentation: ``python -m benchmarks.serve.screens``.

A line of simulated motors is scored by a real service, and a browser (chromium, by Playwright)
looks at it. Only the clock is made up: minutes pass in seconds.
"""

import json
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from websockets.sync.client import ClientConnection, connect

from ocfuse import FusedDetector
from ocfuse.lab.motor import CHANNELS, motor_run
from ocfuse.serve import Settings, create_app
from ocfuse.serve.app import Service
from ocfuse.streaming import StreamDetector, StreamTable

FOLDER = Path(__file__).parents[2] / "docs" / "images"
N_TRAINING, N_BEFORE, N_AFTER = 8, 150, 70
#: Streams, with the seed of their run and what goes wrong.
LINE: dict[str, tuple[int, str | None]] = {
    "mixer-1": (101, None),
    "mixer-2": (102, None),
    "mixer-3": (103, "slip"),
    "pump-1": (104, None),
    "pump-2": (105, "vibration gone"),
    "pump-3": (106, None),
    "saw-1": (107, "current +12 %"),
    "saw-2": (108, None),
    "saw-3": (109, None),
}
#: Streams whose client is killed in the end.
KILLED = "saw-1"


def fitted(path: Path) -> None:
    """Write a model that has learned from normal runs."""
    runs = [motor_run(seed) for seed in range(1, N_TRAINING + 1)]
    table = pd.concat(
        [pd.DataFrame(run.values, columns=list(CHANNELS)).assign(file=f"run{i}")
         for i, run in enumerate(runs)],
        ignore_index=True,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        StreamTable(StreamDetector(FusedDetector("light", random_state=0))).fit(table).save(path)


def rows_of(seed: int, fault: str | None) -> list[dict[str, float | None]]:
    """Return the rows that the page will show: around the onset of a fault, if there is one."""
    run = motor_run(seed, fault)
    onset = 400 if run.onset is None else run.onset
    part = run.values[onset - N_BEFORE : onset + N_AFTER]
    known = [[None if np.isnan(value) else round(float(value), 3) for value in row] for row in part]
    return [dict(zip(CHANNELS, row, strict=True)) for row in known]


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Run a service in a thread; yield its address."""
    server = uvicorn.Server(uvicorn.Config(service, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()


def play(
    address: str, lines: Mapping[str, Sequence[Any]], clock: dict[str, float], pause: float = 0.0
) -> dict[str, ClientConnection]:
    """Send the rows of all lines, a second of the clock apart; return the connections."""
    clients = {
        name: connect(f"ws://{address}/v1/stream?stream={name}", legacy=True) for name in lines
    }
    for client in clients.values():
        client.recv()
    begin = clock["now"]
    for i, rows in enumerate(zip(*lines.values(), strict=True)):
        clock["now"] = begin + i
        for client, row in zip(clients.values(), rows, strict=True):
            client.send(json.dumps({"row": row, "time": begin + i}))
        for client in clients.values():
            client.recv()
        time.sleep(pause)
    return clients


def feed(service: Service, address: str) -> dict[str, ClientConnection]:
    """Send all rows, a second of the made-up clock apart; return the connections."""
    lines = {name: rows_of(*about) for name, about in LINE.items()}
    begin = time.time() - N_BEFORE - N_AFTER
    clock = {"now": begin}
    service.overview.now = lambda: clock["now"]  # type: ignore[method-assign]
    service.live.most = 100_000  # samples come much faster than they would
    clients = play(address, lines, clock)
    offset = clock["now"] - time.time()
    service.overview.now = lambda: time.time() + offset  # type: ignore[method-assign]
    return clients


def look(page: Page, address: str, stream: str | None, name: str, **picture: Any) -> None:
    """Take a picture of one stream, or of all."""
    end = "" if stream is None else f"model/{stream}"
    page.goto(f"http://{address}/#/{end}")
    page.wait_for_timeout(1500)
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path, **picture)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


def main() -> None:
    """Make the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        model = Path(folder) / "model.ocf"
        fitted(model)
        service = create_app(Settings({"model": model}))
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        with serving(service) as address:
            page.goto(f"http://{address}/")  # what viewers see is computed for viewers
            clients = feed(service, address)
            with suppress(OSError):
                clients[KILLED].socket.close()  # as if its process were killed
            time.sleep(1.0)
            look(page, address, None, "dashboard-line")
            look(page, address, "mixer-3", "dashboard", full_page=True)
            page.emulate_media(color_scheme="dark")
            look(page, address, KILLED, "dashboard-interrupted")
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": 400, "height": 860})
            look(page, address, "mixer-3", "dashboard-phone")
        browser.close()
        service.close()


if __name__ == "__main__":
    main()
