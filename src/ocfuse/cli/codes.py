"""What the exit codes of the command mean."""

from enum import IntEnum


class ExitCode(IntEnum):
    """0 is fine."""

    ANOMALIES = 1  # only where --fail-on-anomaly or --fail-above asks for it
    BAD_USAGE = 2  # or a package that is missing
    BAD_DATA = 3  # data, model or file that cannot be used
    INTERNAL = 4
    # as shells number the signals that end a program
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143
