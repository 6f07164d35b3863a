"""From encoded rows back to what users can read."""

from typing import Any

import numpy as np

from ocfuse.features import FeatureEncoder, FloatArray, NumberScaler

#: Longest text of a value.
LONGEST = 60


def decode(encoder: FeatureEncoder, encoded: FloatArray) -> list[Any]:
    """Return the value of every feature of an encoded row: a number, a category or None.

    A gap that was filled shows the value that filled it; None is a missing category.
    """
    values: list[Any] = [None] * len(encoder.categorical_)
    is_plain = isinstance(encoder.transformer_, NumberScaler)
    numbers = np.flatnonzero(~encoder.categorical_)
    if len(numbers):
        scaler = (
            encoder.transformer_
            if is_plain
            else encoder.transformer_.named_transformers_["numbers"]
        )
        restored = encoded[: len(numbers)] * scaler.scale_ + scaler.centre_
        for j, value in zip(numbers, restored.tolist(), strict=True):
            values[j] = value
    for j, codes in zip(np.flatnonzero(encoder.categorical_), encoder.codes_, strict=True):
        flags = encoded[encoder.source_ == j]
        names = list(codes)  # in the order of their codes
        code = int(np.argmax(flags))
        values[j] = names[code] if flags[code] > 0.5 and code < len(names) else None
    return values


def readable(value: Any) -> str:
    """Return a value as a short text."""
    if isinstance(value, float | np.floating):
        return "missing" if np.isnan(value) else f"{value:.4g}"
    text = "missing" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
