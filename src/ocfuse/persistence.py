"""One file per model, which runs no code when it is loaded.

Layout: a line that names the format, a line of JSON (format number, versions,
length of what follows, SHA-256 of these and of what follows), then the object
as written by `skops`: an archive that is not compressed.
"""

import hashlib
import importlib
import inspect
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path, PureWindowsPath
from typing import Any

import skops.io
from sklearn.base import BaseEstimator

from ocfuse.exceptions import (
    InvalidTypeError,
    ModelFileError,
    ModelVersionWarning,
    UntrustedTypeError,
)
from ocfuse.files import write_atomically

MAGIC = b"ocfuse model\n"
FORMAT = 1
#: Longest header line that is read.
LONGEST_HEADER = 65_536
PACKAGE = "ocfuse"
#: Parts of module names that no model needs; importing such a module may do anything.
NEVER_IMPORTED = frozenset(
    {"tests", "conftest", "_testing", "externals", "datasets", "experimental"}
)
METRICS = (
    "BrayCurtis Canberra Chebyshev Dice Euclidean Hamming Haversine Jaccard Kulsinski Mahalanobis "
    "Manhattan Matching Minkowski RogersTanimoto RussellRao SEuclidean SokalMichener SokalSneath"
)
PARTS = {
    "_loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "_loss.loss": "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss "
    "HalfMultinomialLoss HalfPoissonLoss HalfSquaredError HuberLoss PinballLoss",
    "calibration": "_CalibratedClassifier _SigmoidCalibration",
    "ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "gaussian_process.kernels": "CompoundKernel ConstantKernel DotProduct ExpSineSquared "
    "Exponentiation Matern PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel",
    "metrics._dist_metrics": " ".join(f"{m}Distance32 {m}Distance64" for m in METRICS.split()),
    "neighbors._ball_tree": "BallTree",
    "neighbors._kd_tree": "KDTree",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "tree._tree": "Tree",
    "utils._bunch": "Bunch",
}
#: What fitted estimators of scikit-learn hold that is no estimator; not all is known to skops.
SKLEARN_PARTS = frozenset(
    f"sklearn.{module}.{name}" for module, names in PARTS.items() for name in names.split()
)


