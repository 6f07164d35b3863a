"""One HTML or PDF file that shows alarms, their reasons and how far to trust them.

The page is complete in itself: no network, no font or script from elsewhere. It draws the
plain numbers of a `ReportData`, and must not know the detector that made them.
"""

from ocfuse.report.data import Embedding, ReportData
from ocfuse.report.page import Report, make_report
from ocfuse.report.timeline import ChannelCourse

__all__ = [
    "ChannelCourse",
    "Embedding",
    "Report",
    "ReportData",
    "make_report",
]
