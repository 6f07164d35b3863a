"""One file per model, which runs no code when it is loaded."""

from ocfuse.persistence.header import Header, read_header
from ocfuse.persistence.model import load, save

__all__ = ["Header", "load", "read_header", "save"]
