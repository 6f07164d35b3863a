"""The Dask cluster that does the work, and the tasks it is given."""

import asyncio
import concurrent.futures
import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from joblib import parallel_config
from sklearn import config_context, get_config

from ocfuse import __version__
from ocfuse.detectors.training import Call
from ocfuse.exceptions import ClusterError, InvalidInputError, InvalidTypeError
from ocfuse.system.packages import needed

#: `distributed.Client` and `Future`; the package is imported only when a cluster is met.
Client: TypeAlias = Any
Future: TypeAlias = Any

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
    """Context manager: a client of a Dask cluster, closed afterwards.

    Parameters
    ----------
    scheduler : str, default=None
        Address of a running scheduler, such as ``"tcp://10.0.0.1:8786"``. None starts processes on
        this machine, which other machines cannot reach; they end with the context.
    workers : int, default=None
        Number of processes to start; None is one per core. Not allowed with `scheduler`.

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
def working(client: Client, advice: str) -> Iterator["Tasks"]:
    """Yield the tasks of one call, and cancel those that are not done when it ends.

    If the scheduler is lost or no worker is left, an error ends with the advice.
    """
    tasks = Tasks(client, advice)
    try:
        yield tasks
    except (Exception, *LOST) as error:
        if isinstance(error, LOST) or client.status != "running":
            raise ClusterError(
                f"The scheduler is gone, or has forgotten what was asked of it. {advice}"
            ) from error
        raise
    finally:
        if tasks.pending and client.status == "running":
            client.cancel(list(tasks.pending))


class Tasks:
    """Functions that workers call. Dask gives the tasks of a worker that ends to others.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    advice : str
        What to do if it is lost.
    """

    def __init__(self, client: Client, advice: str) -> None:
        self.client = client
        self.pending: set[Future] = set()
        self._advice = advice
        self._done: SimpleQueue[Future] = SimpleQueue()

    def begin(self, function: Callable[..., Any], *args: Any) -> Future:
        """Let a worker call a function; return the future."""
        future = self._submitted(_called, get_config(), function, *args)
        self.pending.add(future)
        future.add_done_callback(self._done.put)
        return future

    def shared(self, argument: Any) -> Future:
        """Send what several tasks need to the scheduler, once; return what stands for it.

        It is the result of a task, which Dask repeats if the worker that holds it ends. What is
        scattered would be lost.
        """
        return self._submitted(_same, argument)

    def next_done(self) -> Future:
        """Wait for a task that is done, well or not; raise an error if nobody works.

        Dask itself waits for ever: workers may come.
        """
        seen = time.monotonic()
        while True:
            try:
                future = self._done.get(timeout=min(2.0, DESERTED / 4))
            except Empty:
                with suppress(OSError):  # if the scheduler is gone, Dask cancels the tasks
                    seen = time.monotonic() if self.client.nthreads() else seen
                if time.monotonic() - seen > DESERTED:
                    raise ClusterError(
                        f"There has been no worker for {DESERTED:g} seconds. {self._advice}"
                    ) from None
            else:
                self.pending.discard(future)
                return future

    def result(self, future: Future, name: str) -> Any:
        """Return the result of a task that is done, or raise its error; `name` is for that."""
        try:
            return future.result().value
        except dask("distributed").KilledWorker as error:
            raise KillerError(
                f"{name} ended every worker that took it up, perhaps for want of memory. "
                f"Give workers more memory, or leave it out. ({error})"
            ) from error

    def results(self, calls: Iterable[Call], names: Iterable[str]) -> Iterator[Any]:
        """Yield the results of calls in their order; an argument of several is sent once."""
        calls = list(calls)
        n_uses = Counter(id(argument) for _, *args in calls for argument in args)
        sent: dict[int, Future] = {}
        futures: deque[Future] = deque()
        for function, *args in calls:
            for argument in args:
                if n_uses[id(argument)] > 1 and id(argument) not in sent:
                    sent[id(argument)] = self.shared(argument)
            given = [sent.get(id(argument), argument) for argument in args]
            futures.append(self.begin(function, *given))
        for name in islice(names, len(futures)):
            future = futures.popleft()  # Dask keeps a result as long as there is a future of it
            while future in self.pending:
                self.next_done()
            yield self.result(future, name)

    def _submitted(self, *call: Any) -> Future:
        large = {"distributed.admin.large-graph-warning-threshold": "10GB"}  # a model, a sample
        with dask("dask").config.set(large), _silent("distributed.protocol.pickle"):
            try:
                return self.client.submit(*call, pure=False)
            except TypeError as error:
                raise InvalidTypeError(
                    f"A task cannot be sent to a worker: {error.__cause__ or error}. Expected "
                    "members, fusions and data that pickle takes. Keep locks and open files out "
                    "of them, or use one machine."
                ) from error


class KillerError(ClusterError):
    """Name the work that ends workers."""


@dataclass(frozen=True)
class Whole:
    """A result in one piece: parts of a tuple are sent each with a copy of what they share."""

    value: Any


def _called(config: dict[str, Any], function: Callable[..., Any], *args: Any) -> Whole:
    """Call a function on a worker: with the settings of the client, and nothing beside it."""
    with config_context(**config), parallel_config(backend="sequential"):
        return Whole(function(*args))


def _same(argument: Any) -> Any:
    return argument


def _require_same_version(client: Client) -> None:
    """Refuse workers without ocfuse, or with another one: their scores may differ."""
    found = client.run(_version, on_error="return")
    for worker, version in found.items():
        if version != __version__:
            what = f"ocfuse {version}" if isinstance(version, str) else f"no ocfuse ({version})"
            raise ClusterError(
                f"The worker {worker} has {what}, and this is ocfuse {__version__}. Install the "
                f"same packages everywhere: pip install 'ocfuse[distributed,tool]=={__version__}'"
            )


def _version() -> str:
    return __version__
