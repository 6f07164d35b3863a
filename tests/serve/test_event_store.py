"""Events outlive the process, a full disk and those who comment on them."""

import csv
import io
import logging
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.notify import Notifiers, Route, progress_file
from ocfuse.serve import Retention
from ocfuse.serve.database import UPDATES, Choice, DamagedFileError
from ocfuse.serve.event import COLUMNS, VERDICTS, Unwritten, when
from ocfuse.serve.event_rows import packed
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.samples import Sample
from ocfuse.serve.telemetry import JsonLines
from ocfuse.tables.cells import no_formula
from tests.hook import Hook
from tests.serve.asking import wait_until

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
JPEG = b"\xff\xd8\xff" + b"another"


@pytest.fixture
def store(tmp_path):
    store = EventStore(tmp_path / "events.db")
    yield store
    store.close()


def sample(model, stream, time, score, threshold=0.0, **more):
    return Sample(model, stream, 0, time, score, threshold, **more)


def fill(store, n, model="pump", **more):
    ids = []
    for i in range(n):
        ids.append(store.begin(sample(model, "line", 10.0 * i, -float(i), **more)))
        store.end(ids[-1], 10.0 * i + 3)
    return ids


def ids_of(events):
    return [event.id for event in events]


def test_an_event_from_begin_to_end(store, monkeypatch):
    first = sample(
        "pump", "line", 10.0, -1.0, threshold=0.1, p_value=0.01, local_p=2.0,
        contributions={"knn": 0.5, "gmm": -1.5}, thumbnail=PNG,
    )  # fmt: skip
    event = store.begin(first)
    known = store.get(event)
    assert (known.state, known.begin, known.end, known.lowest) == ("open", 10.0, 10.0, -1.0)
    assert list(known.members) == ["gmm", "knn"]
    monkeypatch.setattr(EventStore, "update_seconds", 0.0)
    store.update(
        event,
        sample(
            "pump", "line", 11.0, -3.0, p_value=0.001, contributions={"knn": -3.0}, thumbnail=JPEG
        ),
    )
    store.update(
        event,
        sample(
            "pump", "line", 12.0, -2.0, p_value=0.005, contributions={"gmm": -2.0}, thumbnail=PNG
        ),
    )
    store.update(event, sample("pump", "line", 13.0, None))
    store.end(event, 14.0)
    known = store.get(event)
    assert (known.state, known.end, known.lowest, known.p_value) == ("ended", 14.0, -3.0, 0.001)
    assert (known.n_samples, dict(known.members)) == (4, {"knn": -3.0})
    assert store.thumbnail(event) == ("image/jpeg", JPEG)
    store.update(event, sample("pump", "line", 99.0, -9.0))
    store.end(event, 99.0)
    assert store.get(event) == known


def test_updates_are_written_now_and_then_only(store):
    event = store.begin(sample("pump", "line", 0.0, -1.0))
    change = store.change
    for i in range(1000):
        store.update(event, sample("pump", "line", float(i), -float(i)))
    assert store.change == change
    store.end(event)
    assert (store.change, store.get(event).lowest, store.get(event).end) == (change + 1, -999, 999)


def test_samples_make_events(store):
    def take(time, alarm=None, score=-1.0, stream="line"):
        return store.take(Sample("pump", stream, 0, time, score, 0.0, alarm=alarm))

    assert take(0.0, score=1.0) is None
    event = take(1.0, "begin")
    assert take(1.0, "begin", stream="other") == event + 1
    assert take(2.0, score=-5.0) == event
    assert take(3.0, "end", 1.0) == event
    assert take(4.0, score=1.0) is None
    again = take(5.0, "begin")
    last = take(6.0, "begin")
    states = {known.id: known.state for known in store.list()}
    assert states == {event: "ended", event + 1: "open", again: "interrupted", last: "open"}
    assert store.get(event).lowest == -5.0


def test_streams_whose_events_are_over_are_forgotten(store):
    """Clients may give as many names as they like."""
    for i in range(5):
        sample = Sample("pump", f"line-{i}", 0, 1.0, -1.0, 0.0, is_anomaly=True, alarm="begin")
        store.end(store.take(sample), state="interrupted")
    assert store._sources == {}
    assert store.take(replace(sample, alarm=None)) is None


