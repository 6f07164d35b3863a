"""Learn the coefficients of `TrustFusion`: those of the package, and those of every fold."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from benchmarks.accuracy.sets import FAMILIES, family, family_means, fold
from benchmarks.accuracy.systems import FOLDS
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Report, Table, Target
from benchmarks.trust.tasks import Record, all_draws, records
from ocfuse.fusion import trust
from ocfuse.metrics import auc
from ocfuse.stats import compare

#: Where the coefficients of the package are.
SHIPPED = Path(trust.__file__).with_name("trust.json")
#: Pairs of an anomaly and a normal that a task counts with, and the largest tail value.
PAIRS, LARGEST = 150, 12.0
#: Width of the soft comparison, in units of the tail value, and the penalty of coefficients.
WIDTH, PENALTY = 0.35, 5e-4
#: Factors of the coefficients that are tried: learned ones are a little too sure of themselves.
FACTORS = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0)

#: What is told of each kind of split.
HEADER = [
    *("splits", "number", "families", "AUC", "sum of the members", "best member"),
    *("gain", "p", "worst family"),
]

METHOD = """
The coefficients b of `TrustFusion` minimise the mean over pairs of an anomaly and a normal of
``sigmoid(-(s_normal - s_anomaly) / {width})``, a soft 1 - AUC, with s the fused scores, plus
``{penalty} |b|^2 / 2`` (features standardised). {draws} splits of {tasks} tasks of {families}
families: as in the benchmark, and varied (30 to 700 rows, some columns, 1 to 10 % hidden anomalies,
the four kinds of anomalies of ADBench, and some of more than 2,000 rows). A task counts with the
square root of 1 over the number of splits of its family. The factor of b, of {factors}, is
chosen by the gain on families left out, losses counted twice. Every figure is of families that b
and its factor were not learned from.
"""


def run(quick: bool, jobs: int) -> Report:
    found = records(all_draws(quick), jobs)
    folds = np.array([fold(record.draw.name) for record in found])
    fused = np.empty(len(found))
    for f in np.unique(folds):
        others = [r for r, k in zip(found, folds, strict=True) if k != f]
        learned = fitted(others)
        if not quick:
            FOLDS.mkdir(exist_ok=True)
            _write(FOLDS / f"fold-{f}.json", learned, others, f"all folds but {f}")
        for i in np.flatnonzero(folds == f):
            fused[i] = fused_auc(found[i], learned)
    shipped = fitted(found)
    rows = out_of_family(found, fused)
    if not quick:
        _write(SHIPPED, shipped, found, "all folds", rows)
    return report(found, rows, shipped)


def fitted(found: list[Record]) -> FloatArray:
    """Return the coefficients, with the factor that is best on families left out.

    A family on which the plain sum is better counts twice: who trusts a fusion wants no loss.
    """
    folds = np.array([fold(record.draw.name) for record in found])
    gains = np.zeros((len(found), len(FACTORS)))
    for f in np.unique(folds):
        b = minimised([r for r, k in zip(found, folds, strict=True) if k != f] or found)
        for i in np.flatnonzero(folds == f):
            gains[i] = [fused_auc(found[i], factor * b) - found[i].plain for factor in FACTORS]
    plain = [i for i, record in enumerate(found) if record.draw.how == "plain"]
    by_factor = by_family([found[i] for i in plain], gains[plain])
    valued = np.where(by_factor < 0, 2 * by_factor, by_factor).mean(axis=0)
    return FACTORS[int(np.argmax(valued))] * minimised(found)


def minimised(found: list[Record]) -> FloatArray:
    """Return the coefficients that minimise the soft error of the fused scores."""
    rng = np.random.default_rng(0)
    d, n_features = max(len(r.behaviour) for r in found), len(trust.FEATURES)
    X = np.zeros((len(found), d, n_features))
    absent = np.full((len(found), d), -np.inf)
    D = np.zeros((len(found), PAIRS, d), dtype=np.float32)
    for i, record in enumerate(found):
        k = len(record.behaviour)
        X[i, :k], absent[i, :k] = record.behaviour, 0.0
        V = np.minimum(record.values, LARGEST)
        strange, usual = V[~record.is_normal], V[record.is_normal]
        pairs = rng.integers(len(strange), size=PAIRS), rng.integers(len(usual), size=PAIRS)
        D[i, :, :k] = strange[pairs[0]] - usual[pairs[1]]
    unit = np.concatenate([r.behaviour for r in found]).std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    X /= unit
    counts = Counter(family(r.draw.name) for r in found)
    weight = np.array([counts[family(r.draw.name)] ** -0.5 for r in found])
    weight /= weight.sum()

    def loss(b: FloatArray) -> tuple[float, FloatArray]:
        w = softmax(X @ b + absent, axis=1)
        lost = expit(-np.einsum("tpd,td->tp", D, w) / WIDTH)
        slope = -np.einsum("tpd,tp->td", D, lost * (1.0 - lost)) / (WIDTH * PAIRS)
        towards = w * (slope - (w * slope).sum(axis=1, keepdims=True)) * weight[:, np.newaxis]
        gradient = np.einsum("td,tdf->f", towards, X)
        value = float(weight @ lost.mean(axis=1))
        return value + 0.5 * PENALTY * float(b @ b), gradient + PENALTY * b

    solved = minimize(loss, np.zeros(n_features), jac=True, method="L-BFGS-B")
    return np.asarray(solved.x / unit)


def fused_auc(record: Record, b: FloatArray) -> float:
    """Return the AUC of the fused scores of a task."""
    w = softmax(record.behaviour @ b)
    return auc(np.where(record.is_normal, 1, -1), -(record.values @ w))


def by_family(found: list[Record], values: FloatArray) -> FloatArray:
    """Return means of rows of values over the splits of each family, families in order."""
    return family_means([record.draw.name for record in found], values)


def out_of_family(found: list[Record], fused: FloatArray) -> list[list[str]]:
    """Return what trust gains on families that it was not learned from, by kind of split."""
    plain, best = np.array([r.plain for r in found]), np.array([r.best for r in found])
    rows = []
    for how in ("plain", "varied", "large"):
        chosen = [i for i, r in enumerate(found) if r.draw.how == how]
        if not chosen:
            continue
        columns = np.column_stack([fused, plain, best])[chosen]
        means = 100 * by_family([found[i] for i in chosen], columns)
        test = compare(means[:, 0], means[:, 1])
        rows.append(
            [
                how,
                str(len(chosen)),
                str(len(means)),
                *(f"{value:.2f}" for value in means.mean(axis=0)),
                f"{test.mean_difference:+.2f}",
                f"{test.p_value:.2g}",
                f"{(means[:, 0] - means[:, 1]).min():+.1f}",
            ]
        )
    return rows


def report(found: list[Record], rows: list[list[str]], shipped: FloatArray) -> Report:
    """Return gains on families that nothing was learned from, and the coefficients."""
    tasks = {record.draw.name for record in found}
    method = METHOD.format(
        width=WIDTH,
        penalty=PENALTY,
        draws=len(found),
        tasks=len(tasks),
        families=len({family(name) for name in tasks}),
        factors=", ".join(map(str, FACTORS)),
    )
    values = [[name, f"{b:+.3f}"] for name, b in zip(trust.FEATURES, shipped, strict=True)]
    gain = float(rows[0][6])
    return Report(
        "Trust learned from other data sets",
        method.strip(),
        [Target("gain on the sum, plain splits, >= 0.7", rows[0][6], gain >= 0.7)],
        [
            Table("Families that nothing was learned from", HEADER, rows, "Family means, in %."),
            Table("Coefficients", ["of", "b"], values, "Of the package, with their factor."),
        ],
        {"coefficients": dict(zip(trust.FEATURES, map(float, shipped), strict=True))},
    )


def _write(
    path: Path,
    b: FloatArray,
    found: list[Record],
    learned_from: str,
    figures: Sequence[list[str]] = (),
) -> None:
    """Write coefficients with what they were learned from, and how well that holds elsewhere."""
    names = sorted({family(record.draw.name) for record in found})
    content = {
        "coefficients": {
            name: round(float(value), 6) for name, value in zip(trust.FEATURES, b, strict=True)
        },
        "learned_from": learned_from,
        "folds": FAMILIES.name,
        "families": names,
        "splits": len(found),
        "command": "make train-trust",
        "figures": "benchmarks/results/trust/train.md",
    }
    if figures:
        content["out_of_family"] = [dict(zip(HEADER, row, strict=True)) for row in figures]
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
