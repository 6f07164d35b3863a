"""Write a fitted detector as one ONNX file."""

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse import __version__
from ocfuse.encoder import FeatureEncoder, is_given
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.score import ContextScale, ScoreChain
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.limits import ValueLimits
from ocfuse.onnx.encoder import Cells, encoded
from ocfuse.onnx.fusion import fused, normalised, p_values, require_fusion
from ocfuse.onnx.graph import Graph, Tensor
from ocfuse.onnx.members import member_scores, require_members
from ocfuse.system.files import write_atomically
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import ROWS
from ocfuse.validation import ANOMALY, NORMAL, require_fitted

#: What an encoder has that is written, or refused by a name of its own; all else must be empty.
KNOWN_OF_ENCODER = frozenset(
    {
        *FeatureEncoder().get_params(),
        *("by_", "by_codes_", "categorical_", "codes_", "complete_", "direction_", "donors_"),
        *("empty_", "ignored_", "is_frame_", "novelty_", "numbers_", "patterns_", "profiled_"),
        *("reasons_", "scaler_", "sides_", "source_", "time_", "zone_"),
        *("feature_names_in_", "n_features_in_"),
    }
)
#: The steps from rows to scores that are written.
KNOWN_OF_CHAIN = frozenset({"encoder", "pool", "normaliser", "fusion", "context_scale", "n_jobs"})
#: Settings of an encoder and of a detector that change what is scored, and are not written.
REFUSED = ("by", "time", "season")


@dataclass(frozen=True)
class InputColumn:
    """A column that a model is given: its name, its place among those of training, its kind."""

    name: str
    place: int
    kind: str  # "number", "category" or "empty", which had no value in training
    is_text: bool  # or its cells are numbers


def export(detector: Any, path: str | os.PathLike[str], *, single: bool = False) -> Path:
    """Write a detector as an ONNX file that computes score, label and p-value from cells.

    The input is one tensor ``X`` with the columns that the detector learned from. If some columns
    hold text, each column is an input of its own of shape (rows, 1), with the name of the column:
    numbers with NaN for gaps, or text with "" for gaps. The outputs are ``score`` (higher is more
    normal), ``label`` (+1 normal, -1 anomaly) and ``p_value``, each with one entry per row, and
    ``threshold``. A row with infinity, or with gaps that are refused, has no score: NaN, and the
    label -1. A detector that was fitted with context takes it as a further input, ``context``.

    Parameters
    ----------
    detector : FusedDetector or TableDetector
        A fitted detector of independent rows.
    path : str or path-like
        The file. An existing file is replaced only when the new one is complete.
    single : bool, default=False
        Whether the inputs are in single precision, for callers without double precision. All is
        computed in double precision either way.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import numpy as np
    >>> import ocfuse.onnx
    >>> from ocfuse import FusedDetector
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> detector = FusedDetector("light", random_state=0).fit(X)
    >>> path = ocfuse.onnx.export(detector, "model.onnx")  # doctest: +SKIP
    """
    content = to_onnx(detector, single=single)
    target = Path(path)
    write_atomically(target, content)
    return target


def to_onnx(detector: Any, *, single: bool = False) -> bytes:
    """Return the file that `export` writes."""
    inner = _checked(detector)
    graph, encoder = Graph(), inner.encoder_
    columns = columns_of(inner)
    if inner.limits_ is not None:
        _require_given(inner.limits_, columns)
    cells = _inputs(graph, columns, np.float32 if single else np.float64)
    read = encoded(graph, encoder, cells)
    x, has_no_score = read.rows, read.has_no_score
    S = member_scores(graph, inner.pool_, x)
    Z = normalised(graph, inner.normaliser_, S)
    if inner.context_scale_ is not None:
        x, is_odd = _with_context(graph, inner.context_scale_, x)
        has_no_score = is_odd if has_no_score is None else has_no_score | is_odd
    score = fused(graph, inner.fusion_, Z, x)
    p_value = p_values(graph, inner.conformal_, score)
    if has_no_score is not None:
        without = has_no_score.without_axis(1)
        score, p_value = graph.where(without, np.nan, score), graph.where(without, np.nan, p_value)
    is_normal = graph.add("GreaterOrEqual", score, float(inner.offset_))
    if inner.limits_ is not None:
        is_normal = is_normal & ~_broken(graph, inner.limits_, cells)
    label = graph.where(is_normal, int(NORMAL), int(ANOMALY))
    graph.output("score", score, np.float64, ["rows"])
    graph.output("label", label, np.int64, ["rows"])
    graph.output("p_value", p_value, np.float64, ["rows"])
    graph.output("threshold", graph.constant(np.array([inner.offset_])), np.float64, [1])
    return graph.model("ocfuse", _facts(detector, inner, columns))


