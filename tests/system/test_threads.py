"""One thread inside, and the limit is always taken back."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from ocfuse.system import threads
from ocfuse.system.threads import few_threads, one_thread, one_thread_throughout


@pytest.fixture(autouse=True)
def _two_threads():
    """Have something to limit, also where the tests themselves are given one thread."""
    with threadpool_limits(2):
        assert 2 in counts()
        yield


def counts():
    return [pool["num_threads"] for pool in threadpool_info()]


def test_one_thread_inside_and_as_before_after():
    before = counts()
    with one_thread():
        assert set(counts()) <= {1}
        with one_thread():
            assert set(counts()) <= {1}
        assert set(counts()) <= {1}
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert counts() == before


def test_overlapping_callers_leave_the_limit_as_it_was():
    before = counts()
    is_inside, is_next, is_over = threading.Event(), threading.Event(), threading.Event()

    def first():
        with one_thread():
            is_inside.set()
            assert is_next.wait(60)
        is_over.set()

    def second():
        assert is_inside.wait(60)
        is_next.set()
        with one_thread():  # it would begin inside the first and end after it
            assert is_over.wait(60)

    callers = [threading.Thread(target=work) for work in (first, second)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert is_over.is_set()
    assert counts() == before


def test_libraries_are_looked_for_once(monkeypatch):
    made = []
    monkeypatch.setattr(
        threads, "ThreadpoolController", lambda: made.append(1) or ThreadpoolController()
    )
    threads._thread_pools.cache_clear()
    for _ in range(3):
        with one_thread():
            pass
    assert made == [1]


def test_little_work_has_one_thread_and_much_has_all():
    before = counts()
    with few_threads(2**28):
        assert counts() == before
    with few_threads(1):
        assert set(counts()) <= {1}
        with few_threads(1):
            assert set(counts()) <= {1}
        assert set(counts()) <= {1}
    assert counts() == before


def test_limit_is_taken_back_after_an_error():
    before = counts()
    with pytest.raises(ZeroDivisionError), few_threads(1):
        raise ZeroDivisionError
    assert counts() == before


def test_other_threads_leave_the_limit_alone():
    seen = []

    def look():
        before = counts()
        with few_threads(1):
            seen.append(counts() == before)

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert seen == [True]


def test_where_all_have_one_thread_nobody_waits_for_it():
    """In a service a stream would wait for the explanation of a stranger."""
    before, is_inside = counts(), threading.Barrier(2, timeout=60)
    found = []

    def work():
        with one_thread():
            is_inside.wait()
            found.append(set(counts()))
            is_inside.wait()

    with one_thread_throughout():
        caller = threading.Thread(target=work)
        caller.start()
        work()
        caller.join()
    assert found == [{1}, {1}]
    assert counts() == before
