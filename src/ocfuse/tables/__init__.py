"""Tables as users have them: files, what their columns hold, and a detector for them.

A `Source` reads a file in chunks, a `Schema` says what each column is, and a `TableDetector`
fits and scores such tables. It must not know streams, pictures, commands or HTTP.
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