def _checked(detector: Any) -> FusedDetector:
    """Return the detector of rows that is to be written, or refuse it."""
    inner = detector.detector_ if isinstance(detector, TableDetector) else detector
    is_table = not isinstance(detector, TableDetector) or detector.kind == ROWS
    if not isinstance(inner, FusedDetector) or not is_table:
        raise InvalidTypeError(
            "Only detectors of rows that stand alone can be exported to ONNX, FusedDetector and "
            f"TableDetector. Got {type(detector).__name__}. Streams, whose rows depend on those "
            "before, and pictures are scored by ocfuse watch and ocfuse serve."
        )
    require_fitted(inner, "pool_")
    encoder, chain = inner.encoder_, ScoreChain.of(inner)
    of_table = [name for name in REFUSED if name != "time"]  # the times of a table are only shown
    asked = [(inner, REFUSED), (encoder, REFUSED), (detector, of_table)]
    found = {name for each, names in asked for name in names if is_given(getattr(each, name, None))}
    given = [name for name in REFUSED if name in found]
    if given:
        raise InvalidInputError(
            f"A detector with {', '.join(given)} cannot be exported to ONNX: what is usual for "
            "whom and when is not written. Fit one without, or serve the model with ocfuse serve."
        )
    unknown = [name for name, value in vars(encoder).items() if name not in KNOWN_OF_ENCODER]
    odd = [f"encoder_.{name}" for name in unknown if _says_something(getattr(encoder, name))]
    steps = [field.name for field in fields(chain) if field.name not in KNOWN_OF_CHAIN]
    odd += [name for name in steps if _says_something(getattr(chain, name))]
    if odd:
        raise InvalidInputError(
            f"The detector does more than export to ONNX knows: {', '.join(odd)}. Fit one without "
            "these settings, or serve the model with ocfuse serve."
        )
    require_members(inner.pool_)
    require_fusion(inner.normaliser_, inner.fusion_)
    return inner


def _says_something(value: Any) -> bool:
    return bool(np.asarray(value).any()) if isinstance(value, np.ndarray) else is_given(value)


def columns_of(detector: Any) -> list[InputColumn]:
    """Return the columns that the file is given: those learned from, and those that were empty."""
    inner = detector.detector_ if isinstance(detector, TableDetector) else detector
    encoder = inner.encoder_
    names = getattr(inner, "feature_names_in_", range(len(encoder.categorical_)))
    roles = np.where(encoder.categorical_, "category", "number").astype(object)
    roles[encoder.empty_] = "empty"
    is_text = encoder.categorical_ & encoder.is_frame_
    is_wanted = ~encoder.ignored_ | encoder.empty_
    return [
        InputColumn(str(names[j]), int(j), roles[j], bool(is_text[j]))
        for j in np.flatnonzero(is_wanted)
    ]


def _inputs(graph: Graph, columns: list[InputColumn], kind: Any) -> Cells:
    """Declare the inputs, and return the cells of every column of training."""
    places = [column.place for column in columns]
    texts = {column.place for column in columns if column.is_text}
    if not texts:
        X = graph.input("X", kind, ["rows", len(columns)])
        return Cells(table=X if kind is np.float64 else X.to(np.float64), places=places)
    found: dict[int, Tensor] = {}
    for column in columns:
        own = str if column.is_text else kind
        cell = graph.input(column.name, own, ["rows", 1])
        found[column.place] = cell.to(np.float64) if own is np.float32 else cell
    return Cells(columns=found, texts=texts)


def _require_given(limits: ValueLimits, columns: list[InputColumn]) -> None:
    """Refuse limits of columns that are not learned from, which the file is not given."""
    numbers = {column.place for column in columns if not column.is_text}
    pairs = zip(limits.names, limits.places.tolist(), strict=True)
    missing = [name for name, place in pairs if place not in numbers]
    if missing:
        raise InvalidInputError(
            f"Limits of columns that are not learned from cannot be exported to ONNX: "
            f"{', '.join(missing)}. Leave them out, or serve the model with ocfuse serve."
        )


def _broken(graph: Graph, limits: ValueLimits, cells: Cells) -> Tensor:
    """Return which rows (q,) break a limit."""
    values = cells.at(graph, limits.places.tolist())
    return ((values > limits.high) | (values < limits.low)).any().without_axis(1)


def _with_context(graph: Graph, scale: ContextScale, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows with their context as further columns, and where that is no number."""
    context = graph.input("context", np.float64, ["rows", len(scale.centre)])
    scaled = (context - scale.centre) * scale.factor
    return graph.concat([x, scaled], axis=1), (context.is_nan() | context.is_infinite()).any()


def _facts(detector: Any, inner: FusedDetector, columns: list[InputColumn]) -> dict[str, str]:
    """Return what the file says of itself."""
    has_text = any(column.is_text for column in columns)
    card = getattr(detector, "card_", {})
    known = {
        "version": __version__,
        "columns": [
            {"name": c.name, "kind": c.kind, "input": "text" if c.is_text else "number"}
            for c in columns
        ],
        "inputs": "one for each column" if has_text else "X",
        "threshold": float(inner.offset_),
        "false_alarm_rate": float(inner.false_alarm_rate),
        "rate_of_threshold": float(inner.threshold_rate_),
        "gaps": inner.encoder_.gaps,
        "limits": "" if inner.limits_ is None else str(inner.limits_),
        "members": list(inner.pool_.names_),
        "fusion": type(inner.fusion_).__name__,
        "rows_learned": len(inner.training_rows_),
        "sha256_of_training": card.get("sha256", ""),
    }
    return {
        f"ocfuse.{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in known.items()
    }
