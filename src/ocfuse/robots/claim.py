"""What the folder of a cell says of it: which runs it shall have, and what made them."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ocfuse.alone import LOCK
from ocfuse.exceptions import InvalidInputError
from ocfuse.files import write_atomically
from ocfuse.robots.plan import Plan

#: What a cell was asked to be, and what made it.
PLAN_FILE = "cell.json"
MAKER = "made_by"
#: To be raised whenever the same plan gives other pictures, sensor values or labels.
SIMULATOR = 1
#: Packages that pictures and physics come from.
PACKAGES = ("numpy", "pillow", "pybullet")


def maker() -> dict[str, Any]:
    """Return the version of the simulator and of the packages below it."""
    return {"simulator": SIMULATOR, **{name: version(name) for name in PACKAGES}}


def read_plan(folder: str | Path) -> Plan | None:
    """Return what a cell was asked to be.

    Parameters
    ----------
    folder : str or Path
        The folder of a cell, whole or not.

    Returns
    -------
    Plan or None
        None if there is no cell.
    """
    file = Path(folder) / PLAN_FILE
    return _plan(file) if file.exists() else None


def claim(folder: Path, plan: Plan) -> None:
    """Say what the folder holds, or see that it holds the same."""
    file = folder / PLAN_FILE
    if not file.exists():
        _refuse_others(folder)
        text = json.dumps({**plan.facts(), MAKER: maker()}, indent=1)
        write_atomically(file, (text + "\n").encode())
        return
    there, wanted = _plan(file).facts(), plan.facts()
    if there != wanted:
        differing = sorted(name for name in wanted if there[name] != wanted[name])
        raise InvalidInputError(
            f"{folder} holds a cell with other {', '.join(differing)}: "
            f"{', '.join(str(there[name]) for name in differing)}. "
            "Ask for the same to go on with it, or give a new folder."
        )
    _refuse_other_simulator(folder)


def refuse_other_packages(folder: Path) -> None:
    """Raise if runs added now would be made with other packages than those that are there."""
    there = _facts(folder / PLAN_FILE)[MAKER]
    here = maker()
    if there != here:
        words = [
            ", ".join(f"{name} {facts.get(name)}" for name in PACKAGES) for facts in (there, here)
        ]
        raise InvalidInputError(
            f"{folder} is not whole and was begun with {words[0]}; here are {words[1]}, which may "
            "give other runs. Install those versions to go on with it, or give a new folder."
        )


def _refuse_others(folder: Path) -> None:
    others = [path.name for path in folder.iterdir() if not path.name.startswith(LOCK)]
    if others:
        raise InvalidInputError(
            f"{folder} is not empty (it holds {sorted(others)[0]}) and no cell. Give a new folder."
        )


def _refuse_other_simulator(folder: Path) -> None:
    made_by = _facts(folder / PLAN_FILE).get(MAKER)
    number = made_by.get("simulator") if isinstance(made_by, dict) else None
    if number != SIMULATOR:
        told = "a version that is not told" if number is None else f"version {number}"
        raise InvalidInputError(
            f"{folder} was made by another simulator ({told}; this is version {SIMULATOR}), so "
            "that its runs are not those of today. Give a new folder, or delete this one and make "
            "it again."
        )


def _plan(file: Path) -> Plan:
    try:
        return Plan.of(_facts(file))
    except (KeyError, TypeError):
        raise _damaged(file) from None


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise _damaged(file)
    return facts


def _damaged(file: Path) -> InvalidInputError:
    return InvalidInputError(f"{file} is damaged. Give a new folder.")
