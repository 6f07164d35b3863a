"""The models of a service by name, each replaced as a whole when its file changes."""

import asyncio
import logging
import threading
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ocfuse.exceptions import OcfuseError
from ocfuse.persistence import load, read_header
from ocfuse.persistence.trial import try_load
from ocfuse.serve.errors import ServeError
from ocfuse.serve.pictures import PICTURES
from ocfuse.serve.scoring import Batcher, Scorer, scorer_of
from ocfuse.serve.settings import Settings
from ocfuse.serve.telemetry import Metrics, fault, log_event, noted
from ocfuse.tables.detector import ROWS

#: Distinguishes a file from the one that was there before.
Mark: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Served:
    """One version of a model. Who has it may use it to the end, whatever comes after it.

    Rows of requests are joined by the batcher, which models of runs have not. The version is
    the beginning of the checksum of the file; times are in seconds since 1970.
    """

    name: str
    version: str
    scorer: Scorer
    batcher: Batcher | None
    card: dict[str, Any] = field(default_factory=dict)
    loaded: float = 0.0


class ModelRegistry:
    """The models by name.

    They are loaded in `executor`; in `kernels` blocks of rows are scored, which wait for nothing
    that takes longer.
    """

    def __init__(
        self, settings: Settings, executor: Executor, kernels: Executor, metrics: Metrics
    ) -> None:
        self._settings, self._executor, self._metrics = settings, executor, metrics
        self._kernels = kernels
        self._current: dict[str, Served] = {}
        self._marks: dict[str, Mark] = {}
        self._failed: set[str] = set()
        self._stop = threading.Event()

    def close(self) -> None:
        """Stop a trial that is under way: nothing more is loaded."""
        self._stop.set()

    @property
    def names(self) -> list[str]:
        """Names of the models, the first of which is meant where none is named."""
        return list(self._settings.models)

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded."""
        return len(self._current) == len(self._settings.models)

    def has_failed(self, name: str) -> bool:
        """Return whether the file of a model has changed, but cannot be loaded."""
        return name in self._failed

    def get(self, name: str | None = None) -> Served:
        """Return the present version of a model."""
        found = self._current.get(self.names[0] if name is None else name)
        if found is None:
            raise ServeError(
                404,
                "unknown_model",
                f"There is no such model. There are: {', '.join(self.names)}.",
            )
        return found

    def columns(self, name: str) -> list[str]:
        """Return the columns of a model; none if there is no such model."""
        found = self._current.get(name)
        return [] if found is None else list(found.scorer.names)

    def load(self) -> None:
        """Load all models; a file that cannot be used is an error."""
        for name, path in self._settings.models.items():
            self._marks[name] = _mark(path)
            served = self._read(name, path)
            if served is not None:
                self._replace(served)

    async def watch(self) -> None:
        """Look for changed files until cancelled."""
        while True:
            await asyncio.sleep(self._settings.reload_seconds)
            try:
                await self.reload()
            except Exception as error:  # whatever a file does, the next one is looked for
                log_event("fault", level=logging.ERROR, **fault(error))

    async def reload(self) -> list[str]:
        """Load the models whose files have changed; return their names.

        Each is tried in a process of its own first. A file that cannot be loaded leaves the
        model as it is.
        """
        loop = asyncio.get_running_loop()
        changed = []
        for name, path in self._settings.models.items():
            found = await loop.run_in_executor(self._executor, self._changed, name, path)
            if found is not None:
                self._replace(found)
                changed.append(name)
        return changed

    def _changed(self, name: str, path: Path) -> Served | None:
        """Return the new version of a model, if its file has another content."""
        try:
            mark = _mark(path)
            if mark == self._marks.get(name):
                return None
            self._marks[name] = mark
            if _version(path) == self._current[name].version:
                self._failed.discard(name)
                return None
            # a file that hangs, crashes or eats memory does so in a process of its own
            return self._read(name, path, only=try_load(path, score_a_row, stop=self._stop))
        except Exception as error:  # whatever a file does, the model stays as it is
            if not isinstance(error, OcfuseError | OSError):  # such as too little memory
                self._marks.pop(name, None)  # not the file's fault: it is tried again
            if name not in self._failed:
                self._failed.add(name)
                self._metrics.loads.labels(name, "failed").inc()
                reason = _reason(error)
                log_event("model_not_loaded", level=logging.ERROR, model=name, reason=reason)
            return None

    def _read(self, name: str, path: Path, only: str | None = None) -> Served | None:
        """Load a model; None if its file is no longer the one that was tried."""
        version = _version(path)
        if only is not None and not only.startswith(version):
            self._marks.pop(name, None)  # replaced meanwhile: it is tried again
            return None
        with noted() as notes:
            model = load(path)
        if _version(path) != version:  # replaced meanwhile: which of the two was read?
            return self._read(name, path, only)
        for note in notes:
            log_event("model_note", level=logging.WARNING, model=name, note=note)
        scorer = scorer_of(model)
        return Served(
            name,
            version,
            scorer,
            self._batcher(name, scorer),
            dict(getattr(model, "card_", {})),
            time.time(),
        )

    def _batcher(self, name: str, scorer: Scorer) -> Batcher | None:
        if scorer.kind != ROWS:
            return None
        rows = self._metrics.batch_rows.labels(name)
        requests = self._metrics.batch_requests.labels(name)

        def count(n_rows: int, n_requests: int) -> None:
            rows.observe(n_rows)
            requests.observe(n_requests)

        settings = self._settings
        return Batcher(
            *(scorer.score_cells, self._kernels, settings.batch_rows, settings.batch_seconds),
            report=count,
            most_wait=settings.limits.wait_seconds,
        )

    def _replace(self, served: Served) -> None:
        """Let later requests have a new version; those under way keep the one they have."""
        self._current[served.name] = served
        self._failed.discard(served.name)
        self._metrics.loads.labels(served.name, "loaded").inc()
        self._metrics.loaded.labels(served.name).set(served.loaded)
        log_event("model_loaded", model=served.name, version=served.version)


def score_a_row(model: Any) -> None:
    """Score a row that fits a model: what a service will ask for must not crash it."""
    scorer = scorer_of(model)
    if scorer.kind == PICTURES:
        return  # it has scored a picture already
    columns = {column.name: column for column in scorer.schema.columns}
    row: dict[str, Any] = {
        name: columns[name].categories[0] if columns[name].kind == "category" else 0.0
        for name in scorer.names
    }
    scorer.try_row(row)


def batcher_of(served: Served) -> Batcher:
    """Return the batcher of a model of rows."""
    if served.batcher is None:
        raise TypeError("Rows of a run are not joined with those of others.")
    return served.batcher


def _version(path: Path) -> str:
    return read_header(path).sha256[:16]


def _mark(path: Path) -> Mark:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) if isinstance(error, OcfuseError) else type(error).__name__
