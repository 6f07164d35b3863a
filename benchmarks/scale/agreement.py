"""Scores with every training row looked at: ``python -m benchmarks.scale.agreement n m q``."""

import json
import sys
import warnings

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from benchmarks.scale.task import Task, rows_of
from ocfuse import FusedDetector
from ocfuse.nearest import index


def main(n: int, m: int, n_test: int) -> None:
    rows = rows_of(Task("", "features", n, m, n_test))
    scores = FusedDetector(random_state=0).fit(rows.X).score_samples(rows.test)
    # The one place where the benchmark reaches into the package: nothing is cut short.
    index.MOST_ROWS = index.LEAST_WORK = sys.maxsize
    exact = FusedDetector(random_state=0).fit(rows.X).score_samples(rows.test)
    normal = ~rows.is_anomaly
    found = {
        "auc": 100 * roc_auc_score(normal, scores),
        "exact auc": 100 * roc_auc_score(normal, exact),
        "rank correlation": float(spearmanr(scores, exact).statistic),
        "largest difference": float(np.abs(scores - exact).max() / exact.std()),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
