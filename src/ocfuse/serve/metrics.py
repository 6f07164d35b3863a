"""What a service counts, for Prometheus."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counters of one service, apart from those of any other in the same process.

    Attributes
    ----------
    requests, seconds : Counter, Histogram
        Answered requests by route, method and status; and how long they took, by route.
    under_way : Gauge
        Requests that are not answered yet.
    rows, alarms : Counter
        Scored rows, and those of them that raise an alarm, by model and by way.
    batch_rows, batch_requests : Histogram
        Rows that were scored together, and the requests they are of, by model.
    streams : Gauge
        Open streams.
    events : Counter
        Events that streams began, by model.
    unwritten_events : Gauge
        Events that are in memory only, as their file cannot be written.
    refused_rows : Counter
        Rows of streams that could not be scored, by model.
    loads, loaded : Counter, Gauge
        Models that were loaded or failed to; when each was loaded last.
    """

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "ocfuse_requests",
            "Requests that were answered.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "ocfuse_request_seconds",
            "Time from a request to its answer.",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )
        self.under_way = Gauge(
            "ocfuse_requests_under_way", "Requests that are not answered yet.", registry=registry
        )
        self.rows = Counter(
            "ocfuse_rows", "Rows that were scored.", ("model", "way"), registry=registry
        )
        self.alarms = Counter(
            "ocfuse_anomalous_rows",
            "Rows below the threshold.",
            ("model", "way"),
            registry=registry,
        )
        self.batch_rows = Histogram(
            "ocfuse_batch_rows",
            "Rows that were scored together.",
            ("model",),
            buckets=COUNTS,
            registry=registry,
        )
        self.batch_requests = Histogram(
            "ocfuse_batch_requests",
            "Requests whose rows were scored together.",
            ("model",),
            buckets=COUNTS,
            registry=registry,
        )
        self.streams = Gauge("ocfuse_streams", "Open streams.", registry=registry)
        self.events = Counter(
            "ocfuse_events", "Events that streams began.", ("model",), registry=registry
        )
        self.unwritten_events = Gauge(
            "ocfuse_unwritten_events",
            "Events in memory only, as their file cannot be written.",
            registry=registry,
        )
        self.refused_rows = Counter(
            "ocfuse_refused_stream_rows",
            "Rows of streams that could not be scored.",
            ("model",),
            registry=registry,
        )
        self.loads = Counter(
            "ocfuse_model_loads",
            "Model files that were loaded, or could not be.",
            ("model", "outcome"),
            registry=registry,
        )
        self.loaded = Gauge(
            "ocfuse_model_loaded_timestamp_seconds",
            "When a model was loaded last.",
            ("model",),
            registry=registry,
        )

    def exposition(self) -> bytes:
        """Return all in the text format of Prometheus."""
        return generate_latest(self.registry)

    def watch_events(self, count: Callable[[], int]) -> None:
        """Ask for the number of unwritten events whenever counters are read."""
        self.unwritten_events.set_function(count)

    def count_rows(self, model: str, way: str, flags: Sequence[bool | None]) -> None:
        """Take note of rows; those without a score (None) raise no alarm."""
        self.rows.labels(model, way).inc(len(flags))
        n = sum(map(bool, flags))
        if n:
            self.alarms.labels(model, way).inc(n)
