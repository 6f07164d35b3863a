"""Run what was exported, and compare it with the detector itself."""

import warnings

import numpy as np
import onnxruntime
import pandas as pd

from ocfuse.onnx.export import columns_of, to_onnx
from ocfuse.tables import TableDetector


def session(content):
    """Return what runs a file, in one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def inputs_of(detector, table, kind=np.float64):
    """Return the inputs that stand for a table."""
    columns = columns_of(detector)
    frame = table if hasattr(table, "columns") else pd.DataFrame(table)
    cells = {}
    for column in columns:
        values = frame.iloc[:, column.place]
        if isinstance(detector, TableDetector):
            values = frame[column.name]
        if column.is_text:
            words = [[""] if pd.isna(cell) else [str(cell)] for cell in values]
            cells[column.name] = np.array(words, dtype=object)
        else:
            cells[column.name] = pd.to_numeric(values).to_numpy(dtype=kind)[:, np.newaxis]
    if any(column.is_text for column in columns):
        return cells
    return {"X": np.hstack(list(cells.values()))}


def run(detector, table, ready=None, **settings):
    """Return the outputs for a table."""
    ready = ready or session(to_onnx(detector, **settings))
    kind = np.float32 if settings.get("single") else np.float64
    names = [output.name for output in ready.get_outputs()]
    return dict(zip(names, ready.run(None, inputs_of(detector, table, kind)), strict=True))


def assert_same(detector, table, *, rtol=1e-5):
    """Compare all outputs, of many rows at once and of each alone."""
    ready = session(to_onnx(detector))
    found = run(detector, table, ready)
    inner = getattr(detector, "detector_", detector)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_table = isinstance(detector, TableDetector)
        want = detector.score(table)["score"] if is_table else detector.score_samples(table)
    np.testing.assert_allclose(found["score"], want, rtol=rtol, atol=1e-6)
    # a score that ties with those of training may be a little beside them
    np.testing.assert_array_equal(found["p_value"], inner.conformal_.p_values(found["score"]))
    np.testing.assert_array_equal(found["label"], np.where(found["score"] < inner.offset_, -1, 1))
    assert found["threshold"] == [inner.offset_]
    take = table.iloc if hasattr(table, "iloc") else table
    for i in range(min(len(table), 5)):
        alone = run(detector, take[i : i + 1], ready)["score"]
        np.testing.assert_allclose(alone, found["score"][i], rtol=1e-9, atol=1e-9)
    return found
