"""Part "export": models as ONNX files beside the same models in Python."""

import warnings

import numpy as np
import onnxruntime

from benchmarks.estimator.tables import synthetic_task
from benchmarks.report import Report, Table, number
from benchmarks.timing import medians
from ocfuse import FusedDetector
from ocfuse.onnx.export import to_onnx

POOLS = ("light", "default")
SIZES, QUICK_SIZES = (500, 2_000, 20_000), (300,)
ROUNDS, N_BATCH = 9, 1_000


def run(quick: bool) -> Report:
    rows, found = [], []
    for n in QUICK_SIZES if quick else SIZES:
        task = synthetic_task(n)
        for pool in POOLS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                detector = FusedDetector(pool, random_state=0).fit(task.train)
            figures = measured(detector, np.resize(task.test, (N_BATCH, task.test.shape[1])), quick)
            found.append([pool, n, figures])
            rows.append([pool, f"{n:,}", *map(number, figures.values())])
            print(*rows[-1], flush=True)
    header = ["pool", "n", "MB", "one row, ONNX: ms", "Python: ms"]
    header += ["1,000 rows, ONNX: ms", "Python: ms", "largest difference, relative"]
    return Report(
        "Models as ONNX files",
        "Detectors of n rows x 10, exported with `ocfuse.onnx.export` and run by onnxruntime on "
        f"one thread, beside `score_samples`; medians of {ROUNDS} measurements in turn, CPU time. "
        "A difference is in units of the score, or of 1 where that is smaller.",
        [],
        [Table("Scoring", header, rows)],
        {"found": found},
    )


def measured(detector, batch, quick) -> dict[str, float]:
    """Return megabytes, milliseconds of one row and of a batch, both ways, and the difference."""
    content = to_onnx(detector)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    one = batch[:1]
    took = medians(
        {
            "one row, ONNX": lambda: session.run(["score"], {"X": one}),
            "one row, Python": lambda: detector.score_samples(one),
            "batch, ONNX": lambda: session.run(["score"], {"X": batch}),
            "batch, Python": lambda: detector.score_samples(batch),
        },
        3 if quick else ROUNDS,
    )
    score, want = session.run(["score"], {"X": batch})[0], detector.score_samples(batch)
    difference = float(np.max(np.abs(score - want) / np.maximum(np.abs(want), 1.0)))
    return (
        {"MB": len(content) / 1e6}
        | {k: 1e3 * v for k, v in took.items()}
        | {"difference": difference}
    )
