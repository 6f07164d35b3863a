"""The paper's experiment, with runs that resume after an interruption, and its tables.

Systems are run on the paper's data sets and splits, and every table is printed beside the
published figures. It must not change what the library computes: systems are made from public
detectors and fusions, and from `ocfuse.lab.rivals`.
"""

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
