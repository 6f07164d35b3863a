"""Part "growth": time, memory and accuracy as the rows become many."""

from benchmarks.report import Report, Table, number
from benchmarks.scale.child import Found, run_task
from benchmarks.scale.curve import Line, curves
from benchmarks.scale.task import Task

#: A million rows would take ours another half an hour.
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
#: Most CPU seconds of one cell, and most bytes.
CPU, ROOM = 300, 16 * 10**9
#: Ours takes all sizes.
OWN_CPU = 3_600
OURS = ("ocfuse default", "ocfuse light", "ocfuse on PyOD's members")
RIVALS = (
    "PyOD LSCP",
    "PyOD average",
    "IsolationForest",
    "OneClassSVM",
    "LocalOutlierFactor",
)
N_TEST = 10_000
NOT_RUN = "not run"
Cells = dict[str, dict[int, Found]]


def run(quick: bool) -> Report:
    sizes = SIZES[:2] if quick else SIZES
    cells: Cells = {name: measured(name, sizes) for name in (*RIVALS, *OURS)}
    shown = {name: cells[name] for name in (*OURS, *RIVALS)}
    return Report(
        "Growth with the number of rows",
        f"n normal rows of 64 features to learn from: four clusters of different spread and "
        f"shape. {N_TEST:,} fresh rows to score, a tenth of them anomalies of three kinds: too far "
        "out for their cluster, far out in some columns, and with columns of other rows. CPU "
        "seconds on one thread, one run each, every cell in a process of its own; memory is the "
        "most that was resident during `fit`, with the interpreter and the rows. A cell may take "
        f"{CPU} CPU seconds ({OWN_CPU:,} for ocfuse) and {ROOM / 1e9:.0f} GB; after one that did "
        "not end, larger ones are not run. PyOD's ensembles have five members (LOF 10 and 30, "
        "kNN 5, isolation forest, one Gaussian), which ocfuse was also given.",
        [],
        [
            table("Fit, CPU seconds", shown, lambda found: number(found["fit"]["cpu"])),
            table(f"Score {N_TEST:,} rows, CPU s", shown, lambda f: number(f["score"]["cpu"])),
            table("Memory, MB", shown, lambda found: f"{found['peak'] / 1e6:,.0f}"),
            table("AUC", shown, lambda found: f"{found['auc']:.2f}"),
        ],
        {"cells": {name: {str(n): f for n, f in row.items()} for name, row in cells.items()}},
        {"growth.svg": picture(shown)} if not quick else {},
    )


def measured(name: str, sizes: tuple[int, ...]) -> dict[int, Found]:
    """Return what a system costs at every size, up to the first that it does not finish."""
    limit = OWN_CPU if name in OURS else CPU
    found: dict[int, Found] = {}
    for n in sizes:
        found[n] = run_task(Task(name, "planted", n, n_test=N_TEST, cpu=limit, room=ROOM))
        if "failure" in found[n]:
            break
    return found


def table(title: str, cells: Cells, show) -> Table:  # type: ignore[no-untyped-def]
    sizes = sorted({n for row in cells.values() for n in row})

    def cell(row: dict[int, Found], n: int) -> str:
        if n not in row:
            return NOT_RUN
        return row[n].get("failure") or show(row[n])

    rows = [[name, *(cell(row, n) for n in sizes)] for name, row in cells.items()]
    return Table(title, ["", *(f"{n:,}" for n in sizes)], rows)


def picture(cells: Cells) -> str:
    """Draw seconds and memory against rows, both axes in powers of ten."""

    def lines(value) -> list[Line]:  # type: ignore[no-untyped-def]
        return [
            Line(name, [(n, value(f)) for n, f in row.items() if "failure" not in f], name in OURS)
            for name, row in cells.items()
        ]

    return curves(
        {
            "fit, CPU seconds": lines(lambda found: found["fit"]["cpu"]),
            "memory, MB": lines(lambda found: found["peak"] / 1e6),
        },
        "rows",
    )
