"""Load forged states and have each score, in processes that may die of it.

Started by `states` as ``python -m benchmarks.hardening.trials FOLDER SEED N``. One line of
JSON per forgery. A process that ends by a signal, takes too long or answers one question in
two ways is what must not be.
"""

import ctypes
import gc
import hashlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hardening.estimators import QUERY, fitted
from benchmarks.hardening.forgeries import Forger, Place
from benchmarks.hardening.guard import limit_memory
from benchmarks.hardening.parts import Parts, seal
from ocfuse import load
from ocfuse.exceptions import OcfuseError
from ocfuse.persistence import save

#: Seconds and bytes of one forgery.
SECONDS, BYTES = 10, 2**30
#: Trials of one process, unless it dies before.
AT_ONCE = 50
QUESTIONS = (
    "score_samples", "decision_function", "predict", "predict_proba", "transform", "kneighbors",
    "mahalanobis", "apply", "inverse_transform",
)  # fmt: skip
Forgery = list[tuple[Place, str]]


class Trials:
    """The models in a folder, taken apart once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"forged-{os.getpid()}.ocf"
        self.forgers: dict[str, Forger] = {}
        self._widths: dict[str, int] = {}
        for name, model in fitted().items():
            save(model, self.path)
            self._widths[name] = getattr(model, "n_features_in_", QUERY.shape[1])
            answers(model, self._widths[name])  # now, so that no process imports anything again
            self.forgers[name] = Forger(Parts.of(self.path.read_bytes(), folder))

    def all(self) -> list[tuple[str, Forgery]]:
        """Return every model with every forgery of one place.

        What has nothing to do with the other attributes is tried in the first model alone
        that has the place.
        """
        chosen: dict[Any, tuple[str, Forgery]] = {}
        for name, forger in self.forgers.items():
            for place, how in forger.all():
                alike = how.startswith(("array", "option")) or "metric" in place.name
                key = (place.owner, place.name, how, name if alike else "")
                chosen.setdefault(key, (name, [(place, how)]))
        return list(chosen.values())

    def drawn(self, seed: int, n: int) -> list[tuple[str, Forgery]]:
        """Return n forgeries, every fourth of two places; or all, of one place, if n is zero."""
        rng = np.random.default_rng(seed)
        singles = self.all()
        by_model: dict[str, Forgery] = {}
        for name, forgery in singles:
            by_model.setdefault(name, []).extend(forgery)
        chosen = rng.permutation(len(singles))[: n or None]
        return [
            (name, [*forgery, by_model[name][int(rng.integers(len(by_model[name])))]])
            if i % 4 == 3 and n
            else (name, forgery)
            for i, (name, forgery) in enumerate(singles[at] for at in chosen)
        ]

    def outcomes(self, forgeries: Iterable[tuple[str, Forgery]]) -> Iterator[dict[str, Any]]:
        """Give what became of forgeries, in order."""
        drawn = list(forgeries)
        ends = tried_apart([partial(self._tried, *one) for one in drawn])
        for (name, forgery), (ended, message) in zip(drawn, ends, strict=True):
            what = "; ".join(f"{place.owner}{place.name}: {how}" for place, how in forgery)
            yield {"model": name, "what": what, "ended": ended, "message": message[:300]}

    def _tried(self, name: str, forgery: Forgery) -> tuple[str, str]:
        self.path.write_bytes(seal(self.forgers[name].forged(forgery).archive()))
        return tried(self.path, self._widths[name])


def tried_apart(trials: Sequence[Callable[[], tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    """Give what trials return, each made in a copy of this process, which may die of one."""
    first = 0
    while first < len(trials):
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about threads, which the copy does not need
            child = os.fork()
        if child == 0:
            os.close(reading)
            _tell(trials[first : first + AT_ONCE], writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = [json.loads(line) for line in pipe]
        yield from ((ended, message) for ended, message in told)
        first += len(told)
        if status := os.waitpid(child, 0)[1]:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            yield "overtime" if number == signal.SIGALRM else "crash", f"by signal {number}"
            first += 1


def _tell(trials: Sequence[Callable[[], tuple[str, str]]], writing: int) -> None:
    """Write what trials return; this process ends here."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    for trial in trials:
        signal.alarm(SECONDS)
        try:
            told = trial()
        except BaseException as error:
            told = ("wrong error", f"{type(error).__name__}: {error}")
        os.write(writing, f"{json.dumps(told)}\n".encode())
    os._exit(0)


def tried(path: Path, width: int) -> tuple[str, str]:
    """Load a file twice, have it score rows of some width, and return what became of it."""
    found = []
    for fill in (0x11, 0x7F):
        # M_PERTURB of glibc: malloc fills what it gives, so that memory of others looks otherwise
        ctypes.CDLL(None).mallopt(-6, fill)
        # Memory that NumPy will use again, or that lies beside what it uses.
        filled = np.full(255, float(fill))
        _ = [filled[:n].copy() for n in range(1, 256) for _ in range(8)]
        try:
            model = load(path)
        except OcfuseError as error:
            return "refused", str(error)
        found.append(answers(model, width))
    if found[0] != found[1]:
        changing = [name for name in found[0] if found[0][name] != found[1].get(name)]
        return "answers in several ways", " ".join(changing)
    good = sorted({one.partition(":")[0] for one in found[0].values()})
    return f"loaded, {'scores' if 'scores' in good else 'cannot score'}", " ".join(good)


def answers(model: Any, width: int) -> dict[str, str]:
    """Return a digest of every answer of a model, or the error in its place."""
    given = {}
    of_no_columns = ("IsotonicRegression", "LabelBinarizer", "LabelEncoder")
    rows = QUERY[:, 0] if type(model).__name__ in of_no_columns else QUERY[:, :width]
    for name in QUESTIONS:
        # Trees that are asked without their estimator take rows of this type only.
        for kind in ("f8", "f4") if name in ("predict", "apply") else ("f8",):
            try:
                answer = getattr(model, name)(rows.astype(kind))
                given[f"{name} {kind}"] = f"scores: {_digest(answer)}"
            except Exception as error:
                given[f"{name} {kind}"] = type(error).__name__
    return given


def _digest(answer: Any) -> str:
    if isinstance(answer, tuple):
        return " ".join(map(_digest, answer))
    dense = answer.toarray() if hasattr(answer, "toarray") else np.asarray(answer)
    if dense.dtype == object:
        return repr(dense.tolist())
    return f"{dense.dtype}{dense.shape}{hashlib.sha256(dense.tobytes()).hexdigest()}"


def run(folder: Path, seed: int, n: int) -> None:
    """Tell what becomes of n forgeries, or of all if n is zero."""
    warnings.simplefilter("ignore")
    trials = Trials(folder)
    limit_memory(BYTES)
    gc.freeze()
    for one in trials.outcomes(trials.drawn(seed, n)):
        sys.stdout.write(json.dumps(one) + "\n")
        sys.stdout.flush()
    trials.path.unlink(missing_ok=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
