"""One thread for little work, and the limit is always taken back."""

import threading

import pytest
from threadpoolctl import threadpool_info

from ocfuse.detectors.threads import LEAST_FOR_THREADS, few_threads


def threads():
    return [pool["num_threads"] for pool in threadpool_info()]


def test_little_work_has_one_thread_and_much_has_all():
    before = threads()
    with few_threads(LEAST_FOR_THREADS):
        assert threads() == before
    with few_threads(1):
        assert set(threads()) <= {1}
        with few_threads(1):
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before


def test_limit_is_taken_back_after_an_error():
    before = threads()
    with pytest.raises(ZeroDivisionError), few_threads(1):
        raise ZeroDivisionError
    assert threads() == before


def test_other_threads_leave_the_limit_alone():
    seen = []

    def look():
        before = threads()
        with few_threads(1):
            seen.append(threads() == before)

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert seen == [True]
