"""Run the parts of the benchmark: ``python -m benchmarks.tables [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("large", "text")

if __name__ == "__main__":
    main("tables", PARTS)