@dataclass(frozen=True)
class Header:
    """The second line of a model file.

    Parameters
    ----------
    format : int
        Number of the file format.
    ocfuse, sklearn : str
        Versions that wrote the file.
    size : int
        Bytes that follow the header.
    sha256 : str
        Checksum of the other fields and of these bytes.
    """

    format: int
    ocfuse: str
    sklearn: str
    size: int
    sha256: str

    def checksum(self, payload: bytes) -> str:
        """Return the SHA-256 of the other fields and of what follows the header."""
        others = {name: value for name, value in asdict(self).items() if name != "sha256"}
        return hashlib.sha256(json.dumps(others, sort_keys=True).encode() + payload).hexdigest()


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to one file, all or nothing.

    Parameters
    ----------
    model : object
        A fitted detector, or any other estimator of ours.
    path : str or path-like
        Where to write; an existing file is replaced only when the new one is
        complete. The usual ending is ``.ocf``.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    target = Path(path)
    _check_target(target)
    payload = _to_payload(model)
    unsealed = Header(
        format=FORMAT,
        ocfuse=version(PACKAGE),
        sklearn=version("scikit-learn"),
        size=len(payload),
        sha256="",
    )
    header = replace(unsealed, sha256=unsealed.checksum(payload))
    line = json.dumps(asdict(header)).encode() + b"\n"
    write_atomically(target, MAGIC + line + payload)
    return target


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] | None = ()) -> Any:
    """Read a model that `save` wrote; no code of the file is run.

    Only classes of ocfuse, estimators of scikit-learn with their parts, and types
    of NumPy and SciPy are built. A model with members of other types needs their
    names.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : iterable of str, default=()
        Full names of further types to build, such as ``"mypackage.MyDetector"``.
        Names that the file does not need are ignored.

    Returns
    -------
    object
        The model: it gives the same scores, to the last bit.

    Notes
    -----
    The checksum tells a damaged file, not a forged one. A forged file cannot run
    code of its own, but it can hold trees of scikit-learn (isolation forests,
    random forests, boosting, neighbour trees) with wrong node numbers. These are
    followed without a check, so that scoring crashes the interpreter or reads
    memory that is not the model's. Load files with such members only from a
    source that you trust.
    """
    source = Path(path)
    vouched_for = _to_names(trusted)
    header, payload = _split(source.read_bytes(), source)
    _check_payload(header, payload, source)
    _check_archive(payload, source)
    _warn_of_versions(header, source)
    allowed = _allowed_types(payload, vouched_for, source)
    try:
        return skops.io.loads(payload, trusted=allowed)
    except Exception as error:
        raise ModelFileError(
            f"{source.name} cannot be rebuilt by ocfuse {version(PACKAGE)} and scikit-learn "
            f"{version('scikit-learn')}; it was written by ocfuse {header.ocfuse} and scikit-learn "
            f"{header.sklearn}. Use those versions, or train again. ({error})"
        ) from error


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a model file says of itself, without loading it."""
    source = Path(path)
    with source.open("rb") as file:
        beginning = file.read(len(MAGIC) + LONGEST_HEADER + 1)
    return _split(beginning, source)[0]


def _check_target(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(
            f"{target} is a folder. Give the name of a file in it, such as {target / 'model.ocf'}."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}. Create it first.")


def _to_payload(model: Any) -> bytes:
    """Return the archive of a model, having seen that it can be rebuilt."""
    try:
        payload: bytes = skops.io.dumps(model)
        # skops writes a lambda or a local class by its name, without looking it up.
        skops.io.loads(payload, trusted=skops.io.get_untrusted_types(data=payload))
    except Exception as error:
        raise InvalidTypeError(
            f"{type(model).__name__} cannot be saved: {error}. Replace lambdas and local classes "
            "by functions and classes that a module defines, and leave out open files, locks "
            "and the like. Nothing was written."
        ) from error
    return payload


def _split(content: bytes, source: Path) -> tuple[Header, bytes]:
    """Return the header and what follows it."""
    if not content.startswith(MAGIC):
        raise ModelFileError(
            f"{source.name} is not an ocfuse model file{_looks_like(content)}. "
            "Expected a file that FusedDetector.save wrote."
        )
    line, newline, payload = content[len(MAGIC) :].partition(b"\n")
    if not newline or len(line) > LONGEST_HEADER:
        raise ModelFileError(f"{source.name} is cut off or damaged: its header is not complete.")
    return _parse_header(line, source), payload


def _parse_header(line: bytes, source: Path) -> Header:
    try:
        fields = json.loads(line)
        number = fields["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ModelFileError(f"{source.name} is damaged: its header cannot be read.") from None
    if type(number) is not int or number < 1:
        raise ModelFileError(f"{source.name} is damaged: its format is not a number from 1 on.")
    if number > FORMAT:
        raise ModelFileError(
            f"{source.name} has format {number}, written by ocfuse {fields.get('ocfuse', '?')}. "
            f"This is ocfuse {version(PACKAGE)}, which reads formats up to {FORMAT}. "
            "Upgrade ocfuse."
        )
    expected = Header.__annotations__
    if {name: type(value) for name, value in fields.items()} != expected:
        raise ModelFileError(f"{source.name} is damaged: its header is not complete.")
    return Header(**fields)


def _check_payload(header: Header, payload: bytes, source: Path) -> None:
    if len(payload) != header.size:
        raise ModelFileError(
            f"{source.name} is cut off or was added to: {len(payload)} bytes follow the header, "
            f"which promises {header.size}. Copy the file again."
        )
    if header.checksum(payload) != header.sha256:
        raise ModelFileError(
            f"{source.name} was altered: its checksum does not match. Copy the file again."
        )


def _check_archive(payload: bytes, source: Path) -> None:
    """Refuse an archive that `save` cannot have written, before any entry is read."""
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            entries = archive.infolist()
    except Exception as error:
        raise ModelFileError(f"{source.name} is damaged: it holds no archive. ({error})") from error
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or any(_leads_outside(name) for name in names):
        raise ModelFileError(f"{source.name} is damaged: names in its archive are not usable.")
    compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if compressed or sum(entry.file_size for entry in entries) > len(payload):
        raise ModelFileError(
            f"{source.name} is damaged: its archive would expand, ours are never compressed."
        )


def _leads_outside(name: str) -> bool:
    # The Windows flavour knows both kinds of slashes, and drives.
    path = PureWindowsPath(name)
    return bool(path.anchor) or ".." in path.parts


def _warn_of_versions(header: Header, source: Path) -> None:
    for package, written, running in (
        (PACKAGE, header.ocfuse, version(PACKAGE)),
        ("scikit-learn", header.sklearn, version("scikit-learn")),
    ):
        if _minor(written) != _minor(running):
            warnings.warn(
                f"{source.name} was written with {package} {written}; this is {running}. "
                f"What {package} computes may score differently.",
                ModelVersionWarning,
                stacklevel=3,
            )


def _minor(number: str) -> list[str]:
    return number.split(".")[:2]


def _looks_like(content: bytes) -> str:
    if not content:
        return ": it is empty"
    if content[:1] == b"\x80":
        return ": it looks like a pickle, which ocfuse never opens"
    if content[:2] == b"PK":
        return ": it looks like a zip archive"
    return ""


def _to_names(trusted: Iterable[str] | None) -> set[str]:
    names = () if trusted is None else trusted
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidTypeError(f"trusted must be a list of names. Got trusted={trusted!r}.")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise InvalidTypeError(f"trusted must be a list of names. Got trusted={listed!r}.")
    return set(listed)


def _allowed_types(payload: bytes, vouched_for: set[str], source: Path) -> list[str]:
    """Return the types to build beyond those that skops trusts; refuse strangers."""
    try:
        needed = skops.io.get_untrusted_types(data=payload)
    except Exception as error:
        raise ModelFileError(f"{source.name} is damaged: {error}") from error
    strangers = [name for name in needed if name not in vouched_for and not _is_known_class(name)]
    if strangers:
        raise UntrustedTypeError(
            f"{source.name} holds types that are neither ours nor known parts of scikit-learn's "
            f"estimators: {', '.join(strangers)}. Nothing was loaded. If you trust where the file "
            f"comes from, use load(path, trusted={strangers!r})."
        )
    return list(needed)


def _is_known_class(name: str) -> bool:
    """Tell whether a name is a class of ours, or an estimator of scikit-learn or its part."""
    if name in SKLEARN_PARTS:
        return True
    module_name, _, class_name = name.rpartition(".")
    if not _may_be_imported(module_name):
        return False
    try:
        module = importlib.import_module(module_name)
    except Exception:  # whatever a module does when it is imported, we do not know it
        return False
    found = vars(module).get(class_name)
    if not inspect.isclass(found) or found.__module__ != module_name:
        return False
    return module_name.split(".")[0] == PACKAGE or issubclass(found, BaseEstimator)


def _may_be_imported(module_name: str) -> bool:
    parts = module_name.split(".")
    return (
        parts[0] in (PACKAGE, "sklearn")
        and all(part.isidentifier() and not part.startswith("__") for part in parts)
        and NEVER_IMPORTED.isdisjoint(parts)
    )
