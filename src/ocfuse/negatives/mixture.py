"""Several generators together, and generators by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.negatives.base import FloatArray, Generator
from ocfuse.negatives.mirror import Mirror
from ocfuse.negatives.shuffle import Shuffle
from ocfuse.negatives.uniform import Uniform


class Mixture(Generator):
    """Equal shares of several generators, in blocks, in the given order.

    Each kind is blind to something: the mirror to symmetric normals, the box
    to many dimensions, shuffled features to independent ones. If n is not
    a multiple of their number, the first ones draw one row more.

    Parameters
    ----------
    generators : sequence of str or object, default=("mirror", "uniform", "shuffle")
        Names or objects, as `make_negatives` takes them.

    Examples
    --------
    >>> from ocfuse.negatives import Mixture
    >>> Mixture(["mirror", "shuffle"]).sample([[0.0], [1.0], [5.0]], 4, random_state=0).shape
    (4, 1)
    """

    def __init__(self, generators: Sequence[Any] = ("mirror", "uniform", "shuffle")) -> None:
        self.generators = generators

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        if isinstance(self.generators, str) or len(self.generators) == 0:
            raise InvalidInputError(
                "generators must be a list of at least one name or object. "
                f"Got generators={self.generators!r}."
            )
        kinds = [_make_one(kind) for kind in self.generators]
        shares = [n // len(kinds) + (place < n % len(kinds)) for place in range(len(kinds))]
        drawn = zip(kinds, shares, strict=True)
        return np.vstack([kind.sample(X, share, random) for kind, share in drawn if share])


_BY_NAME: dict[str, type[Generator]] = {
    "mirror": Mirror,
    "uniform": Uniform,
    "shuffle": Shuffle,
    "mixture": Mixture,
}


def make_negatives(spec: Any) -> Any:
    """Return the generator that a name, a list or an object stands for.

    Parameters
    ----------
    spec : None, str, list or object
        None for no pseudo-anomalies; "mirror", "uniform", "shuffle" or
        "mixture"; a list of names and objects for their mixture; an object with
        `sample(X, n, random_state)`.

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
            raise InvalidInputError(
                f"Pseudo-anomalies must be one of {names}, or an object with sample. Got {spec!r}."
            )
        return _BY_NAME[spec]()
    if isinstance(spec, type) or not hasattr(spec, "sample"):
        raise InvalidTypeError(
            f"Pseudo-anomalies must be one of {names}, or an object (not a class) with "
            f"sample(X, n, random_state). Got {spec!r}."
        )
    return spec
