"""One file per model, which runs no code when it is loaded."""

from ocfuse.persistence.header import Header, read_header
from ocfuse.persistence.model import check_storable, load, save

__all__ = ["Header", "check_storable", "load", "read_header", "save"]
