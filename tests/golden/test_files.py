"""Model files of every format load, and answer as they did when they were written."""

import pytest

from ocfuse import load
from ocfuse.exceptions import ModelVersionWarning
from ocfuse.persistence import read_header
from tests.golden.cases import CASES, TRUSTED, asked
from tests.golden.record import (
    FILE_ANSWERS,
    FOLDER,
    differences,
    environment,
    model_path,
    read_answers,
    unpacked,
)

FOLDERS = sorted((FOLDER / "models").iterdir())
RECORDED = {folder.name: read_answers(folder / FILE_ANSWERS) for folder in FOLDERS}
FILES = [(folder, name) for folder in FOLDERS for name in RECORDED[folder.name][1]]


@pytest.mark.parametrize(("folder", "name"), FILES, ids=lambda part: getattr(part, "name", part))
@pytest.mark.filterwarnings(f"ignore::{ModelVersionWarning.__module__}.ModelVersionWarning")
def test_model_files_answer_as_when_they_were_written(folder, name):
    machine, answers = RECORDED[folder.name]
    case = CASES[name]
    with unpacked(model_path(folder, name)) as path:
        assert f"format-{read_header(path).format}" == folder.name
        found = asked(case, load(path, trusted=TRUSTED))
    assert not differences(
        found, answers[name], 0.0 if environment() == machine else case.elsewhere
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_file_has_answers(folder):
    expected = {model_path(folder, name) for name in RECORDED[folder.name][1]}
    assert expected == set(folder.glob("*.ocf.gz"))
