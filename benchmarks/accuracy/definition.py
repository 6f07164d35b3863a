"""Keys of stored results: which code each kind of system depends on."""

from functools import cache
from importlib.metadata import version
from pathlib import Path

import benchmarks
from ocfuse.lab.paper.runner import PACKAGE, code_digest, definition_key, package_sources

BENCHMARKS = Path(benchmarks.__file__).parent
#: How rows are split, scored and measured.
FRAME = (
    BENCHMARKS / "accuracy" / "splits.py",
    BENCHMARKS / "accuracy" / "measures.py",
    BENCHMARKS / "accuracy" / "context.py",
    BENCHMARKS / "estimator" / "tables.py",
    PACKAGE / "lab" / "paper" / "runner.py",
    PACKAGE / "metrics" / "rows.py",
)
RIVALS = (BENCHMARKS / "accuracy" / "rivals.py", BENCHMARKS / "estimator" / "systems.py")
#: Parts of the package that the scores of the members come from.
MEMBERS = ("detectors", "encoder.py", "ensemble", "groups.py", "solvers")


def key(kind: str, definition: str) -> str:
    """Return the key of a system: its kind, and what it is.

    Kinds are "members", "ours", "rival", and "both" for rivals on our members' scores.
    """
    return definition_key(_code(kind), definition)


@cache
def _code(kind: str) -> str:
    """Return a digest of all code that the results of this kind depend on."""
    paths, versions = [*FRAME], []
    if kind in ("rival", "both"):
        paths += RIVALS
        versions = [version("pyod"), version("scikit-learn")]
    if kind != "rival":
        paths += package_sources(MEMBERS if kind == "members" else None)
    return definition_key(code_digest(paths), *versions)
