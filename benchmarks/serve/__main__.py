"""Run the parts of the benchmark: ``python -m benchmarks.serve [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("throughput", "soak")

if __name__ == "__main__":
    main("serve", PARTS)
