"""Run the parts of the benchmark: ``python -m benchmarks.estimator [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("uci", "synthetic", "latency", "false_alarms", "promise", "update")

if __name__ == "__main__":
    main("estimator", PARTS)
