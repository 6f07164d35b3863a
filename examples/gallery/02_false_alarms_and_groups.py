"""
Groups and false-alarm rates
============================

Rows of one run are alike. If single rows are held out, false alarms are far more than stated. If
whole runs are held out, they are not.
"""

# %%
# A hundred runs of a machine. Every run has an offset of its own, and its rows differ little.

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
# Without groups, a row that is held out has its own run among the rows that are learned. With them,
# whole runs are held out, and the threshold is that for rows of a fresh run.

alone = FusedDetector("light", random_state=0, false_alarm_rate=0.1).fit(X)
by_run = FusedDetector("light", random_state=0, false_alarm_rate=0.1).fit(X, groups=run)
rates = {
    "rows stand alone": (alone.predict(fresh) == -1).mean(),
    "groups=run": (by_run.predict(fresh) == -1).mean(),
}
for name, rate in rates.items():
    print(f"{name}: {rate:.1%} false alarms at 10 % asked for")

# %%
# How surely a rate holds depends on the number of runs. ``certificate`` says so.

print(by_run.certificate(0.1))

# %%
# The rate asked for, and what fresh runs raise.

asked = np.linspace(0.03, 0.3, 10)
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, detector in (("rows stand alone", alone), ("groups=run", by_run)):
    found = [(detector.p_values(fresh) <= rate).mean() for rate in asked]
    axes.plot(asked, found, marker="o", label=name)
axes.plot(asked, asked, color="grey", linestyle="--", label="as asked for")
axes.set(xlabel="rate asked for", ylabel="alarms among rows of fresh runs")
axes.legend()
plt.show()
