"""Part "paper": the same as "pure" with the paper's split, 70 % of the normals."""

from benchmarks.accuracy import pure
from benchmarks.report import Report


def run(quick: bool, jobs: int) -> Report:
    return pure.report("70/20/10", "Learning from normals only, the paper's split", quick, jobs)
