"""Deterministic splits: rows to learn from, rows for the threshold, rows to tell apart."""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks.accuracy.sets import rows
from benchmarks.estimator.tables import FloatArray, filled, standardised

#: Training and validation share of the normals; the others are for testing.
SHARES = (0.6, 0.2)
#: Normals that are split; more of them only lengthen the test, up to as many.
MOST_NORMALS = 1000
MOST_ANOMALIES = 1000
#: Labelled anomalies at most, and anomalies that must be left for the test.
MOST_LABELLED, FEWEST_TESTED = 20, 20
#: Kinds of anomalies, as found by k-means, and how many rows an unseen kind must have.
KINDS, FEWEST_NEW, FARTHEST = 4, 5, 3.0
#: Largest share of hidden anomalies, and the fewest normals they may hide among.
DIRTIEST, FEWEST_CLEAN = 0.10, 100


@dataclass(frozen=True)
class Split:
    """One cell's rows, gaps filled; y is +1 and -1 if there are labels."""

    train: FloatArray
    y: NDArray[np.int64] | None
    validation: FloatArray
    test: FloatArray
    is_normal: NDArray[np.bool_]
    #: Anomalies of a kind of which none was labelled.
    is_new: NDArray[np.bool_]

    def scaled(self) -> "Split":
        """Return the same rows standardised on the training rows."""
        known = self.train if self.y is None else self.train[self.y > 0]
        _, train, validation, test = standardised(known, self.train, self.validation, self.test)
        return Split(train, self.y, validation, test, self.is_normal, self.is_new)


@dataclass(frozen=True)
class Drawn:
    """The normals of a split and the anomalies in random order."""

    train: FloatArray
    validation: FloatArray
    test: FloatArray
    anomalies: FloatArray
    rng: np.random.Generator


def pure(name: str, seed: int) -> Split:
    """Split for learning from normals only."""
    drawn = _drawn(name, seed)
    return _split(drawn, drawn.train, None, drawn.anomalies)


def labelled(name: str, count: int, seed: int) -> Split:
    """Split with so many labelled anomalies, all of half of the kinds.

    The anomalies to be tested, and those of new kinds among them, are the same for
    every count.
    """
    drawn = _drawn(name, seed)
    kind = _kinds(drawn, seed)
    reserved = min(MOST_LABELLED, len(drawn.anomalies) - FEWEST_TESTED)
    order = drawn.rng.permutation(kind.max() + 1)
    # as many more kinds as it takes to have enough, but never all
    n_seen = (kind.max() + 1) // 2
    while n_seen < len(order) - 1 and np.isin(kind, order[:n_seen]).sum() < reserved:
        n_seen += 1
    seen = np.isin(kind, order[:n_seen])
    # if one kind is nearly everything, some of the others must do
    first = np.argsort(~seen, kind="stable")[:reserved]
    rest = np.setdiff1d(np.arange(len(kind)), first)
    is_new = ~np.isin(kind[rest], kind[first])
    train = np.vstack([drawn.train, drawn.anomalies[first[:count]]])
    y = np.repeat([1, -1], [len(drawn.train), count])
    return _split(drawn, train, y, drawn.anomalies[rest], is_new)


def dirty(name: str, share: float, seed: int) -> Split:
    """Split with a share of anomalies among the training rows.

    The normals and the anomalies to be tested are the same for every share.
    """
    drawn = _drawn(name, seed)
    spare = len(drawn.anomalies) - FEWEST_TESTED
    clean = drawn.train[: round(spare * (1 - DIRTIEST) / DIRTIEST)]
    reserved = round(len(clean) * DIRTIEST / (1 - DIRTIEST))
    hidden = round(len(clean) * share / (1 - share))
    train = np.vstack([clean, drawn.anomalies[:hidden]])
    return _split(drawn, drawn.rng.permutation(train), None, drawn.anomalies[reserved:])


def can_be_labelled(name: str, count: int) -> bool:
    """Tell whether so many anomalies can be spared."""
    return len(rows(name)[1]) - count >= FEWEST_TESTED


def can_be_dirty(name: str) -> bool:
    """Tell whether enough anomalies can be hidden."""
    spare = min(len(rows(name)[1]), MOST_ANOMALIES) - FEWEST_TESTED
    return spare * (1 - DIRTIEST) / DIRTIEST >= FEWEST_CLEAN


def _drawn(name: str, seed: int) -> Drawn:
    normals, anomalies = rows(name)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    order = rng.permutation(len(normals))
    n = min(len(normals), MOST_NORMALS)
    train_share, validation_share = SHARES
    first, second = round(train_share * n), round((train_share + validation_share) * n)
    return Drawn(
        normals[order[:first]],
        normals[order[first:second]],
        normals[order[second : second + MOST_NORMALS]],
        anomalies[rng.permutation(len(anomalies))[:MOST_ANOMALIES]],
        rng,
    )


def _split(
    drawn: Drawn,
    train: FloatArray,
    y: NDArray[np.int64] | None,
    anomalies: FloatArray,
    is_new: NDArray[np.bool_] | None = None,
) -> Split:
    test = np.vstack([drawn.test, anomalies])
    new = np.zeros(len(test), dtype=bool)
    if is_new is not None and is_new.sum() >= FEWEST_NEW:
        new[len(drawn.test) :] = is_new
    # gaps are filled by what is known to be normal, or taken for it
    known = train if y is None else train[y > 0]
    _, train, validation, test = filled(known, train, drawn.validation, test)
    return Split(train, y, validation, test, np.arange(len(test)) < len(drawn.test), new)


def _kinds(drawn: Drawn, seed: int) -> NDArray[np.intp]:
    """Return the kind of every anomaly, by k-means on their standardised features.

    Clipped: a single far anomaly would otherwise be a kind, and the others one kind.
    """
    _, anomalies = filled(drawn.train, drawn.anomalies)
    features = np.clip(standardised(anomalies, anomalies)[1], -FARTHEST, FARTHEST)
    count = min(KINDS, len(np.unique(features, axis=0)))
    found: NDArray[np.intp] = KMeans(count, n_init=5, random_state=seed).fit_predict(features)
    return found
