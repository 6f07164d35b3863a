"""Run the parts of the benchmark: ``python -m benchmarks.context [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("machines", "groups", "season", "sides", "mixed", "drift", "real")

if __name__ == "__main__":
    main("context", PARTS)
