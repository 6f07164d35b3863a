"""The log of the library: what it does, for those who run it in programs of their own.

Records go to the logger "ocfuse" and those below it, such as "ocfuse.ensemble.detector". Nothing
is written unless the program sets logging up: INFO says what was learned, read and written, DEBUG
every step of a fit. What a user must know is a warning or an error, and never a record alone.
"""

import logging

from ocfuse.system.progress import Progress

logging.getLogger("ocfuse").addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """Return the logger of a module, by its ``__name__``."""
    return logging.getLogger(module)


def logged(progress: Progress, log: logging.Logger) -> Progress:
    """Return a progress that also writes every step into a log."""
    if not log.isEnabledFor(logging.DEBUG):
        return progress

    def both(stage: str, member: str, done: int, total: int) -> None:
        """Report a step, and log it."""
        log.debug("%s: %s (%d of %d)", stage, member, done, total)
        progress(stage, member, done, total)

    return both
