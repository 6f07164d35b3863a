"""The Dask cluster that does the work, and the joblib backend on it."""

import asyncio
import concurrent.futures
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from joblib import parallel_config
from joblib._dask import Batch, DaskDistributedBackend, is_weakrefable

from ocfuse import __version__
from ocfuse.exceptions import ClusterError, InvalidInputError
from ocfuse.system.packages import needed

#: `distributed.Client`; the package itself is imported only when a cluster is met.
Client: TypeAlias = Any

#: Seconds to wait for the scheduler, and for a first worker.
PATIENCE = 20
#: Seconds to wait for another worker in the midst of work, when there is none left.
DESERTED = 60
#: What becomes of tasks whose scheduler is gone.
LOST = (asyncio.CancelledError, concurrent.futures.CancelledError)


def dask(module: str) -> Any:
    """Return a module of Dask, or raise an error that names the extra."""
    return needed(module, "to work on many machines", "distributed")


@contextmanager
def connected(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """Yield a client of a cluster, and end it (or the connection to it) afterwards.

    Parameters
    ----------
    scheduler : str, default=None
        Address of a scheduler that runs, such as ``"tcp://10.0.0.1:8786"``. None starts
        processes on this machine, which nobody else can reach.
    workers : int, default=None
        How many processes to start; None is one for each core. Not with a scheduler.

    Yields
    ------
    distributed.Client
        The client, for `fit` and `score`.
    """
    if scheduler is not None and workers is not None:
        raise InvalidInputError(
            f"workers is for processes of this machine. Got workers={workers} and a scheduler, "
            "which has its own. Leave one of them out."
        )
    if workers is not None and workers < 1:
        raise InvalidInputError(f"workers must be at least 1. Got workers={workers}.")
    with _local(workers) if scheduler is None else _remote(scheduler) as client:
        _require_same_version(client)
        yield client


@contextmanager
def _local(workers: int | None) -> Iterator[Client]:
    distributed = dask("distributed")
    host = "127.0.0.1"  # nobody else can reach what listens there
    cluster = distributed.LocalCluster(
        n_workers=workers or os.cpu_count() or 1,
        threads_per_worker=1,
        processes=True,
        host=host,
        dashboard_address=f"{host}:0",  # not 8787, which is taken if somebody else does the same
        silence_logs="CRITICAL",
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _remote(scheduler: str) -> Iterator[Client]:
    with _silent("distributed.client"), _reached(scheduler) as client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterError(
                f"The scheduler at {scheduler} has had no workers for {PATIENCE:g} seconds. Start "
                f"some on every machine: dask worker --nthreads 1 --nworkers auto {scheduler}"
            ) from error
        yield client


def _reached(scheduler: str) -> Client:
    """Return the client of a scheduler."""
    try:
        _knock_at(scheduler)
        return dask("distributed").Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"There is no scheduler at {scheduler}. Expected an address such as "
            f"tcp://10.0.0.1:8786, where `dask scheduler` runs. ({error})"
        ) from error


def _knock_at(scheduler: str) -> None:
    """Raise an error if nobody answers: a client of Dask would wait, some for ever."""
    parts = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
    if parts.scheme in ("tcp", "tls"):
        if parts.hostname is None or parts.port is None:
            raise ValueError("The name of a machine and a number belong to it.")
        with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as door:
            # A scheduler speaks first; what serves pages, such as its dashboard, does not.
            if parts.scheme == "tcp" and not door.recv(1):
                raise ConnectionError("What listens there is no scheduler.")


@contextmanager
def _silent(logger: str) -> Iterator[None]:
    """Keep Dask from printing what is raised as an error at the same time."""
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def guarded(client: Client, advice: str) -> Iterator[None]:
    """Raise an error inside, with advice, if the scheduler is lost or no worker is left."""
    watch = ClusterWatch(client)
    try:
        yield
    except (Exception, *LOST) as error:
        watch.end()
        if watch.is_deserted:
            raise ClusterError(
                f"There has been no worker for {DESERTED:g} seconds. {advice}"
            ) from error
        if isinstance(error, LOST) or client.status != "running":
            raise ClusterError(
                f"The scheduler is gone, or has forgotten what was asked of it. {advice}"
            ) from error
        raise
    finally:
        watch.end()


class ClusterWatch:
    """Look now and then whether somebody works; otherwise cancel what was asked for.

    Dask itself waits for ever: workers may come.
    """

    def __init__(self, client: Client) -> None:
        self.is_deserted = False  # whether there were no workers for too long
        self._client = client
        self._others = set(client.futures)
        self._over = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def end(self) -> None:
        """Stop looking."""
        self._over.set()

    def _look(self) -> None:
        seen = time.monotonic()
        while not self._over.wait(min(2.0, DESERTED / 4)):
            # Dask cancels by itself if it cannot answer.
            with suppress(Exception):
                seen = time.monotonic() if self._client.ncores() else seen
                if time.monotonic() - seen > DESERTED and not self._over.is_set():
                    self.is_deserted = True
                    make = dask("distributed").Future
                    ours = [key for key in list(self._client.futures) if key not in self._others]
                    self._client.cancel([make(key, self._client) for key in ours])


@contextmanager
def naming_killers(name: str) -> Iterator[None]:
    """Name the piece of work that ended one worker after another."""
    try:
        yield
    except dask("distributed").KilledWorker as error:
        raise KillerError(
            f"{name} ended every worker that took it up, perhaps for want of memory. "
            f"Give workers more memory, or leave it out. ({error})"
        ) from error


class KillerError(ClusterError):
    """Name the work that ends workers."""


@contextmanager
def large_messages() -> Iterator[None]:
    """Send what is large to the scheduler without a warning: a model, or a sample, once."""
    with dask("dask").config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
        yield


def _require_same_version(client: Client) -> None:
    """Refuse workers without ocfuse, or with another one: their scores may differ."""
    found = client.run(_version, on_error="return")
    for worker, version in found.items():
        if version != __version__:
            what = f"ocfuse {version}" if isinstance(version, str) else f"no ocfuse ({version})"
            raise ClusterError(
                f"The worker {worker} has {what}, and this is ocfuse {__version__}. Install the "
                "same packages everywhere: pip install 'ocfuse[distributed,tool]'"
            )


def _version() -> str:
    return __version__


class SteadyBackend(DaskDistributedBackend):  # type: ignore[misc]
    """Dask as a backend of joblib, which a worker that ends does not upset.

    joblib scatters large arguments: they live on some worker, and end with it. Here they are
    results of a task, which the scheduler has done again elsewhere. Inside a task nothing is
    distributed further.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client=client)
        self._dumps = dask("distributed.protocol.pickle").dumps

    async def _collect(self) -> None:
        # joblib hands over no error of Dask itself, and waits for ever.
        while self._continue:
            async for future, result in self.waiting_futures:
                outcome = result[1] if future.status == "error" else result
                self._results.pop(future).set_result(outcome)
                self._callbacks.pop(future)(outcome)
            await asyncio.sleep(0.01)

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return the results of a task, or raise its error."""
        with naming_killers("A task of the fit"):
            return super().retrieve_result_callback(out)

    async def _to_func_args(self, func: Any) -> tuple[Any, list[Any]]:
        tasks = [
            (f, [self._sent(a) for a in args], {k: self._sent(a) for k, a in more.items()})
            for f, args, more in func.items
        ]
        return AloneBatch(tasks), tasks

    def _sent(self, argument: Any) -> Any:
        """Return an argument, or what stands for a large one."""
        if not is_weakrefable(argument):
            return argument
        try:
            return self.call_data_futures[argument]
        except KeyError:
            # Large ones are sent once. Dask's own guess of the size does not look into objects.
            if len(self._dumps(argument)) < 100_000:
                return argument
        future = self.client.submit(same, argument, pure=False)
        self.call_data_futures[argument] = future
        return future


class AloneBatch(Batch):  # type: ignore[misc]
    """Some calls, one after another on one worker."""

    def __call__(self, tasks: Any = None) -> list[Any]:
        """Return the results."""
        with parallel_config(backend="sequential"):
            return [function(*args, **more) for function, args, more in tasks]


def same(argument: Any) -> Any:
    """Return what was given: as a result of a task, Dask can have it again."""
    return argument
