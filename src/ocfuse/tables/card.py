"""What is known of how a model came about."""

import hashlib
import platform
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

import numpy as np

from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.labels import LabelArray
from ocfuse.tables.frames import Frame

PACKAGES = ("ocfuse", "numpy", "scipy", "scikit-learn", "pandas")


def make_card(features: Frame, y: LabelArray | None, detector: FusedDetector) -> dict[str, Any]:
    """Return rows, columns, versions, time, settings and a checksum of the training data."""
    return {
        "rows": len(features),
        "columns": features.shape[1],
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"Python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        "settings": {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in detector.get_params(deep=False).items()
        },
        "sha256": data_checksum(features, y),
    }


def data_checksum(features: Frame, y: LabelArray | None) -> str:
    """Return the SHA-256 of names, values and labels, in whatever format they were stored."""
    digest = hashlib.sha256()
    for name in features.columns:
        values = features[name].to_numpy()
        is_text = values.dtype == object
        content = repr(values.tolist()).encode() if is_text else values.astype("<f8").tobytes()
        digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
    if y is not None:
        digest.update(np.asarray(y).astype("<i8").tobytes())
    return digest.hexdigest()
