"""Random and hostile problems for the audit; a family and a seed name each batch.

A batch is drawn plain first: shape, scores, labels, weights, norms, tolerance
and the way in. Its family then spoils it. Every problem of a batch has rows of
its own, which lie shuffled in one table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NORMS = np.array([32 / 31, 16 / 15, 8 / 7, 4 / 3, 2, 4, 8, 10, 100, 1, 1.0001, 1e4, np.inf])
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
LARGEST_D, LARGEST_K = 64, 400
#: Problems of a batch that enters by each door, and how often that door is drawn.
DOORS = {"batch": (40, 0.7), "numpy": (12, 0.15), "single": (16, 0.15)}


@dataclass
class Batch:
    """Problems of one shape, and how they are to be solved."""

    family: str
    seed: int
    S: Array  # (m, k, d)
    y: Array  # (m, k)
    c: Array  # (m, k)
    p: Array  # (m,)
    nonneg: bool
    tol: float
    solver: str
    door: str

    @property
    def margins(self) -> Array:
        """The products of labels and scores, (m, k, d)."""
        return self.y[:, :, np.newaxis] * self.S

    def as_table(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return scores, labels and index as `solve_batch` wants them, rows shuffled."""
        m, k, d = self.S.shape
        place = np.random.default_rng(self.seed).permutation(m * k)
        S, y = np.empty((m * k, d)), np.empty(m * k)
        S[place], y[place] = self.S.reshape(-1, d), self.y.ravel()
        return S, y, place.reshape(m, k)


Spoil = Callable[[Batch, np.random.Generator], None]
FAMILIES: dict[str, Spoil] = {}


def family(spoil: Spoil) -> Spoil:
    """Register a function under its name, underscores read as spaces."""
    FAMILIES[spoil.__name__.replace("_", " ")] = spoil
    return spoil


def draw(name: str, seed: int) -> Batch:
    """Return the batch that a family and a seed name."""
    rng = np.random.default_rng([crc32(name.encode()), seed])
    door = str(rng.choice(list(DOORS), p=[share for _, share in DOORS.values()]))
    m = DOORS[door][0]
    k, d = shape(name, rng)
    S, y = plain_scores(rng, m, k, d)
    batch = Batch(
        name, seed, S, y, rng.random((m, k)) if rng.random() < 0.5 else np.full((m, k), 1 / k),
        rng.choice(NORMS, size=m), bool(rng.random() < 0.4), float(rng.choice(TOLERANCES)),
        str(rng.choice(["auto", "interior-point"])), door,
    )  # fmt: skip
    FAMILIES[name](batch, rng)
    return batch


def shape(name: str, rng: np.random.Generator) -> tuple[int, int]:
    """Draw k and d, small ones as often as large ones."""
    d = log_uniform(rng, LARGEST_D)
    if name == "one sample":
        return 1, d
    if name == "fewer samples than columns":
        d = max(d, 2)
        return int(rng.integers(1, d)), d
    return log_uniform(rng, LARGEST_K), d


def log_uniform(rng: np.random.Generator, largest: int) -> int:
    return round(np.exp(rng.uniform(0.0, np.log(largest))))


def plain_scores(rng: np.random.Generator, m: int, k: int, d: int) -> tuple[Array, Array]:
    """Draw Gaussian or uniform scores that know something of the labels, and labels."""
    kind = rng.integers(4)  # pure normal, pure anomalous, balanced, few anomalies
    share = (0.0, 1.0, 0.5, 0.1)[kind]
    y = np.where(rng.random((m, k)) < share, -1.0, 1.0)
    truth = y[:, :, np.newaxis] * rng.uniform(-0.5, 1.5, size=(m, 1, d))
    S = truth + rng.normal(size=(m, k, d))
    return (S if rng.random() < 0.5 else 1.0 / (1.0 + np.exp(-S))), y


def some_columns(rng: np.random.Generator, S: Array) -> NDArray[np.bool_]:
    """Choose columns of every problem, one at least, shape (m, 1, d)."""
    m, _, d = S.shape
    chosen = rng.random((m, 1, d)) < 0.3
    chosen[np.arange(m), 0, rng.integers(d, size=m)] = True
    return chosen


def copied_columns(rng: np.random.Generator, S: Array) -> Array:
    """Return columns drawn from the same problem with replacement."""
    m, _, d = S.shape
    return np.take_along_axis(S, rng.integers(d, size=(m, 1, d)), axis=2)


@family
def plain(batch: Batch, rng: np.random.Generator) -> None:
    pass


@family
def scaled_problems(batch: Batch, rng: np.random.Generator) -> None:
    batch.S *= 10.0 ** rng.uniform(-6, 6, size=(len(batch.S), 1, 1))


