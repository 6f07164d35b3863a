"""
A machine with sensors
======================

Learn from normal runs of a machine, see how many false alarms per hour to expect, and find the
sensor that caused an alarm.
"""

# %%
# A simulated motor with six sensors and a row per second: 24 normal runs, and one run in which a
# bearing begins to wear.

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
# Each window of a run becomes a row with level, slope and spread of every sensor. Runs are held
# out in turn, and the events that they raise show how many false alarms to expect. The level of
# the two temperatures changes from run to run; ``drift="drop"`` leaves them out.

stream = StreamDetector(FusedDetector("light", random_state=0), drift="drop", max_rows=800)
stream.fit(X, runs=which, time=time)
for name, value in stream.alarm_facts().items():
    print(f"{name}: {value}")

# %%
# The scores of the run with the fault, the same as in a live stream.

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
# Which sensor caused the alarm? ``follow`` takes rows as a live program does, here up to the lowest
# score. ``readings`` returns the sensors with their values and what is usual.

worst = int(np.nanargmin(scores))
stream.reset().follow(faulty[: worst + 1], fault.time[: worst + 1])
for reading in stream.readings():
    print(reading)
