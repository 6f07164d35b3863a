"""Watch nodes of an OPC UA server: what happens is printed as a line of JSON.

    pip install 'ocfuse[tool]' asyncua
    python opcua_watch.py pump.ocf opc.tcp://plant:4840 "flow=ns=2;s=Line9.Flow" "current=ns=2;i=7"

Every node is named as the channel that it is. Their latest values are a row, once in the usual step
of the model. With `-` for the model the rows themselves are printed, for all that the command
does: `python opcua_watch.py - ... | ocfuse watch pump.ocf - --events events.jsonl --routes r.toml`.
"""

import asyncio
import datetime
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from asyncua import Client, Node, ua

from ocfuse import load
from ocfuse.streaming import LiveMonitor


class Latest:
    """The latest value of every node, None while it is not good."""

    def __init__(self, names: dict[Node, str]) -> None:
        self.names = names
        self.values: dict[str, Any] = dict.fromkeys(names.values())

    def datachange_notification(self, node: Node, value: Any, data: Any) -> None:
        """Take a change; the library calls it."""
        status = data.monitored_item.Value.StatusCode
        self.values[self.names[node]] = value if status is None or status.is_good() else None


async def rows(
    address: str, nodes: dict[str, str], period: float
) -> AsyncIterator[dict[str, Any] | None]:
    """Yield the latest values once a period, and None while the server is gone."""
    while True:
        try:
            async with Client(address) as client:
                latest = Latest({client.get_node(nodes[name]): name for name in nodes})
                subscription = await client.create_subscription(1000 * period, latest)
                found = await subscription.subscribe_data_change(latest.names, queuesize=1)
                for where, code in zip(nodes.values(), found, strict=True):
                    if isinstance(code, ua.StatusCode):
                        sys.exit(f"{where} cannot be watched: {code.name}")
                while True:
                    await asyncio.sleep(period)
                    await client.check_connection()
                    yield dict(latest.values)
        except (OSError, ua.UaError, asyncio.TimeoutError) as error:
            print(f"{address} is gone ({error}); trying again", file=sys.stderr)
            yield None
            await asyncio.sleep(period)


async def watch(
    monitor: LiveMonitor | None, address: str, nodes: dict[str, str], period: float = 1.0
) -> AsyncIterator[dict[str, Any]]:
    """Yield what happens; without a monitor the rows."""
    async for values in rows(address, nodes, period):
        now = datetime.datetime.now(datetime.timezone.utc).timestamp()
        if monitor is None and values is not None:
            yield {"time": now, **values}
        elif monitor is not None:
            for record in monitor.listen() if values is None else monitor.take(values, now):
                yield record


async def main(model: str, address: str, *named: str) -> None:
    """Print a line for everything that happens."""
    nodes = dict(name.split("=", 1) for name in named)
    monitor, period = None, 1.0
    if model != "-":
        table = load(model)
        period = table.usual_seconds or period
        names = {"model": Path(model).stem, "stream": address}
        monitor = LiveMonitor(table, timeout=max(5.0, 5 * period), names=names)
    async for record in watch(monitor, address, nodes, period):
        print(json.dumps(record, default=str), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
