"""Tables in files and data frames: reading, kinds of columns, and a detector for tables.

A `Source` reads a file in chunks, a `Schema` holds the kind of each column, and a `TableDetector`
fits and scores tables. It must not know streams, pictures, commands or HTTP.
"""

from ocfuse.tables.cells import Column
from ocfuse.tables.detector import TableDetector
from ocfuse.tables.judged import JudgedEvent
from ocfuse.tables.open import open_source
from ocfuse.tables.schema import Schema
from ocfuse.tables.source import Source

__all__ = [
    "Column",
    "JudgedEvent",
    "Schema",
    "Source",
    "TableDetector",
    "open_source",
]