def test_all_is_there_after_closing(store, tmp_path):
    fill(store, 3, thumbnail=PNG, contributions={"knn": -1.0})
    left = store.begin(sample("pump", "line", 99.0, -1.0))
    store.acknowledge(1, "Ada")
    store.comment(1, "seen", "Ada")
    store.comment(1, "and mended", "Bo")
    before = store.list()
    store.close()
    again = EventStore(tmp_path / "events.db")
    try:
        assert again.name == store.name
        assert [e for e in again.list() if e.id != left] == [e for e in before if e.id != left]
        assert again.get(left).state == "interrupted"
        assert again.thumbnail(1) == ("image/png", PNG)
        assert [(n.kind, n.who, n.text) for n in again.get(1).notes] == [
            ("acknowledge", "Ada", ""), ("comment", "Ada", "seen"), ("comment", "Bo", "and mended"),
        ]  # fmt: skip
        assert again.begin(sample("pump", "line", 0.0, 0.0)) == left + 1
    finally:
        again.close()


def test_the_first_acknowledgement_counts(store):
    (event,) = fill(store, 1)
    first = store.acknowledge(event, "Ada")
    assert store.acknowledge(event, "Bo") == first
    assert first.acknowledgement.who == "Ada"
    assert store.acknowledge(999, "Ada") is None
    assert store.comment(999, "nobody hears it") is None


@pytest.mark.parametrize("text", ["", "  \n", "\0", "a" * 2001])
def test_comments_have_bounds(store, text):
    (event,) = fill(store, 1)
    with pytest.raises(InvalidInputError, match="1 to 2000 characters"):
        store.comment(event, text)
    assert store.get(event).notes == ()


def test_notes_of_an_event_are_bounded(store, monkeypatch):
    assert EventStore.most_notes == 500
    monkeypatch.setattr(EventStore, "most_notes", 3)
    (event,) = fill(store, 1)
    for i in range(3):
        store.comment(event, str(i))
    with pytest.raises(InvalidInputError, match="has 3 notes"):
        store.comment(event, "one more")


def test_strange_values_are_kept_in_a_form_that_can_be_told(store):
    event = store.begin(
        sample("\ud800\0m" + 300 * "x", "温度", 1e300, float("-inf"), p_value=float("nan"))
    )
    store.end(event)
    store.comment(event, "half \udfff a character", "🙂")
    known = store.get(event)
    assert (known.lowest, known.p_value, known.stream) == (None, None, "温度")
    assert known.model == "?m" + 198 * "x"
    assert known.notes[0].text == "half ? a character"
    assert "1e+300" in "".join(store.csv())


def test_thumbnails_are_small_pictures(store, caplog):
    for picture in (b"GIF89a", b"<svg onload=alert(1)>", b"", PNG + b"x" * 64 * 1024):
        event = store.begin(sample("pump", "line", 0.0, -1.0, thumbnail=picture))
        assert store.thumbnail(event) is None
        assert store.get(event).as_json()["has_thumbnail"] is False
    assert "is not kept" in caplog.text
    webp = b"RIFF1234WEBP"
    event = store.begin(sample("pump", "line", 0.0, -1.0, thumbnail=webp))
    assert store.thumbnail(event) == ("image/webp", webp)


def test_lists_are_read_in_pages_and_chosen(store):
    ids = fill(store, 7) + fill(store, 4, model="fan")
    store.acknowledge(ids[8], "Ada")
    assert ids_of(store.list()) == ids[::-1]
    assert ids_of(store.list(before=ids[3], limit=2)) == [ids[2], ids[1]]
    assert ids_of(store.list(after=ids[3], limit=2)) == [ids[4], ids[5]]
    assert ids_of(store.list(choice=Choice(model="fan"))) == ids[:6:-1]
    chosen = Choice(model="fan", acknowledged=False)
    assert ids_of(store.list(choice=chosen)) == [ids[10], ids[9], ids[7]]
    assert ids_of(store.list(choice=Choice(acknowledged=True))) == [ids[8]]
    for chosen in (Choice(state="open"), Choice(stream="' OR 1=1 --")):
        assert store.list(choice=chosen) == []
    assert ids_of(store.list(before=10**30, limit=1)) == [ids[-1]]


