"""The work of `ocfuse bench`."""

import json
from pathlib import Path

from ocfuse.bench.cells import is_cell
from ocfuse.bench.facts import facts
from ocfuse.bench.hindsight import SEEDS as HINDSIGHT_SEEDS
from ocfuse.bench.hindsight import run_hindsight
from ocfuse.bench.paper import SETS, rerun, run_paper, set_names
from ocfuse.bench.tables import write
from ocfuse.cli.output import print_json, print_line
from ocfuse.exceptions import InvalidInputError
from ocfuse.progress import show_progress


def run(sets: str | None, n_seeds: int, jobs: int, out: Path, ablation: Path) -> None:
    """Run every system of the paper's tables, and write them."""
    names = set_names(list(SETS) if sets is None else sets.split(","))
    with show_progress():
        results = run_paper(out, names, n_seeds, jobs)
        bounds = run_hindsight(out, names, min(n_seeds, HINDSIGHT_SEEDS), jobs)
    command = f"ocfuse bench paper --sets {','.join(names)} --seeds {n_seeds}"
    index, *_ = write(results, out, about=facts(command), bounds=bounds, ablation=ablation)
    n_failed = sum("failure" in record for record in results)
    print_line(f"{len(results)} results, {n_failed} of them failures, in {out}; see {index}")


def is_same_again(file: Path, system: str) -> bool:
    """Run one system again on the split of a file; tell whether the file holds its result."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} must be the file of a cell. {error}.") from None
    if not is_cell(stored):
        raise InvalidInputError(f"{file} must be the file of a cell. Use one in cells/paper/.")
    again = rerun(stored, system)
    before = stored["runs"].get(system, {}).get("results", {})
    print_json({"now": again, "stored": before, "is_same": again == before})
    return bool(again == before)
