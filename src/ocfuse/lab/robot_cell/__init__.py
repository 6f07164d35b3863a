"""A simulated robot cell: trials of a robot that picks and places, some with faults.

A trial is written as camera pictures, joint values and labels, in the folders that
`ocfuse.vision.trials` reads. The simulation must not know detectors or scores.
"""

from ocfuse.lab.robot_cell.cell import CellPlan, read_plan, simulate

__all__ = [
    "CellPlan",
    "read_plan",
    "simulate",
]
