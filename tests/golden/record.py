"""What is recorded, where, and how exactly answers must agree with it.

On a machine that computes like the one that recorded them, answers agree bit for bit: the same
NumPy, SciPy and scikit-learn, the same BLAS for the same kind of processor, the same kernels.

Other machines round the last bits otherwise. There numbers agree to `Case.elsewhere`, relative to
the largest of their array: `TOLERANCE`, `SINGLE` if they are computed in single precision, and more
where a kernel of landmarks is nearly singular. Counts and flags agree; the words of an explanation,
which show rounded numbers, are not compared, and neither are fits that stop at a tolerance
(`Case.is_iterated`). Measured with OpenBLAS for three kinds of processors and with NumPy instead of
the kernels: 1e-11 after a fit (1.3e-5 by nearly singular kernels), 1e-15 of a loaded file, 3e-7 in
single precision; and 5e-3 where a fit stops at a tolerance, or another candidate.
"""

import gzip
import io
import json
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS is one of those that are named)
import threadpoolctl

import ocfuse

FOLDER = Path(__file__).parent
#: Answers after a fit, and beside model files those of the files.
ANSWERS, FILE_ANSWERS = FOLDER / "answers.json", "answers.json.gz"
TOLERANCE, SINGLE = 1e-9, 1e-5
#: Rounded numbers among words: a last bit may show.
WORDS = "explain words"
#: Lines of `show_versions` that say nothing of rounding.
UNRELATED = ("Python", "platform", "ocfuse")


def models_folder(number: int) -> Path:
    """Return the folder of the model files of a format."""
    return FOLDER / "models" / f"format-{number}"


@cache
def environment() -> dict[str, Any]:
    """Return what rounding depends on."""
    with redirect_stdout(io.StringIO()) as printed:
        ocfuse.show_versions()
    libraries = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    return {
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "versions": [
            " ".join(line.split())
            for line in printed.getvalue().splitlines()
            if not line.startswith(UNRELATED)
        ],
        "blas": sorted(f"{one['version']} {one['architecture']}" for one in libraries),
        "simd": np.show_config(mode="dicts")["SIMD Extensions"].get("found", []),
    }


def read_answers(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the environment and the answers of all cases that a file holds."""
    packed = path.suffix == ".gz"
    content = path.read_bytes()
    recorded = json.loads(gzip.decompress(content) if packed else content)
    return recorded["environment"], recorded["answers"]


def write_answers(path: Path, answers: dict[str, Any]) -> None:
    """Write answers, one to a line, so that a difference can be read."""
    cases = []
    for name, found in answers.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
        cases.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    text = '{"environment": %s,\n"answers": {\n%s\n}}\n'
    content = (text % (json.dumps(environment()), ",\n".join(cases))).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def model_path(folder: Path, name: str) -> Path:
    """Return where the model of a case is; files are packed, which makes a fifth of them."""
    return folder / f"{name.replace(',', '').replace(' ', '-')}.ocf.gz"


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack a model file for a while."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / path.stem
        target.write_bytes(gzip.decompress(path.read_bytes()))
        yield target


def differences(
    found: dict[str, Any], expected: dict[str, Any], tolerance: float = 0.0
) -> list[str]:
    """Return a line for each answer that is not as recorded; a tolerance of 0 is bit for bit."""
    names = [*expected, *(name for name in found if name not in expected)]
    compared = [name for name in names if tolerance == 0 or name != WORDS]
    return [
        f"{name}: {_difference(found.get(name), expected.get(name))}"
        for name in compared
        if not agrees(found.get(name), expected.get(name), tolerance)
    ]


def agrees(found: Any, expected: Any, tolerance: float) -> bool:
    """Return whether an answer is the recorded one, NaN being equal to NaN."""
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    return bool(np.allclose(one, other, tolerance, tolerance * scale, equal_nan=True))


def _difference(found: Any, expected: Any) -> str:
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape == other.shape and one.dtype.kind == other.dtype.kind == "f":
        return f"numbers differ by up to {np.nanmax(np.abs(one - other), initial=0.0):.3g}"
    return f"got {str(found)[:200]}, recorded is {str(expected)[:200]}"
