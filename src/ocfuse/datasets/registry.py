"""Registry of all data sets, by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ocfuse.datasets import adbench, sequences, uci
from ocfuse.datasets.dataset import Dataset, DatasetInfo, Sequence
from ocfuse.exceptions import unknown_name

Loaded = Dataset | Sequence | list[Sequence]


@dataclass(frozen=True)
class _Family:
    """What a family of data sets can do; names come without the family's own."""

    names: Callable[[], list[str]]
    infos: Callable[[], list[DatasetInfo]]
    find: Callable[[str], DatasetInfo]
    load: Callable[[str], Loaded]
    locate: Callable[[str], str | None]
    fetch: Callable[[str], str]


def _load_skab(run: str) -> Loaded:
    return sequences.load_run(run) if run else sequences.load_skab()


_FAMILIES = {
    "uci": _Family(
        lambda: [info.name for info in uci.uci_infos()],
        uci.uci_infos,
        lambda name: uci.find_uci(name).info,
        uci.load_uci,
        uci.locate_uci,
        uci.fetch_uci,
    ),
    "robot-failures": _Family(
        lambda: [info.name for info in sequences.robot_infos()],
        sequences.robot_infos,
        sequences.find_robot_failures,
        sequences.load_robot_failures,
        sequences.locate_robot_failures,
        sequences.fetch_robot_failures,
    ),
    "skab": _Family(
        lambda: [sequences.INFO.name],
        lambda: [sequences.INFO],
        sequences.find_skab,
        _load_skab,
        sequences.locate_skab,
        sequences.fetch_skab,
    ),
    "adbench": _Family(
        adbench.adbench_names,
        adbench.adbench_infos,
        adbench.find_adbench,
        adbench.load_adbench,
        adbench.locate_adbench,
        adbench.fetch_adbench,
    ),
}


def list_datasets() -> list[DatasetInfo]:
    """Return the entries of all data sets.

    Returns
    -------
    list of DatasetInfo
        UCI sets, robot failures, SKAB, and downloaded ADBench sets. Damaged ones are left out with
        a `DatasetWarning`.
    """
    return [info for family in _FAMILIES.values() for info in family.infos()]


def find(name: str) -> DatasetInfo:
    """Return the entry of a data set.

    Parameters
    ----------
    name : str
        Name such as "uci/banknotes"; for UCI sets "banknotes" and "D1" too.

    Returns
    -------
    DatasetInfo
        The entry.
    """
    family, rest = _split(name)
    return _FAMILIES[family].find(rest)


def load(name: str) -> Loaded:
    """Load a data set by its name in the registry.

    Parameters
    ----------
    name : str
        Name such as "uci/banknotes", "adbench/6_cardio", "robot-failures/lp1",
        "skab" or "skab/valve1/0"; for UCI sets "banknotes" and "D1" too.

    Returns
    -------
    Dataset, Sequence or list of Sequence
        A table, one run, or all recordings of a set.

    Examples
    --------
    >>> from ocfuse.datasets import load
    >>> load("uci/wine")
    <Dataset uci/wine: 178 rows (71 normal), 13 features>
    """
    family, rest = _split(name)
    return _FAMILIES[family].load(rest)


def locate(name: str) -> str | None:
    """Return where a data set is, without a download.

    Parameters
    ----------
    name : str
        Name as for `load`.

    Returns
    -------
    str or None
        A path, "scikit-learn", or None if it is not here.
    """
    family, rest = _split(name)
    return _FAMILIES[family].locate(rest)


def fetch(name: str) -> str:
    """Download a data set, unless it is already here, and verify it.

    Several processes may fetch the same set at the same time, but each downloads it. So fetch it
    once before they start.

    Parameters
    ----------
    name : str
        Name as for `load`.

    Returns
    -------
    str
        Where it is, as from `locate`.
    """
    family, rest = _split(name)
    return _FAMILIES[family].fetch(rest)


def _split(name: str) -> tuple[str, str]:
    """Return the family and the rest of a name; a UCI set needs no family."""
    known = uci.uci_name(name)
    if known is not None:
        return "uci", known
    if re.fullmatch(r"[dD]\d+", str(name)):
        return "uci", str(name)  # which knows the numbers there are
    family, _, rest = str(name).partition("/")
    if family not in _FAMILIES or not (rest or family == "skab"):
        raise unknown_name("name", name, [n for f in _FAMILIES.values() for n in f.names()])
    return family, rest
