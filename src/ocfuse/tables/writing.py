"""Parquet files, written some rows at a time."""

from typing import IO, Any

from ocfuse.exceptions import InvalidInputError
from ocfuse.optional import needed
from ocfuse.tables.frames import Frame

PURPOSE = "to write Parquet files"


class ParquetWriter:
    """Write frames as row groups of Parquet.

    Parameters
    ----------
    file : binary file
        Open for writing.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.inner: Any = None

    def write(self, frame: Frame) -> None:
        """Write the next rows, with the types of the first ones."""
        pa = needed("pyarrow", PURPOSE)
        if self.inner is None:
            pq = needed("pyarrow.parquet", PURPOSE)
            schema = pa.Schema.from_pandas(frame, preserve_index=False)
            self.inner = pq.ParquetWriter(self.file, schema)
        try:
            table = pa.Table.from_pandas(frame, schema=self.inner.schema, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInputError(
                f"A column changes its type between rows, which Parquet cannot hold: {error}. "
                "Write CSV instead."
            ) from error
        self.inner.write_table(table)

    def note(self, about: dict[str, str]) -> None:
        """Put words about the rows into the footer, once some were written."""
        self.inner.add_key_value_metadata(about)

    def close(self) -> None:
        """Write the footer."""
        if self.inner is not None:
            try:
                self.inner.close()
            finally:
                # otherwise it tries again when it is thrown away
                self.inner.is_open = False
