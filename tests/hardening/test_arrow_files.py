"""Feather and Parquet files that are forged: refused in words, and no process dies of them."""

import json
import re
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ocfuse.cli.runtime import ExitCode
from ocfuse.exceptions import TableError
from ocfuse.tables import open_source
from tests.cli.cases import plant

N = 300
#: Files of which some bytes are changed, and how often.
MUTATED, N_MUTANTS = ("t.feather", "z.feather", "t.parquet"), 60
#: Reads each file that is named on its standard input; says how that ended, line by line.
READER = """
import json, sys
from ocfuse.exceptions import OcfuseError
from ocfuse.tables import open_source
for line in sys.stdin:
    try:
        end = len(open_source(line.strip()).read())
    except OcfuseError as error:
        end = "refused"
    except MemoryError:
        end = "memory"
    print(json.dumps(end), flush=True)
"""


def write_feather(table, path, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table)


def forged(content, found, place, value):
    """Return a file with another number where some numbers stand."""
    at = content.index(struct.pack(f"<{len(found)}i", *found))
    changed = bytearray(content)
    struct.pack_into("<i", changed, at + 4 * place, value)
    return bytes(changed)


@pytest.fixture(scope="module")
def forgeries(tmp_path_factory):
    """Return Feather files whose offsets, indices or texts are none."""
    folder = tmp_path_factory.mktemp("forged")
    frame = plant(N, 0)
    table = pa.table({name: frame[name].tolist() for name in ("part", "pressure", "temperature")})
    write_feather(table, folder / "good.feather")
    good = (folder / "good.feather").read_bytes()
    offsets = [6 * i for i in range(8)]
    assert len(frame["part"][0]) == 6
    coded = pa.table({"part": pa.array(["a", "b"] * (N // 2)).dictionary_encode()})
    coded = coded.append_column("pressure", table["pressure"])
    write_feather(coded, folder / "coded.feather")
    indices = (folder / "coded.feather").read_bytes()
    made = {
        "far": forged(good, offsets, 5, 2**30),
        "last": forged(good, offsets, N, 2**31 - 1),
        "negative": forged(good, offsets, 5, -(2**30)),
        "falling": forged(good, offsets, 5, 1),
        "text": good.replace(b"P00003", b"\xff\xfe\xfd\xfc\xfb\xfa"),
        "index": forged(indices, [0, 1] * 4, 3, 2**30),
        "index below": forged(indices, [0, 1] * 4, 3, -7),
    }
    paths = {}
    for name, content in made.items():
        paths[name] = folder / f"{name}.feather"
        paths[name].write_bytes(content)
    return paths


def read_elsewhere(paths):
    """Return how reading each file ended, in a process of its own, which must outlive them all."""
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=False,
    )
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(ends)) == (0, len(paths)), (done.stderr, paths[len(ends)])
    return ends


def test_fit_and_score_refuse_a_forged_file(forgeries, plant_folder, tmp_path, run_command):
    for words in (
        ["fit", forgeries["far"], "-o", tmp_path / "m.ocf"],
        ["score", plant_folder / "model.ocf", forgeries["last"], "-o", tmp_path / "scores.csv"],
    ):
        code, _, err = run_command(*words)
        assert code == ExitCode.BAD_DATA, err
        assert "cannot be read; it may be cut off or damaged" in err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_cut_while_it_is_read(tmp_path):
    """It is read, not mapped: what is missing is an error and no signal."""
    path = tmp_path / "long.feather"
    table = pa.table({"x": np.arange(200_000.0)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=50_000)
    frames = open_source(path, chunk_rows=50_000).frames()
    assert len(next(frames)) == 50_000
    with path.open("r+b") as file:
        file.truncate(500_000)
    with pytest.raises(TableError, match="cut off or damaged"):
        list(frames)


def mutants(path, n, seed):
    """Yield copies of a file with a few bytes or numbers changed."""
    content, rng = path.read_bytes(), np.random.default_rng(seed)
    numbers = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**33, 2**40, 2**63 - 1, 2**64 - 1]
    for i in range(n):
        changed = bytearray(content)
        for at in rng.integers(len(content) - 8, size=rng.integers(1, 4)):
            if rng.random() < 0.5:
                changed[at] ^= 1 << int(rng.integers(8))
            else:
                changed[at : at + 8] = numbers[rng.integers(len(numbers))].to_bytes(8, "little")
        found = path.with_stem(f"mutant{i}")
        found.write_bytes(changed)
        yield found


@pytest.fixture(scope="module")
def ends(forgeries, tmp_path_factory):
    """Return how reading the forgeries ended, and the mutants of each file: in one process."""
    table = pa.table(
        {
            "number": np.arange(60.0),
            "word": [f"word {i}" for i in range(60)],
            "code": pa.array(["a", "b", "c"] * 20).dictionary_encode(),
            "list": [[i, i] for i in range(60)],
        }
    )
    paths = {"forged": list(forgeries.values())}
    for name in MUTATED:
        path = tmp_path_factory.mktemp("mutants") / name
        if name.endswith("parquet"):
            pq.write_table(table, path, row_group_size=25)
        else:
            write_feather(table, path, "lz4" if name.startswith("z") else None)
        paths[name] = list(mutants(path, N_MUTANTS, seed=0))
    found = iter(read_elsewhere([path for some in paths.values() for path in some]))
    return {name: [next(found) for _ in some] for name, some in paths.items()}


def test_a_forged_feather_file_is_refused(ends):
    assert set(ends["forged"]) == {"refused"}


@pytest.mark.parametrize("name", MUTATED)
def test_no_mutant_ends_the_process(ends, name):
    assert set(ends[name]) <= {"refused", "memory", 60}
    assert ends[name].count("refused") > 5


def test_a_small_parquet_file_cannot_claim_a_large_page(tmp_path):
    """A page of a few bytes that says it has 2 GiB took them, and seconds."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"w": [f"word{i:03d}" for i in range(40)]}), path, compression="none")
    content = path.read_bytes()
    # header of a page of a dictionary: its kind, its bytes twice, then what it holds
    at = re.search(rb"\x15\x04\x15(..)\x15\1\x4c", content, re.DOTALL).end() - 3
    path.write_bytes(content[: at + 1] + b"\xff" * 7 + b"\x7f\x00" + content[at + 10 :])
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(TableError, match="cut off or damaged"):
            open_source(path).read()
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < 1_000_000
