"""Run the parts of the benchmark: ``python -m benchmarks.solvers [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("audit", "ablation", "throughput", "growth", "cold_start")

if __name__ == "__main__":
    main("solvers", PARTS)
