"""Tasks of joblib on a cluster, where no worker holds what cannot be had again."""

import asyncio
from typing import Any

from joblib import parallel_config
from joblib._dask import Batch, DaskDistributedBackend, is_weakrefable

from ocfuse.distributed.cluster import Client, dask, naming_killers

#: Bytes from which on an argument of many tasks is sent once.
LARGE = 100_000


class SteadyBackend(DaskDistributedBackend):  # type: ignore[misc]
    """Dask as a backend of joblib, which a worker that ends does not upset.

    joblib scatters large arguments: they live on some worker, and end with it. Here they are
    results of a task, which the scheduler has done again elsewhere. Inside a task nothing is
    distributed further.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(client=client)
        self._dumps = dask("distributed.protocol.pickle").dumps

    async def _collect(self) -> None:
        # joblib hands over no error of Dask itself, and waits for ever.
        while self._continue:
            async for future, result in self.waiting_futures:
                told = result[1] if future.status == "error" else result
                self._results.pop(future).set_result(told)
                self._callbacks.pop(future)(told)
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
            # Dask's own guess does not look into objects.
            if len(self._dumps(argument)) < LARGE:
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
