"""
Coming from PyOD
================

Detectors of PyOD can be members beside those of ocfuse. ``from_pyod`` reverses their sign, so that
higher scores are more normal.
"""

# %%
# Normal rows are in two clusters, and anomalies between and around them.

import matplotlib.pyplot as plt
import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.knn import KNN

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, LOF, from_pyod
from ocfuse.metrics import auc

rng = np.random.default_rng(0)
centres = np.array([[-2.0, -2.0], [2.0, 2.0]])


def clusters(n):
    return centres[rng.integers(2, size=n)] + rng.normal(scale=0.7, size=(n, 2))


train, fresh = clusters(400), clusters(400)
odd = rng.uniform(-5, 5, size=(400, 2))
odd = odd[np.linalg.norm(odd[:, None] - centres, axis=2).min(axis=1) > 2.2]
rows, truth = np.vstack([fresh, odd]), np.repeat([1, -1], [len(fresh), len(odd)])

# %%
# In PyOD a higher score means a more anomalous row, and ``contamination`` is a share of the
# training rows. In ocfuse ``false_alarm_rate`` is a share of fresh normal rows.

members = [
    ("ecod", from_pyod(ECOD())),
    ("hbos", from_pyod(HBOS())),
    ("knn", from_pyod(KNN())),
    ("lof", LOF()),
    ("gmm", GMM()),
]
detector = FusedDetector(members, random_state=0, false_alarm_rate=0.05).fit(train)
found = {"fused": auc(truth, detector.score_samples(rows))}
for model in (ECOD(), HBOS(), KNN()):
    found[type(model).__name__] = auc(truth, -model.fit(train).decision_function(rows))
for name, value in found.items():
    print(f"{name}: AUC {value:.3f}")
print(f"false alarms: {(detector.predict(fresh) == -1).mean():.1%}")

# %%
# The figure shows how far the fusion trusts each member.

why = detector.explain(odd[:1])
names = detector.pool_.names_
figure, axes = plt.subplots(figsize=(5, 2.6), layout="constrained")
axes.barh(names, why.weights[0])
axes.set(xlabel="weight")
plt.show()

# %%
# See also `what things are called in PyOD, scikit-learn and ocfuse <../migration.html>`_.
