"""Run the parts: ``python -m benchmarks.ordinary [parts] [--quick]``.

With another version of ocfuse ahead on PYTHONPATH the part "tables" measures that one, and calls it
"before"; what this tree measures is "after".
"""

from pathlib import Path

from benchmarks.command import main

PARTS = tuple(
    part for part in ("tables", "explanations") if Path(__file__).with_name(f"{part}.py").exists()
)

if __name__ == "__main__":
    main("ordinary", PARTS)