def test_changes_are_numbered_and_none_is_missed(store):
    ids = fill(store, 3)
    at = store.change
    assert store.changes(at) == []
    store.comment(ids[0], "late")
    new = store.begin(sample("pump", "line", 0.0, -1.0))
    changed = store.changes(at)
    assert ids_of(changed) == [ids[0], new]
    assert [event.change for event in changed] == [at + 1, at + 2]
    assert ids_of(store.changes(0, limit=2)) == ids[1:]


def test_numbers_of_changes_are_not_given_twice(store, tmp_path):
    fill(store, 1)
    told = store.change
    store.close()
    again = EventStore(tmp_path / "events.db")
    again.begin(sample("pump", "line", 0.0, -1.0))
    assert again.changes(told)[0].change > told + 1000
    again.close()


def test_listeners_hear_of_changes(store):
    heard = []
    stop = store.listen(lambda: heard.append(store.change))
    fill(store, 2)
    assert heard == list(range(heard[0], heard[0] + 4))
    stop()
    fill(store, 1)
    assert len(heard) == 4


def test_csv_is_the_store(store):
    ids = fill(store, 3, contributions={"knn": -1.5}, threshold=0.5, p_value=0.01)
    store.acknowledge(ids[0], "Ada")
    store.comment(ids[0], '=HYPERLINK("http://x"),\n"quoted"', "+Bo")
    fill(store, 1, model="@SUM(A1)")
    rows = list(csv.DictReader(io.StringIO("".join(store.csv()))))
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["id"]) for row in rows] == ids_of(store.list())[::-1]
    first, known = rows[0], store.get(ids[0])
    assert (float(first["lowest_score"]), first["seconds"]) == (known.lowest, "3.0")
    assert (first["members"], first["acknowledged_by"]) == ("knn -1.5", "Ada")
    assert first["comments"].endswith('+Bo: =HYPERLINK("http://x"),\n"quoted"')
    assert rows[1]["lowest_score"] == "-1.0"  # a number, and no formula
    assert rows[3]["model"] == "'@SUM(A1)"
    assert len(list(csv.reader(io.StringIO("".join(store.csv(Choice(model="pump"))))))) == 4


def test_csv_comes_in_parts(store):
    ids = fill(store, 10)
    parts = store.csv(n_at_once=4)
    read = next(parts) + next(parts)
    fill(store, 1)  # meanwhile things go on
    rows = list(csv.DictReader(io.StringIO(read + "".join(parts))))
    assert [int(row["id"]) for row in rows] == [*ids, ids[-1] + 1]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "\r=1", " =1", "\n=1", "\uff1d1"])
def test_no_cell_is_a_formula(text):
    assert no_formula(text) == f"'{text}"


def test_times_are_dates_or_numbers():
    assert when(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert when(-5.0) == "-5.0"


def test_old_events_go(tmp_path, monkeypatch):
    monkeypatch.setattr(EventStore, "prune_events", 1)
    store = EventStore(tmp_path / "events.db", Retention(events=5, picture_bytes=2 * len(PNG)))
    left_open = store.begin(sample("pump", "line", 0.0, -1.0))
    ids = fill(store, 20, thumbnail=PNG)
    store.acknowledge(ids[-1], "Ada")
    kept = ids_of(store.list())
    assert kept == [*ids[:-7:-1][:5], left_open]
    pictured = [event.id for event in store.list() if event.media]
    assert pictured == ids[:-3:-1]
    assert [store.thumbnail(event) is not None for event in kept].count(True) == 2
    store.close()
    later = time.time() + 3 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    old = EventStore(tmp_path / "events.db", Retention(days=2.0))
    fresh = old.begin(sample("pump", "line", 0.0, -1.0))
    assert ids_of(old.list()) == [fresh]
    old.close()


def test_the_file_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(EventStore, "prune_events", 20)
    store = EventStore(tmp_path / "events.db", Retention(events=10))
    picture = PNG + os.urandom(20_000)
    fill(store, 60, thumbnail=picture)
    store.close()
    assert (tmp_path / "events.db").stat().st_size < 45 * len(picture)


def test_in_memory(tmp_path):
    store = EventStore(None)
    fill(store, 2)
    assert len(store.list()) == 2
    store.close()


def test_threads_share_a_store(store):
    def work(k):
        for i in range(10):
            event = store.begin(sample("pump", str(k), float(i), -1.0))
            store.comment(event, f"{k} {i}")
            store.list(limit=5)
            store.end(event)

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.list(limit=1000)
    assert len(found) == 40 == len({event.change for event in found})
    assert all(event.state == "ended" and len(event.notes) == 1 for event in found)


# What can go wrong at the start


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match="no folder"):
        EventStore(tmp_path / "nowhere" / "events.db")


