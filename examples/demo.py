"""The story of `ocfuse demo` in Python, with what a few labels add.

The data are the breast cancer measurements that come with scikit-learn: benign
samples are taken as normal. No label of a test row is used to learn, to choose
or to set the threshold; labels only judge the result at the end.
"""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

import ocfuse
from ocfuse import FusedDetector
from ocfuse.metrics import auc, false_alarm_rate, missed_alarm_rate

N_LABELLED = 10


def show_alarms(title: str, detector: FusedDetector, X: NDArray[np.float64], y: list[int]) -> None:
    """Print how many alarms there are where they should be, and where not."""
    predicted = detector.predict(X)
    print(
        f"{title}: AUC {auc(y, detector.score_samples(X)):.3f}, alarms on "
        f"{1 - missed_alarm_rate(y, predicted):.1%} of the anomalies and on "
        f"{false_alarm_rate(y, predicted):.1%} of the normal rows."
    )


def main() -> None:
    """Run the story and print it."""
    data = load_breast_cancer()
    rng = np.random.default_rng(0)
    normal = rng.permutation(data.data[data.target == 1])
    anomalies = rng.permutation(data.data[data.target == 0])
    train, rest = np.split(normal, [250])
    labelled, others = np.split(anomalies, [N_LABELLED])
    test, y = np.vstack([rest, others]), [1] * len(rest) + [-1] * len(others)

    detector = FusedDetector(false_alarm_rate=0.05, random_state=0).fit(train)
    show_alarms("No label at all", detector, test, y)

    rows, labels = np.vstack([train, labelled]), [1] * len(train) + [-1] * N_LABELLED
    informed = FusedDetector(false_alarm_rate=0.05, random_state=0).fit(rows, labels)
    show_alarms(f"With {N_LABELLED} labelled anomalies", informed, test, y)

    strangest = others[[detector.score_samples(others).argmin()]]
    print("\nWhy the strangest row raised an alarm:\n" + detector.explain(strangest).describe())

    with tempfile.TemporaryDirectory() as folder:
        path = detector.save(Path(folder) / "breast.ocf")
        loaded = ocfuse.load(path)
    same = np.array_equal(loaded.score_samples(test), detector.score_samples(test))
    print(f"\nSaved and loaded: the scores are {'the same' if same else 'OTHERS'}.")
    print("One split of one data set ranks no method.")


if __name__ == "__main__":
    main()
