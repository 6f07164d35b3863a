"""Tests. Where several processes share them out, each has one thread of linear algebra.

With more they wait for each other: tests/tuning took 23.8 s of two cores so, and 13.5 s with one.
A program that is begun in the background of a shell ignores Ctrl-C, and so do all that it begins:
here they do not, as tests send it to some.
"""

import os
import signal

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is loaded
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
