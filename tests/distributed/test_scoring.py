"""Scoring on a cluster: complete and equal, or named and not there."""

import multiprocessing
import resource
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ocfuse import load
from ocfuse.detectors.pool import make_pool
from ocfuse.distributed import connected, sample, score, score_frame, scoring
from ocfuse.exceptions import (
    ClusterError,
    FolderInUseError,
    InvalidInputError,
    InvalidTypeError,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.system.files import LOCK
from ocfuse.tables import open_source
from tests.cli.cases import plant
from tests.distributed.cases import (
    Allergic,
    Mortal,
    Waiting,
    make_model,
    names,
    read,
    run_command_line,
    serve_cluster,
    write,
)
from tests.forks import process

FILES = [f"part.{i}.parquet" for i in range(6)]


def expected(model, folder, **options):
    """Return the scores of one machine, as `ocfuse score` writes them."""
    scores = model.score(open_source(folder).read(), **options)
    scores.insert(0, "row", scores.index)
    return scores


def assert_same(scores, other):
    assert list(scores.columns) == list(other.columns)
    np.testing.assert_array_equal(scores["row"], other["row"])
    np.testing.assert_array_equal(scores["file"], other["file"])
    alarms = (table["is_anomaly"].astype("boolean").tolist() for table in (scores, other))
    assert next(alarms) == next(alarms)
    for column in ("score", "p_value"):
        np.testing.assert_allclose(scores[column], other[column], rtol=0, atol=1e-9)


def test_same_as_on_one_machine(client, model, folder, tmp_path):
    told = []
    out = tmp_path / "scores"
    outcome = score(
        model, folder, out, client=client, progress=lambda done, total: told.append((done, total))
    )
    scores = read(out)
    assert names(out) == FILES
    assert_same(scores, expected(model, folder))
    assert (outcome.rows, outcome.files, outcome.resumed, outcome.failed) == (3000, 6, 0, {})
    assert outcome.anomalies == scores["is_anomaly"].sum() > 0
    assert told == [(i, 6) for i in range(7)]


def test_files_do_not_matter(client, model, tmp_path):
    frame = plant(1000, 1)
    found = []
    for n in (1, 9):
        data = write(frame, tmp_path / f"data{n}", n, row_group_size=100)
        score(model, data, tmp_path / f"out{n}", client=client)
        found.append(read(tmp_path / f"out{n}").drop(columns="file"))
    pd.testing.assert_frame_equal(*[f.reset_index(drop=True) for f in found], atol=1e-9, rtol=0)


def test_what_is_there_is_kept_unless_something_has_changed(client, model, tmp_path):
    data, out = write(plant(400, 1), tmp_path / "data", 4), tmp_path / "out"
    first = score(model, data, out, client=client)
    made = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    again = score(model, data, out, client=client)
    assert (again.resumed, again.rows, again.anomalies) == (4, first.rows, first.anomalies)
    assert made == {path: path.stat().st_mtime_ns for path in out.iterdir()}
    # one file of scores lost, one damaged, one source replaced
    (out / "part.0.parquet").unlink()
    (out / "part.1.parquet").write_bytes(b"PAR1")
    plant(100, 7).to_parquet(data / "part.2.parquet", index=False)
    assert score(model, data, out, client=client).resumed == 1
    assert_same(read(out), expected(model, data))
    # rows before others move these; another threshold, or another rule, is another question
    plant(99, 7).to_parquet(data / "part.2.parquet", index=False)
    assert score(model, data, out, client=client).resumed == 2
    assert score(model, data, out, client=client, keep_going=True).resumed == 0
    before = model.detector_.offset_
    try:
        model.detector_.set_threshold(offset=1e9)
        outcome = score(model, data, out, client=client, keep_going=True)
    finally:
        model.detector_.set_threshold(offset=before)
    assert (outcome.resumed, outcome.anomalies) == (0, 399)


def test_a_worker_that_is_ended_is_no_error(client, folder, tmp_path):
    mortal = Mortal(str(tmp_path / "dead"), "score", patience=2)
    doomed = make_model([*make_pool("light"), ("mortal", mortal)], id="part").fit(plant(300, 0))
    client.run(_read_little)
    out = tmp_path / "scores"
    outcome = score(doomed, folder, out, client=client)
    assert (tmp_path / "dead").exists()
    assert names(out) == FILES
    assert outcome.rows == 3000
    assert_same(read(out), expected(doomed, folder))


def _read_little():
    """Let the workers of today read few rows at a time: one is ended in the midst of a file."""
    from ocfuse.distributed import parquet  # noqa: PLC0415

    parquet.CHUNK_ROWS = 100


@pytest.fixture
def poisoned(tmp_path):
    """Return a folder with a row that cannot be scored, and a file that is cut off."""
    frame = plant(1200, 1)
    frame.loc[150, "pressure"] = np.inf
    data = write(frame, tmp_path / "data", 12)
    whole = (data / "part.7.parquet").read_bytes()
    (data / "part.7.parquet").write_bytes(whole[: len(whole) // 2])
    return data


def test_the_first_bad_file_is_named_and_leaves_nothing(client, model, poisoned, tmp_path):
    out = tmp_path / "out"
    (poisoned / "part.7.parquet").unlink()
    with pytest.raises(
        TableError, match=r"part\.1\.parquet.*'pressure'.*row 150.*scores of"
    ) as caught:
        score(model, poisoned, out, client=client)
    assert "part.1.parquet" not in names(out)
    n_done = len(names(out))
    assert f"There are scores of {n_done} of 11 files" in str(caught.value)
    # it was repaired: the call goes on
    frame = pd.read_parquet(poisoned / "part.1.parquet").replace({"pressure": {np.inf: 0.0}})
    frame.to_parquet(poisoned / "part.1.parquet", index=False)
    assert score(model, poisoned, out, client=client).resumed == n_done
    assert_same(read(out), expected(model, poisoned))


class Scripted:
    """Tasks whose results come in the order of a script; the first file is bad."""

    client = SimpleNamespace(nthreads=lambda: {"a": 1, "b": 1})

    def __init__(self, script):
        self.script, self.begun = iter(script), []

    def shared(self, model):
        return model

    def begin(self, function, model, order):
        self.begun.append(order.piece.name)
        return order.piece.name

    def next_done(self):
        return next(self.script)

    def result(self, future, name):
        assert future == name
        if name == 0:
            raise ValueError("bad")
        return "done"


@pytest.mark.parametrize(
    ("script", "begun"),
    [
        ([0, 1, 2, 3], 4),
        ([3, 1, 0, 5, 4, 2], 6),
    ],
)
def test_after_a_bad_file_those_under_way_are_finished_and_none_is_begun(script, begun):
    tasks = Scripted(script)
    orders = [SimpleNamespace(piece=SimpleNamespace(name=i)) for i in range(10)]
    results = list(scoring._carried_out(tasks, None, orders, False))
    assert [order.piece.name for order, _ in results] == script
    assert tasks.begun == list(range(begun))
    assert isinstance({order.piece.name: r for order, r in results}[0], ValueError)


@pytest.mark.parametrize(("bad", "done"), [([0, *range(4, 10)], [1, 2, 3]), (range(4), [])])
def test_after_a_bad_file_workers_do_no_other(client, model, tmp_path, bad, done):
    data, out = write(plant(100, 1), tmp_path / "data", 10), tmp_path / "out"
    for i in bad:
        (data / f"part.{i}.parquet").write_bytes(b"PAR1")
    assert sum(client.nthreads().values()) == 2  # each has two files at hand
    with pytest.raises(TableError, match=rf"cannot be read.*scores of {len(done)} of 10 files"):
        score(model, data, out, client=client)
    assert names(out) == [f"part.{i}.parquet" for i in done]


def test_keep_going_leaves_out_what_cannot_be_scored(client, model, poisoned, tmp_path):
    out = tmp_path / "out"
    outcome = score(model, poisoned, out, client=client, keep_going=True)
    assert list(outcome.failed) == ["part.7.parquet"]
    assert "part.7.parquet cannot be read" in outcome.failed["part.7.parquet"]
    assert names(out) == sorted(f"part.{i}.parquet" for i in range(12) if i != 7)
    (warning,) = outcome.warnings
    assert isinstance(warning, RowsWarning)
    assert "row 150" in str(warning)
    (poisoned / "part.7.parquet").unlink()
    with pytest.warns(RowsWarning):
        assert_same(read(out), expected(model, poisoned, keep_going=True))
    assert outcome.without_score == 1


@pytest.mark.usefixtures("impatient")
def test_a_file_that_ends_every_worker_is_named_and_no_other(client, tmp_path):
    frame = plant(600, 1)
    frame.loc[420, "pressure"] = 1e6
    data, out = write(frame, tmp_path / "data", 6), tmp_path / "out"
    bad = ("allergic", Allergic(str(tmp_path / "diary")))
    sick = make_model([*make_pool("light"), bad], id="part")
    sick.fit(plant(300, 0))
    outcome = score(sick, data, out, client=client, keep_going=True)
    assert list(outcome.failed) == ["part.4.parquet"]
    assert "part.4.parquet ended every worker" in outcome.failed["part.4.parquet"]
    assert names(out) == [name for name in FILES if name != "part.4.parquet"]
    # once with others at hand, once alone
    assert (tmp_path / "diary").read_text() == "xx"


def test_a_full_disk_is_an_error_and_leaves_nothing(client, model, folder, tmp_path):
    out = tmp_path / "out"
    client.run(_limit_files, 2000)
    try:
        with pytest.raises(TableError, match=r"File too large.*out/part\.\d\.parquet"):
            score(model, folder, out, client=client)
        assert names(out) == []
    finally:
        client.run(_limit_files, resource.RLIM_INFINITY)
    assert score(model, folder, out, client=client).files == 6


def _limit_files(n_bytes):
    """Let a process write no file that is larger."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def test_a_scheduler_that_is_lost_is_an_error(client, folder, tmp_path):
    gate = tmp_path / "gate"
    waiting = make_model([("waiting", Waiting(str(gate), ahead=1))], id="part").fit(plant(200, 0))
    out = tmp_path / "out"
    ours, theirs = multiprocessing.Pipe()
    with (
        process(serve_cluster, theirs) as child,
        connected(ours.recv()) as mortal,
        pytest.raises(ClusterError, match=r"scheduler is gone.*the same call goes on"),
    ):
        score(waiting, folder, out, client=mortal, progress=lambda done, _: done and child.kill())
    gate.touch()
    there = names(out)
    assert len(there) == 1
    outcome = score(waiting, folder, out, client=client)
    assert outcome.resumed == len(there)
    assert_same(read(out), expected(waiting, folder))


def test_going_on_after_the_command_was_killed(client, model, tmp_path):
    data, out = write(plant(3_000, 1), tmp_path / "data", 30), tmp_path / "out"
    saved = model.save(tmp_path / "model.ocf")
    cluster = ("--engine", "dask", "--scheduler", client.scheduler.address)
    arguments = ("score", saved, data, "-o", out, *cluster)
    with process(run_command_line, list(map(str, arguments))) as child:
        while not (out.is_dir() and any(out.glob("*.parquet"))):
            assert child.is_alive()
            time.sleep(0.01)
    there = [path.name for path in out.glob("*.parquet")]
    for name in there:
        assert len(pd.read_parquet(out / name)) == 100
    outcome = score(load(saved), data, out, client=client)
    assert 1 <= len(there) <= outcome.resumed
    assert len(names(out)) == 30
    assert_same(read(out), expected(model, data))


def test_two_calls_at_a_time_are_refused(client, model, folder, tmp_path, run_command):
    saved, out = model.save(tmp_path / "m.ocf"), tmp_path / "out"
    engine = ("--engine", "dask", "--scheduler", client.scheduler.address)
    told = []

    def intrude(done, total):
        if not told:
            with pytest.raises(FolderInUseError, match="out is written to by process"):
                score(model, folder, out, client=client)
            told.append(run_command("score", saved, folder, "-o", out, *engine))

    assert score(model, folder, out, client=client, progress=intrude).files == 6
    (code, _, err) = told[0]
    assert code == 3
    assert "is written to by process" in " ".join(err.split())
    assert names(out) == FILES
    assert score(model, folder, out, client=client).resumed == 6


def test_a_call_whose_place_was_taken_adds_nothing(client, model, folder, tmp_path):
    out = tmp_path / "out"
    other = make_model(id="part").fit(plant(300, 5))

    def succeed(done, total):
        if done == 1:
            (out / LOCK).unlink()  # somebody takes it for a thing of the past
            assert score(other, folder, out, client=client).files == 6

    with pytest.raises(FolderInUseError, match="another call has taken the folder over"):
        score(model, folder, out, client=client, progress=succeed)
    assert names(out) == FILES
    assert_same(read(out), expected(other, folder))


def test_what_is_not_read_is_told_of(client, model, tmp_path):
    data = write(plant(60, 1), tmp_path / "data", 3)
    out = data / "out"  # which is no data
    for note in ("_SUCCESS", ".part.0.parquet.crc"):
        (data / note).touch()
    assert score(model, data, out, client=client).warnings == []
    write(plant(20, 2), data / "day=1", 1)
    write(plant(20, 2), data / "z.parquet", 1)  # a folder, as Spark names them
    (data / "notes.csv").touch()
    outcome = score(model, data, out, client=client)
    assert outcome.rows == 60
    with pytest.warns(TableWarning, match=r"not 3 others, the first of them day=1/\. Give"):
        outcome.give_warnings()
    with pytest.warns(TableWarning, match="not 4 others"):
        sample(data, 20, client=client)


def test_no_rows_are_no_error(client, model, tmp_path):
    data, out = write(plant(20, 1), tmp_path / "data", 2), tmp_path / "out"
    plant(20, 1).iloc[:0].to_parquet(data / "part.1.parquet", index=False)
    assert score(model, data, out, client=client).rows == 10
    empty = pd.read_parquet(out / "part.1.parquet")
    assert list(empty.columns) == list(pd.read_parquet(out / "part.0.parquet").columns)
    assert len(empty) == 0


def test_frames_are_scored_when_asked_for(client, model):
    dd = pytest.importorskip("dask.dataframe")
    frame = plant(500, 1)
    lazy = score_frame(model, dd.from_pandas(frame, npartitions=3))
    assert list(lazy.columns) == list(model.score(frame).columns)
    found = client.compute(lazy).result()
    columns = ["score", "p_value", "is_anomaly"]
    expected = model.score(frame)
    pd.testing.assert_frame_equal(found[columns], expected[columns], atol=1e-9, rtol=0)
    assert list(found["part"]) == list(frame["part"])


def test_what_is_refused(client, model, folder, tmp_path):
    with pytest.raises(InvalidInputError, match="folder of the data"):
        score(model, folder, folder, client=client)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="is a file"):
        score(model, folder, tmp_path / "file", client=client)
    with pytest.raises(InvalidTypeError, match="FusedDetector"):
        score(model.detector_, folder, tmp_path / "out", client=client)
    with pytest.raises(InvalidTypeError, match=r"folder of Parquet files\. Got DataFrame"):
        score(model, plant(20, 0), tmp_path / "out", client=client)
    with pytest.raises(InvalidTypeError, match=r"data frame of Dask\. Got DataFrame"):
        score_frame(model, plant(20, 0))
    with pytest.raises(NotFittedError):
        score(make_model(), folder, tmp_path / "out", client=client)
    assert not (tmp_path / "out").exists()


def test_what_is_no_file_of_scores_is_never_replaced(client, model, folder, tmp_path):
    others = write(plant(60, 5), tmp_path / "others", 3)
    (others / "part.0.parquet").unlink()
    before = {path.name: path.read_bytes() for path in others.iterdir()}
    with pytest.raises(InvalidInputError, match=r"part\.1\.parquet is there, and is no file of sc"):
        score(model, folder, others, client=client)
    assert before == {path.name: path.read_bytes() for path in others.iterdir()}


def test_scores_whose_data_are_gone_are_told_of(client, model, tmp_path):
    data, out = write(plant(60, 1), tmp_path / "data", 3), tmp_path / "out"
    assert score(model, data, out, client=client).warnings == []
    (data / "part.2.parquet").unlink()
    outcome = score(model, data, out, client=client)
    with pytest.warns(TableWarning, match=r"not of these data: part\.2\.parquet\. Remove"):
        outcome.give_warnings()
    assert outcome.rows == 40
