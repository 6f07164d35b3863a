"""Part "pools": what the pools "light" and "large" lose and save beside the default."""

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy import splits
from benchmarks.accuracy.context import Context
from benchmarks.accuracy.measures import Measures, measure
from benchmarks.accuracy.sets import all_tasks, fold, one_of_each
from benchmarks.accuracy.systems import FOLDS
from benchmarks.report import Report, Table
from ocfuse import FusedDetector
from ocfuse.fusion import TrustFusion
from ocfuse.stats import compare

POOLS = ("default", "large", "light")
SHOWN = {"auc": "AUC", "ap": "AUC-PR", "hits_1": "found at 1 %", "hits_5": "found at 5 %"}

METHOD = """
One split of one task of each of {families} families, split and measured as in the part "families";
trust is learned without the family that is judged. Each pool is fitted anew by `FusedDetector`, all
on the same rows, up to 600 to learn from. CPU seconds are those of one thread for fit, and for
scoring of validation and test rows, up to 2,200; p: Wilcoxon over the families, both-sided.
"""


def run(quick: bool, jobs: int) -> Report:
    names = one_of_each(all_tasks(quick))
    found = Parallel(n_jobs=jobs)(delayed(_measured)(name) for name in names)
    tables = {pool: [one[pool] for one in found] for pool in POOLS}
    rows = []
    for pool, measures in tables.items():
        of = {name: np.array([one[name] for one in measures], dtype=float) for name in measures[0]}
        ours = np.array([one["auc"] for one in tables["default"]], dtype=float)
        test = None if pool == "default" else compare(ours, of["auc"])
        rows.append(
            [
                pool,
                *(f"{np.nanmean(of[name]):.2f}" for name in SHOWN),
                "" if test is None else f"{test.mean_difference:+.2f}",
                "" if test is None else f"{test.wins}/{test.ties}/{test.losses}",
                "" if test is None else f"{test.p_value:.2g}",
                f"{of['fit'].mean():.2f}",
                f"{of['score'].mean():.3f}",
            ]
        )
    header = [
        "pool", *SHOWN.values(), "default gains", "wins/ties/losses", "p",
        "fit, CPU s", "score, CPU s",
    ]  # fmt: skip
    return Report(
        "Pools beside each other",
        METHOD.format(families=len(names)).strip(),
        [],
        [Table(f"Means over {len(names)} families, in %", header, rows)],
        dict(zip(names, found, strict=True)),
    )


def _measured(name: str) -> dict[str, Measures]:
    """Return what every pool reaches on the first split of a task."""
    context = Context(splits.pure(name, 0), 0)
    path = FOLDS / f"fold-{fold(name)}.json"
    found = {}
    for pool in POOLS:
        trust = TrustFusion(coefficients=str(path))
        detector = FusedDetector(pool, fusion=trust, random_state=0)
        found[pool] = measure(context.run(detector, scaled=False), context.split)
    return found
