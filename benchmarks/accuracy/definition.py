"""Keys of stored results: a changed definition has a new key, and is measured again."""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import benchmarks
import ocfuse

PACKAGE = Path(ocfuse.__file__).parent
BENCHMARKS = Path(benchmarks.__file__).parent
#: What neither scores nor fits.
ASIDE = {
    "__init__.py",
    "bench",
    "cli",
    "datasets",
    "explain.py",
    "persistence.py",
    "progress.py",
    "stats",
    "versions.py",
}
#: Which data, and how they are split, scored and measured.
FRAME = (
    "accuracy/sets.py",
    "accuracy/splits.py",
    "accuracy/measures.py",
    "accuracy/context.py",
    "estimator/tables.py",
)
RIVALS = ("accuracy/rivals.py", "estimator/systems.py")


def key(kind: str, definition: str) -> str:
    """Return the key of a system: its kind, and what it is.

    Kinds are "members", "ours", "rival", and "both" for rivals on our members' scores.
    """
    return _digest([_code(kind), definition])


@cache
def _code(kind: str) -> str:
    """Return a digest of all code that the results of this kind depend on."""
    parts = [_source(BENCHMARKS / name) for name in FRAME]
    if kind in ("rival", "both"):
        parts += [_source(BENCHMARKS / name) for name in RIVALS]
        parts += [version("pyod"), version("scikit-learn")]
    if kind != "rival":
        paths = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]pp")]
        parts += [_source(path) for path in sorted(paths) if _counts(path, kind)]
    return _digest(parts)


def _counts(path: Path, kind: str) -> bool:
    first = path.relative_to(PACKAGE).parts[0]
    if kind == "members":
        return first in {"detectors", "features.py", "ensemble", "solvers"}
    return first not in ASIDE


def _source(path: Path) -> str:
    """Return the code without comments and docstrings, which change no result."""
    if path.suffix != ".py":
        return path.read_text()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            first.value.value = ""
    return ast.dump(tree)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
