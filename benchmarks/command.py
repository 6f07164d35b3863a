"""The command line that every suite of benchmarks shares."""

import argparse
import importlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(suite: str, parts: Sequence[str], *, parallel: bool = False) -> None:
    """Run the parts that were asked for and write what they found.

    The parts of a parallel suite are told how many processes they may use.
    """
    arguments = _parsed(suite, parts, parallel)
    options = {"jobs": arguments.jobs} if parallel else {}
    # Before NumPy is imported, here or in a process that is started from here.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    report = importlib.import_module("benchmarks.report")
    words = [*arguments.parts, *(["--quick"] if arguments.quick else [])]
    command = " ".join([f"python -m benchmarks.{suite}", *words])
    smoke = ROOT / "build" / "benchmarks" / suite
    folder = arguments.out or (smoke if arguments.quick else ROOT / "benchmarks/results" / suite)
    for part in arguments.parts or parts:
        begin = time.perf_counter()
        module = importlib.import_module(f"benchmarks.{suite}.{part}")
        found = module.run(arguments.quick, **options)
        about = report.facts(command, time.perf_counter() - begin)
        report.write(folder, suite, part, found, about)
        print(found.markdown(about))


def _parsed(suite: str, parts: Sequence[str], parallel: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{suite}")
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run, about a minute")
    parser.add_argument("--out", type=Path, help="folder for the results")
    if parallel:
        parser.add_argument("--jobs", type=int, default=2, help="processes, 2 by default")
    arguments = parser.parse_args()
    if arguments.parts == ["all"]:
        arguments.parts = []
    for part in arguments.parts:
        if part not in parts:
            parser.error(f"unknown part {part!r}; choose from {', '.join(parts)}")
    return arguments
