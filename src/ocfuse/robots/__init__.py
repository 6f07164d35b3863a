"""A simulated robot cell, and recorded runs of robots."""

from ocfuse.robots.cell import simulate
from ocfuse.robots.claim import read_plan
from ocfuse.robots.kinds import KINDS, TYPES
from ocfuse.robots.plan import Plan
from ocfuse.robots.trials import Trial, read_trials

__all__ = ["KINDS", "TYPES", "Plan", "Trial", "read_plan", "read_trials", "simulate"]
