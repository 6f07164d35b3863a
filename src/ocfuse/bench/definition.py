"""Keys of stored results: a changed definition has a new key, and is measured again."""

import ast
import hashlib
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ocfuse

PACKAGE = Path(ocfuse.__file__).parent
#: What neither fits nor scores, as parts of the package.
ASIDE = frozenset(
    {
        "__init__.py",
        "bench",
        "cli",
        "datasets",
        "exceptions.py",
        "explain.py",
        "persistence.py",
        "progress.py",
        "stats",
        "versions.py",
    }
)


def definition_key(*parts: str) -> str:
    """Return the key of a system: a digest of its definition and of the code behind it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def code_digest(paths: Iterable[Path]) -> str:
    """Return a digest of source files; comments and docstrings do not count."""
    return definition_key(*(_source(path) for path in sorted(paths)))


def data_digest(*arrays: NDArray[Any]) -> str:
    """Return a digest of the values of arrays, in their order."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def package_sources(parts: Collection[str] | None = None) -> list[Path]:
    """Return sources of this package, Python and C++: some parts, or all that fits or scores."""
    found = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]pp")])
    first = {path: path.relative_to(PACKAGE).parts[0] for path in found}
    if parts is None:
        return [path for path in found if first[path] not in ASIDE]
    return [path for path in found if first[path] in parts]


@cache
def _source(path: Path) -> str:
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            first.value.value = ""
    return ast.dump(tree)
