"""The paper's experiment, with runs that survive a kill, and its tables again."""

from ocfuse.lab.paper.experiment import Paper, paper_cells, rerun, run_paper
from ocfuse.lab.paper.repetitions import Split, draw
from ocfuse.lab.paper.runner import Cell, Experiment, measure, run_cells

__all__ = [
    "Cell",
    "Experiment",
    "Paper",
    "Split",
    "draw",
    "measure",
    "paper_cells",
    "rerun",
    "run_cells",
    "run_paper",
]
