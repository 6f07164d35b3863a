"""The members and the fusions of the paper, pure and not, on a table of frames."""

from collections.abc import Iterator

import numpy as np

from benchmarks.robots.recordings import FloatArray, IntArray, Recordings, Runs
from benchmarks.robots.views import View, make_view
from ocfuse.detectors.pool import Pool
from ocfuse.lab.paper.systems import SYSTEMS
from ocfuse.paper import Candidates, KnownRows, candidates

#: Training frames that are learned from, evenly spaced: neighbours in time are nearly
#: equal, and the kernel members of this table cost the cube of their number.
MOST_FRAMES = 850
PURE = tuple(
    f"{name} {words}"
    for words in ("RPAU", "pseudo-negative")
    for name in ("KPCA", "SVDD", "GP", "GMM", "Sum rule", "Pure1", "Pure2")
)
NON_PURE = ("Non-pure1", "Non-pure2")


class RunCandidates(Candidates):
    """Candidates whose held-out scores are by members that know no frame of the run.

    Parameters
    ----------
    known : Known
        What may be learned from.
    run : ndarray of shape (n,)
        Run of each training row.
    """

    def __init__(self, known: KnownRows, run: IntArray) -> None:
        super().__init__(known)
        self.run = run

    @property
    def pool(self) -> Pool:  # type: ignore[override]
        """The fitted candidates."""
        if not hasattr(self, "_pool"):
            train = self.known.train
            pool = Pool(candidates(len(train)))
            self._pool = pool.fit(train, self.run, random_state=self.known.seed)
        return self._pool

    def with_labels(self, known: KnownRows) -> "RunCandidates":
        """Return the same members beside known anomalies."""
        other = RunCandidates(known, self.run)
        other._pool = self.pool
        return other


def paper_scores(
    data: Recordings, view_name: str, seed: int = 0
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield names of systems with their scores of the validation and of the test frames."""
    view = make_view(data, view_name)
    tables = view(data.validation), view(data.test)
    step = step_of(data)
    train, validation = view(data.train)[::step], tables[0][::step]
    none = np.empty((0, train.shape[1]))
    pure = RunCandidates(KnownRows(train, validation, none, none, seed), data.train.run[::step])
    found = {"pure": pure}
    if data.known is not None:
        learned, judged = (anomalies(data.known, view, turn, step) for turn in (0, 1))
        found["non-pure"] = pure.with_labels(KnownRows(train, validation, learned, judged, seed))
    for protocol, names in (("pure", PURE), ("non-pure", NON_PURE)):
        for name in names if protocol in found else ():
            model = SYSTEMS[protocol][name].recipe.learn(found[protocol])
            yield name, model.score(tables[0]), model.score(tables[1])


def step_of(data: Recordings) -> int:
    """Return the number of frames of which one is learned from."""
    return -(-len(data.train) // MOST_FRAMES)


def anomalies(known: Runs, view: View, turn: int, step: int) -> FloatArray:
    """Return every so many of the anomalous frames of half of the known runs."""
    half = known.take([i for i in range(len(known.trials)) if i // 2 % 2 == turn])
    return view(half)[half.y < 0][::step]
