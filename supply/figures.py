"""Count what shows whether the code can be surveyed: ``python -m supply.figures``.

The figures are signs, not the aim. Each has a limit, and one beyond it makes the program fail.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "ocfuse"
#: Values that begin so are types, and no constants.
NO_CONSTANTS = ("TypeAlias", "TypeVar", "ParamSpec")


class Figure(NamedTuple):
    """One count, the most it may be, and where it comes from."""

    name: str
    value: int
    limit: int
    where: tuple[str, ...] = ()


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
    arrays = [m.name for m in modules if "FloatArray" in top_names(m)]
    return [
        Figure("files", len(modules), 230),
        Figure("source lines", sum(len(m.text.splitlines()) for m in modules), 50_000),
        Figure("modules with a single importer, a sibling", len(importers), 30, importers),
        Figure("module names used twice", len(files), 14, files),
        Figure("class names used twice", len(classes), 6, classes),
        Figure("module constants", sum(len(constants(m)) for m in modules), 450),
        Figure("definitions of FloatArray", len(arrays), 1, tuple(arrays)),
        Figure("files of cli", sum(m.folder == "ocfuse.cli" for m in modules), 26),
    ]


def repeated(names: Iterable[str]) -> tuple[str, ...]:
    """Return names that occur more than once, in order."""
    return tuple(sorted(name for name, count in Counter(names).items() if count > 1))


def class_names(module: Module) -> Iterator[str]:
    """Yield the names of all classes of a module, inner ones too."""
    return (node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def constants(module: Module) -> list[str]:
    """Return the names in capitals that a module defines, each in a line of its own."""
    return [name for name in top_names(module) if name.lstrip("_").isupper()]


def top_names(module: Module) -> list[str]:
    """Return the names that are assigned at the top of a module, variables of types left out."""
    found = []
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            value = "" if node.value is None else ast.unparse(node.value)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not value.startswith(NO_CONSTANTS):
                found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


def single_importers(modules: list[Module]) -> tuple[str, ...]:
    """Return modules that one other imports, in the same folder."""
    known = {module.name for module in modules}
    importers: dict[str, set[str]] = {name: set() for name in known}
    for module in modules:
        for name in imported(module.tree):
            if name in known:
                importers[name].add(module.name)
    return tuple(sorted(m.name for m in modules if not m.is_package and is_part(m, importers)))


def is_part(module: Module, importers: dict[str, set[str]]) -> bool:
    """Tell whether one sibling alone imports a module."""
    [first, *more] = importers[module.name] or {module.name}
    is_public = first.endswith(".__init__")
    return not more and not is_public and first != module.name and folder(first) == module.folder


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
    for figure in found:
        is_over = figure.value > figure.limit
        mark = "  too many: " + " ".join(figure.where) if is_over else ""
        print(f"{figure.name:42} {figure.value:7,} (at most {figure.limit:,}){mark.rstrip(': ')}")
    return int(any(figure.value > figure.limit for figure in found))


if __name__ == "__main__":
    sys.exit(main())
