"""Fuse four scikit-learn detectors and see which of them each norm trusts.

The detectors learn from normal samples only. The weights of the fusion are
fitted to out-of-fold scores of the same normal samples and, in the last rows,
to ten labelled anomalies as well. No test sample takes part in any of this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from ocfuse import __version__
from ocfuse.solvers import solve

FloatArray: TypeAlias = NDArray[np.float64]

SEED = 0
N_LABELLED = 10
RHO = 5.0  # percentiles RHO and 100 - RHO of the normal scores become 0 and 1
NORMS = {"32/31": 32 / 31, "2": 2.0, "100": 100.0}


@dataclass(frozen=True)
class Split:
    """Normal samples to train on, a few labelled anomalies, and a test set."""

    train: FloatArray
    labelled: FloatArray
    test: FloatArray
    test_is_normal: NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """One line of the table; what does not apply stays empty."""

    method: str
    auc: float
    p: str = ""
    w: FloatArray | None = None
    gap: str = ""
    status: str = ""


def load_split() -> Split:
    """Take benign tumours as normal: 70 % train, the rest and all malignant ones test."""
    X, is_normal = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(SEED)
    normal = rng.permutation(X[is_normal == 1])
    anomalies = rng.permutation(X[is_normal == 0])
    train, normal_test = np.split(normal, [round(0.7 * len(normal))])
    labelled, anomalous_test = np.split(anomalies, [N_LABELLED])
    test = np.vstack([normal_test, anomalous_test])
    return Split(train, labelled, test, np.arange(len(test)) < len(normal_test))


def make_members() -> dict[str, Any]:
    """Return four detectors, untuned, each with `score_samples`: higher = more normal."""
    detectors = {
        "SVM": OneClassSVM(nu=0.1),
        "forest": IsolationForest(random_state=SEED),
        "LOF": LocalOutlierFactor(novelty=True),
        "mixture": GaussianMixture(n_components=2, reg_covar=1e-3, random_state=SEED),
    }
    return {name: make_pipeline(StandardScaler(), d) for name, d in detectors.items()}


def score(members: dict[str, Any], X: FloatArray) -> FloatArray:
    """Return the table of scores, one column per member."""
    return np.column_stack([member.score_samples(X) for member in members.values()])


def fit_members(members: dict[str, Any], X: FloatArray) -> dict[str, Any]:
    """Return fitted clones."""
    return {name: clone(member).fit(X) for name, member in members.items()}


def out_of_fold_scores(members: dict[str, Any], X: FloatArray) -> FloatArray:
    """Score every sample by detectors that have not seen it."""
    S = np.empty((len(X), len(members)))
    for train, held_out in KFold(5, shuffle=True, random_state=SEED).split(X):
        S[held_out] = score(fit_members(members, X[train]), X[held_out])
    return S


def normalise(S: FloatArray, normal: FloatArray) -> FloatArray:
    """Map two percentiles of the normal scores to 0 and 1, and cut far values off."""
    low, high = np.percentile(normal, [RHO, 100.0 - RHO], axis=0)
    Z: FloatArray = np.clip((S - low) / (high - low), -1.0, 2.0)
    return Z


def balanced(y: FloatArray) -> FloatArray:
    """Return sample weights that give every class the same total."""
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[which])


def fusion_rows(
    method: str, Z: FloatArray, y: FloatArray, Z_test: FloatArray, is_normal: NDArray[np.bool_]
) -> Iterator[Row]:
    """Fit one weight vector per norm and judge it on the test set."""
    for name, p in NORMS.items():
        solution = solve(Z, y, p, sample_weight=balanced(y), nonneg=True, tol=1e-6)
        auc = roc_auc_score(is_normal, Z_test @ solution.w)
        yield Row(method, auc, name, solution.w, f"{solution.gap:.0e}", str(solution.status))


def compare(split: Split, members: dict[str, Any]) -> list[Row]:
    """Return the rows of the table: members, sum rule, fusions."""
    reference = out_of_fold_scores(members, split.train)
    fitted = fit_members(members, split.train)
    Z = normalise(reference, reference)
    Z_labelled = normalise(score(fitted, split.labelled), reference)
    Z_test = normalise(score(fitted, split.test), reference)

    def auc(z: FloatArray) -> float:
        return float(roc_auc_score(split.test_is_normal, z))

    rows = [Row(f"{name} alone", auc(z)) for name, z in zip(members, Z_test.T, strict=True)]
    rows.append(Row("sum rule", auc(Z_test.sum(axis=1)), w=np.ones(len(members))))
    y = np.ones(len(Z))
    rows += fusion_rows("lp fusion, pure", Z, y, Z_test, split.test_is_normal)
    Z, y = np.vstack([Z, Z_labelled]), np.append(y, -np.ones(N_LABELLED))
    rows += fusion_rows(f"lp fusion, {N_LABELLED} anomalies", Z, y, Z_test, split.test_is_normal)
    return rows


def table(rows: list[Row], names: list[str]) -> str:
    """Lay the rows out in aligned columns."""
    head = f"{'method':<24}{'p':>6}" + "".join(f"{name:>9}" for name in names)
    lines = [f"{head}{'gap':>8}  {'status':<8}{'AUC':>6}"]
    for row in rows:
        weights = [""] * len(names) if row.w is None else [f"{value:.3f}" for value in row.w]
        middle = "".join(f"{weight:>9}" for weight in weights)
        lines.append(
            f"{row.method:<24}{row.p:>6}{middle}{row.gap:>8}  {row.status:<8}{row.auc:>6.3f}"
        )
    return "\n".join(lines)


def verdict(rows: list[Row]) -> str:
    """Say plainly how the fusions compare with the best member and the sum rule."""
    member = max((row for row in rows if row.method.endswith("alone")), key=lambda row: row.auc)
    sum_rule = next(row for row in rows if row.method == "sum rule")
    lines = [
        f"Best member, which only the test labels tell: {member.method}, AUC {member.auc:.3f}."
    ]
    for method in dict.fromkeys(row.method for row in rows if row.p):
        best = max((row for row in rows if row.method == method), key=lambda row: row.auc)
        lines.append(
            f"{method}, at the p that is best here ({best.p}): {best.auc:.3f}, "
            f"{_against(best, member)} that member, {_against(best, sum_rule)} the sum rule."
        )
    return "\n".join(lines)


def _against(row: Row, other: Row) -> str:
    """Compare two AUCs as they are printed."""
    difference = round(row.auc, 3) - round(other.auc, 3)
    return "above" if difference > 0 else "below" if difference < 0 else "equal to"


def main() -> None:
    """Run the comparison and print it."""
    split, members = load_split(), make_members()
    n_normal = int(split.test_is_normal.sum())
    print(f"ocfuse {__version__}: four detectors fused on the breast cancer data of scikit-learn")
    print(f"train   {len(split.train)} benign samples, taken as normal")
    print(f"test    {n_normal} other benign and {len(split.test) - n_normal} malignant samples\n")
    rows = compare(split, members)
    print(table(rows, list(members)))
    print(f"\n{verdict(rows)}\n")
    print(
        "How to read it: between p and gap stand the weights, which are not negative. With p near\n"
        "1 the members share one unit of weight; with a large p each may have up to 1. The gap\n"
        "proves how close the weights are to the optimum of the training problem, relatively.\n"
        "That problem is not the AUC: pure weights only know how the members rate normal samples,\n"
        "not what an anomaly looks like. One split of one data set ranks no method."
    )


if __name__ == "__main__":
    main()
