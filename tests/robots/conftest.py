"""One small cell for all tests of this folder: it takes seconds to make."""

import pytest

from ocfuse.lab.robot_cell import simulate
from tests.robots.cases import PLAN


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a cell that one process made; nobody may change it."""
    folder = tmp_path_factory.mktemp("cell")
    simulate(folder, PLAN)
    return folder
