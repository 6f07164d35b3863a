"""Count the files that the main ways through the code touch: ``python -m supply.traces``.

A file counts if one of its functions is called. Everything runs once before it is counted, so
that imports do not count. A table of 300 rows and 4 columns, default settings. ``--names`` prints
the files, too. A way that touches more than its limit makes the program fail.
"""

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from anyio.from_thread import start_blocking_portal
from httpx import ASGITransport, AsyncClient, Response

from ocfuse import FusedDetector
from ocfuse.cli.app import run
from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Settings
from supply.figures import PACKAGE, Figure

#: The most files that each way may touch. The aim: 62, 40, 22 and 32.
LIMITS = {
    "files of ocfuse fit": 72,
    "files of FusedDetector().fit": 48,
    "files of score_samples, one row": 24,
    "files of POST /v1/score": 34,
}


class Recorder:
    """Notes in which files functions are called, on every thread begun after it, while it is on."""

    def __init__(self) -> None:
        self.is_on, self.found = False, set[str]()
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a call."""
        if self.is_on and event == "call":
            self.found.add(frame.f_code.co_filename)

    def files(self, way: Callable[[], object]) -> tuple[str, ...]:
        """Return the files of the package that the second of two calls touches."""
        way()
        self.found, self.is_on = set(), True
        way()
        self.is_on = False
        paths = (Path(name) for name in self.found)
        inside = (path for path in paths if path.is_relative_to(PACKAGE))
        return tuple(sorted(str(path.relative_to(PACKAGE)) for path in inside))


@contextmanager
def ways(folder: Path) -> Iterator[dict[str, Callable[[], object]]]:
    """Yield the ways by name: a command, a fit, one row, one request."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    table, model = folder / "normal.csv", folder / "model.ocf"
    np.savetxt(table, X, delimiter=",", header="a,b,c,d", comments="")
    detector = FusedDetector(random_state=0).fit(X)
    detector.save(model)
    service = create_app(Settings({"m": model}))
    client = AsyncClient(transport=ASGITransport(service), base_url="http://127.0.0.1")

    def fit_command() -> None:
        with suppress(SystemExit):
            run(["fit", str(table), "-o", str(folder / "fitted.ocf"), "--quiet", "--force"])

    async def request() -> Response:
        return await client.post("/v1/score", json={"rows": X[:1].tolist()})

    with start_blocking_portal() as portal:

        def post() -> None:
            answer = portal.call(request)
            if answer.status_code != 200:
                raise RuntimeError(f"the service answered {answer.status_code}: {answer.text}")

        calls = (
            fit_command,
            lambda: FusedDetector(random_state=0).fit(X),
            lambda: detector.score_samples(X[:1]),
            post,
        )
        yield dict(zip(LIMITS, calls, strict=True))
    service.close()


def main() -> int:
    """Print how many files each way touches; return 1 if one touches too many."""
    recorder, over = Recorder(), False
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ways(Path(name)) as found:
            for way, call in found.items():
                files = recorder.files(call)
                shown = files if "--names" in sys.argv else ()
                figure = Figure(way, len(files), LIMITS[way], files)
                print(figure, *shown)
                over |= figure.is_over
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
