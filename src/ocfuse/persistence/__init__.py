"""One file per model, which runs no code when it is loaded.

`save` writes a header, a description and arrays; `load` builds known classes only, found by
stable names in the registry. It must not import the classes before a file names them, and must
not depend on the modules they are in.
"""

from ocfuse.persistence.file import check_storable, keep_former, load, save
from ocfuse.persistence.header import Header, read_header

__all__ = [
    "Header",
    "check_storable",
    "keep_former",
    "load",
    "read_header",
    "save",
]
