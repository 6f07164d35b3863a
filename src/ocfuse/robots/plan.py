"""Which runs a cell consists of."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from ocfuse.exceptions import InvalidInputError
from ocfuse.robots.kinds import KINDS, find_kinds

SPLITS = ("train", "validation", "test")
#: Frames of a run: fewer would miss what happens, more do not fit their names.
LEAST_FRAMES, MOST_FRAMES = 10, 2000


class PlannedRun(NamedTuple):
    """A run that shall be made.

    Attributes
    ----------
    trial : int
        Its number.
    split : str
        What it is for.
    kind : str
        What goes wrong; "" if nothing does.
    """

    trial: int
    split: str
    kind: str


@dataclass(frozen=True)
class Plan:
    """The runs of a cell.

    Parameters
    ----------
    train, validation, test : int
        Normal runs.
    anomalous : int, default=0
        Runs of each type of anomaly, all in test; the kinds of a type take turns.
    types : tuple of str, default=("1", "2", "3", "4")
        Types by number, or kinds by name.
    n_frames : int, default=100
        Frames of every run.
    seed : int, default=0
        Seed of everything.
    """

    train: int
    validation: int
    test: int
    anomalous: int = 0
    types: tuple[str, ...] = ("1", "2", "3", "4")
    n_frames: int = 100
    seed: int = 0

    def check(self) -> None:
        """Raise if it cannot be carried out."""
        find_kinds(self.types)
        for name in ("train", "validation", "test", "anomalous", "seed"):
            if getattr(self, name) < 0:
                raise InvalidInputError(f"{name} must be at least 0. Got {getattr(self, name)}.")
        if not LEAST_FRAMES <= self.n_frames <= MOST_FRAMES:
            raise InvalidInputError(
                f"A run must have {LEAST_FRAMES} to {MOST_FRAMES} frames. Got {self.n_frames}."
            )
        if not any(True for _ in self.runs()):
            raise InvalidInputError("There must be at least one run. Ask for more runs.")

    def runs(self) -> Iterator[PlannedRun]:
        """Yield the runs in the order of their numbers."""
        wanted = find_kinds(self.types)
        trial = 0
        for split in SPLITS:
            for _ in range(getattr(self, split)):
                yield PlannedRun(trial, split, "")
                trial += 1
        for kinds in KINDS.values():
            turns = [kind for kind in kinds if kind in wanted]
            for i in range(self.anomalous if turns else 0):
                yield PlannedRun(trial, "test", turns[i % len(turns)])
                trial += 1

    def facts(self) -> dict[str, Any]:
        """Return what JSON can hold of it."""
        return {**asdict(self), "types": list(self.types)}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> "Plan":
        """Return the plan that has these facts; other entries are passed over."""
        known = {field.name: facts[field.name] for field in fields(cls)}
        return cls(**{**known, "types": tuple(known["types"])})
