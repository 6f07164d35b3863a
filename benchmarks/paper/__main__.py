"""Draw all pictures: python -m benchmarks.paper [--results FILE] [--out FOLDER]."""

import argparse
import json
from pathlib import Path

from benchmarks.paper.figures import draw

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

parser = argparse.ArgumentParser(prog="python -m benchmarks.paper")
parser.add_argument("--results", type=Path, default=RESULTS / "paper" / "results.json")
parser.add_argument("--ablation", type=Path, default=RESULTS / "solvers" / "ablation.json")
parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
arguments = parser.parse_args()
records = json.loads(arguments.results.read_text(encoding="utf-8"))
for name in draw(records, arguments.ablation, arguments.out):
    print(arguments.out / name)
