"""The directions in which rows vary most, and rows in them as whole numbers.

What a row does not have in common with these directions enters by its length
only: of two rows the squared distance is about ``|Px - Py|^2 + |rx|^2 + |ry|^2``
with P the part in the directions and r the rest. Numbers are rounded so that
all sums of products are exact: whatever their order, a row has the same codes
and the same candidates.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.compiled.native import kernel, thread_count
from ocfuse.nearest.exact import FloatArray, IntArray

SingleArray: TypeAlias = NDArray[np.float32]
CodeArray: TypeAlias = NDArray[np.int16]

#: Numbers to look at for a row that make it worth while.
LEAST_WORK = 2**21
#: Of so many neighbours so many must be among the candidates, with so many to spare.
NEIGHBOURS, RECALL, SPARE = 32, 0.995, 32
#: Directions come in groups, and no more than one for so many columns.
GROUP, COLUMNS_PER_DIRECTION = 16, 3
#: Rows that the directions are learned from, and whose neighbours are looked for to try them.
ROWS_TO_LEARN, ROWS_TO_TRY = 4096, 128
#: Bits of a sum in double precision, and of one of whole numbers.
SUM_BITS, CODE_SUM_BITS = 53, 30


class Leading:
    """Rows as whole numbers: coordinates in some directions.

    Parameters
    ----------
    directions : ndarray of shape (m, p)
        Orthogonal directions of length 1.
    """

    def __init__(self, directions: FloatArray) -> None:
        m, p = directions.shape
        self.size = p
        self._bits, self._code_bits = _bits(m, SUM_BITS), _bits(p, CODE_SUM_BITS)
        self._directions = np.rint(np.ldexp(directions, self._bits))

    def codes(self, rows: FloatArray) -> tuple[CodeArray, SingleArray]:
        """Return codes (q, p) and scales (q,), powers of two: their products are coordinates."""
        whole, exponents = _whole(rows, self._bits)
        codes, shifts = _whole(whole @ self._directions, self._code_bits)
        scales = np.ldexp(np.float32(1.0), exponents + shifts - self._bits)
        return codes.astype(np.int16), scales.astype(np.float32)


def leading(rows: FloatArray) -> Leading | None:
    """Return directions of centred rows, as few as find the neighbours; None if that takes many.

    Also None if codes of the rows are too coarse: where clusters, or a few rows, are far from
    the others, most bits tell these apart only.
    """
    n, m = rows.shape
    most = m // COLUMNS_PER_DIRECTION // GROUP * GROUP
    if n <= NEIGHBOURS + SPARE or not most:
        return None
    directions: FloatArray = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :most]
    trial = Trial(rows)
    coordinates = rows @ directions
    products = np.zeros((len(trial.tried), n))
    for size in range(GROUP, most + 1, GROUP):
        new = coordinates[:, size - GROUP : size]
        products += new[trial.tried] @ new.T
        if trial.is_passed_by(trial.squares - 2.0 * products):
            found = Leading(directions[:, :size])
            if trial.is_passed_by_codes(found):
                return found
    return None


def every_column(rows: FloatArray) -> Leading | None:
    """Return the columns themselves as directions, their number made even.

    None if codes of the rows are too coarse.
    """
    n, m = rows.shape
    found = Leading(np.eye(m, m + m % 2))
    is_enough = n <= NEIGHBOURS + SPARE or Trial(rows).is_passed_by_codes(found)
    return found if is_enough else None


class Trial:
    """Whether neighbours of some rows are among their candidates.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        Centred rows.

    Attributes
    ----------
    tried : ndarray of shape (q,)
        Rows whose neighbours are looked for.
    squares : ndarray of shape (n,)
        Squared lengths of all.
    """

    def __init__(self, rows: FloatArray) -> None:
        self._rows = rows
        self.tried: IntArray = np.arange(0, len(rows), -(-len(rows) // ROWS_TO_TRY))
        self.squares: FloatArray = np.einsum("nm,nm->n", rows, rows)
        self._near = _nearest(self.squares - 2.0 * (rows[self.tried] @ rows.T), NEIGHBOURS)

    def is_passed_by(self, values: NDArray[np.floating[Any]]) -> bool:
        """Tell whether values (q, n) that are small for near rows find the neighbours."""
        candidates = _nearest(values, NEIGHBOURS + SPARE)
        is_found = np.zeros(values.shape, dtype=bool)
        np.put_along_axis(is_found, candidates, True, axis=1)
        return bool(np.take_along_axis(is_found, self._near, axis=1).mean() >= RECALL)

    def is_passed_by_codes(self, leading: Leading) -> bool:
        """Tell whether values as the search has them, of codes and in single precision, do."""
        codes, scales = leading.codes(self._rows)
        coded = codes * scales[:, None].astype(np.float64)
        products = (coded[self.tried] @ coded.T).astype(np.float32)
        return self.is_passed_by(self.squares.astype(np.float32) - np.float32(2.0) * products)


def _nearest(values: NDArray[np.floating[Any]], k: int) -> IntArray:
    return np.argpartition(values, k - 1, axis=1)[:, :k]


def _bits(n: int, bits: int) -> int:
    """Return the bits that numbers may have so that n products of two add up exactly."""
    return (bits - (n - 1).bit_length()) // 2


def _whole(rows: FloatArray, bits: int) -> tuple[FloatArray, NDArray[np.intc]]:
    """Return rows as whole numbers of so many bits, and the power of two of every row."""
    if kernel is not None:
        answer: tuple[FloatArray, NDArray[np.intc]]
        answer = kernel.whole(rows, bits, thread_count(rows.size))
        return answer
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    exponents = np.frexp(largest)[1] - bits
    whole: FloatArray = np.rint(rows * np.ldexp(1.0, -exponents)[:, None])
    return whole, exponents
