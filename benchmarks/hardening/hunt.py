"""Load mutants in this process, and tell of each what became of it.

Started by `model_files` as ``python -m benchmarks.hardening.hunt FOLDER FIRST END``. One line
of JSON per mutant; the seed is told before, so that a crash names it.
"""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hardening.guard import Guard, Overtime, begin_peak, limit, peak
from benchmarks.hardening.models import WEIGHTS, ask
from benchmarks.hardening.mutations import KINDS, mutant
from benchmarks.hardening.parts import Parts
from benchmarks.hardening.words import KNOWN
from ocfuse import load
from ocfuse.exceptions import ModelFileError, OcfuseError
from ocfuse.persistence.build import is_known_class
from ocfuse.persistence.registry import CLASSES, class_of

#: Errors of the interpreter's own, which no input may cause.
NEVER = (SystemError, MemoryError, RecursionError, PermissionError)


def chosen(seed: int) -> tuple[str, str]:
    """Return the model and the kind of mutation of a seed."""
    rng = np.random.default_rng([seed, 1])
    return _drawn(rng, WEIGHTS), _drawn(rng, KINDS)


def _drawn(rng: np.random.Generator, weights: dict[str, int]) -> str:
    shares = np.array(list(weights.values())) / sum(weights.values())
    return str(rng.choice(list(weights), p=shares))


class Hunt:
    """The models in a folder, taken apart once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"mutant-{time.time_ns()}.ocf"
        self.content = {name: (folder / f"{name}.ocf").read_bytes() for name in WEIGHTS}
        self.parts = {name: Parts.of(self.content[name], folder) for name in WEIGHTS}
        # Asked now, so that nothing is imported for the first time under guard.
        self.answers = {name: ask(name)(load(folder / f"{name}.ocf")) for name in WEIGHTS}
        for name in KNOWN:
            is_known_class(name)
        for key in CLASSES:
            class_of(key)
        self.guard = Guard()

    def outcome(self, seed: int) -> dict[str, Any]:
        """Return what became of the mutant of a seed."""
        name, kind = chosen(seed)
        self.path.write_bytes(mutant(seed, kind, self.content[name], self.parts[name]))
        before, begin = begin_peak(), time.process_time()
        with self.guard.watching() as acts:
            try:
                ended, message = self._tried(name)
            except Overtime:
                ended, message = "overtime", ""
        seconds = round(time.process_time() - begin, 3)
        mebibytes = round((peak() - before) / 2**20, 1)
        if acts:
            ended, message = "act", acts[0]
        return {"seed": seed, "model": name, "kind": kind, "ended": ended, "message": message[:300],
                "seconds": seconds, "mebibytes": mebibytes}  # fmt: skip

    def _tried(self, name: str) -> tuple[str, str]:
        try:
            model = load(self.path)
        except ModelFileError as error:
            clear = str(error).startswith(self.path.name)
            return "refused" if clear else "unclear", str(error)
        except Exception as error:
            return "wrong error", f"{type(error).__name__}: {error}"
        try:
            same = _same(ask(name)(model), self.answers[name])
        except OcfuseError as error:
            return "loaded, refuses to score", str(error)
        except NEVER as error:
            return "wrong error", f"scoring: {type(error).__name__}: {error}"
        except Exception as error:
            return "loaded, cannot score", f"{type(error).__name__}: {error}"
        return "loaded, scores as before" if same else "loaded, scores otherwise", ""


def _same(answer: Any, expected: Any) -> bool:
    try:
        np.testing.assert_array_equal(np.asarray(answer, float), np.asarray(expected, float))
    except Exception:  # of another shape or type, as much as of other numbers
        return False
    return True


def run(folder: Path, first: int, end: int) -> None:
    """Tell what becomes of the mutants of some seeds."""
    warnings.simplefilter("ignore")
    hunt = Hunt(folder)
    limit()
    for seed in range(first, end):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        sys.stdout.write(json.dumps(hunt.outcome(seed)) + "\n")
    hunt.path.unlink(missing_ok=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
