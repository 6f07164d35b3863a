"""One chain scores, in chunks: whatever their size and their threads, the result is the same."""

import threading
from functools import partial

import numpy as np
import pytest

from ocfuse import FusedDetector
from ocfuse.ensemble import score
from ocfuse.ensemble.report import report_data
from ocfuse.system.threads import allowed_threads

in_chunks = partial(score.in_chunks, most_alone=99, first_rows=34, most_rows=100)
X = np.random.default_rng(0).normal(size=(1234, 3))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(score, "in_chunks", in_chunks)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])
@pytest.mark.parametrize("n", [1, 99, 100, 101, 1234])
def test_every_row_once_and_in_order(n, n_jobs):
    parts = in_chunks(lambda rows: X[:n][rows], n, n_jobs)
    np.testing.assert_array_equal(np.concatenate(parts), X[:n])


def seen(n_jobs=None):
    """Return the length, the thread and the threads allowed of every chunk."""
    found = []

    def compute(rows):
        part = X[rows]
        found.append((len(part), threading.get_ident(), allowed_threads()))
        return part

    in_chunks(compute, len(X), n_jobs)
    return found


def test_chunks_are_bounded_and_start_no_threads_of_their_own():
    found = seen()
    assert sorted(size for size, _, _ in found) == [34, *[100] * 12]
    assert {allowed for _, _, allowed in found} == {1}
    assert allowed_threads() == 3


def test_the_first_chunk_is_done_before_others_begin():
    first = threading.Event()

    def compute(rows):
        if rows.start == 0:
            first.set()
        assert first.is_set()
        return X[rows]

    in_chunks(compute, len(X), 4)


def test_as_many_threads_as_asked_for():
    here = threading.get_ident()
    assert {ident for _, ident, _ in seen(n_jobs=1)} == {here}
    assert {ident for _, ident, _ in seen(n_jobs=3)[1:]}.isdisjoint({here})


def test_a_thread_that_is_one_of_many_stays_alone():
    found = []
    worker = threading.Thread(target=lambda: found.extend(seen(n_jobs=4)))
    worker.start()
    worker.join()
    assert len({ident for _, ident, _ in found}) == 1


def test_few_rows_are_one_chunk_with_all_threads():
    assert in_chunks(lambda rows: (rows, allowed_threads()), 50, None) == [(slice(0, 50), 3)]


def test_errors_pass():
    def compute(rows):
        if rows.start == 534:
            raise ValueError("chunk 5")
        return X[rows]

    with pytest.raises(ValueError, match="chunk 5"):
        in_chunks(compute, len(X), 2)


@pytest.mark.slow
def test_scores_explanations_and_reports_agree_to_the_bit():
    detector = FusedDetector("light", random_state=0).fit(X[:150])
    scores = detector.score_samples(X)
    whole_chunks = 434
    assert np.array_equal(detector.explain(X[:whole_chunks]).score, scores[:whole_chunks])
    data = report_data(detector, X, title="")
    assert np.array_equal(data.scores, scores)
    assert np.array_equal(data.explanation.score, scores[data.rows])
