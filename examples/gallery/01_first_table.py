"""
A first table
=============

From normal rows to alarms: learn, score, and see which columns make a row unusual.
"""

# %%
# Measurements of cell nuclei in 569 samples. Benign samples are normal; half of them are learned.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from ocfuse import FusedDetector, plot

table, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
benign = table[diagnosis == 1]
train, fresh, malignant = benign[::2], benign[1::2], table[diagnosis == 0]

# %%
# Nothing needs to be tuned. Several detectors learn what is normal, and the fusion learns how far
# to trust each of them.

detector = FusedDetector(random_state=0).fit(train)

# %%
# ``predict`` returns +1 for normal rows and -1 for alarms. At most about 5 % of fresh normal rows
# raise an alarm: this is the default false-alarm rate.

print(f"alarms among fresh benign samples: {(detector.predict(fresh) == -1).mean():.1%}")
print(f"alarms among malignant samples:    {(detector.predict(malignant) == -1).mean():.1%}")

# %%
# A higher score means a more normal row. The figure shows the scores of the malignant samples
# beside those of held-out normal rows, and the threshold.

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
plot.scores(detector, malignant, ax=axes)
plt.show()

# %%
# Why is a row unusual? For each column the figure shows how much it lowers the score, its value,
# and what is usual.

worst = malignant.iloc[[detector.score_samples(malignant).argmin()]]
why = detector.explain(worst)
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
plot.explanation(why, n_features=6, ax=axes)
plt.show()

# %%
# A model is saved to one file. Loading it runs no code of the file, also if it comes from a
# stranger.
#
# .. code-block:: python
#
#     detector.save("nuclei.ocf")
#     ocfuse.load("nuclei.ocf")
