"""What the exit codes of the command mean."""

from enum import IntEnum


class ExitCode(IntEnum):
    """0 is fine; 1 stays free, as shells and Python use it for anything."""

    BAD_USAGE = 2  # or a package that is missing
    BAD_DATA = 3
    INTERNAL = 4
