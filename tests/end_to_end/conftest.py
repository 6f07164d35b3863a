"""The installed command, and a model that it wrote."""

import pytest

from tests.cli.cases import plant, with_anomalies
from tests.end_to_end.installed import install


@pytest.fixture(scope="session")
def ocfuse(tmp_path_factory):
    """Return the command, installed from a wheel into a new environment."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def story(ocfuse, tmp_path_factory):
    """Return a folder with two tables and what `fit` made of the first: code, out, err."""
    folder = tmp_path_factory.mktemp("story")
    plant(300, seed=0).to_csv(folder / "normal.csv", index=False)
    with_anomalies().to_csv(folder / "new.csv", index=False)
    arguments = ("fit", "normal.csv", "-o", "model.ocf", "--members", "light", "--id", "part")
    return folder, ocfuse.run(*arguments, "--false-alarms", "0.01", cwd=folder)


@pytest.fixture
def model(story):
    """Return the model file that `fit` wrote."""
    return story[0] / "model.ocf"
