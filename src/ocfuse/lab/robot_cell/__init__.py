"""A simulated robot cell."""

from ocfuse.lab.robot_cell.cell import CellPlan, read_plan, simulate

__all__ = [
    "CellPlan",
    "read_plan",
    "simulate",
]
