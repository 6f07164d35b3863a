"""Run the parts of the benchmark: ``python -m benchmarks.speed [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("fits", "accuracy", "scoring", "threads", "million", "bursts", "export")

if __name__ == "__main__":
    main("speed", PARTS)
