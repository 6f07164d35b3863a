"""
Groups and false-alarm rates
============================

Rows of one run are alike. If single rows are held out to set the threshold, there are far more
false alarms than stated. If whole runs are held out, the stated rate holds.
"""

# %%
# 100 runs of a machine are learned, and 400 other runs are scored. Every run has its own offset,
# and the rows of a run differ little.

import matplotlib.pyplot as plt
import numpy as np

from ocfuse import FusedDetector

rng = np.random.default_rng(0)


def runs(n, rows_each=20):
    run = np.repeat(np.arange(n), rows_each)
    return rng.normal(size=(n, 4))[run] + 0.2 * rng.normal(size=(len(run), 4)), run


X, run = runs(100)
fresh, fresh_run = runs(400)

# %%
# Without groups, other rows of the same run are learned while a row is held out, so that it looks
# normal. With groups, whole runs are held out, and the threshold is right for rows of fresh runs.

alone = FusedDetector("light", random_state=0, false_alarm_rate=0.1).fit(X)
by_run = FusedDetector("light", random_state=0, false_alarm_rate=0.1).fit(X, groups=run)
rates = {
    "rows stand alone": (alone.predict(fresh) == -1).mean(),
    "groups=run": (by_run.predict(fresh) == -1).mean(),
}
for name, rate in rates.items():
    print(f"{name}: {rate:.1%} false alarms at 10 % asked for")

# %%
# How certain the rate is depends on the number of runs. ``certificate`` returns the bound.

print(by_run.certificate(0.1))

# %%
# The figure compares the stated rate with the share of rows of fresh runs that raise an alarm.

asked = np.linspace(0.03, 0.3, 10)
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, detector in (("rows stand alone", alone), ("groups=run", by_run)):
    found = [(detector.p_values(fresh) <= rate).mean() for rate in asked]
    axes.plot(asked, found, marker="o", label=name)
axes.plot(asked, asked, color="grey", linestyle="--", label="as asked for")
axes.set(xlabel="rate asked for", ylabel="alarms among rows of fresh runs")
axes.legend()
plt.show()
