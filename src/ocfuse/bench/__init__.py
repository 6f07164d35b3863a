"""The paper's experiment as a library: splits, systems, runs that survive a kill."""

from ocfuse.bench.cells import Cell, Experiment, System, run_cells
from ocfuse.bench.measures import measure
from ocfuse.bench.paper import Paper, paper_cells, rerun, run_paper
from ocfuse.bench.splits import Split, draw

__all__ = [
    "Cell",
    "Experiment",
    "Paper",
    "Split",
    "System",
    "draw",
    "measure",
    "paper_cells",
    "rerun",
    "run_cells",
    "run_paper",
]
