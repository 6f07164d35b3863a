"""Generators of pseudo-negatives, their mixture, and generators by name."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.negatives.base import Generator, OneHotBlocks, random_rows


class Gauss(Generator):
    """Gaussian rows with the mean and covariance of the normal rows.

    x = mu + U diag(sd) e with e ~ N(0, I), the principal directions U of the normal rows and their
    standard deviations sd. Directions with less than 0.001 of the largest standard deviation are
    left out. Nonlinear dependence is lost; if normal rows are Gaussian, the rows are normal, too.
    Constant columns stay constant; discrete columns get values between and beyond their levels.

    Examples
    --------
    >>> from ocfuse.negatives import Gauss
    >>> Gauss().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[5.53, 1.  ],
           [2.8 , 1.  ]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_from(OneHotBlocks(X), X, n, random)

    def _draw_from(
        self, blocks: OneHotBlocks, X: FloatArray, n: int, random: RandomState
    ) -> FloatArray:
        normals = blocks.principal
        spread = np.sqrt((normals.t**2).mean(axis=0))
        return normals.rows(spread * random.standard_normal((n, len(spread))))


class Mirror(Generator):
    """Normal rows mirrored at their mean c: 2 c - x.

    On standardised rows this is -x, the negative replicates of Roth (2006). No row is used twice
    before all have been used. If normal rows are symmetric about their mean, these rows are not
    anomalous. Constant columns stay constant; levels of discrete columns are mirrored.

    Examples
    --------
    >>> from ocfuse.negatives import Mirror
    >>> Mirror().sample([[0.0, 1.0], [4.0, 1.0], [5.0, 1.0]], 3, random_state=0)
    array([[1., 1.],
           [2., 1.],
           [6., 1.]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        # about the first row, so that a constant column is not moved by rounding
        twice_centre = X[0] + 2.0 * (X - X[0]).mean(axis=0)
        return np.asarray(twice_centre - (X[random_rows(len(X), n, random)] - X[0]))


class PCShuffle(Generator):
    """Each principal coordinate is taken from a different random normal row.

    Mean, covariance and the distribution along each principal direction are kept; other dependence
    between directions is lost. Directions with less than 0.001 of the largest standard deviation
    are left out; with a single direction the rows are normal, too. Constant columns stay constant;
    discrete columns get values between and beyond their levels.

    Examples
    --------
    >>> from ocfuse.negatives import PCShuffle
    >>> PCShuffle().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[0., 1.],
           [4., 1.]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_from(OneHotBlocks(X), X, n, random)

    def _draw_from(
        self, blocks: OneHotBlocks, X: FloatArray, n: int, random: RandomState
    ) -> FloatArray:
        normals = blocks.principal
        chosen = random.randint(len(X), size=(n, normals.t.shape[1]))
        return normals.rows(np.take_along_axis(normals.t, chosen, axis=0))


class Shuffle(Generator):
    """Each feature is taken from a different random normal row.

    The distribution of each feature is kept; dependence between features is lost. Constant columns
    stay constant; discrete columns keep their levels. With one feature, or one row, the rows are
    normal, too.

    Examples
    --------
    >>> from ocfuse.negatives import Shuffle
    >>> Shuffle().sample([[0.0, 5.0], [1.0, 6.0]], 3, random_state=0)
    array([[0., 6.],
           [1., 5.],
           [1., 6.]])
    """

    keeps_values: ClassVar[bool] = True

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        rows = random.randint(len(X), size=(n, X.shape[1]))
        return np.asarray(np.take_along_axis(X, rows, axis=0))


class Swap(Generator):
    """Normal rows with some features taken from other random normal rows.

    Each of the m features that are not constant is replaced with probability max(0.3, 1.5 / m), at
    most 1, by the value of another row, drawn for each feature. If this does not change a row, one
    of its features gets another value. Discrete columns keep their levels. With one feature, or
    one row, the rows are normal, too.

    Examples
    --------
    >>> from ocfuse.negatives import Swap
    >>> Swap().sample([[0.0, 5.0, 1.0], [1.0, 6.0, 1.0]], 2, random_state=0)
    array([[0., 6., 1.],
           [0., 6., 1.]])
    """

    keeps_values: ClassVar[bool] = True

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        rows = random_rows(len(X), n, random)
        drawn = X[rows]
        varying = np.flatnonzero((X[0] != X).any(axis=0))
        if len(varying) == 0:
            return drawn
        # steps of 1 to n_rows - 1 from a row lead to any row but itself
        step = 1 + random.randint(len(X) - 1, size=(n, len(varying)))
        others = X[(rows[:, np.newaxis] + step) % len(X), varying]
        swapped = random.random_sample(step.shape) < max(0.3, 1.5 / len(varying))
        drawn[:, varying] = np.where(swapped, others, drawn[:, varying])
        for i in np.flatnonzero((drawn == X[rows]).all(axis=1)):
            j = random.choice(varying)
            drawn[i, j] = random.choice(X[X[:, j] != drawn[i, j], j])
        return drawn


