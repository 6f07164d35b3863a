"""Run the parts of the benchmark: ``python -m benchmarks.pictures [parts] [--quick]``."""

from benchmarks.command import main

PARTS = ("tiles", "mvtec", "speed", "watch", "overlays")

if __name__ == "__main__":
    main("pictures", PARTS)
