"""
A few labelled anomalies
========================

Ten known anomalies are too few to learn a classifier. They are enough to learn which detectors to
trust.
"""

# %%
# Pictures of digits: "8" is normal, and ten pictures of other digits are labelled as anomalies.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ocfuse import FusedDetector
from ocfuse.metrics import auc

X, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
normal = rng.permutation(np.flatnonzero(digit == 8))
others = rng.permutation(np.flatnonzero(digit != 8))
train, fresh = normal[:90], normal[90:]
labelled, unseen = others[:10], others[10:]
rows = np.concatenate([fresh, unseen])
truth = np.repeat([1, -1], [len(fresh), len(unseen)])

# %%
# ``fit`` works with no labels, some labels, or all: +1 normal, -1 anomaly, 0 unknown. Detectors
# learn from normal rows alone; the fusion also learns from the labels.

detector = FusedDetector(random_state=0).fit(X[train])
found = {"no labels": auc(truth, detector.score_samples(X[rows]))}
for n in (3, 5, 10):
    learned = np.concatenate([train, labelled[:n]])
    y = np.repeat([1, -1], [len(train), n])
    detector = FusedDetector(random_state=0).fit(X[learned], y)
    found[f"{n} anomalies"] = auc(truth, detector.score_samples(X[rows]))
for name, value in found.items():
    print(f"{name}: AUC {value:.3f}")

# %%
# This is one split of one data set. For many families of data see `accuracy <../accuracy.html>`_.

figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
axes.plot(list(found), list(found.values()), marker="o")
axes.set(ylabel="AUC, anomalies that were not labelled")
plt.show()
