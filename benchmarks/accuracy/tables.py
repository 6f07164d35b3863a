"""Parts of the tables: the default against a system, and failures."""

import numpy as np

from benchmarks.accuracy.results import Results
from benchmarks.accuracy.systems import DEFAULT
from benchmarks.report import Table
from ocfuse.stats import compare


def against_default(results: Results, name: str, measure: str = "auc") -> list[str]:
    """Return wins, ties and losses of the default against a system, and the p-value."""
    ours, theirs = results.column(DEFAULT, measure), results.column(name, measure)
    if name == DEFAULT or np.isnan(ours - theirs).all():
        return ["", ""]
    found = compare(ours, theirs)
    return [f"{found.wins}/{found.ties}/{found.losses}", f"{found.p_value:.2g}"]


def failure_table(results: Results) -> Table:
    """List what failed, and how."""
    rows = [
        [name, set_name, reason.replace("|", "/"), str(count)]
        for (name, set_name, reason), count in results.failures.items()
    ]
    header = ["system", "task", "error", "splits"]
    return Table("Failures", header, rows or [["none", "", "", ""]])
