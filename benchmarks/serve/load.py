"""A load generator, to be run as a process of its own: many clients, one row per request.

Without a rate every client sends its next request when it has the answer to the last one.
With a rate requests have their times, and the time of a request counts from when it should
have been sent: a server that stalls is charged for all that came meanwhile.
"""

import argparse
import asyncio
import json
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds at the beginning that do not count.
WARM_UP = 1.0
#: Seconds that answers may take after the end.
PATIENCE = 30.0


@dataclass
class Tally:
    """What came back."""

    begin: float
    end: float
    seconds: array = field(default_factory=lambda: array("d"))
    n_errors: int = 0
    first_error: str = ""

    def count(self, due: float, now: float, status: bytes, body: bytes) -> None:
        if status != b"200" or b'"score"' not in body:
            self.n_errors += 1
            self.first_error = self.first_error or (status + b" " + body[:200]).decode("latin-1")
        elif self.begin <= now < self.end:
            self.seconds.append(now - due)


class Client(asyncio.Protocol):
    """One connection, which has at most one request under way."""

    def __init__(self, requests: list[bytes], tally: Tally, start: int, rate: float) -> None:
        self.requests, self.tally, self.place = requests, tally, start
        self.step = 1.0 / rate if rate else 0.0
        self.done = asyncio.get_running_loop().create_future()
        self.buffer = b""
        self.due = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.clock = asyncio.get_running_loop().time
        if self.step:  # spread over the first interval, so that clients do not march in step
            share = (self.place * 0.618034) % 1.0
            self.due = self.clock() + share * self.step
            self.wait()
        else:
            self.due = self.clock()
            self.send()

    def send(self) -> None:
        self.place = (self.place + 1) % len(self.requests)
        self.transport.write(self.requests[self.place])

    def wait(self) -> None:
        asyncio.get_running_loop().call_at(self.due, self.send)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        place = head.lower().index(b"content-length:") + 15
        length = int(head[place : place + 12].split(b"\r\n")[0])
        if len(rest) < length:
            return
        self.buffer = b""
        now = self.clock()
        self.tally.count(self.due, now, head[9:12], rest)
        if now >= self.tally.end:
            self.finish()
        elif not self.step:
            self.due = now
            self.send()
        else:
            self.due += self.step
            if self.due <= now:
                self.send()
            else:
                self.wait()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.tally.n_errors += 1
            self.tally.first_error = self.tally.first_error or "the connection was lost"
            self.done.set_result(None)


def made(bodies: list[bytes]) -> list[bytes]:
    """Return requests of HTTP."""
    return [
        b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
        for body in bodies
    ]


async def load(
    port: int, requests: list[bytes], clients: int, seconds: float, rate: float
) -> dict[str, object]:
    """Send requests for some seconds; return what came back."""
    loop = asyncio.get_running_loop()
    begin = loop.time() + WARM_UP
    tally = Tally(begin, begin + seconds)
    found = []
    for i in range(clients):
        start = i * len(requests) // clients
        _, client = await loop.create_connection(
            lambda start=start: Client(requests, tally, start, rate / clients), "127.0.0.1", port
        )
        found.append(client)
    waits = [client.done for client in found]
    _, late = await asyncio.wait(waits, timeout=WARM_UP + seconds + PATIENCE)
    tally.n_errors += len(late)
    ordered = sorted(tally.seconds)
    return {
        "clients": clients,
        "seconds": seconds,
        "asked per second": rate,
        "requests": len(ordered),
        "per second": len(ordered) / seconds,
        "errors": tally.n_errors,
        "first error": tally.first_error,
        "p50": quantile(ordered, 0.5),
        "p99": quantile(ordered, 0.99),
        "worst": ordered[-1] if ordered else float("nan"),
        "generator CPU share": time.process_time() / (seconds + WARM_UP),
    }


def quantile(ordered: list[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("bodies", type=Path, help="a body of a request per line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0, help="requests per second; 0: no limit")
    given = parser.parse_args()
    requests = made(given.bodies.read_bytes().splitlines())
    loading = load(given.port, requests, given.clients, given.seconds, given.rate)
    print(json.dumps(asyncio.run(loading)))


if __name__ == "__main__":
    main()
