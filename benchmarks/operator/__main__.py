"""Run the parts of the benchmark: ``python -m benchmarks.operator [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("motor", "skab", "belt", "cell")

if __name__ == "__main__":
    main("operator", PARTS)
