"""
A machine with sensors
======================

Learn from normal runs, ask for so many false alarms an hour, and see which sensor an alarm is about.
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
# turn, so that the events they raise tell how many to expect of others. The two temperatures wander
# from run to run: ``drift="drop"`` leaves them out.

stream = StreamDetector(FusedDetector("light", random_state=0), drift="drop", max_rows=800)
stream.fit(X, runs=which, time=time)
for name, value in stream.alarm_facts().items():
    print(f"{name}: {value}")

# %%
# One run, as it would have been seen while it came.

scores = stream.score_run(faulty, fault.time)
minutes = fault.time / 60
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(minutes, scores, linewidth=0.8)
axes.axhline(stream.offset_, color="black", linestyle="--", label="threshold")
axes.axvline(minutes[fault.onset], color="tab:red", label="the fault begins")
axes.set(xlabel="minutes", ylabel="score")
axes.legend()
plt.show()

# %%
# Which sensor? The run once more, as a program has it that watches: up to the lowest score.

worst = int(np.nanargmin(scores))
stream.reset().follow(faulty[: worst + 1], fault.time[: worst + 1])
for reading in stream.readings():
    print(reading)
