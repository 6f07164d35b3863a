"""Run the parts of the benchmark: ``python -m benchmarks.first [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("imports", "kernels", "install")

if __name__ == "__main__":
    main("first", PARTS)
