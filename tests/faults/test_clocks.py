"""Durations are measured by a clock that nobody sets."""

import re
from pathlib import Path

import ocfuse

PACKAGE = Path(ocfuse.__file__).parent
#: Where the time of day is told, and nothing is reckoned with it.
STAMPS = {
    "cli/video_output.py",
    "ensemble/report.py",
    "lab/paper/runner.py",
    "notify.py",
    "streaming/monitor.py",
    "streaming/resume.py",  # how old a stored state is, where rows have no times
    "system/files.py",
    "tables/detector.py",
}
OF_DAY = re.compile(
    r"\btime\.(time|time_ns|ctime|localtime|gmtime)\b"
    r"|\bdate(time)?\.(now|utcnow|today)\b"
    r"|from time import .*\b(time|time_ns)\b"
)


def test_the_time_of_day_is_told_and_never_reckoned_with():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if OF_DAY.search(path.read_text(encoding="utf-8"))
    }
    assert {name for name in found if not name.startswith("serve/")} == STAMPS
