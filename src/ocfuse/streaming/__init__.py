"""Streams of sensor samples: windows, scores sample by sample, events.

A `StreamDetector` turns windows of samples into feature rows for the members, keeps the state
of each stream and reports events. It must not know where samples come from: files, sockets and
commands hand it arrays and times.
"""

from ocfuse.streaming.alarm_rate import AlarmRate
from ocfuse.streaming.channels import ChannelReading
from ocfuse.streaming.course import Course, drift_ratio
from ocfuse.streaming.detector import StreamDetector
from ocfuse.streaming.events import (
    Cusum,
    Event,
    EventTracker,
    cusum,
    events,
    run_score,
    time_to_detection,
)
from ocfuse.streaming.monitor import LiveMonitor
from ocfuse.streaming.sensors import ChannelMonitor, SensorEvent
from ocfuse.streaming.table import StreamTable
from ocfuse.streaming.windows import Windows, blocks

__all__ = [
    "AlarmRate",
    "ChannelMonitor",
    "ChannelReading",
    "Course",
    "Cusum",
    "Event",
    "EventTracker",
    "LiveMonitor",
    "SensorEvent",
    "StreamDetector",
    "StreamTable",
    "Windows",
    "blocks",
    "cusum",
    "drift_ratio",
    "events",
    "run_score",
    "time_to_detection",
]
