"""Record what today's code answers: ``python -m tests.golden.write``.

Writes the answers of all cases after a fit, the model files of the kept cases in the format of
today, and the answers of these files. Run it when scores change on purpose, and look at the
difference of the answers before it is committed. A model file that exists is left as it is, with
its answers: it is what older code wrote, and must go on to answer so.

``--format-1`` writes the files of format 1 too, whose classes are named by their modules. That is
possible only as long as all classes are where format 1 knows them: afterwards these files are
what they are, and must load.
"""

import gzip
import json
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.hardening.parts import Parts
from ocfuse import load
from ocfuse.persistence import Header, save
from ocfuse.persistence.archive import with_schema
from ocfuse.persistence.header import FORMAT, MAGIC, running, split
from ocfuse.persistence.registry import CLASSES, PATHS_OF_FORMAT_1
from tests.golden.cases import CASES, TRUSTED, asked, fitted
from tests.golden.record import (
    ANSWERS,
    FILE_ANSWERS,
    FOLDER,
    model_path,
    models_folder,
    read_answers,
    write_answers,
)


def main(formats: tuple[int, ...]) -> None:
    """Write everything, and say how much."""
    begin = time.process_time()
    answers, models = {}, {}
    for name, case in CASES.items():
        model, kinds = fitted(case)
        if case.is_kept:
            models[name] = {number: saved(model, number) for number in formats}
        answers[name] = asked(case, model) | {"warnings": kinds}
    write_answers(ANSWERS, answers)
    n_new = sum(
        write_models(number, {name: contents[number] for name, contents in models.items()})
        for number in formats
    )
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.suffix in (".json", ".gz"))
    sys.stdout.write(
        f"{len(answers)} cases, {len(models)} model files of format {formats}, {n_new} of them "
        f"new, {size / 1e6:.2f} MB in all, {time.process_time() - begin:.0f} s of a processor\n"
    )


def saved(model: Any, number: int) -> bytes:
    """Return the file of a model in a format."""
    with tempfile.TemporaryDirectory() as folder:
        content = save(model, Path(folder) / "model.ocf").read_bytes()
    return content if number == FORMAT else as_format_1(content)


def as_format_1(content: bytes) -> bytes:
    """Return a file with the paths of modules instead of names."""
    paths = {name: path for path, name in PATHS_OF_FORMAT_1.items()}

    def change(schema: Any) -> None:
        for node in Parts({}, schema).nodes():
            if node["__module__"] == "ocfuse":
                path = f"ocfuse.{paths[node['__class__']]}"
                assert path == CLASSES[node["__class__"]], f"{path} has moved: format 1 is history"
                node["__module__"], _, node["__class__"] = path.rpartition(".")

    payload = with_schema(split(content, FOLDER)[1], change)
    header = Header(1, running("ocfuse"), running("scikit-learn"), len(payload), "")
    header = replace(header, sha256=header.checksum(payload))
    return MAGIC + json.dumps(asdict(header)).encode() + b"\n" + payload


def write_models(number: int, models: dict[str, bytes]) -> int:
    """Write the model files of one format, and what they answer; return how many are new."""
    folder = models_folder(number)
    folder.mkdir(parents=True, exist_ok=True)
    recorded = folder / FILE_ANSWERS
    answers = read_answers(recorded)[1] if recorded.exists() else {}
    n_new = 0
    for name, content in models.items():
        path, packed = model_path(folder, name), gzip.compress(content, mtime=0)
        if not path.exists():
            path.write_bytes(packed)
            answers[name] = answers_of(name, packed)
            n_new += 1
    for path in set(folder.glob("*.ocf.gz")) - {model_path(folder, name) for name in models}:
        path.unlink()
    kept = {name: answers[name] for name in models}
    if n_new or kept.keys() != answers.keys():  # else they stay those of another machine
        write_answers(recorded, kept)
    return n_new


def answers_of(name: str, packed: bytes) -> Any:
    """Return what a packed file answers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ocf"
        path.write_bytes(gzip.decompress(packed))
        return asked(CASES[name], load(path, trusted=TRUSTED))


if __name__ == "__main__":
    main((1, FORMAT) if "--format-1" in sys.argv[1:] else (FORMAT,))
