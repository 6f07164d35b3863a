"""Run the parts: ``python -m benchmarks.accuracy [parts] [--quick] [--jobs 2]``."""

from benchmarks.command import main

PARTS = ("families", "labels", "dirty", "questions", "pools")

if __name__ == "__main__":
    main("accuracy", PARTS, parallel=True)
