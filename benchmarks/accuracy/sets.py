"""The 34 data sets: 24 of ADBench, on which defaults are chosen, and the ten of the paper."""

from functools import cache, lru_cache

from benchmarks.estimator.tables import UCI, FloatArray, data_folder
from ocfuse.datasets import Dataset, load_adbench, load_uci
from ocfuse.lab.paper.runner import data_digest

#: A smoke run: a table, one with few rows for its columns, and one with gaps.
QUICK = ("6_cardio", "46_WPBC", "D10_hepatitis")

#: Sets that share rows or a source. Choices are judged on sets of other families.
FAMILIES = {
    "14_glass": "glass",
    "D4_glass": "glass",
    "4_breastw": "breastw",
    "42_WBC": "breastw",
    "D6_breastw": "breastw",
    "2_annthyroid": "thyroid",
    "38_thyroid": "thyroid",
    "19_landsat": "landsat",
    "31_satimage-2": "landsat",
    "MVTec-AD_cable": "mvtec",
    "MVTec-AD_carpet": "mvtec",
    "MVTec-AD_hazelnut": "mvtec",
}


def adbench() -> list[str]:
    """Return the names of the development sets."""
    return sorted(path.stem for path in (data_folder() / "adbench").glob("*.npz"))


def all_sets(quick: bool) -> list[str]:
    """Return the names of all sets, or of the few of a smoke run."""
    return list(QUICK) if quick else [*adbench(), *UCI]


def family(name: str) -> str:
    """Return the family of a set; most are a family of their own."""
    return FAMILIES.get(name, name)


def rows(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the normal rows and the anomalies of a set."""
    data = _loaded(name)
    return data.X[data.y > 0], data.X[data.y < 0]


@cache
def content(name: str) -> str:
    """Return a digest of a set."""
    data = _loaded(name)
    return data_digest(data.X, data.y)


@lru_cache(maxsize=1)  # seeds of one set follow each other
def _loaded(name: str) -> Dataset:
    return load_uci(UCI[name]) if name in UCI else load_adbench(name)
