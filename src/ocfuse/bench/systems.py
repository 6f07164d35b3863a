"""The registry: every row of the paper's tables, and ours beside them."""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from ocfuse.bench.definition import PACKAGE, code_digest, definition_key, package_sources
from ocfuse.bench.recipes import BestMember, Detector, Fused, Recipe, TunedMember
from ocfuse.bench.rivals import (
    BoostedSVM,
    DynamicEnsemble,
    FilteredEnsemble,
    GeneticAverage,
    SwarmAverage,
)
from ocfuse.detectors.alp import ALP
from ocfuse.ensemble import FusedDetector
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.local import LocalLpFusion
from ocfuse.fusion.lp import LpFusion
from ocfuse.fusion.rules import MajorityVote, MaxRule, MedianRule, MinRule, ProductRule, SumRule
from ocfuse.solvers.native import is_available

#: How rows are drawn, prepared, learned from and measured.
FRAME = ("splits.py", "trial.py", "measures.py", "members.py", "recipes.py", "context.py")
#: Packages whose versions may change results.
PACKAGES = ("numpy", "scipy", "scikit-learn")

#: Local weights by the paper's two solvers, and the global weights of the work before.
#: The paper does not say that weights are not negative, as is the default here; the
#: rows "signed" have its whole ball, so that both readings can be seen.
PURE1 = LocalLpFusion(solver="frank-wolfe")
PURE2 = LocalLpFusion(solver="interior-point")
PREVIOUS = LpFusion()
SIGNED_PURE2 = LocalLpFusion(nonneg=False, solver="interior-point")
SIGNED_PREVIOUS = LpFusion(nonneg=False)
RULES: dict[str, BaseFusion] = {
    "Sum rule": SumRule(),
    "Product rule": ProductRule(),
    "Max rule": MaxRule(),
    "Min rule": MinRule(),
    "Median rule": MedianRule(),
    "Majority vote": MajorityVote(),
}
FAMILIES = {"GMM": "gmm", "SVDD": "svdd", "GP": "gp", "KPCA": "kpca"}
#: Criteria by the words that the paper's tables have for them.
CRITERIA = {"RPAU": "rpau", "pseudo-negative": "pseudo-negatives", "Non-pure": "labels"}
DEFAULT, LABELLED_DEFAULT = "FusedDetector()", "FusedDetector() with labels"


@dataclass(frozen=True)
class Entry:
    """A system of the registry.

    Parameters
    ----------
    group : str
        "local", "global", "member", "rule", "single", "detector", "rival" or "ours".
    recipe : Recipe
        How it learns.
    """

    group: str
    recipe: Recipe

    @property
    def key(self) -> str:
        """Change with the recipe, and with any code that it may run."""
        return definition_key(_code(self.group == "rival"), repr(self.recipe))


def _tuned(words: str) -> dict[str, Entry]:
    """Return the systems that are tuned by a criterion."""
    by = CRITERIA[words]
    is_pure = words != "Non-pure"
    local = ("Pure1 " + words, "Pure2 " + words) if is_pure else ("Non-pure1", "Non-pure2")
    return {
        local[0]: Entry("local", Fused(PURE1, by)),
        local[1]: Entry("local", Fused(PURE2, by)),
        f"{local[1]}, signed": Entry("local", Fused(SIGNED_PURE2, by)),
        f"Previous {words}": Entry("global", Fused(PREVIOUS, by)),
        f"Previous {words}, signed": Entry("global", Fused(SIGNED_PREVIOUS, by)),
        **{f"{n} {words}": Entry("member", TunedMember(f, by)) for n, f in FAMILIES.items()},
        **{f"{name} {words}": Entry("rule", Fused(rule, by)) for name, rule in RULES.items()},
        f"Single-best {words}": Entry("single", BestMember(by)),
    }


#: Whole detectors, and the rivals: fusions of the same members, or whole detectors too.
DETECTORS = {
    "LOF": LocalOutlierFactor(20, novelty=True),
    "IF": IsolationForest(),
    "ALP": ALP(),
}
RIVALS: dict[str, Recipe] = {
    "Fatemifar 2022": Fused(SwarmAverage(), "rpau"),
    "Fatemifar 2022, genetic": Fused(GeneticAverage(), "rpau"),
    "DEOD homogeneous": Detector(DynamicEnsemble("homogeneous")),
    "DEOD heterogeneous": Detector(DynamicEnsemble("heterogeneous")),
    "FNDF": Detector(FilteredEnsemble()),
    "RAEOCSVM": Detector(BoostedSVM()),
}
#: Systems of the two protocols, by name.
SYSTEMS: dict[str, dict[str, Entry]] = {
    "pure": {
        **_tuned("RPAU"),
        **_tuned("pseudo-negative"),
        **{name: Entry("detector", Detector(found)) for name, found in DETECTORS.items()},
        **{name: Entry("rival", recipe) for name, recipe in RIVALS.items()},
        DEFAULT: Entry("ours", Detector(FusedDetector())),
    },
    "non-pure": {
        **_tuned("Non-pure"),
        LABELLED_DEFAULT: Entry("ours", Detector(FusedDetector(), takes_labels=True)),
    },
}


def _tuned_table(words: str) -> dict[str, str]:
    names = {name: f"{name} {words}" for name in (*FAMILIES, *RULES, "Single-best")}
    local = {"Pure1 (Frank-Wolfe)": "Pure1", "Pure2 (interior point)": "Pure2"}
    return {
        **{row: f"{system} {words}" for row, system in local.items()},
        **names,
        **{name: name for name in (*DETECTORS, DEFAULT)},
    }


#: Tables of the paper, by the names of `published_table`: which system is in which row.
#: Rows that the paper does not have are ours.
TABLES: dict[str, dict[str, str]] = {
    "rpau": _tuned_table("RPAU"),
    "pseudo-negative": _tuned_table("pseudo-negative"),
    "comparison": {
        name: name
        for name in (
            "Pure1 RPAU",
            "Pure1 pseudo-negative",
            "Non-pure1",
            "Pure2 RPAU",
            "Pure2 pseudo-negative",
            "Non-pure2",
            "Previous RPAU",
            "Previous pseudo-negative",
            "Previous Non-pure",
            "Pure2 RPAU, signed",
            "Pure2 pseudo-negative, signed",
            "Non-pure2, signed",
            "Previous RPAU, signed",
            "Previous pseudo-negative, signed",
            "Previous Non-pure, signed",
            *RIVALS,
            DEFAULT,
            LABELLED_DEFAULT,
            *(f"{name} Non-pure" for name in (*FAMILIES, *RULES, "Single-best")),
        )
    },
}


@cache
def _code(is_rival: bool) -> str:
    """Return a digest of the code, and the versions, that results depend on."""
    here = PACKAGE / "bench"
    paths = [*package_sources(), *(here / name for name in FRAME)]
    if is_rival:
        paths += (here / "rivals").glob("*.py")
    kernel = "C++" if is_available() else "NumPy"
    return definition_key(code_digest(paths), kernel, *map(version, PACKAGES))
