"""Write `ocfuse.ensemble.rates`: ``python -m benchmarks.scale.rates``.

What part "plan" has measured is used, or measured first. Every rate is at least 0. Those of
bytes are the smallest that are enough for every size measured, with a margin; those of
seconds make the largest factor between planned and measured as small as can be. Both are
linear programs.
"""

import platform
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.scale.plan import LEARNED, Size, measured
from benchmarks.scale.probe import FAMILIES
from ocfuse.detectors.pools import Pool
from ocfuse.ensemble import rates
from ocfuse.ensemble.costs import count_costs

#: Memory is planned with so much to spare.
MARGIN = 1.15
#: What a mean ratio counts beside the worst.
SHARE_OF_MEAN = 1.0
KINDS = ("fit", "score", "peak", "model")


def fitted(found: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Return what one of each count costs."""
    names = sorted({name for one in found for name in one["counts"][kind]})
    A = np.array(
        [[one["counts"][kind].get(name, 0) / one[kind] for name in names] for one in found]
    )
    unit = np.where(A.any(axis=0), A.max(axis=0), 1.0)
    A = A / unit
    n, d = A.shape
    # 1 <= A x <= s, and s + mean(A x) as small as can be
    cost = np.append(SHARE_OF_MEAN * A.mean(axis=0), 1.0)
    above = np.column_stack([-A, np.zeros(n)])
    below = np.column_stack([A, -np.ones(n)])
    solved = linprog(
        cost, np.vstack([above, below]), np.append(-np.ones(n), np.zeros(n)), bounds=(0, None)
    )
    ratio = A @ solved.x[:d]
    # bytes must be enough; seconds may be too few as well as too many
    scale = MARGIN if kind in ("peak", "model") else 1 / np.sqrt(ratio.min() * ratio.max())
    print(f"{kind}: {scale * ratio.min():.2f} to {scale * ratio.max():.2f} times")
    return dict(zip(names, (scale * solved.x[:d] / unit).tolist(), strict=True))


def main() -> None:
    found = [measured(size) | {"counts": counts_of(size)} for size in LEARNED]
    words = [
        '"""What one operation and one byte of `ocfuse.ensemble.costs` cost, as measured.',
        "",
        "Written by ``python -m benchmarks.scale.rates`` from what",
        f"``python -m benchmarks.scale plan`` measured on {date.today():%Y-%m-%d}, one thread of",
        f"{machine()}; do not edit.",
        '"""',
    ]
    for kind in KINDS:
        what = "Seconds" if kind in ("fit", "score") else "Bytes"
        words += ["", f"#: {what}.", f"{kind.upper()} = {{"]
        words += [f'    "{name}": {written(rate)},' for name, rate in fitted(found, kind).items()]
        words += ["}"]
    Path(rates.__file__).write_text("\n".join(words) + "\n")


def written(rate: float) -> str:
    """Return a number as the formatter of code would write it."""
    return f"{rate:.3g}".replace("e+", "e")


def counts_of(size: Size) -> dict[str, dict[str, float]]:
    """Return the operations and bytes that are counted for a fit."""
    members = FAMILIES.get(size.pool, size.pool)
    _, named = Pool(members).chosen(size.n)
    counts = count_costs(named, size.job)
    return {kind: dict(getattr(counts, kind)) for kind in KINDS}


def machine() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
