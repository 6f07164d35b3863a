"""Run the parts of the benchmark: ``python -m benchmarks.members [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("sharing",)

if __name__ == "__main__":
    main("members", PARTS)
