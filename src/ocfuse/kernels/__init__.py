"""Compiled loops over rows, where the installation could build them.

Detectors and searches for neighbours use `kernel` if it is there, and NumPy otherwise. This
package must not know what the numbers mean: arrays in, arrays out.
"""

from importlib import import_module
from types import ModuleType

from ocfuse.system.threads import allowed_threads

kernel: ModuleType | None
try:
    kernel = import_module("ocfuse.kernels._native")
except ImportError:  # not built, or for another system: NumPy serves
    kernel = None


def describe() -> str:
    """Return one line that says which kernel runs."""
    return "NumPy serves" if kernel is None else f"C++, {kernel.instruction_set()}"


def thread_count(work: int) -> int:
    """Return how many threads to use: no more than allowed, and than the work is worth."""
    worth = work // 2**20  # numbers to read that make starting a thread worth while
    # to ask takes as long as some of the work that is done for a single row
    return 1 if worth <= 1 else min(allowed_threads(), worth)
