"""Memory and time of learning from pictures, before anything is learned.

How long it takes to read and describe a picture depends on its size and on the network, so that
some pictures are read and described; all others are only counted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.memory import available_bytes
from ocfuse.vision.backbone import Backbone
from ocfuse.vision.defects import N_KINDS
from ocfuse.vision.extract import CHUNK, read_batches, working_memory
from ocfuse.vision.fit import DEFECTS_PER_KIND
from ocfuse.vision.frames import FrameSource

#: Seconds of learning per byte of features, folds included, by the default members: as measured on
#: 60 to 2,400 pictures of a belt at 128 pixels, one thread of AMD EPYC. Pictures with made-up
#: defects count as so many more.
LEARN_SECONDS, MADE_UP = 1.6e-7, 260
#: Pictures whose features a model keeps at most, and what is as large as those of so many.
KEPT, AROUND = 700, 300


@dataclass(frozen=True)
class PicturePlan:
    """What a fit to pictures will take.

    Seconds are those of one thread of this machine, as some of the pictures have just taken.

    Parameters
    ----------
    source : str
        What is learned from.
    n_pictures : int
        Pictures, or frames of runs.
    n_runs : int or None
        Runs; None for pictures that stand alone.
    fit_bytes, model_bytes : int
        Memory that `fit` needs at most beyond what the process has, and that the model keeps.
    fit_seconds : float
        Time of `fit`.
    score_seconds : float
        Time of a picture: to read, describe and score it.
    available_bytes : int or None
        Memory that this process can still have; None if the system does not tell.
    """

    source: str
    n_pictures: int
    n_runs: int | None
    fit_bytes: int
    model_bytes: int
    fit_seconds: float
    score_seconds: float
    available_bytes: int | None

    @property
    def is_possible(self) -> bool:
        """Whether there is memory enough, as far as that is known."""
        return self.available_bytes is None or self.fit_bytes <= self.available_bytes

    def __str__(self) -> str:
        what = f"{self.n_pictures:,} single pictures"
        if self.n_runs is not None:
            what = f"{self.n_pictures:,} frames of {self.n_runs:,} runs"
        free = self.available_bytes
        of = "" if free is None else f" of {free / 1e9:.1f} GB available"
        lines = [
            what,
            f"fit        {self.fit_seconds:.2g} s, {self.fit_bytes / 1e6:,.0f} MB of memory{of}",
            f"model      {self.model_bytes / 1e6:,.0f} MB",
            f"score      {1000 * self.score_seconds:.2g} ms per picture",
        ]
        if not self.is_possible:
            lines.append("impossible: learn from fewer pictures, or at a smaller size (--size)")
        return "\n".join(lines)


def plan_pictures(
    source: FrameSource, backbones: Mapping[str, Backbone], n_runs: int | None
) -> PicturePlan:
    """Return what a fit of the default members would take, without learning.

    Parameters
    ----------
    source : FrameSource
        Pictures, or frames of runs.
    backbones : dict of str to Backbone
        What describes them.
    n_runs : int or None
        Runs; None for pictures that stand alone.

    Returns
    -------
    PicturePlan
        Memory and time.
    """
    n = source.count()
    begin = time.process_time()
    some = list(islice(iter(source), CHUNK))
    if not some:
        raise InvalidInputError(f"No picture of {source} could be read.")
    (batch,) = read_batches(some, backbones)
    each = (time.process_time() - begin) / len(some)
    bytes_each = sum(f.halved().n_bytes for f in batch.features.values()) / len(some)
    n_made_up = N_KINDS * DEFECTS_PER_KIND
    learning = LEARN_SECONDS * bytes_each * (n + MADE_UP)
    return PicturePlan(
        source=str(source),
        n_pictures=n,
        n_runs=n_runs,
        fit_bytes=int(n * bytes_each + working_memory(bytes_each)),
        model_bytes=int((min(n, KEPT) + AROUND) * bytes_each),
        fit_seconds=(n + n_made_up) * each + learning,
        score_seconds=each,
        available_bytes=available_bytes(),
    )
