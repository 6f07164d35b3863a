"""Streams: windows, folds in time, scores sample by sample, events."""

from ocfuse.streaming.course import Course
from ocfuse.streaming.cusum import Cusum, cusum
from ocfuse.streaming.detector import StreamDetector
from ocfuse.streaming.drift import drift_ratio
from ocfuse.streaming.events import Event, EventTracker, events
from ocfuse.streaming.folds import blocks
from ocfuse.streaming.runs import run_score, time_to_detection
from ocfuse.streaming.table import StreamTable
from ocfuse.streaming.windows import Windows

__all__ = [
    "Course",
    "Cusum",
    "Event",
    "EventTracker",
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
