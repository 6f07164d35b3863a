"""Count what shows whether the code can be surveyed: ``python -m supply.figures``.

The figures are signs, not the aim. Each has a limit, and one beyond it makes the program fail.
Where the aim is not reached yet, the limit is what the code has today: lower it as that falls.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "ocfuse"
#: Values that begin so are types, not constants.
NO_CONSTANTS = ("TypeAlias", "TypeVar", "ParamSpec")


class Figure(NamedTuple):
    """One count, the most it may be, and where it comes from."""

    name: str
    value: int
    limit: int
    where: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it is beyond its limit."""
        return self.value > self.limit

    def __str__(self) -> str:
        line = f"{self.name:42} {self.value:7,} (at most {self.limit:,})"
        return " ".join([line, "too many", *self.where]) if self.is_over else line


@dataclass(frozen=True)
class Module:
    """One module as it is written.

    Parameters
    ----------
    name : str
        Its full name.
    text : str
        Its source.
    tree : ast.Module
        The same, parsed.
    """

    name: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is the file of a package itself."""
        return self.name.endswith(".__init__")

    @property
    def folder(self) -> str:
        """The package it is in."""
        return folder(self.name)


def folder(name: str) -> str:
    """Return the package that a module is in."""
    return name.rpartition(".")[0]


def read_modules(package: Path = PACKAGE) -> list[Module]:
    """Return all modules of a package."""
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(package.parent).with_suffix("").parts
        found.append(Module(".".join(parts), text, ast.parse(text)))
    return found


def figures(modules: list[Module]) -> list[Figure]:
    """Return all figures of a package."""
    importers = single_importers(modules)
    files = repeated(m.name.rpartition(".")[2] for m in modules if not m.is_package)
    classes = repeated(name for module in modules for name in class_names(module))
    arrays = [m.name for m in modules if ("FloatArray",) in assigned(m)]
    held = [names for module in modules for names in constants(module)]
    return [
        # the aim: 230 without alarms that reach and teach, brokers, and pictures by command
        Figure("files", len(modules), 292),
        # the aim: 50,000 without these, of which a quarter are docstrings of public names
        Figure("source lines", sum(len(m.text.splitlines()) for m in modules), 79_600),
        Figure("modules with a single importer, a sibling", len(importers), 35, importers),
        Figure("module names used twice", len(files), 24, files),
        Figure("class names used twice", len(classes), 8, classes),
        Figure("module constants, pairs too", sum(map(len, held)), 490),
        Figure("definitions of FloatArray", len(arrays), 1, tuple(arrays)),
        Figure("files of cli", sum(m.folder == "ocfuse.cli" for m in modules), 31),
    ]


def repeated(names: Iterable[str]) -> tuple[str, ...]:
    """Return names that occur more than once, in order."""
    return tuple(sorted(name for name, count in Counter(names).items() if count > 1))


def class_names(module: Module) -> Iterator[str]:
    """Yield the names of all classes of a module, inner ones too."""
    return (node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def constants(module: Module) -> list[tuple[str, ...]]:
    """Return the names in capitals that a module assigns at its top, by assignment."""
    return [
        names for names in assigned(module) if all(name.lstrip("_").isupper() for name in names)
    ]


def assigned(module: Module) -> Iterator[tuple[str, ...]]:
    """Yield the names of every assignment at the top of a module, type variables left out."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            value = "" if node.value is None else ast.unparse(node.value)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not value.startswith(NO_CONSTANTS):
                yield from filter(None, map(target_names, targets))


def target_names(target: ast.expr) -> tuple[str, ...]:
    """Return the names that a target of an assignment has, several in ``A, B = 1, 2``."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return tuple(part.id for part in parts if isinstance(part, ast.Name))


def single_importers(modules: list[Module]) -> tuple[str, ...]:
    """Return modules that one other imports, in the same folder."""
    importers: dict[str, set[str]] = {module.name: set() for module in modules}
    for module in modules:
        for name in imported(module.tree):
            if name in importers:
                importers[name].add(module.name)
    return tuple(m.name for m in modules if not m.is_package and is_part(m, importers[m.name]))


def is_part(module: Module, importers: set[str]) -> bool:
    """Return whether one sibling alone imports a module, and it is not the package itself."""
    if len(importers) != 1:
        return False
    (only,) = importers
    return folder(only) == module.folder and not only.endswith(".__init__")


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield names of modules, and of things that may be modules, that are imported anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def main() -> int:
    """Print the figures; return 1 if one is beyond its limit."""
    found = figures(read_modules())
    print(*found, sep="\n")
    return int(any(figure.is_over for figure in found))


if __name__ == "__main__":
    sys.exit(main())
