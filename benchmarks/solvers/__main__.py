"""Run the parts of the benchmark: ``python -m benchmarks.solvers [parts] [--quick]``."""

import argparse
import importlib
import os
import time
from pathlib import Path

PARTS = ("audit", "ablation", "throughput", "growth", "cold_start")
RESULTS = Path(__file__).parents[1] / "results" / "solvers"
SMOKE = Path(__file__).parents[2] / "build" / "benchmarks" / "solvers"


def main() -> None:
    arguments = parsed()
    # Before NumPy is imported, here or in a process that is started from here.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    report = importlib.import_module("benchmarks.solvers.report")
    words = [*arguments.parts, *(["--quick"] if arguments.quick else [])]
    command = " ".join(["python -m benchmarks.solvers", *words])
    folder = arguments.out or (SMOKE if arguments.quick else RESULTS)
    for part in arguments.parts or PARTS:
        begin = time.perf_counter()
        found = importlib.import_module(f"benchmarks.solvers.{part}").run(arguments.quick)
        about = report.facts(command, time.perf_counter() - begin)
        report.write(folder, part, found, about)
        print(found.markdown(about))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solvers")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a smoke run, about a minute")
    parser.add_argument("--out", type=Path, help="folder for the results")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; choose from {', '.join(PARTS)}")
    return arguments


if __name__ == "__main__":
    main()
