"""Tests. Where several processes share them out, each has one thread of linear algebra.

With more they wait for each other: tests/tuning took 23.8 s of two cores so, and 13.5 s with one.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is loaded
