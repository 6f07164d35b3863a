"""What a piece of code does, counted: times depend on the machine, counts do not."""

import sys
import tracemalloc


def count_calls(function):
    """Return how many functions, of Python and of C, a call makes."""
    n_calls = 0

    def count(frame, kind, argument):
        nonlocal n_calls
        n_calls += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return n_calls


def peak_bytes(function):
    """Return the most bytes that a call asks for at a time.

    Other threads count, too, so that bounds must be far from what is expected.
    """
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
