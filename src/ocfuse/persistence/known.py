"""Which types a model file may name without anybody vouching for them."""

import importlib
import inspect
import sys

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.persistence.estimators import FITTED, PACKAGES
from ocfuse.persistence.registry import registered

#: Parts of module names of scikit-learn that no model needs; importing them may do anything.
NEVER_IMPORTED = frozenset({"tests", "conftest"})
METRICS = (
    "BrayCurtis Canberra Chebyshev Dice Euclidean Hamming Haversine Jaccard Kulsinski Mahalanobis "
    "Manhattan Matching Minkowski RogersTanimoto RussellRao SEuclidean SokalMichener SokalSneath"
)
PARTS = {
    "metrics._dist_metrics": " ".join(f"{m}Distance64" for m in METRICS.split()),
    "neighbors._ball_tree": "BallTree",
    "neighbors._kd_tree": "KDTree",
    "tree._tree": "Tree",
}
LOSSES = {"linear_model._sgd_fast": "Hinge"}


def _full_names(names: dict[str, str]) -> frozenset[str]:
    return frozenset(
        f"sklearn.{module}.{name}" for module in names for name in names[module].split()
    )


#: Compiled objects that fitted estimators of scikit-learn hold.
SKLEARN_PARTS = _full_names(PARTS)
#: Compiled losses, made from numbers.
SKLEARN_LOSSES = _full_names(LOSSES)
#: Types of NumPy's numbers and texts.
SCALARS = {
    f"numpy.{kind.__name__}": kind
    for kind in set(np.sctypeDict.values())
    if not issubclass(kind, np.void | np.object_)
}
#: Types that may stand in a model as themselves.
PLAIN_TYPES: dict[str, type] = SCALARS | {
    f"builtins.{kind.__name__}": kind for kind in (bool, dict, float, int, list, set, str, tuple)
}


def is_known_class(name: str) -> bool:
    """Tell whether a name is a registered class of ours, or a listed one of scikit-learn."""
    if name in SKLEARN_PARTS or registered(name) is not None:
        return True
    module_name, _, class_name = name.rpartition(".")
    if not _may_be_imported(module_name):
        return False
    try:
        module = importlib.import_module(module_name)
    except Exception:  # whatever a module does when it is imported, we do not know it
        return False
    found = vars(module).get(class_name)
    if not inspect.isclass(found) or found.__module__ != module_name:
        return False
    package = module_name.split(".")[1]
    return issubclass(found, BaseEstimator) and f"{package}.{class_name}" in FITTED


def is_ufunc(name: str) -> bool:
    """Tell whether a name is an elementary function of NumPy or SciPy, such as log1p."""
    module_name, _, function = name.rpartition(".")
    ours = module_name.split(".")[0] in ("numpy", "scipy")
    found = vars(sys.modules.get(module_name, sys)).get(function)
    return ours and isinstance(found, np.ufunc)


def _may_be_imported(module_name: str) -> bool:
    parts = module_name.split(".")
    return (
        parts[0] == "sklearn"
        and not PACKAGES.isdisjoint(parts[1:2])
        and all(part.isidentifier() and not part.startswith("__") for part in parts)
        and NEVER_IMPORTED.isdisjoint(parts)
    )
