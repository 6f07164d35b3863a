"""The checksum of what a file says, whatever its format.

A set comes as CSV, as the archive's own text, zipped or from scikit-learn.
What must agree is the content, in order: the same rows at the same places
make the same splits from the same seeds. The canonical text has one line per
row, the numbers as Python's shortest exact form (empty for a gap), then the
class; the checksum is its SHA-256.
"""

import hashlib
from collections.abc import Iterable

from ocfuse.datasets.dataset import DatasetInfo, FloatArray
from ocfuse.exceptions import DatasetError


def content_sha256(blocks: Iterable[tuple[FloatArray, Iterable[str]]]) -> str:
    """Return the SHA-256 of tables and the classes of their rows."""
    digest = hashlib.sha256()
    for X, labels in blocks:
        for row, label in zip(X.tolist(), labels, strict=True):
            # v + 0.0 turns -0.0 into 0.0: they are one number
            cells = ["" if v != v else repr(v + 0.0) for v in row]
            digest.update((",".join([*cells, label]) + "\n").encode())
    return digest.hexdigest()


def require_content(info: DatasetInfo, got: str, origin: str) -> None:
    """Refuse a content whose checksum is not that of the registry."""
    if got != info.sha256:
        raise DatasetError(
            f"The rows of {origin} are not those of {info.name}. Expected content with "
            f"SHA-256 {info.sha256}. Got {got}. Replace the file by the one that "
            f"{info.source} offers, rows in its order."
        )
