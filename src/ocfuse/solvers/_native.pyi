import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray

def solve(
    A: FloatArray,
    index: NDArray[np.int64],
    c: FloatArray,
    p: FloatArray,
    nonneg: bool,
    tol: float,
    method: int,
    interior_point_limit: int,
    frank_wolfe_limit: int,
    patience: float,
    together: bool,
    threads: int,
) -> tuple[
    FloatArray,
    FloatArray,
    FloatArray,
    FloatArray,
    NDArray[np.int8],
    NDArray[np.int8],
    NDArray[np.int32],
]: ...
def instruction_set() -> str: ...
def use_baseline(yes: bool) -> None: ...
