"""The 34 data sets: 24 of ADBench, on which defaults are chosen, and the ten of the paper."""

from functools import lru_cache

import numpy as np

from benchmarks.estimator.tables import UCI, FloatArray, data_folder, uci_rows

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


@lru_cache(maxsize=1)  # seeds of one set follow each other
def rows(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the normal rows and the anomalies of a set."""
    if name in UCI:
        X, is_normal = uci_rows(name)
    else:
        data = np.load(data_folder() / "adbench" / f"{name}.npz")
        X, is_normal = data["X"].astype(float), data["y"] == 0
    return X[is_normal], X[~is_normal]
