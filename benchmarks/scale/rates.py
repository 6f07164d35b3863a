"""Write `ocfuse.ensemble.plan.RATES`: ``python -m benchmarks.scale.rates``.

What part "plan" has measured is used, or measured first. Those of bytes are the smallest that
are enough for every size measured, with a margin, and at least 1, as what is counted is held:
sizes that were not measured may have more of a kind. Those of seconds, at least 0, make the
largest factor between planned and measured as small as can be. Both are linear programs.
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
from ocfuse.detectors.pool import Pool
from ocfuse.ensemble import plan
from ocfuse.ensemble.plan import fit_cost
from ocfuse.fusion import make_fusion

#: Memory is planned with so much to spare.
MARGIN = 1.15
#: What a mean ratio counts beside the worst.
SHARE_OF_MEAN = 1.0
KINDS = ("fit", "score", "peak", "model")
BYTES = ("peak", "model")
#: What is counted in other units than bytes.
PIECES = ("start", "trees")
#: How the rates begin in the source of the plan: what is said of them, and the numbers.
FIRST_LINE = (
    "#: Seconds of a fit and of scoring a row, bytes of a fit and of a model, by kind. Written by"
)
DICTIONARY = "RATES: dict[str, dict[str, float]] = {"


def fitted(found: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Return what one of each count costs."""
    names = sorted({name for one in found for name in one["counts"][kind]})
    A = np.array(
        [[one["counts"][kind].get(name, 0) / one[kind] for name in names] for one in found]
    )
    unit = np.where(A.any(axis=0), A.max(axis=0), 1.0)
    A = A / unit
    n, d = A.shape
    scale = MARGIN if kind in BYTES else 1.0
    least = [float(kind in BYTES and name not in PIECES) for name in names]
    bounds = [(low * size / scale, None) for low, size in zip(least, unit, strict=True)]
    # 1 <= A x <= s, and s + mean(A x) as small as can be
    cost = np.append(SHARE_OF_MEAN * A.mean(axis=0), 1.0)
    above = np.column_stack([-A, np.zeros(n)])
    below = np.column_stack([A, -np.ones(n)])
    solved = linprog(
        cost,
        np.vstack([above, below]),
        np.append(-np.ones(n), np.zeros(n)),
        bounds=[*bounds, (0, None)],
    )
    ratio = A @ solved.x[:d]
    # bytes must be enough; seconds may be too few as well as too many
    if kind not in BYTES:
        scale = float(1 / np.sqrt(ratio.min() * ratio.max()))
    print(f"{kind}: {scale * ratio.min():.2f} to {scale * ratio.max():.2f} times")
    return dict(zip(names, (scale * solved.x[:d] / unit).tolist(), strict=True))


def main() -> None:
    found = [measured(size) | {"counts": counts_of(size)} for size in LEARNED]
    path = Path(plan.__file__)
    path.write_text(with_rates(path.read_text(), {kind: fitted(found, kind) for kind in KINDS}))


def with_rates(source: str, rates: dict[str, dict[str, float]]) -> str:
    """Return the source of the plan with other rates, and when and where they were measured."""
    begin, middle = source.index(FIRST_LINE), source.index(DICTIONARY)
    end = source.index("\n}\n", middle) + len("\n}\n")
    words = [
        FIRST_LINE,
        "#: ``python -m benchmarks.scale.rates`` from what ``python -m benchmarks.scale plan`` "
        "measured",
        f"#: on {date.today():%Y-%m-%d}, one thread of {machine()}; do not edit.",
        DICTIONARY,
    ]
    for kind in KINDS:
        words += [f'    "{kind}": {{']
        words += [f'        "{name}": {written(rate)},' for name, rate in rates[kind].items()]
        words += ["    },"]
    return source[:begin] + "\n".join([*words, "}"]) + "\n" + source[end:]


def written(rate: float) -> str:
    """Return a number as the formatter of code would write it."""
    return f"{rate:.3g}".replace("e+", "e")


def counts_of(size: Size) -> dict[str, dict[str, float]]:
    """Return the operations and bytes that are counted for a fit."""
    members = FAMILIES.get(size.pool, size.pool)
    _, named = Pool(members).chosen(size.n)
    cost, _ = fit_cost(named, make_fusion(), size.job)
    amounts = (cost.fit_work, cost.score_work, cost.peak_bytes(), cost.model_bytes)
    return {kind: dict(one) for kind, one in zip(KINDS, amounts, strict=True)}


def machine() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
