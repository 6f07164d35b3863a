"""Record what today's code answers: ``python -m tests.golden.write``.

Writes the answers of all cases after a fit, then the model files of the kept cases in the
format of today, and the answers of these files. Run it when scores change on purpose, and look
at the difference of the answers before it is committed.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ocfuse import load
from ocfuse.persistence import read_header, save
from tests.golden.cases import CASES, TRUSTED, asked, fitted
from tests.golden.record import (
    ANSWERS,
    FILE_ANSWERS,
    FOLDER,
    model_path,
    models_folder,
    write_answers,
    write_model,
)


def main() -> None:
    """Write everything, and say how much."""
    begin = time.process_time()
    answers, models = {}, {}
    for name, case in CASES.items():
        model, kinds = fitted(case)
        if case.is_kept:
            models[name] = saved(model)
        answers[name] = asked(case, model) | {"warnings": kinds}
    write_answers(ANSWERS, answers)
    write_models(models)
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.suffix in (".json", ".gz"))
    sys.stdout.write(
        f"{len(answers)} cases, {len(models)} model files, {size / 1e6:.2f} MB in all, "
        f"{time.process_time() - begin:.0f} s of a processor\n"
    )


def saved(model: Any) -> bytes:
    """Return the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder) / "model.ocf").read_bytes()


def write_models(models: dict[str, bytes]) -> None:
    """Write the model files of one format, and what they answer when they are loaded."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ocf"
        for name, content in models.items():
            path.write_bytes(content)
            answers[name] = asked(CASES[name], load(path, trusted=TRUSTED))
        target = models_folder(read_header(path).format)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, content in models.items():
        write_model(model_path(target, name), content)
    write_answers(target / FILE_ANSWERS, answers)


if __name__ == "__main__":
    main()
