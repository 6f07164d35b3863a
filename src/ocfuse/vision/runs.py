"""Several recordings as one source."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision.frames import FrameSource, Undecoded
from ocfuse.vision.sources import open_frames


class Runs(FrameSource):
    """The frames of several runs, one run after another, each decoded once.

    It knows which frames belong together (`groups_`) and, if all its runs tell it, the
    progress of the task: `PictureDetector.fit` needs nothing else.

    Parameters
    ----------
    runs : sequence
        What `open_frames` takes, for each run.

    Attributes
    ----------
    counts_ : list of int
        Frames of each run, as the last iteration has met them.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.vision.runs import Runs
    >>> runs = Runs([np.zeros((2, 4, 4), dtype=np.uint8), np.zeros((3, 4, 4), dtype=np.uint8)])
    >>> len(list(runs)), runs.groups_
    (5, array([0, 0, 1, 1, 1]))
    """

    is_sequence = True

    def __init__(self, runs: Sequence[Any]) -> None:
        self.runs = [open_frames(run) for run in runs]
        self.counts_: list[int] = []
        self.progress = self._joined_progress()
        for run in self.runs:
            if run.is_live:
                raise InvalidInputError(f"{run} has no end. Expected recordings: record it first.")

    def __str__(self) -> str:
        return f"{len(self.runs)} runs" if len(self.runs) != 1 else str(self.runs[0])

    @property
    def groups_(self) -> Any:  # type: ignore[override]
        """Number of the run of every frame; None if there is one run only."""
        several = len(self.runs) > 1
        return np.repeat(np.arange(len(self.runs)), self.counts_) if several else None

    def _joined_progress(self) -> Any:
        told = [run.progress for run in self.runs if isinstance(run.progress, np.ndarray)]
        silent = [run for run in self.runs if not isinstance(run.progress, np.ndarray)]
        if told and silent:
            raise InvalidInputError(
                f"{silent[0]} tells no progress of the task, and others do. Expected it of every "
                "run, or of none."
            )
        return np.concatenate(told) if told else None

    def _undecoded(self) -> Iterator[Undecoded]:
        self.counts_ = [0] * len(self.runs)
        for i, run in enumerate(self.runs):
            for index, undecoded in enumerate(run._undecoded()):
                run._progress_at(index)  # refuses a frame for which none is told
                self.counts_[i] = index + 1
                yield undecoded
            run._require_told(self.counts_[i])
