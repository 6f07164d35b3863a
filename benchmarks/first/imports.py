"""Part "imports": what a fresh process takes until it can be used."""

import os
import subprocess
import tempfile
from statistics import median

from benchmarks.report import Data, Report, Table, Target, spread
from benchmarks.tables.process import Cost, python

REPETITIONS = 5
RIVAL = "import sklearn.ensemble, sklearn.neighbors"
DETECTOR = "from ocfuse import FusedDetector"
TASKS = {
    "nothing": ("-c", ""),
    "import ocfuse": ("-c", "import ocfuse"),
    RIVAL: ("-c", RIVAL),
    DETECTOR: ("-c", DETECTOR),
    "ocfuse --help": ("-m", "ocfuse", "--help"),
}


def run(quick: bool) -> Report:
    repetitions = 2 if quick else REPETITIONS
    found: dict[str, list[Cost]] = {name: [] for name in TASKS}
    with tempfile.TemporaryDirectory() as folder:
        # also where no bytecode may be written beside the modules
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        own = {"env": os.environ | bytecode, "stdout": subprocess.DEVNULL}
        for _ in range(repetitions + 1):  # in turn, so that a busy machine hits all alike
            for name, arguments in TASKS.items():
                found[name].append(python(*arguments, **own))
    found = {name: costs[1:] for name, costs in found.items()}  # the first wrote bytecode
    cpu = {name: median(cost.cpu for cost in costs) for name, costs in found.items()}
    data: Data = {name: [vars(cost) for cost in costs] for name, costs in found.items()}
    return Report(
        "Imports",
        f"Fresh processes, start of the interpreter included, {repetitions} rounds in turn; files "
        "are in the disk cache, bytecode is written. Targets are judged by CPU seconds, as wall "
        "time depends on what else the machine does.",
        targets(cpu),
        [
            Table(
                "Seconds: median (lowest to highest)",
                ["process", "CPU", "wall"],
                [
                    [f"`{name}`", spread([c.cpu for c in costs]), spread([c.wall for c in costs])]
                    for name, costs in found.items()
                ],
            )
        ],
        data,
    )


def targets(cpu: dict[str, float]) -> list[Target]:
    limits = {"import ocfuse": 0.3, DETECTOR: cpu[RIVAL] + 0.3, "ocfuse --help": 0.5}
    beside = {DETECTOR: f" (`{RIVAL}` and 0.3 s)"}
    return [
        Target(
            f"`{name}` within {limit:.2f} s{beside.get(name, '')}",
            f"{cpu[name]:.2f} s",
            cpu[name] <= limit,
        )
        for name, limit in limits.items()
    ]
