"""
Rows that nobody has labelled
=============================

After some weeks a detector has scored many rows, and nobody knows which of them are anomalies.
``adapt`` learns from such rows how far to trust each member.
"""

# %%
# Two classes of generated rows; one of them is normal. In use, one row in ten is an anomaly.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from ocfuse import FusedDetector
from ocfuse.metrics import auc

X, kind = make_classification(
    6_000, 10, n_informative=4, n_redundant=2, n_clusters_per_class=2, class_sep=1.2, random_state=3
)
normal, odd = X[kind == 0], X[kind == 1]
train, rest = normal[:400], normal[400:]
in_use = np.vstack([rest[:900], odd[:100]])
test = np.vstack([rest[900:2_400], odd[100:600]])
truth = np.repeat([1, -1], [1_500, 500])

# %%
# The rows need no labels. If too few of them look unusual, ``adapt`` changes nothing. If all of
# them have drifted, it refuses them.

detector = FusedDetector(random_state=0).fit(train)
adapted = FusedDetector(random_state=0).fit(train).adapt(in_use)
before, after = (auc(truth, d.score_samples(test)) for d in (detector, adapted))
print(f"AUC {before:.3f} before, {after:.3f} after 1,000 unlabelled rows")

# %%
# The figure shows what has changed: the weight of every member.

names = detector.pool_.names_
mean = [d.fusion_.weights(np.zeros((1, 10))).ravel() for d in (detector, adapted)]
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
place = np.arange(len(names))
axes.bar(place - 0.2, mean[0], width=0.4, label="before")
axes.bar(place + 0.2, mean[1], width=0.4, label="after")
axes.set(ylabel="weight")
axes.set_xticks(place, names, rotation=60, ha="right")
axes.legend()
plt.show()
