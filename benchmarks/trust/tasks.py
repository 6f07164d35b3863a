"""Tasks that trust is learned from: splits of the one-class tasks, plain and varied."""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.context import recipe
from benchmarks.accuracy.definition import MEMBERS
from benchmarks.accuracy.sets import all_tasks, content, rows
from benchmarks.estimator.tables import FloatArray, filled, standardised
from ocfuse.ensemble.fit import Learned, Table
from ocfuse.fusion import TrustFusion
from ocfuse.fusion.crossfit import fit_fusion
from ocfuse.lab.paper.runner import code_digest, definition_key, package_sources
from ocfuse.metrics import auc

CACHE = Path(__file__).parents[2] / ".bench-cache" / "trust"
#: What the records depend on, beside the data.
CODE = (Path(__file__), *package_sources((*MEMBERS, "fusion", "negatives", "scores")))
#: Splits of every task as the benchmark makes them, and varied ones.
PLAIN, VARIED = 3, 5
#: Rows of a task that scores are told apart on, of each class.
TESTED = 300
#: Kinds of anomalies made from normals, as ADBench makes them.
MADE = ("local", "global", "cluster", "dependency")


@dataclass(frozen=True)
class Draw:
    """One split: its task, how it is drawn, and a seed."""

    name: str
    how: str
    seed: int

    def path(self) -> Path:
        """Return where its record is kept."""
        key = definition_key(code_digest(CODE), content(self.name))
        return CACHE / f"{self.name}-{self.how}-{self.seed}-{key}.npz"


@dataclass(frozen=True)
class Record:
    """What is learned from in one task.

    Parameters
    ----------
    draw : Draw
        The split.
    behaviour : ndarray of shape (d, 12)
        What is known of the members without anomalies.
    values : ndarray of shape (q, d)
        Tail values of the test rows by the members.
    is_normal : ndarray of shape (q,)
        Which test rows are normal.
    plain : float
        AUC of the sum of the members on the local scale.
    best : float
        AUC of the best member.
    """

    draw: Draw
    behaviour: FloatArray
    values: FloatArray
    is_normal: NDArray[np.bool_]
    plain: float
    best: float


def all_draws(quick: bool) -> list[Draw]:
    """Return all splits."""
    names = all_tasks(quick)
    plain, varied = (1, 1) if quick else (PLAIN, VARIED)
    large = [name for name in names if len(rows(name)[0]) >= 2800]
    return [
        *(Draw(name, "plain", seed) for seed in range(plain) for name in names),
        *(Draw(name, "varied", seed) for seed in range(varied) for name in names),
        *(Draw(name, "large", 0) for name in large if not quick),
    ]


def records(draws: list[Draw], jobs: int) -> list[Record]:
    """Return the records of splits, computed if they are not kept; too small ones are left out."""
    CACHE.mkdir(parents=True, exist_ok=True)
    found = Parallel(jobs, verbose=1)(delayed(_record)(draw) for draw in draws)
    return [record for record in found if record is not None]


def _record(draw: Draw) -> Record | None:
    path = draw.path()
    if not path.exists():
        with threadpool_limits(1):
            made = _computed(draw)
        unfinished = path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, **({} if made is None else made))
        unfinished.replace(path)
    with np.load(path) as stored:
        if not stored.files:
            return None
        plain, best = (float(stored[name]) for name in ("plain", "best"))
        kept = (stored[name] for name in ("behaviour", "values", "is_normal"))
        return Record(draw, *kept, plain, best)


def _computed(draw: Draw) -> dict[str, Any] | None:
    train, normals, anomalies = split(draw)
    if len(train) < 20 or len(normals) < 8 or len(anomalies) < 5:
        return None
    labels = np.zeros(len(train), dtype=np.int64)
    learned = Learned(Table(train, labels, None), recipe(draw.seed))
    parts = replace(learned.recipe, fusion=TrustFusion(strength=0.0)).parts(learned.scored)
    normaliser, fusion = fit_fusion(learned.scored, *parts)
    encoded = learned.encoder.transform(np.vstack([normals, anomalies]))
    Z = normaliser.transform(learned.pool.score_samples(encoded))
    local = fusion._local(Z, encoded)
    y = np.repeat([1, -1], [len(normals), len(anomalies)])
    return {
        "behaviour": fusion.behaviour_,
        "values": fusion.tail_.at(local).astype(np.float32),
        "is_normal": y > 0,
        "plain": auc(y, local.sum(axis=1)),
        "best": max(auc(y, column) for column in local.T),
    }


def split(draw: Draw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rows to learn from, normals and anomalies; gaps are filled."""
    normals, anomalies = rows(draw.name)
    how = ("plain", "varied", "large").index(draw.how)
    rng = np.random.default_rng([draw.seed, zlib.crc32(draw.name.encode()), how])
    normals, anomalies = rng.permutation(normals), rng.permutation(anomalies)
    if draw.how == "plain":
        n = round(0.6 * min(len(normals), 1000))
    else:
        least, most = (2100, 2500) if draw.how == "large" else (30, 700)
        most = min(most, int(0.75 * len(normals)))
        n = int(np.exp(rng.uniform(np.log(min(least, most)), np.log(most))))
    train, rest = normals[:n], normals[n : n + TESTED]
    tested, hidden = anomalies[:TESTED], anomalies[:0]
    if draw.how == "varied":
        columns = np.arange(train.shape[1])
        if len(columns) >= 6 and rng.random() < 0.35:
            columns = rng.permutation(columns)[: rng.integers(3, len(columns))]
        if rng.random() < 0.4 and len(anomalies) >= 40:
            share = rng.choice([0.01, 0.03, 0.05, 0.10])
            count = min(max(round(share * n), 1), len(anomalies) // 2)
            hidden, tested = tested[:count], tested[count:]
        train = rng.permutation(np.vstack([train, hidden]))[:, columns]
        rest, tested = rest[:, columns], tested[:, columns]
        if rng.random() < 0.3:
            tested = made_anomalies(filled(train)[0], MADE[rng.integers(len(MADE))], rng)
    _, train, rest, tested = filled(train, train, rest, tested)
    return train, rest, tested


def made_anomalies(X: FloatArray, kind: str, rng: np.random.Generator, n: int = 200) -> FloatArray:
    """Return anomalies of one of the four kinds of ADBench, made from normals."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    Z = standardised(X)[0]
    if kind in ("local", "cluster"):
        few = len(Z) <= 5 * Z.shape[1]
        mixture = GaussianMixture(
            min(3, max(1, len(Z) // 40)),
            covariance_type="diag" if few else "full",
            reg_covar=1e-3,
            random_state=0,
        ).fit(Z)
        if kind == "local":
            mixture.covariances_ = 5 * mixture.covariances_
        else:
            mixture.means_ = 5 * mixture.means_
        drawn = mixture.sample(n)[0]
    elif kind == "global":
        low, width = Z.min(axis=0), np.ptp(Z, axis=0)
        drawn = rng.uniform(low - 0.1 * width, low + 1.1 * width, (n, Z.shape[1]))
    else:
        drawn = np.take_along_axis(Z, rng.integers(len(Z), size=(n, Z.shape[1])), axis=0)
        drawn = drawn + 0.05 * rng.normal(size=drawn.shape)
    return np.asarray(drawn * sd + mean)
