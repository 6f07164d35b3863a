"""Streams of sensor samples: windows, scores sample by sample, events.

A `StreamDetector` turns windows of samples into feature rows for the members, keeps the state
of each stream and reports events. It must not know where samples come from: files, sockets and
commands hand it arrays and times.
"""

from ocfuse.streaming.channels import (
    ChannelMonitor,
    ChannelReading,
    SensorEvent,
    SensorLimits,
    channel_readings,
    row_readings,
)
from ocfuse.streaming.course import Course, drift_ratio
from ocfuse.streaming.detector import StreamDetector
from ocfuse.streaming.events import (
    Cusum,
    Event,
    EventRule,
    EventTracker,
    cusum,
    events,
    run_score,
    time_to_detection,
)
from ocfuse.streaming.table import StreamTable
from ocfuse.streaming.windows import Windows, blocks

__all__ = [
    "ChannelMonitor",
    "ChannelReading",
    "Course",
    "Cusum",
    "Event",
    "EventRule",
    "EventTracker",
    "SensorEvent",
    "SensorLimits",
    "StreamDetector",
    "StreamTable",
    "Windows",
    "blocks",
    "channel_readings",
    "cusum",
    "drift_ratio",
    "events",
    "row_readings",
    "run_score",
    "time_to_detection",
]
