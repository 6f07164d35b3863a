"""`ocfuse inspect`: the card of a model, also of another version."""

import json
from dataclasses import asdict, replace

import pytest

from ocfuse import load
from ocfuse.cli.runtime import ExitCode
from ocfuse.persistence import read_header
from ocfuse.persistence.header import MAGIC
from tests.cli.cases import process


def written_by(path, target, **fields):
    """Copy a model file as if other versions had written it."""
    content = path.read_bytes()[len(MAGIC) :]
    payload = content.partition(b"\n")[2]
    header = replace(read_header(path), **fields)
    sealed = replace(header, sha256=header.checksum(payload))
    target.write_bytes(MAGIC + json.dumps(asdict(sealed)).encode() + b"\n" + payload)
    return target


def test_card(plant_folder, run_command):
    model = plant_folder / "model.ocf"
    code, text, err = run_command("inspect", model)
    assert (code, err) == (0, "")
    header = read_header(model)
    for words in (header.sha256, f"{header.size:,} bytes", "300", "gmm-3", "pressure", "1.00%"):
        assert words in text
    assert "how sure      of normal rows: 1 % on average" in text


def test_json(plant_folder, run_command):
    code, text, _ = run_command("inspect", plant_folder / "model.ocf", "--json")
    told = json.loads(text)
    assert code == 0
    assert told["file"]["sha256"] == read_header(plant_folder / "model.ocf").sha256
    assert told["rows"] == 300
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds == {
        **{"part": "id", "when": "time", "mode": "category"},
        **{"pressure": "number", "temperature": "number"},
    }


def test_other_version_is_told(plant_folder, tmp_path, run_command):
    old = written_by(plant_folder / "model.ocf", tmp_path / "old.ocf", sklearn="1.2.0")
    code, text, err = run_command("inspect", old)
    assert code == 0
    assert "1.2.0" in text
    assert err.startswith("Warning: old.ocf was written with scikit-learn 1.2.0")
    assert run_command("inspect", old, "--quiet")[2] == ""


def test_future_format_is_refused(plant_folder, tmp_path, run_command):
    new = written_by(plant_folder / "model.ocf", tmp_path / "new.ocf", format=99)
    code, text, err = run_command("inspect", new)
    assert (code, text) == (3, "")
    assert "format 99" in err


def test_damaged_file_is_refused(plant_folder, tmp_path, run_command):
    path = tmp_path / "cut.ocf"
    path.write_bytes((plant_folder / "model.ocf").read_bytes()[:-100])
    code, _, err = run_command("inspect", path)
    assert code == 3
    assert "cut off" in err


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(plant_folder):
    done = process("inspect", plant_folder / "model.ocf", bufsize=0)
    done.stdout.close()
    done.stdout = None
    _, err = done.communicate()
    assert (done.returncode, err) == (ExitCode.BROKEN_PIPE, "")


def test_each_checksum_says_what_it_is_of(plant_folder, run_command):
    text = run_command("inspect", plant_folder / "model.ocf")[1]
    model = load(plant_folder / "model.ocf")
    assert f"checksum of the data   {model.card_['sha256']} (SHA-256 of the columns" in text
    assert "checksum of the model" in text
