"""One file per model, which runs no code when it is loaded."""

from ocfuse.persistence.file import check_storable, load, save
from ocfuse.persistence.header import Header, read_header

__all__ = [
    "Header",
    "check_storable",
    "load",
    "read_header",
    "save",
]