class Uniform(Generator):
    """Uniform rows in the bounding box of the normal rows, widened on every side.

    Constant columns stay constant: the normal rows do not show how far an anomaly would deviate.
    Discrete columns get values between their levels.

    Parameters
    ----------
    margin : float, default=0.25
        Distance by which each side of the box is moved outwards, as a share of its width.

    Examples
    --------
    >>> from ocfuse.negatives import Uniform
    >>> Uniform().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[2.29, 1.  ],
           [2.62, 1.  ]])
    """

    def __init__(self, margin: float = 0.25) -> None:
        self.margin = margin

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        if not 0.0 <= self.margin < np.inf:
            raise InvalidInputError(
                f"margin must be in [0, inf). Got margin={self.margin!r}. "
                "Use margin=0.25 to widen the box by a quarter of its width on every side."
            )
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        place = random.random_sample((n, X.shape[1]))
        return np.asarray(low + width * (place * (1.0 + 2.0 * self.margin) - self.margin))


class Mixture(Generator):
    """Equal shares of rows from several generators, in the given order.

    Each kind fails for some data: Gaussian rows if normal rows are Gaussian, mirrored ones if they
    are symmetric, uniform ones in many dimensions, swapped features if features are independent.
    If n is not a multiple of the number of generators, the first ones draw one row more. A mixture
    in a mixture keeps its kinds.

    Parameters
    ----------
    generators : sequence of str or object, default=("gauss", "pcshuffle", "mirror", "swap", \
"uniform")
        Names or objects, as for `make_negatives`.

    Examples
    --------
    >>> from ocfuse.negatives import Mixture
    >>> mixture = Mixture(["mirror", "shuffle"])
    >>> mixture.sample([[0.0], [1.0], [5.0]], 3, random_state=0).shape
    (3, 1)
    >>> mixture.labels, mixture.kinds(3)
    (['mirror', 'shuffle'], array([0, 0, 1]))
    """

    def __init__(
        self, generators: Sequence[Any] = ("gauss", "pcshuffle", "mirror", "swap", "uniform")
    ) -> None:
        self.generators = generators

    @property
    def labels(self) -> list[str]:
        """Names of the kinds of rows."""
        return [label for part in self._parts() for label in part.labels]

    def _shares(self, n: int) -> list[int]:
        counts = self._counts(n)
        return [
            share
            for part, count in zip(self._parts(), counts, strict=True)
            for share in part._shares(count)
        ]

    def _draw_blocks(self, blocks: OneHotBlocks, n: int, random: RandomState) -> FloatArray:
        drawn = zip(self._parts(), self._counts(n), strict=True)
        return np.vstack([part._draw_blocks(blocks, k, random) for part, k in drawn if k])

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_blocks(OneHotBlocks(X), n, random)

    def _counts(self, n: int) -> list[int]:
        """Return how many of n rows each generator draws."""
        k = len(self.generators)
        return [n // k + (place < n % k) for place in range(k)]

    def _parts(self) -> list[Generator]:
        if isinstance(self.generators, str) or len(self.generators) == 0:
            raise InvalidInputError(
                "generators must be a list of at least one name or object. "
                f"Got generators={self.generators!r}."
            )
        made = [_make_one(kind) for kind in self.generators]
        return [part if isinstance(part, Generator) else _Foreign(part) for part in made]


class _Foreign(Generator):
    """An object of which only `sample(X, n, random_state)` is known."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    @property
    def labels(self) -> list[str]:
        return [type(self.generator).__name__.lower()]

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return np.asarray(self.generator.sample(X, n, random))


_BY_NAME: dict[str, type[Generator]] = {
    "gauss": Gauss,
    "mirror": Mirror,
    "mixture": Mixture,
    "pcshuffle": PCShuffle,
    "shuffle": Shuffle,
    "swap": Swap,
    "uniform": Uniform,
}


def make_negatives(spec: Any) -> Any:
    """Return a generator for a name, a list or an object.

    Parameters
    ----------
    spec : None, str, list or object
        "gauss", "mirror", "mixture", "pcshuffle", "shuffle", "swap" or "uniform"; a list of names
        and objects for their mixture; an object with `sample(X, n, random_state)`; or None for no
        pseudo-negatives.

    Returns
    -------
    object or None
        A new generator for a name or a list; the given object; or None.

    Raises
    ------
    InvalidInputError
        A name is unknown, or the list is empty.
    InvalidTypeError
        An object has no `sample`, or is a class.

    Examples
    --------
    >>> from ocfuse.negatives import make_negatives
    >>> make_negatives("shuffle")
    Shuffle()
    """
    if spec is None:
        return None
    if isinstance(spec, list | tuple):
        if not spec:
            raise InvalidInputError(
                "A list of pseudo-anomalies must not be empty. Use None for none of them."
            )
        return Mixture([_make_one(kind) for kind in spec])
    return _make_one(spec)


def _make_one(spec: Any) -> Any:
    if isinstance(spec, str):
        if spec not in _BY_NAME:
            other = ", or an object with sample"
            raise InvalidInputError(not_one_of("Pseudo-anomalies", spec, _BY_NAME, other))
        return _BY_NAME[spec]()
    if isinstance(spec, type) or not hasattr(spec, "sample"):
        names = ", ".join(map(repr, _BY_NAME))
        raise InvalidTypeError(
            f"Pseudo-anomalies must be one of {names}, or an object (not a class) with "
            f"sample(X, n, random_state). Got {spec!r}."
        )
    return spec
