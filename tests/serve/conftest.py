"""Models of rows, of arrays and of runs, and services that know them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector
from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Limits, Settings
from ocfuse.streaming import StreamDetector, StreamTable


def sensors(name, seed, n=80):
    """Return a run of two sensors that go together."""
    flow, noise = np.random.default_rng(seed).normal(size=(2, n))
    return pd.DataFrame({"file": name, "flow": flow, "current": flow + noise / 5})


@pytest.fixture(scope="session")
def model_files(plant_folder, tmp_path_factory):
    """Return the files of three models by name: of rows, of an array, of runs."""
    folder = tmp_path_factory.mktemp("models")
    X = np.random.default_rng(0).normal(size=(120, 3))
    runs = pd.concat([sensors(f"run{i}", i) for i in range(8)], ignore_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FusedDetector("light", random_state=0).fit(X).save(folder / "array.ocf")
        light = FusedDetector("light", random_state=0, false_alarm_rate=0.12)
        StreamTable(StreamDetector(light, windows=(5,))).fit(runs).save(folder / "runs.ocf")
    return {
        "plant": plant_folder / "model.ocf",
        "array": folder / "array.ocf",
        "runs": folder / "runs.ocf",
    }


@pytest.fixture
def make_service(model_files):
    """Return what makes services, which are closed in the end."""
    made = []

    def make(limits=None, models=None, **more):
        settings = Settings(models or model_files, limits=Limits(**(limits or {})), **more)
        made.append(create_app(settings))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture(scope="session")
def service(model_files):
    """Return a service that no test changes."""
    service = create_app(Settings(model_files))
    yield service
    service.close()
