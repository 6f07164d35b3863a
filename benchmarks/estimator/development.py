"""Part "development": fusions of the default pool on the sets that defaults were chosen on."""

import warnings

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.estimator.tables import Task, data_folder
from benchmarks.report import Report, Table
from ocfuse import FusedDetector

#: None is the default.
FUSIONS = (None, "local-lp", "lp", "single-best", "sum", "aom", "median", "min", "product")
MOST_TRAIN, MOST_TEST = 600, 600
SEEDS = 3


def run(quick: bool) -> Report:
    files = sorted((data_folder() / "adbench").glob("*.npz"))[: 3 if quick else None]
    rows, found = [], []
    for path in files:
        data = np.load(path)
        splits = [split(data, seed) for seed in range(1 if quick else SEEDS)]
        scores = np.array([row(task, seed) for seed, task in enumerate(splits)])
        found.append({"set": path.stem, "auc": scores.tolist()})
        rows.append([path.stem, *(f"{value:.2f}" for value in scores.mean(axis=0))])
        print(rows[-1], flush=True)
    means = np.array([np.mean(each["auc"], axis=0) for each in found])
    gain = means - means[:, [FUSIONS.index("sum")]]
    rows.append(["**mean**", *(f"**{value:.2f}**" for value in means.mean(axis=0))])
    rows.append(["worst against sum", *(f"{value:.1f}" for value in gain.min(axis=0))])
    rows.append(["sets ahead of sum", *(str(int(n)) for n in (gain > 0).sum(axis=0))])
    header = ["set", *("default" if name is None else name for name in FUSIONS)]
    return Report(
        "Fusions on the development sets",
        f"{SEEDS} splits: 60 % of the normals to learn from (at most {MOST_TRAIN}), others and "
        f"anomalies (at most {MOST_TEST} each) to tell apart; default pool, no labels. The "
        "defaults were chosen on these sets: the figures describe them, and prove nothing.",
        [],
        [Table("AUC, %", header, rows)],
        {"sets": found, "fusions": [str(name) for name in FUSIONS]},
    )


def split(data: dict[str, np.ndarray], seed: int) -> Task:
    rng = np.random.default_rng(seed)
    normal = rng.permutation(data["X"][data["y"] == 0]).astype(float)
    anomalies = rng.permutation(data["X"][data["y"] == 1]).astype(float)[:MOST_TEST]
    cut = min(round(0.6 * len(normal)), MOST_TRAIN)
    rest = normal[cut : cut + MOST_TEST]
    test = np.vstack([rest, anomalies])
    return Task(normal[:cut], test, np.arange(len(test)) < len(rest))


def row(task: Task, seed: int) -> list[float]:
    """Return the AUC of every fusion."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fusion in FUSIONS:
            detector = FusedDetector(fusion=fusion, random_state=seed).fit(task.train)
            found.append(100 * roc_auc_score(task.is_normal, detector.score_samples(task.test)))
    return found
