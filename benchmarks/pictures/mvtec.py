"""Part "mvtec": three classes of MVTec AD as ready-made features, by the default FusedDetector."""

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.report import Report, Table
from ocfuse import FusedDetector
from ocfuse.datasets import load_adbench

SETS = ("MVTec-AD_cable", "MVTec-AD_carpet", "MVTec-AD_hazelnut")
SEEDS = 5
TRAIN_SHARE = 0.7
SYSTEMS = {
    "FusedDetector": lambda seed: FusedDetector(random_state=seed),
    "sum of its members": lambda seed: FusedDetector(fusion="sum", random_state=seed),
}


def run(quick: bool) -> Report:
    rows, data = [], {}
    for name in SETS:
        found = {system: [] for system in [*SYSTEMS, "best member, by the labels"]}
        for seed in range(1 if quick else SEEDS):
            for system, value in one_split(name, seed).items():
                found[system].append(value)
        print(f"{name} done", flush=True)
        cells = [f"{np.mean(values):.1f} ({np.std(values):.1f})" for values in found.values()]
        rows.append([name, *cells])
        data[name] = found
    means = [np.mean([np.mean(data[name][system]) for name in SETS]) for system in data[SETS[0]]]
    rows.append(["**mean**", *(f"**{mean:.1f}**" for mean in means)])
    return Report(
        "MVTec AD, three classes as features",
        "512 features of a ResNet18 (ADBench), no maps: pooled members only. 70 % of the normals "
        "to learn from, the other normals and all anomalies to tell apart; no label, no tuning.",
        [],
        [Table("AUC, % (mean and standard deviation)", ["set", *data[SETS[0]]], rows)],
        data,
    )


def one_split(name: str, seed: int) -> dict[str, float]:
    dataset = load_adbench(name)
    rng = np.random.default_rng(seed)
    normal = rng.permutation(np.flatnonzero(dataset.y > 0))
    cut = round(TRAIN_SHARE * len(normal))
    test = np.concatenate([normal[cut:], np.flatnonzero(dataset.y < 0)])
    is_normal = dataset.y[test] > 0
    areas = {}
    for system, make in SYSTEMS.items():
        detector = make(seed).fit(dataset.X[normal[:cut]])
        areas[system] = 100 * float(
            roc_auc_score(is_normal, detector.score_samples(dataset.X[test]))
        )
    members = detector.transform(dataset.X[test]).T
    best = max(float(roc_auc_score(is_normal, scores)) for scores in members)
    return areas | {"best member, by the labels": 100 * best}
