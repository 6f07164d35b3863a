"""
A first table
=============

From normal rows to alarms: learn, score, and see which columns make a row unusual.
"""

# %%
# Cell nuclei of 569 samples. The benign ones are what is normal here; half of them are learned.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from ocfuse import FusedDetector, plot

table, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
benign = table[diagnosis == 1]
train, fresh, malignant = benign[::2], benign[1::2], table[diagnosis == 0]

# %%
# There is nothing to tune. Several detectors learn, and the fusion learns how far to trust each.

detector = FusedDetector(random_state=0).fit(train)

# %%
# ``predict`` is +1 for normal rows and -1 for anomalies. Of fresh normal rows at most about 5 %
# raise an alarm, the rate that is asked for by default.

print(f"alarms among fresh benign samples: {(detector.predict(fresh) == -1).mean():.1%}")
print(f"alarms among malignant samples:    {(detector.predict(malignant) == -1).mean():.1%}")

# %%
# Scores are higher the more normal a row is.

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
plot.scores(detector, malignant, ax=axes)
plt.show()

# %%
# Why is a row unusual? Each column has a share of the score, beside what is usual for it.

worst = malignant.iloc[[detector.score_samples(malignant).argmin()]]
why = detector.explain(worst)
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
plot.explanation(why, n_features=6, ax=axes)
plt.show()

# %%
# A model is one file. To load one runs no code, so it may come from a stranger.
#
# .. code-block:: python
#
#     detector.save("nuclei.ocf")
#     ocfuse.load("nuclei.ocf")
