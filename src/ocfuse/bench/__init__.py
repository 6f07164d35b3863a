"""Comparisons: on a user's own rows, and the paper's experiment with runs that survive a kill."""

from ocfuse.bench.cells import Cell, Experiment, System, run_cells
from ocfuse.bench.comparison import Comparison, compare
from ocfuse.bench.measures import measure
from ocfuse.bench.paper import Paper, paper_cells, rerun, run_paper
from ocfuse.bench.splits import Split, draw

__all__ = [
    "Cell",
    "Comparison",
    "Experiment",
    "Paper",
    "Split",
    "System",
    "compare",
    "draw",
    "measure",
    "paper_cells",
    "rerun",
    "run_cells",
    "run_paper",
]
