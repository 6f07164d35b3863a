"""Names of files to write, refused before the work is done, not after."""

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import typer

#: Endings that tell the format of scores; each but the last also with .gz.
SCORE_FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
KNOWN = ".csv, .tsv, .jsonl (each also with .gz) and .parquet"


def score_format(path: Path) -> str:
    """Return the ending that tells the format, in small letters; empty if none does."""
    is_compressed = path.suffix.lower() == ".gz"
    kind = (path.with_suffix("") if is_compressed else path).suffix.lower()
    return kind if kind in SCORE_FORMATS and (kind, is_compressed) != (".parquet", True) else ""


def check_scores(path: Path | None) -> Path | None:
    """Refuse a file whose name does not tell its format; ``-`` is stdout."""
    if path is None or str(path) == "-":
        return None
    if path.is_dir():
        raise typer.BadParameter(
            f"{path} is a folder. Give the name of a file in it.", param_hint="--out"
        )
    if not score_format(path):
        raise typer.BadParameter(
            f"The name tells the format: {KNOWN}. Got {path.name}.", param_hint="--out"
        )
    _require_folder(path)
    return path


def check_model(path: Path, force: bool) -> None:
    """Refuse what cannot be written, or should not be replaced."""
    _require_folder(path)
    if path.exists() and not path.is_file():
        raise typer.BadParameter(f"{path} is not a file. Give a name such as model.ocf.")
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} exists. Use --force to replace it, or another name.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} is not writable. Choose another folder by --out.")


def refuse_overwriting(
    written: Mapping[str, Path | None], read: Mapping[str, Path | str | None]
) -> None:
    """Refuse to write a file that is read, or the same one twice.

    Parameters
    ----------
    written, read : mapping of str
        Files by the names that the user knows; None where there is none.
    """
    targets = {name: path for name, path in written.items() if path is not None}
    sources = {name: Path(path) for name, path in read.items() if path is not None}
    for (name, path), (other, second) in combinations(targets.items(), 2):
        if _is_same(path, second):
            raise typer.BadParameter(f"{name} and {other} are the same file, {path}.")
    for name, path in targets.items():
        for other, source in sources.items():
            if _is_same(path, source):
                raise typer.BadParameter(
                    f"{path} is the {other} and would be overwritten. Give {name} another name."
                )


def check_engine(engine: str | None, needs: dict[str, object], excluded: dict[str, object]) -> bool:
    """Tell whether many machines are asked for; refuse what does not go with that.

    Parameters
    ----------
    engine : str or None
        What was asked for.
    needs, excluded : dict
        What goes with an engine only, and what does not, by flag; None and False are nothing.
    """
    if engine not in (None, "dask"):
        raise typer.BadParameter(f"must be dask. Got {engine!r}.", param_hint="--engine")
    given = {name for name, value in (needs if engine is None else excluded).items() if value}
    if given and engine is None:
        raise typer.BadParameter(f"{', '.join(sorted(given))}: only with --engine dask")
    if given:
        raise typer.BadParameter(f"{', '.join(sorted(given))}: not with --engine dask")
    return engine is not None


def _is_same(one: Path, other: Path) -> bool:
    """Tell whether two names stand for one file, be it there yet or not."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}. Create it first.")
