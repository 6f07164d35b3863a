"""Processes that are there in no time: what they need is imported once."""

import pytest

from tests.faults.cases import FORKS, NEEDED


@pytest.fixture(scope="session", autouse=True)
def ready():
    FORKS.set_forkserver_preload(NEEDED)
