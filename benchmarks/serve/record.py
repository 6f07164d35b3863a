"""Record the live page for the documentation: ``python -m benchmarks.serve.record FOLDER``.

A real service scores simulated motors while pages look on; what it sends them is written into
``FOLDER`` beside the files of the page and a script, ``replay.js``, that stands in for the service.
"""

import json
import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.serve.screens import N_AFTER, N_BEFORE, fitted, play, rows_of, serving
from ocfuse.serve import Settings, create_app
from ocfuse.serve.dashboard import FILES, DashboardConnection

REPLAY = Path(__file__).parent / "replay.js"
#: Streams, with the seed of their run and what goes wrong.
LINE: dict[str, tuple[int, str | None]] = {
    "mixer-1": (101, None),
    "mixer-2": (103, "slip"),
    "pump-1": (104, None),
    "pump-2": (105, "vibration gone"),
    "saw-1": (107, "current +12 %"),
    "saw-2": (108, None),
}
#: Messages to a page that are the same for every stream it shows.
SHARED = ("events", "streams")
#: Seconds from where a page begins to the first event: there is something to be seen soon.
BEFORE = 5


class Looker(threading.Thread):
    """A page without a browser: keeps what it is sent, with the second in which it came."""

    #: Longest wait for the messages of the last second.
    patience: ClassVar[float] = 1.0

    def __init__(self, address: str, clock: dict[str, float], source: list[str] | None) -> None:
        super().__init__(daemon=True)
        self.clock, self.messages = clock, list[tuple[float, dict[str, Any]]]()
        self.source = source
        self.socket = connect(f"ws://{address}/v1/live", legacy=True)
        self.socket.send(json.dumps({"type": "hello", "token": None, "source": source}))

    def look_again(self) -> None:
        """Ask for the whole history: now the channels are known, too."""
        for source in (None, self.source):
            self.socket.send(json.dumps({"type": "watch", "source": source}))
            time.sleep(0.1)

    def run(self) -> None:
        """Keep what comes."""
        with suppress(ConnectionClosed):
            for text in self.socket:
                self.messages.append((self.clock["now"], json.loads(text)))


def record(model: Path) -> dict[str, Any]:
    """Return what pages were sent while the line ran."""
    lines = {name: rows_of(*about) for name, about in LINE.items()}
    service = create_app(Settings({"model": model}))
    begin = float(int(time.time())) - N_BEFORE - N_AFTER
    clock = {"now": begin}
    service.overview.now = lambda: clock["now"]  # type: ignore[method-assign]
    service.live.most = 100_000  # samples come much faster than they would
    kept, DashboardConnection.seconds = DashboardConnection.seconds, 0.02
    try:
        with serving(service) as address:
            sources = [None, *(["model", name] for name in lines)]
            lookers = [Looker(address, clock, source) for source in sources]
            for looker in lookers:
                looker.start()
            clients = play(address, lines, clock, pause=0.08)  # pages are told in this time
            end = clock["now"]
            for looker in lookers:
                looker.look_again()
            time.sleep(Looker.patience)
            for socket in (*(looker.socket for looker in lookers), *clients.values()):
                socket.close()
    finally:
        DashboardConnection.seconds = kept
        service.close()
    shared = _shared(lookers[0])
    streams = {name: _samples(one) for name, one in zip(lines, lookers[1:], strict=True)}
    welcome = next(one for _, one in lookers[0].messages if one["type"] == "welcome")
    return {
        "begin": begin,
        "start": next((when - BEFORE for when, one in shared if one.get("events")), begin),
        "end": end,
        "welcome": welcome,
        "shared": shared,
        "streams": streams,
    }


def _shared(looker: Looker) -> list[list[Any]]:
    """Return what is the same whatever a page shows: every event, and states once a second."""
    kept: list[list[Any]] = []
    places: dict[tuple[float, str], int] = {}
    for when, message in looker.messages:
        if message["type"] not in SHARED:
            continue
        place = when, json.dumps([one["stream"] for one in message.get("streams", ())])
        if message["type"] == "streams" and place in places:
            kept[places[place]][1] = message
        else:
            places[place] = len(kept)
            kept.append([when, message])
    return kept


def _samples(looker: Looker) -> dict[str, Any]:
    """Return the channels and samples of one stream, each sample once."""
    channels: list[Any] = []
    samples: dict[int, Any] = {}
    for _, message in looker.messages:
        channels = message.get("channels") or channels
        for one in message.get("samples", ()):
            samples.setdefault(one["seq"], one)
    return {"channels": channels, "samples": [samples[seq] for seq in sorted(samples)]}


def write(folder: Path, recording: dict[str, Any]) -> None:
    """Write the page, its files, and the recording."""
    static = folder / "static"
    static.mkdir(parents=True, exist_ok=True)
    source = files("ocfuse.serve") / "static"
    for name in FILES:
        if name not in ("page.html", "docs.html", "docs.js"):
            (static / name).write_bytes((source / name).read_bytes())
    shutil.copy(REPLAY, static / "replay.js")
    words = json.dumps(recording, separators=(",", ":"))
    (static / "recording.js").write_text(f"const RECORDING = {words};\n", encoding="utf-8")
    page = (source / "page.html").read_text(encoding="utf-8")
    names = ("recording.js", "replay.js")
    scripts = "".join(f'<script src="static/{name}"></script>\n' for name in names)
    mark = '<script type="module"'
    (folder / "line.html").write_text(page.replace(mark, scripts + mark, 1), encoding="utf-8")


def main() -> None:
    """Record, and write."""
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model.ocf"
        fitted(model)
        write(Path(sys.argv[1]), record(model))


if __name__ == "__main__":
    main()
