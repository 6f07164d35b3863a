"""Run: ``python -m benchmarks.trust [train] [adapt] [--quick] [--jobs 2]``."""

from benchmarks.command import main

if __name__ == "__main__":
    main("trust", ("train", "adapt"), parallel=True)
