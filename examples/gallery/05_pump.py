"""
A machine with sensors
======================

Learn from normal runs, see how many false alarms per hour to expect, and which sensor an alarm is
about.
"""

# %%
# A simulated motor with six sensors, one row a second: 24 normal runs, and one in which the
# bearing wears from some moment on.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ocfuse import FusedDetector
from ocfuse.lab.motor import CHANNELS, motor_run
from ocfuse.streaming import StreamDetector

normal = [motor_run(seed) for seed in range(24)]
fault = motor_run(100, "bearing wear")
faulty = pd.DataFrame(fault.values, columns=CHANNELS)
X = pd.DataFrame(np.vstack([run.values for run in normal]), columns=CHANNELS)
time = np.concatenate([run.time for run in normal])
which = np.repeat(np.arange(24), [len(run.time) for run in normal])

# %%
# Windows of a run become rows with level, slope and spread of every sensor. Runs are held out in
# turn: the events that they raise show how many false alarms to expect. The two temperatures wander
# from run to run, and ``drift="drop"`` leaves them out.

stream = StreamDetector(FusedDetector("light", random_state=0), drift="drop", max_rows=800)
stream.fit(X, runs=which, time=time)
for name, value in stream.alarm_facts().items():
    print(f"{name}: {value}")

# %%
# Scores of the run with the fault, as they would have come live.

scores = stream.score_run(faulty, fault.time)
minutes = fault.time / 60
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(minutes, scores, linewidth=0.8)
axes.axhline(stream.offset_, color="black", linestyle="--", label="threshold")
axes.axvline(minutes[fault.onset], color="#D55E00", label="the fault begins")
axes.set(xlabel="minutes", ylabel="score")
axes.legend()
plt.show()

# %%
# Which sensor? ``follow`` takes the rows as a live program does, here up to the lowest score.

worst = int(np.nanargmin(scores))
stream.reset().follow(faulty[: worst + 1], fault.time[: worst + 1])
for reading in stream.readings():
    print(reading)
