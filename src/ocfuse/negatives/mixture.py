"""Several generators together, and generators by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.negatives.base import FloatArray, Generator
from ocfuse.negatives.blocks import Blocks
from ocfuse.negatives.gauss import Gauss
from ocfuse.negatives.mirror import Mirror
from ocfuse.negatives.pcshuffle import PCShuffle
from ocfuse.negatives.shuffle import Shuffle
from ocfuse.negatives.swap import Swap
from ocfuse.negatives.uniform import Uniform


class Mixture(Generator):
    """Equal shares of several generators, one after the other, in the given order.

    Each kind is blind to something: a Gaussian sample to normals that are
    Gaussian, the mirror to symmetric ones, the box to many dimensions, swapped
    features to independent ones. If n is not a multiple of their number, the
    first ones draw one row more. A mixture within a mixture keeps its kinds.

    Parameters
    ----------
    generators : sequence of str or object, default=("gauss", "pcshuffle", "mirror", "swap", \
"uniform")
        Names or objects, as `make_negatives` takes them.

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

    def _draw_blocks(self, blocks: Blocks, n: int, random: RandomState) -> FloatArray:
        drawn = zip(self._parts(), self._counts(n), strict=True)
        return np.vstack([part._draw_blocks(blocks, k, random) for part, k in drawn if k])

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_blocks(Blocks(X), n, random)

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
    """Return the generator that a name, a list or an object stands for.

    Parameters
    ----------
    spec : None, str, list or object
        None for no pseudo-anomalies; "gauss", "mirror", "mixture", "pcshuffle",
        "shuffle", "swap" or "uniform"; a list of names and objects for their
        mixture; an object with `sample(X, n, random_state)`.

    Returns
    -------
    object or None
        A new generator for a name or a list; an object, or None, as it is.

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
    names = ", ".join(repr(name) for name in _BY_NAME)
    if isinstance(spec, str):
        if spec not in _BY_NAME:
            other = ", or an object with sample"
            raise InvalidInputError(not_one_of("Pseudo-anomalies", spec, _BY_NAME, other))
        return _BY_NAME[spec]()
    if isinstance(spec, type) or not hasattr(spec, "sample"):
        raise InvalidTypeError(
            f"Pseudo-anomalies must be one of {names}, or an object (not a class) with "
            f"sample(X, n, random_state). Got {spec!r}."
        )
    return spec