def test_a_file_that_is_none_of_ours(tmp_path):
    path = tmp_path / "events.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(InvalidInputError, match="cannot be used: file is not a database"):
        EventStore(path)
    assert path.read_bytes() == b"not a database" * 100


def test_a_database_of_another_program_or_version(tmp_path):
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(InvalidInputError, match="another program"):
        EventStore(path)
    EventStore(tmp_path / "events.db").close()
    later = sqlite3.connect(tmp_path / "events.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(InvalidInputError, match="later version of ocfuse"):
        EventStore(tmp_path / "events.db")


def test_one_service_at_a_time(store, tmp_path):
    with pytest.raises(InvalidInputError, match="in use by another service"):
        EventStore(tmp_path / "events.db")
    (tmp_path / "link.db").symlink_to("events.db")
    with pytest.raises(InvalidInputError, match="in use by another service"):
        EventStore(tmp_path / "link.db")
    event = store.begin(sample("pump", "line", 0.0, -1.0))
    assert store.get(event).state == "open"
    reader = sqlite3.connect(f"file:{tmp_path / 'events.db'}?mode=ro", uri=True)
    assert reader.execute("SELECT state FROM events").fetchall() == [("open",)]
    reader.close()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs permissions of POSIX")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    """As another user than root, who may write everywhere."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    if os.geteuid() == 0:
        with pytest.raises(InvalidInputError, match="cannot be used: unable to open"):
            EventStore("/proc/events.db")
        return
    folder.chmod(0o500)
    with pytest.raises(InvalidInputError, match="cannot be used: unable to open"):
        EventStore(folder / "events.db")


# What can go wrong later


@pytest.fixture
def full(store):
    """Make the disk full, and return what makes room again."""
    (pages,) = store._database.connection.execute("PRAGMA page_count").fetchone()
    store._database.connection.execute(f"PRAGMA max_page_count = {pages}")
    return lambda: store._database.connection.execute("PRAGMA max_page_count = 1000000")


def test_a_full_disk_keeps_events_in_memory_until_there_is_room(
    store, full, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(EventStore, "retry_seconds", 0.05)
    picture = PNG + 5000 * b"x"
    ids = fill(store, 30, thumbnail=picture, contributions={"knn": -1.0})
    store.comment(ids[0], "kept all the same")
    assert "full" in store.trouble
    assert f"{len(store._unwritten.events)} wait" in store.trouble
    assert "kept in memory only" in caplog.text
    known = store.list()
    assert ids_of(known) == ids[::-1]
    assert ids_of(store.changes(0)) == sorted(ids, key=lambda i: store.get(i).change)
    assert store.thumbnail(ids[-1]) == ("image/png", picture)
    assert "".join(store.csv()).count("\n") == 31
    full()
    wait_until(lambda: store.trouble is None)
    assert "written to their file again" in caplog.text
    assert store.list() == known
    store.close()
    again = EventStore(tmp_path / "events.db")
    assert again.list() == known
    again.close()


def test_no_change_is_missed_while_others_wait(store, full):
    """Also if all that is read at once has newer words that are not written yet."""
    ids = fill(store, 6, contributions={"knn": -1.0})
    while store.trouble is None:
        ids += fill(store, 1, contributions={"knn": -1.0})
    for event in ids[:4]:
        store.comment(event, "seen")
    seen, after = set(), 0
    while found := store.changes(after, limit=2):
        seen |= set(ids_of(found))
        after = found[-1].change
    assert seen == set(ids)
    full()


def test_events_are_written_though_one_failed_while_the_next_attempt_was_due(
    store, full, monkeypatch
):
    monkeypatch.setattr(EventStore, "retry_seconds", 0.05)
    fill(store, 30, thumbnail=PNG + 5000 * b"x")
    assert "full" in store.trouble
    with store._lock:
        store._retry_at = time.monotonic() + 3600  # as of a failure while the timer was waiting
        full()
    wait_until(lambda: store.trouble is None)


def test_memory_for_events_is_bounded(store, full, monkeypatch):
    monkeypatch.setattr(Unwritten, "most_events", 10)
    monkeypatch.setattr(Unwritten, "most_bytes", 4 * len(PNG))
    ids = fill(store, 1)
    still_open = store.begin(sample("pump", "line", 0.0, -1.0))
    while store.trouble is None or store._unwritten.n_lost < 5:
        ids += fill(store, 1, thumbnail=PNG, contributions=dict.fromkeys(map(str, range(8)), 0.0))
    assert len(store._unwritten.events) == 10
    assert len(store._unwritten.pictures) == 4
    assert (store.get(still_open).state, store.get(ids[-1]).state) == ("open", "ended")
    assert "5 were lost" in store.trouble
    full()


def test_another_program_that_locks_the_file(store, tmp_path, monkeypatch):
    monkeypatch.setattr(EventStore, "retry_seconds", 0.05)
    store._database.connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(tmp_path / "events.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (event,) = fill(store, 1)
    assert "locked" in store.trouble
    other.execute("ROLLBACK")
    other.close()
    wait_until(lambda: store.trouble is None)
    assert store.get(event).state == "ended"


KILLED = """
import sys
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.samples import Sample
store = EventStore(sys.argv[1])
while True:
    event = store.begin(Sample("pump", "line", 0, 1.0, -1.0, 0.0))
    print("begin", event, flush=True)
    store.comment(event, "said")
    print("said", event, flush=True)
    if event % 3:
        store.end(event)
        print("end", event, flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_told(tmp_path):
    path = tmp_path / "events.db"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        told = [child.stdout.readline().split() for _ in range(40)]
        child.send_signal(signal.SIGKILL)
        told += [line.split() for line in child.stdout if line.endswith("\n")]
    store = EventStore(path)
    try:
        for what, number in told:
            event = store.get(int(number))
            assert event.state == "interrupted" if not event.id % 3 else True
            assert event.state != "open"
            if what == "said":
                assert [note.text for note in event.notes] == ["said"]
            if what == "end":
                assert event.state == "ended"
        integrity = store._database.connection.execute("PRAGMA integrity_check").fetchone()
        assert integrity == ("ok",)
    finally:
        store.close()


def test_nothing_that_is_kept_is_obeyed_by_a_terminal(store):
    """Not in names, comments or members, wherever events are shown: page, CSV, log."""
    bad = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\0"
    event = store.begin(sample(f"m{bad}", f"s{bad}", 1.0, -1.0, contributions={f"k{bad}": -1.0}))
    store.acknowledge(event, f"Ada{bad}")
    store.comment(event, f"two{bad}\n\tlines", f"Ada{bad}")
    kept = store.get(event)
    assert kept.notes[-1].text == "two]0;owned[2J31m\n\tlines"
    shown = "".join(store.csv()) + str(kept.as_json())
    assert not set(map(chr, (*range(9), *range(14, 32), *range(127, 160)))) & set(shown)
    record = logging.LogRecord("ocfuse.serve", logging.ERROR, "", 0, f"words{bad}", (), None)
    record.about = {"note": bad}
    line = JsonLines().format(record)
    assert line.isascii()
    assert "\x1b" not in line


def damage(path, table="events", page=None):
    """Overwrite one page of a table, of those that hold its rows; return its number."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        pages = [
            number
            for (number,) in connection.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path",
                [table],
            )
        ]
    connection.close()
    page = pages[len(pages) // 2] if page is None else page
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
    return page


def leaves(path, table):
    """Return how many pages hold the rows of a table; skip where SQLite does not tell."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(
            "SELECT count(*) FROM dbstat WHERE name = ? AND pagetype = 'leaf'", [table]
        ).fetchone()[0]
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no dbstat")
    finally:
        connection.close()


@pytest.mark.parametrize("table", ["events", "notes", "pictures", "counters", "events_by_change"])
def test_a_file_with_a_damaged_page_is_kept_aside_at_the_start(tmp_path, table, caplog):
    path = tmp_path / "events.db"
    store = EventStore(path)
    for event in (ids := fill(store, 120, thumbnail=PNG)):
        store.comment(event, "seen " + "x" * 100, "Ada")
    store.close()
    leaves(path, table)
    damage(path, table)
    before = path.read_bytes()
    store = EventStore(path)
    (aside,) = tmp_path.glob("events.db.damaged-*Z")
    assert aside.read_bytes() == before  # nothing of it is touched
    kept = store.list(limit=1000)
    lost = set(ids) - {event.id for event in kept}
    assert (0 < len(lost) < 60) if table == "events" else not lost
    assert all(event.state == "ended" for event in kept)
    n_notes = sum(len(event.notes) for event in kept)
    assert n_notes > 60
    assert aside.name in store.trouble
    assert store.state == "replaced"
    assert "was damaged" in caplog.text
    next_id = store.begin(sample("pump", "line", 1.0, -1.0))
    assert next_id == max(ids) + 1  # no number is given twice
    store.close()
    again = EventStore(path)  # the new file is whole
    assert (again.trouble, len(again.list(limit=1000))) == (None, len(kept) + 1)
    again.close()


@pytest.mark.parametrize("how", ["list", "begin", "changes", "get"])
def test_damage_while_it_is_used_loses_no_open_event(tmp_path, how, caplog):
    path = tmp_path / "events.db"
    store = EventStore(path)
    fill(store, 200)
    begun = store.begin(sample("pump", "other", 1.0, -3.0))
    store.update(begun, sample("pump", "line", 2.0, -5.0))
    pages = leaves(path, "events")
    assert pages > 2
    store._database.connection.execute("PRAGMA cache_size = 0")
    store._database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store._database.connection.execute("PRAGMA shrink_memory")
    name = store.name
    with sqlite3.connect(path) as other:
        size = other.execute("PRAGMA page_size").fetchone()[0]
    other.close()
    with path.open("r+b") as file:  # all but the first page, which tells whose file it is
        file.seek(size)
        file.write(b"\xa5" * (path.stat().st_size - size))
    newest = None
    if how == "begin":
        newest = store.begin(sample("pump", "new", 5.0, -1.0))
    elif how == "get":
        store.get(3)
    else:
        getattr(store, how)(0)
    assert list(tmp_path.glob("events.db.damaged-*"))
    assert (store.state, store.name != name) == ("replaced", True)
    kept = {event.id: event for event in store.list(limit=1000)}
    assert kept[begun].lowest == -5.0
    assert kept[begun].state == "open"
    assert newest is None or newest in kept
    store.end(begun)
    store.close()
    again = EventStore(path)
    assert again.get(begun).state == "ended"
    again.close()


def test_a_new_file_that_cannot_be_made_at_once_is_made_later(tmp_path, monkeypatch):
    path = tmp_path / "events.db"
    store = EventStore(path)
    begun = fill(store, 3)
    database, free = store._database, [False]
    take_over = database._take_over

    def full(old):
        if not free[0]:
            raise sqlite3.OperationalError("database or disk is full")
        return take_over(old)

    monkeypatch.setattr(database, "_take_over", full)
    monkeypatch.setattr(
        database, "write", lambda *given: (_ for _ in ()).throw(DamagedFileError("malformed"))
    )
    event = store.begin(sample("pump", "line", 1.0, -1.0))
    assert store.state == "waiting"
    monkeypatch.undo()
    free[0] = True
    store._retry_at = 0.0
    store.end(event)
    assert store.state == "replaced"
    assert [one.id for one in store.list()] == [event, *reversed(begun)]
    assert len(list(tmp_path.glob("events.db.damaged-*Z"))) == 1
    store.close()


#: Tables of the first version of the file, with two events.
FIRST_VERSION = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, change INTEGER NOT NULL, model TEXT NOT NULL, stream TEXT NOT NULL,
    seen REAL NOT NULL, begin REAL NOT NULL, "end" REAL NOT NULL, state TEXT NOT NULL, lowest REAL,
    "offset" REAL, p_value REAL, local_p REAL, members TEXT NOT NULL, n_samples INTEGER NOT NULL,
    media TEXT
);
CREATE INDEX events_by_change ON events (change);
CREATE INDEX events_open ON events (id) WHERE state = 'open';
CREATE TABLE notes (
    event INTEGER NOT NULL REFERENCES events (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    kind TEXT NOT NULL, who TEXT NOT NULL, time REAL NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (event, number)
);
CREATE TABLE pictures (
    event INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE, data BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO events VALUES (1, 1, 'pump', 'line', 5.0, 1.0, 2.0, 'ended', -3.0, -0.5, 0.01, NULL,
    '{"knn": -1.5}', 4, NULL), (2, 2, 'pump', 'line', 6.0, 3.0, 4.0, 'open', -2.0, -0.5, 0.02,
    NULL, '{}', 1, NULL);
INSERT INTO notes VALUES (1, 0, 'acknowledge', '', 7.0, '');
INSERT INTO counters VALUES ('store', 7), ('id', 2), ('change', 2);
PRAGMA application_id = 1868785253; PRAGMA user_version = 1;
"""


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_version_is_read_and_written_on(tmp_path, is_damaged, version):
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(FIRST_VERSION)
        for before in range(1, version):
            old.executescript(UPDATES[before] + f"PRAGMA user_version = {before + 1};")
        (page,) = old.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'events_open'"
        ).fetchone()
    if is_damaged:
        with path.open("r+b") as file:
            file.seek(4096 * (page - 1))
            file.write(b"\xff" * 4096)
    for _ in range(2):
        store = EventStore(path)
        second, first = store.list(limit=2)
        assert (first.id, first.threshold, first.kind, first.channels) == (1, -0.5, "anomaly", [])
        assert (first.acknowledgement.who, first.news.matters) == ("", False)
        assert (second.state, second.news.state) == ("interrupted", "interrupted")
        store.close()
    assert len(list(tmp_path.glob("*.damaged-*"))) == is_damaged
    store = EventStore(path)
    assert store.begin(sample("pump", "line", 9.0, -1.0)) == 3
    store.keep_rows(3, packed([{"seq": 1}]), 1)
    assert (store.rows(3), store.get(3).n_rows) == ([{"seq": 1}], 1)
    store.close()


def test_an_acknowledgement_has_a_name(store):
    (event,) = fill(store, 1)
    for who in ("", "  ", "\x1b\n"):
        with pytest.raises(InvalidInputError, match="needs the name"):
            store.acknowledge(event, who)
    assert store.acknowledge(event, " Ada ").acknowledgement.who == "Ada"


def test_a_silence_outlasts_the_service_and_a_failing_sensor_does_not(tmp_path):
    store = EventStore(tmp_path / "events.db")
    reading = {"name": "flow", "words": "flow 1 (usual 2 +- 0.1)", "value": math.inf, "share": 1}
    silent = store.raise_event("silent", ("pump", "line"), 5.0, "no samples")
    missing = store.raise_event("missing", ("pump", "line"), 6.0, "flow missing", [reading])
    store.close()
    store = EventStore(tmp_path / "events.db")
    assert [store.get(event).state for event in (silent, missing)] == ["open", "interrupted"]
    assert store.get(missing).channels == [reading | {"value": None}]
    assert store.get(missing).as_row()[COLUMNS.index("channels")] == "flow missing"
    store.end(silent, 9.0)
    assert (store.get(silent).state, store.get(silent).end) == ("ended", 9.0)
    assert ids_of(store.list(choice=Choice(kind="missing"))) == [missing]
    store.close()


def test_a_file_of_another_kind_is_left_alone(tmp_path):
    path = tmp_path / "events.db"
    path.write_bytes(b"these are no events" * 1000)
    with pytest.raises(InvalidInputError, match="cannot be used"):
        EventStore(path)
    assert path.read_bytes().startswith(b"these are no events")


def test_others_are_told_over_a_restart_and_what_is_said_of_events_tells_nothing(tmp_path):
    hook, path = Hook(), tmp_path / "events.db"
    routes = [Route(hook.url)]
    readings = [{"name": "flow", "words": "flow 3 (usual 1 +- 0.1)"}]
    try:
        for n_messages in (2, 4):
            store = EventStore(path)
            notifiers = Notifiers(routes, store, progress_file(path))
            stop = store.listen(notifiers.wake)
            event = store.begin(sample("pump", "line", 10.0, -1.0, readings=readings))
            hook.wait_for(n_messages - 1)
            store.interrupt()
            told = hook.wait_for(n_messages)
            store.acknowledge(event, "Ada")
            stop()
            notifiers.close()
            store.close()
    finally:
        hook.close()
    phases = [(message["event"], message["phase"]) for message in told]
    assert phases == [(1, "begin"), (1, "interrupted"), (2, "begin"), (2, "interrupted")]
    assert len({message["id"] for message in told}) == 4
    assert told[0]["text"] == "flow 3 (usual 1 +- 0.1)"
    assert told[0]["threshold"] == 0.0


def test_who_listens_is_told_of_an_interruption():
    store, told = EventStore(None), []
    store.begin(sample("pump", "line", 10.0, -1.0))
    store.listen(lambda: told.append(store.change))
    store.interrupt()
    assert told == [store.change]
    store.close()


verdicts = st.lists(st.sampled_from(["acknowledge", "comment", *VERDICTS]), max_size=8)


@settings(deadline=None, max_examples=30)
@given(verdicts)
def test_the_last_verdict_counts_and_all_that_was_said_stays(said):
    store = EventStore(None)
    event = store.begin(sample("pump", "line", 0.0, -1.0))
    for i, kind in enumerate(said):
        if kind == "acknowledge":
            store.acknowledge(event, f"who {i}")
        elif kind == "comment":
            store.comment(event, f"text {i}", f"who {i}")
        else:
            store.judge(event, kind, f"who {i}", f"why {i}")
    known = store.get(event)
    judged = [(i, kind) for i, kind in enumerate(said) if kind in VERDICTS]
    told = known.as_json()
    expected = [{"verdict": kind, "who": f"who {i}", "comment": f"why {i}"} for i, kind in judged]
    every = [*told["earlier_verdicts"], *([told["verdict"]] if told["verdict"] else [])]
    assert [{k: v for k, v in one.items() if k != "time"} for one in every] == expected
    # whoever judges an event knows of it
    acknowledged = [i for i, kind in enumerate(said) if kind != "comment"]
    assert (known.acknowledgement is None) == (not acknowledged)
    if acknowledged:
        assert known.acknowledgement.who == f"who {acknowledged[0]}"
    last = judged[-1][1] if judged else None
    for verdict in VERDICTS:
        assert ids_of(store.list(choice=Choice(verdict=verdict))) == [event] * (last == verdict)
        assert Choice(verdict=verdict).matches(known) == (last == verdict)
    (line,) = csv.DictReader(io.StringIO("".join(store.csv())))
    assert line["verdict"] == (last or "")
    store.close()


@pytest.mark.parametrize(
    ("verdict", "who", "comment", "words"),
    [
        ("maybe", "Ada", "", "one of 'real', 'false alarm', 'unknown'"),
        ("real", " ", "", "needs the name"),
        ("real", "Ada", "x" * 2001, "at most 2000"),
    ],
)
def test_a_verdict_that_is_none_is_refused(store, verdict, who, comment, words):
    event = store.begin(sample("pump", "line", 0.0, -1.0))
    with pytest.raises(InvalidInputError, match=words):
        store.judge(event, verdict, who, comment)
    assert store.get(event).notes == ()
    assert store.judge(99, "real", "Ada") is None


def test_rows_around_events_outlive_the_process_and_those_judged_stay_longest(tmp_path):
    def rows(k):
        letters = [chr(97 + (i * i * k) % 26) for i in range(3000)]
        return [{"seq": k, "values": {"x": "".join(letters)}}]

    size = max(len(packed(rows(k))) for k in range(1, 6))
    store = EventStore(tmp_path / "events.db", Retention(row_bytes=2 * size))
    for k, event in enumerate(fill(store, 5), start=1):
        store.keep_rows(event, packed(rows(k)), 1)
    store.judge(2, "false alarm", "Ada")
    assert store.rows(4) == rows(4)
    assert store.get(4).n_rows == 1
    store._prune_at = 0.0
    store.comment(1, "prune now")
    assert [store.rows(k) is not None for k in range(1, 6)] == [False, True, False, False, True]
    assert [store.get(k).n_rows for k in range(1, 6)] == [0, 1, 0, 0, 1]
    store.close()
    again = EventStore(tmp_path / "events.db")
    assert again.rows(2) == rows(2)
    assert again.get(2).verdict.kind == "false alarm"
    again.close()


def test_rows_that_are_too_many_are_not_kept(store, monkeypatch):
    event = store.begin(sample("pump", "line", 0.0, -1.0))
    monkeypatch.setattr(EventStore, "most_row_bytes", 10)
    store.keep_rows(event, b"x" * 11, 5)
    assert (store.rows(event), store.get(event).n_rows) == (None, 0)
    nothing = EventStore(None, Retention(row_bytes=0))
    event = nothing.begin(sample("pump", "line", 0.0, -1.0))
    nothing.keep_rows(event, b"x", 1)
    assert nothing.rows(event) is None
    nothing.close()
