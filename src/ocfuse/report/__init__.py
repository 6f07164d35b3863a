"""One HTML file that shows alarms, why they were raised, and how far to trust them.

The page is complete in itself: no network, no font or script from elsewhere. It
draws plain data, gathered by `FusedDetector.report`.
"""

from ocfuse.report.data import Embedding, ReportData
from ocfuse.report.page import Report, make_report

__all__ = [
    "Embedding",
    "Report",
    "ReportData",
    "make_report",
]
