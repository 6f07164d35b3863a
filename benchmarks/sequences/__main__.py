"""Run the parts of the benchmark: ``python -m benchmarks.sequences [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("skab", "ranges", "robot_failures", "latency")

if __name__ == "__main__":
    main("sequences", PARTS)
