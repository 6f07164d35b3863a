"""One physics engine of its own for each run, so that runs know nothing of each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ocfuse.optional import needed

STEPS_PER_SECOND = 240


class World:
    """A pybullet server of its own; its functions are called as methods.

    Functions of pybullet are given the server they are for, constants are passed on.

    Attributes
    ----------
    data : Path
        Folder of the robots that come with pybullet.
    """

    def __init__(self) -> None:
        self._engine = engine()
        self._server = self._engine.connect(self._engine.DIRECT)
        self.data = Path(robot_needs("pybullet_data").getDataPath())
        self.setGravity(0, 0, -9.81)
        self.setPhysicsEngineParameter(
            fixedTimeStep=1 / STEPS_PER_SECOND,
            numSolverIterations=80,
            deterministicOverlappingPairs=1,
        )

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        return partial(value, physicsClientId=self._server) if callable(value) else value

    def close(self) -> None:
        """End the server."""
        self.disconnect()


def robot_needs(package: str) -> Any:
    """Return a package that the cell needs, or say which extra brings it."""
    return needed(package, "for the simulated robot cell", "robots")


def engine() -> Any:
    """Return pybullet, which greets on stderr when it is imported."""
    with _silenced():
        return robot_needs("pybullet")


@contextmanager
def open_world() -> Iterator[World]:
    """Give a world that is closed at the end."""
    world = World()
    try:
        yield world
    finally:
        world.close()


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what C code writes to stderr inside to nowhere."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
