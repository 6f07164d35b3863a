"""Models in MLflow: save, log, register and load detectors.

The model file of `ocfuse.persistence` is stored as an MLflow model of the flavour
``python_function``, with this module as its loader. `load_model` of this module reads only that
file and runs no code of it; `mlflow.pyfunc.load_model` imports what the file ``MLmodel`` names.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ocfuse import __version__
from ocfuse.ensemble import FusedDetector
from ocfuse.exceptions import InvalidTypeError, ModelFileError
from ocfuse.persistence import load, save
from ocfuse.system.packages import needed
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import RUNS, results_of
from ocfuse.validation import require_fitted

__all__ = ["load_model", "log_model", "save_model"]

#: Name of the model file, and where MLflow keeps it in a model.
FILE, FOLDER = "model.ocf", "data"
PURPOSE = "to keep models in MLflow"


def save_model(
    detector: Any,
    path: str | os.PathLike[str],
    *,
    signature: Any = None,
    input_example: Any = None,
    metadata: dict[str, Any] | None = None,
    pip_requirements: Sequence[str] | None = None,
) -> Path:
    """Write a detector as an MLflow model, which is a folder.

    Parameters
    ----------
    detector : FusedDetector or TableDetector
        A fitted detector of rows, or a `StreamTable`.
    path : str or path-like
        The folder. It must not exist, or be empty.
    signature : mlflow.models.ModelSignature, default=None
        Columns and their types. None takes those of the detector, if its columns have names.
    input_example : data frame or array, default=None
        Example rows, stored with the model.
    metadata : dict, default=None
        Further entries of the file ``MLmodel``.
    pip_requirements : sequence of str, default=None
        Packages that scoring needs. None is this version of ocfuse.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    pyfunc, settings = _prepared(detector, signature, metadata, pip_requirements)
    with tempfile.TemporaryDirectory() as folder:
        file = save(detector, Path(folder, FILE))
        pyfunc.save_model(str(path), data_path=str(file), input_example=input_example, **settings)
    return Path(path)


def log_model(
    detector: Any,
    name: str = "model",
    *,
    registered_model_name: str | None = None,
    signature: Any = None,
    input_example: Any = None,
    metadata: dict[str, Any] | None = None,
    pip_requirements: Sequence[str] | None = None,
) -> Any:
    """Log a detector to the active run of MLflow.

    Parameters
    ----------
    detector : FusedDetector or TableDetector
        A fitted detector of rows, or a `StreamTable`.
    name : str, default="model"
        Name of the model in the run.
    registered_model_name : str, default=None
        Name under which the model is registered, as its next version. None does not register it.
    signature, input_example, metadata, pip_requirements : object, default=None
        As in `save_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        MLflow's description of the model; pass its `model_uri` to `load_model`.
    """
    pyfunc, settings = _prepared(detector, signature, metadata, pip_requirements)
    with tempfile.TemporaryDirectory() as folder:
        file = save(detector, Path(folder, FILE))
        return pyfunc.log_model(
            name=name,
            data_path=str(file),
            registered_model_name=registered_model_name,
            input_example=input_example,
            **settings,
        )


def load_model(model_uri: str, *, dst_path: str | os.PathLike[str] | None = None) -> Any:
    """Load a detector; nothing that the model names is imported or run.

    Parameters
    ----------
    model_uri : str
        Address such as ``models:/pump/3`` or ``runs:/.../model``, or the folder of `save_model`.
    dst_path : str or path-like, default=None
        Folder to which a remote model is downloaded; None is a temporary folder.

    Returns
    -------
    FusedDetector or TableDetector
        The detector, with the same scores to the last bit.
    """
    artifacts = needed("mlflow.artifacts", PURPOSE, "mlflow")
    where = None if dst_path is None else str(dst_path)
    folder = Path(artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=where))
    file = folder / FOLDER / FILE
    if not file.is_file():
        raise ModelFileError(
            f"{model_uri} holds no model of ocfuse: there is no {FOLDER}/{FILE}. Models of other "
            "flavours are loaded by MLflow itself."
        )
    return load(file)


def _prepared(
    detector: Any,
    signature: Any,
    metadata: dict[str, Any] | None,
    pip_requirements: Sequence[str] | None,
) -> tuple[Any, dict[str, Any]]:
    """Return what writes models, and what it is told."""
    if not isinstance(detector, FusedDetector | TableDetector):
        raise InvalidTypeError(
            "detector must be a fitted FusedDetector or TableDetector. Got "
            f"{type(detector).__name__}."
        )
    require_fitted(detector, "pool_" if isinstance(detector, FusedDetector) else "detector_")
    pyfunc = needed("mlflow.pyfunc", PURPOSE, "mlflow")
    return pyfunc, {
        "loader_module": "ocfuse.mlflow",
        "signature": _signature(detector) if signature is None else signature,
        "metadata": {"ocfuse": __version__} | (metadata or {}),
        "pip_requirements": list(pip_requirements or [f"ocfuse[mlflow,tool]=={__version__}"]),
    }


def _signature(detector: Any) -> Any:
    """Return the names of the columns that a detector reads; None without names.

    Each is optional and of any type, as the detector itself checks what it is given: MLflow would
    refuse whole numbers in a column of decimals.
    """
    if isinstance(detector, TableDetector):
        if detector.kind == RUNS:
            return None
        columns = detector.schema_.columns
        names = [c.name for c in columns if c.is_feature or c.kind in ("id", "time")]
    else:
        names = list(getattr(detector, "feature_names_in_", ()))
        if not names or not all(isinstance(name, str) for name in names):
            return None
    types = needed("mlflow.types", PURPOSE, "mlflow")
    models = needed("mlflow.models", PURPOSE, "mlflow")
    anything = types.schema.AnyType()
    given = [types.ColSpec(anything, name, required=False) for name in names]
    told = [("double", "score"), ("double", "p_value"), ("boolean", "is_anomaly")]
    outputs = types.Schema([types.ColSpec(kind, name) for kind, name in told])
    return models.ModelSignature(types.Schema(given), outputs)


class _Scorer:
    """What MLflow asks for predictions."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return score, p-value and whether it is an anomaly, for every row."""
        detector = self.detector
        if isinstance(detector, TableDetector):
            return detector.score(model_input)
        frame = needed("pandas", PURPOSE).DataFrame
        index = getattr(model_input, "index", None)
        return frame(results_of(detector, detector.score_samples(model_input)), index=index)


def _load_pyfunc(path: str) -> _Scorer:
    """Return what MLflow scores with; `path` is that of the model file, or of its folder."""
    file = Path(path)
    return _Scorer(load(file / FILE if file.is_dir() else file))
