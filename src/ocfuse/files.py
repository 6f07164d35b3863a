"""Writing files so that nobody finds half of one."""

import os
import uuid
from pathlib import Path


def write_atomically(target: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
