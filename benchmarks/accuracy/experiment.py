"""The experiment: how the rows of every part are split, and what is run on them."""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.accuracy import paper_fusions, splits, systems
from benchmarks.accuracy.context import Context
from benchmarks.accuracy.sets import content
from benchmarks.accuracy.splits import Split
from ocfuse.compare import System
from ocfuse.lab.paper import Cell
from ocfuse.lab.paper.runner import Stored, definition_key

#: By set, variant (protocol, number of labels or share of hidden anomalies) and seed.
SPLITS: dict[str, Callable[[str, str, int], Split]] = {
    "families": lambda name, _, seed: splits.pure(name, seed),
    "questions": lambda name, count, seed: splits.labelled(name, int(count), seed),
    "labels": lambda name, count, seed: splits.labelled(name, int(count), seed),
    "dirty": lambda name, share, seed: splits.dirty(name, float(share), seed),
}
#: By set, as trust is learned without its family, and seed.
SYSTEMS: dict[str, Callable[[str, int], list[System]]] = {
    "families": systems.families,
    "labels": systems.labelled,
    "questions": lambda name, seed: [paper_fusions.system()],
    "dirty": systems.dirty,
}


class Accuracy:
    """All parts, as `ocfuse.lab.paper.run_cells` takes them."""

    def systems(self, cell: Cell) -> list[System]:
        """Return everything that is run on a cell; the keys depend on the data too."""
        data = content(cell.name)
        found = SYSTEMS[cell.part](cell.name, cell.seed)
        return [replace(system, key=definition_key(system.key, data)) for system in found]

    def prepare(self, cell: Cell) -> tuple[Context, Stored]:
        """Draw the split of a cell."""
        split = SPLITS[cell.part](cell.name, cell.variant, cell.seed)
        prevalence = 100 * int((~split.is_normal).sum()) / len(split.test)
        return Context(split, cell.seed), {"set": cell.name, "prevalence": prevalence}
