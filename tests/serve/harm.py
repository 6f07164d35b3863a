"""What a forged model might do to the process that loads it."""

import os
import signal


def crash(model):
    """End as compiled code does that leaves its memory."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(model):
    """Never come back."""
    while True:
        pass
