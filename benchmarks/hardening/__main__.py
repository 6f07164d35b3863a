"""Run the parts: ``python -m benchmarks.hardening [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("model_files", "states", "csv_bytes")

if __name__ == "__main__":
    main("hardening", PARTS)
