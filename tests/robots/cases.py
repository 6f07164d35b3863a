"""The one cell that is made for all tests."""

from ocfuse.lab.robot_cell import CellPlan

PLAN = CellPlan(train=2, validation=0, test=0, anomalous=1, types=("open",), n_frames=10, seed=7)
