"""Run the parts of the benchmark: ``python -m benchmarks.scale [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("targets", "growth", "accuracy", "landmarks", "plan", "cluster", "workers")

if __name__ == "__main__":
    main("scale", PARTS)
