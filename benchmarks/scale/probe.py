"""What one fit takes, in a process of its own: ``python -m benchmarks.scale.probe '{...}'``."""

import gc
import json
import pickle
import sys
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.scale.data import features_and_fresh, planted
from benchmarks.scale.task import forget_peak, memory, timed
from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, KPCA, LOF, SVDD, OneClassGP
from ocfuse.detectors.forest import Forest
from ocfuse.detectors.marginal import Marginal
from ocfuse.detectors.views import Compressed, Whitened
from ocfuse.tuning import Search

#: Members one family at a time, so that their costs can be told apart.
FAMILIES: dict[str, Any] = {
    "few rows": [KNN(5, max_samples=500)],
    "kernel": [KPCA(landmarks=1000)],
    "sphere": [SVDD(landmarks=1000)],
    "process": [OneClassGP("ratio", landmarks=1000)],
    "neighbours": [KNN(5), LOF(30)],
    "whitened neighbours": [Whitened(KNN(5))],
    "compressed neighbours": [Compressed(KNN(5)), KNN(5)],
    "gaussian": [GMM(1)],
    "gaussians": [GMM(3, max_samples=5000)],
    "marginal": [Marginal()],
    "forest": [Forest()],
}
#: Fits are repeated until they have taken as long in all, and the quickest counts.
ENOUGH_SECONDS, MOST_FITS = 2.0, 4
N_TEST = 2000


def search(tried: int) -> Search | None:
    """Return a search among so many norms; None for none."""
    return Search(grid={"p": np.geomspace(1.05, 10, tried)}) if tried else None


def measure(pool: str, n: int, m: int, data: str, groups: int | None, tried: int) -> dict[str, Any]:
    if data == "planted":
        drawn = planted(n, N_TEST)
        X, fresh = drawn.X, drawn.test
    else:
        X, fresh = features_and_fresh(n, N_TEST, m)
    detector = FusedDetector(FAMILIES.get(pool, pool), random_state=0, tune=search(tried))
    runs = None if groups is None else np.arange(n) % groups
    # what the first fit of a process loads is not counted
    FusedDetector("light", random_state=0).fit(X[:50]).score_samples(X[:50])
    forget_peak()
    before, _ = memory()
    seconds = [timed(lambda: detector.fit(X, groups=runs))[1]["cpu"]]
    peak = memory()[1] - before
    while sum(seconds) < ENOUGH_SECONDS and len(seconds) < MOST_FITS:
        seconds.append(timed(lambda: detector.fit(X, groups=runs))[1]["cpu"])
    gc.collect()
    model = len(pickle.dumps(detector, protocol=5))
    score = min(timed(lambda: detector.score_samples(fresh))[1]["cpu"] for _ in range(2))
    return {
        "fit": min(seconds),
        "peak": peak,
        "model": model,
        "score": score / len(fresh),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        found = measure(**json.loads(sys.argv[1]))
    print(json.dumps(found))
