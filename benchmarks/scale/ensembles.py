"""What PyOD offers: ensembles of five of its detectors."""

from collections.abc import Callable
from typing import Any

from benchmarks.estimator.systems import PyodAverage, lscp

SYSTEMS: dict[str, Callable[[], Any]] = {
    "PyOD LSCP": lambda: lscp(0),
    "PyOD average": lambda: PyodAverage(0),
}
