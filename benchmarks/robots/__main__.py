"""Measure on recorded runs, make the cell, or draw it.

``python -m benchmarks.robots [cell] [toyota] [--quick]`` measures (``make bench-robots``);
``generate [--full]`` and ``gallery`` make runs and their picture, ``page`` writes the results into
the documentation.
"""

import importlib
import sys

from benchmarks.command import main

MAKERS = ("generate", "gallery", "page")
PARTS = ("cell", "toyota")

if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part in MAKERS:
        module = importlib.import_module(f"benchmarks.robots.{part}")
        sys.argv = [f"python -m benchmarks.robots {part}", *sys.argv[2:]]
        module.main()
    else:
        main("robots", PARTS)
