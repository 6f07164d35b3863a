"""Part "tables": ordinary tables with ordinary troubles, before and after, and PyOD beside."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pyod

import ocfuse
from benchmarks.ordinary import sources, systems, troubles
from benchmarks.ordinary.sources import MOST_TRAIN, SOURCES, rows
from benchmarks.ordinary.systems import RATE, measured
from benchmarks.ordinary.troubles import ONE_IN, SHIFT, TROUBLES, Case
from benchmarks.report import ROOT, Data, Report, Table, Target, facts
from ocfuse import show_progress
from ocfuse.compare import System
from ocfuse.lab.paper import Cell, run_cells
from ocfuse.lab.paper.runner import PACKAGE, Stored, code_digest, definition_key

QUICK_TABLES, QUICK_TROUBLES = ("hepatitis", "german credit"), ("none", "blanks", "rows twice")
CACHE = ROOT / ".bench-cache" / "ordinary"
STORED = ROOT / "benchmarks/results/ordinary/trials"
STATES = ("before", "after", "PyOD")
#: Percentage points by which a mean may exceed the stated rate, beyond two standard errors; and
#: by which copies may lower the mean AUC.
TOLERANCE, AUC_LOSS = 0.5, 1.0
COPIES = tuple(name for name in TROUBLES if "rows" in name or "copies" in name)
SEED = 0

Trials = dict[str, dict[str, Any]]


class Ordinary:
    """One system on all tables, as `ocfuse.lab.paper.run_cells` takes it."""

    def __init__(self, system: str, key: str) -> None:
        self.system, self.key = system, key

    def systems(self, cell: Cell) -> list[System]:
        """Return the one system; a table that lacks what a trouble needs has no cell."""
        return [System(self.system, "", self.key, self.run)]

    def run(self, case: Case) -> dict[str, Any]:
        return {self.system: measured(self.system, case)}

    def prepare(self, cell: Cell) -> tuple[Case, Stored]:
        """Put the trouble into the table."""
        case = case_of(cell.name, cell.variant)
        if case is None:
            raise ValueError(f"{cell.name} has no place for {cell.variant}.")
        return case, {"set": cell.name}


def case_of(table: str, trouble: str) -> Case | None:
    """Return a table with a trouble, or None if it has no place for it."""
    number = [SEED, list(SOURCES).index(table), list(TROUBLES).index(trouble)]
    return TROUBLES[trouble](rows(table, SEED), np.random.default_rng(number))


def run(quick: bool) -> Report:
    names = [name for name, source in SOURCES.items() if source.is_here]
    missing = [name for name in SOURCES if name not in names]
    if quick:
        names = [name for name in names if name in QUICK_TABLES]
    cells = [
        Cell("tables", trouble, name, SEED)
        for name in names
        for trouble in (QUICK_TROUBLES if quick else TROUBLES)
        if case_of(name, trouble) is not None
    ]
    state = "after" if PACKAGE.is_relative_to(ROOT) else "before"
    found = {} if quick else stored_trials()
    found[state] = record("ocfuse", state, cells)
    found["PyOD"] = record("PyOD", "PyOD", cells)
    if not quick:
        STORED.mkdir(parents=True, exist_ok=True)
        for name in {state, "PyOD"}:
            (STORED / f"{name}.json").write_text(json.dumps(found[name], indent=1) + "\n")
    return report({name: found[name] for name in STATES if name in found}, missing)


def record(system: str, state: str, cells: list[Cell]) -> Data:
    """Measure one system on all cells, and say what it was; what is stored is not run again."""
    package = [
        path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "bench"
    ]
    code = code_digest(package) if system == "ocfuse" else pyod.__version__
    own = [Path(str(module.__file__)) for module in (sources, systems, troubles)]
    key = definition_key(code, code_digest(own))
    with show_progress():
        stored = run_cells(Ordinary(system, key), cells, CACHE / state, jobs=1)
    trials: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for cell, results in zip(cells, stored, strict=True):
        trials[cell.variant][cell.name] = results["runs"][system]["results"][system]
    about = facts("python -m benchmarks.ordinary tables", 0.0)
    del about["took"]
    version = f"PyOD {pyod.__version__}" if system == "PyOD" else commit()
    return {"facts": about | {"commit": version}, "trials": dict(trials)}


def commit() -> str:
    """Return the commit of the ocfuse that was measured, wherever it is."""
    folder = Path(ocfuse.__file__).parent
    words = ["git", "log", "-1", "--format=%h", "--", "."]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def stored_trials() -> dict[str, Data]:
    paths = {name: STORED / f"{name}.json" for name in STATES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


# -- telling ------------------------------------------------------------------------------------


def report(found: dict[str, Data], missing: list[str]) -> Report:
    trials = {
        state: {name: data["trials"][name] for name in TROUBLES if name in data["trials"]}
        for state, data in found.items()
    }
    left_out = (
        f" Left out, as their package is not installed: {', '.join(missing)}." if missing else ""
    )
    versions = ", ".join(f"{name}: {data['facts']['commit']}" for name, data in found.items())
    return Report(
        "Ordinary tables with ordinary troubles",
        f"{len(SOURCES) - len(missing)} tables as they are found, at most {MOST_TRAIN} rows to "
        f"learn from, the default detector at {RATE:.0%} false alarms, one split. The trouble is "
        "put into the training rows, blanks and ids into all rows, new categories into every "
        f"{ONE_IN}th fresh row, which is then not counted among the false alarms. Means over the "
        "tables, in %. PyOD stands beside with the ten lines of preparation that its users write: "
        "medians for gaps, one-hot categories with unknown "
        "ones ignored, standard scale, the average of ECOD, IForest, KNN, LOF and OCSVM, threshold "
        f"at 95 % of the training scores.{left_out} Measured: {versions}.",
        targets(trials["after"]) if "after" in trials else [],
        [
            shares(trials, "false_alarms", "False alarms on fresh normal rows, %", spread=True),
            shares(trials, "hits", "Alarms on anomalies, %"),
            shares(trials, "auc", "AUC", factor=1.0),
            doors(trials),
            planted(trials),
            shares(trials, "fit", "CPU seconds of a fit", factor=1.0, digits=2),
            *(each_table(trials, state) for state in trials),
        ],
    )


def known(trials: dict[str, Trials]) -> list[str]:
    """Return the troubles that were measured, in their order."""
    return [name for name in TROUBLES if any(name in some for some in trials.values())]


def values(trials: Trials, trouble: str, measure: str) -> list[float]:
    return [
        float(each[measure])
        for each in trials.get(trouble, {}).values()
        if each.get(measure) is not None
    ]


def mean(numbers: list[float], factor: float = 100.0, digits: int = 1) -> str:
    return f"{factor * fmean(numbers):.{digits}f}" if numbers else "-"


def standard_error(numbers: list[float]) -> float:
    return float(stdev(numbers) / np.sqrt(len(numbers))) if len(numbers) > 1 else 0.0


def shares(
    trials: dict[str, Trials],
    measure: str,
    title: str,
    *,
    factor: float = 100.0,
    digits: int = 1,
    spread: bool = False,
) -> Table:
    """Return the mean of a measure: one row per trouble, one column per state."""
    lines = []
    for trouble in known(trials):
        of_each = [values(trials[state], trouble, measure) for state in trials]
        cells = [mean(numbers, factor, digits) for numbers in of_each]
        if spread:
            cells = [
                f"{cell} ± {factor * standard_error(numbers):.1f}"
                for cell, numbers in zip(cells, of_each, strict=True)
            ]
        n = max(len(trials[state].get(trouble, {})) for state in trials)
        lines.append([trouble, str(n), *cells])
    note = "Mean and standard error over the tables." if spread else ""
    return Table(title, ["trouble", "tables", *trials], lines, note)


def doors(trials: dict[str, Trials]) -> Table:
    """Return what was refused: fits, rows, saving."""
    ours = [state for state in trials if state != "PyOD"]
    header = ["trouble"]
    for what in (
        "not fitted",
        "rows refused in",
        "rows without score, %",
        "saved and loaded equal",
    ):
        header += [f"{what}, {state}" for state in ours]
    lines = []
    for trouble in known(trials):
        line = [trouble]
        found = [list(trials[state].get(trouble, {}).values()) for state in ours]
        line += [str(sum("failure" in each for each in some)) for some in found]
        line += [f"{sum(bool(each.get('refused')) for each in some)} tables" for some in found]
        line += [mean(values(trials[state], trouble, "unscored")) for state in ours]
        line += [
            f"{sum(each.get('saved') == 'equal' for each in some)} of {len(some)}" for some in found
        ]
        lines.append(line)
    return Table("Refused, and saved", header, lines)


def planted(trials: dict[str, Trials]) -> Table:
    """Return what became of planted values."""
    header = ["trouble", "tables"]
    measures = {
        "planted_hits": "alarms",
        "unplanted_alarms": "alarms without it",
        "planted_risen": "score rose",
        "named_first": "named first",
    }
    wanted = [
        (measure, state) for measure in measures for state in trials
        if not (measure == "named_first" and state == "PyOD")
    ]  # fmt: skip
    header += [f"{measures[measure]}, {state}" for measure, state in wanted]
    lines = []
    for trouble in ("none", "blanks", "ids and free text", "new categories"):
        if trouble not in known(trials):
            continue
        found = [values(trials[state], trouble, measure) for measure, state in wanted]
        lines.append([trouble, str(max(map(len, found))), *map(mean, found)])
    note = (
        f"A number moved by {SHIFT:g} standard deviations away from the mean; for new categories, "
        "a value that training has not. Shares of the rows that it was planted into, in %."
    )
    return Table("Planted values", header, lines, note)


def each_table(trials: dict[str, Trials], state: str) -> Table:
    names = [name for name in SOURCES if name in trials[state]["none"]]
    lines = []
    for name in names:
        found = [some.get(name) for some in trials[state].values()]
        lines.append([name, *(_cell(each) for each in found)])
    title = f"False alarms, % / AUC, table by table: {state}"
    return Table(title, ["table", *trials[state]], lines)


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if found.get("false_alarms") is None or found.get("auc") is None:
        return "failed"
    return f"{100 * found['false_alarms']:.1f} / {found['auc']:.1f}"


def targets(trials: Trials) -> list[Target]:
    found = []
    for trouble in trials:
        numbers = [100 * number for number in values(trials, trouble, "false_alarms")]
        most = 100 * RATE + TOLERANCE + 2 * standard_error(numbers)
        found.append(
            Target(
                f"{trouble}: mean false alarms at most {RATE:.0%} + {TOLERANCE:g} + 2 SE",
                f"{fmean(numbers):.1f} ± {standard_error(numbers):.1f} %",
                fmean(numbers) <= most,
            )
        )
    plain = fmean(values(trials, "none", "auc"))
    lost = {
        trouble: plain - fmean(values(trials, trouble, "auc"))
        for trouble in trials
        if trouble in COPIES
    }
    every = [each for some in trials.values() for each in some.values()]
    n_equal = sum(each.get("saved") == "equal" for each in every)
    n_refused = sum("failure" in each or bool(each.get("refused")) for each in every)
    if lost:
        worst = max(lost, key=lambda trouble: lost[trouble])
        found.append(
            Target(
                f"copies lower the mean AUC by at most {AUC_LOSS:g}",
                f"at most {lost[worst]:.2f} ({worst})",
                lost[worst] <= AUC_LOSS,
            )
        )
    found += [
        Target("every model is saved, and loaded with equal scores",
               f"{n_equal} of {len(every)}", n_equal == len(every)),
        Target("every table is fitted, and every row has a score",
               f"{len(every) - n_refused} of {len(every)}", not n_refused),
    ]  # fmt: skip
    return found + _planted_targets(trials)


def _planted_targets(trials: Trials) -> list[Target]:
    wanted = {"none": "a shift by 6 sd", "new categories": "an unseen category"}
    found = []
    for trouble, what in wanted.items():
        if first := values(trials, trouble, "named_first"):
            found.append(
                Target(f"{what} is named first in 95 %", f"{mean(first)} %", fmean(first) >= 0.95)
            )
    if risen := values(trials, "new categories", "planted_risen"):
        found.append(
            Target(
                "an unseen category never raises a score",
                f"{mean(risen)} % of rows",
                not any(risen),
            )
        )
    return found


if __name__ == "__main__":  # write the pages anew from what is stored
    print(report(stored_trials(), []).markdown({}))