@family
def columns_over_eight_decades(batch: Batch, rng: np.random.Generator) -> None:
    m, _, d = batch.S.shape
    batch.S *= 10.0 ** (rng.uniform(-4, 4, size=(m, 1, d)) + rng.uniform(-2, 2, size=(m, 1, 1)))


@family
def constant_columns(batch: Batch, rng: np.random.Generator) -> None:
    batch.S = np.where(some_columns(rng, batch.S), rng.normal(size=(len(batch.S), 1, 1)), batch.S)


@family
def zero_columns(batch: Batch, rng: np.random.Generator) -> None:
    batch.S = np.where(some_columns(rng, batch.S), 0.0, batch.S)


@family
def all_zero(batch: Batch, rng: np.random.Generator) -> None:
    batch.S *= rng.random((len(batch.S), 1, 1)) < 0.5


@family
def duplicate_columns(batch: Batch, rng: np.random.Generator) -> None:
    batch.S = copied_columns(rng, batch.S)


@family
def opposite_columns(batch: Batch, rng: np.random.Generator) -> None:
    m, _, d = batch.S.shape
    batch.S = copied_columns(rng, batch.S) * rng.choice([-1.0, 1.0], size=(m, 1, d))


@family
def nearly_collinear_columns(batch: Batch, rng: np.random.Generator) -> None:
    noise = 10.0 ** rng.uniform(-12, -2, size=(len(batch.S), 1, 1))
    batch.S = batch.S[:, :, :1] + noise * batch.S


@family
def duplicate_samples(batch: Batch, rng: np.random.Generator) -> None:
    m, k, _ = batch.S.shape
    rows = rng.integers(max(1, k // 4), size=(m, k))
    batch.S = np.take_along_axis(batch.S, rows[:, :, np.newaxis], axis=1)
    batch.y = np.take_along_axis(batch.y, rows, axis=1)


@family
def contradicting_samples(batch: Batch, rng: np.random.Generator) -> None:
    duplicate_samples(batch, rng)
    batch.y = rng.choice([-1.0, 1.0], size=batch.y.shape)


@family
def signs(batch: Batch, rng: np.random.Generator) -> None:
    batch.S = np.where(np.median(batch.S) < batch.S, 1.0, -1.0)


@family
def integers_with_ties(batch: Batch, rng: np.random.Generator) -> None:
    batch.S = np.round(2.0 * batch.S)


@family
def huge_rows(batch: Batch, rng: np.random.Generator) -> None:
    m, k, _ = batch.S.shape
    batch.S[np.arange(m), rng.integers(k, size=m)] *= 10.0 ** rng.uniform(2, 8, size=(m, 1))


@family
def weights_to_the_20th(batch: Batch, rng: np.random.Generator) -> None:
    batch.c = rng.random(batch.c.shape) ** 20


@family
def zero_weights(batch: Batch, rng: np.random.Generator) -> None:
    batch.c = batch.c * (rng.random(batch.c.shape) < rng.random((len(batch.c), 1)))


@family
def one_hot_weights(batch: Batch, rng: np.random.Generator) -> None:
    m, k = batch.c.shape
    batch.c = np.zeros((m, k))
    batch.c[np.arange(m), rng.integers(k, size=m)] = 1.0


@family
def tiny_weights(batch: Batch, rng: np.random.Generator) -> None:
    batch.c = batch.c * 1e-300


@family
def weights_over_300_decades(batch: Batch, rng: np.random.Generator) -> None:
    batch.c = 10.0 ** rng.uniform(-300, 0, size=batch.c.shape)


@family
def fewer_samples_than_columns(batch: Batch, rng: np.random.Generator) -> None:
    pass


@family
def one_sample(batch: Batch, rng: np.random.Generator) -> None:
    pass


@family
def separable(batch: Batch, rng: np.random.Generator) -> None:
    m, _, d = batch.S.shape
    truth = rng.normal(size=(m, d, 1))
    batch.y = np.where((batch.S @ truth)[:, :, 0] > 0, 1.0, -1.0)
    batch.S *= 10.0 ** rng.uniform(0, 3, size=(m, 1, 1))


@family
def standardised(batch: Batch, rng: np.random.Generator) -> None:
    spread = batch.S.std(axis=1, keepdims=True)
    batch.S = (batch.S - batch.S.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)


@family
def three_families_at_once(batch: Batch, rng: np.random.Generator) -> None:
    names = [name for name in FAMILIES if name != "three families at once"]
    for name in rng.choice(names, size=3, replace=False):
        FAMILIES[name](batch, rng)
