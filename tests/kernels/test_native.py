"""The kernel of rows refuses what would make it read beyond its tables."""

import os
import subprocess
import sys

import numpy as np
import pytest

from ocfuse import kernels
from ocfuse.kernels import thread_count
from ocfuse.nearest import quantised

pytestmark = pytest.mark.skipif(kernels.kernel is None, reason="the kernel is not built")

NUMBERS = np.arange(4, dtype=np.int32)
SQUARES = np.zeros(4, dtype=np.float32)
TABLE = np.zeros((4, 2))
LARGEST = np.iinfo(np.int64).max


def own_members(n):
    return np.arange(n + 1), np.arange(n)


def candidates(**changes):
    given = {"norms": np.zeros(4), "k": 2, "most": 9, "c": 1e-5, "tiny": 0.0} | changes
    return kernels.kernel.Candidates(*given.values())


def add(**changes):
    given = {
        "products": np.zeros((4, 4), dtype=np.float32),
        "rows": NUMBERS, "columns": NUMBERS, "squares": SQUARES, "others": SQUARES, "both": False,
    } | changes  # fmt: skip
    found = candidates()
    found.add(*given.values())
    return found


@pytest.mark.parametrize(
    "changes", [{"k": 0}, {"most": 1}, {"c": 0.1}, {"c": np.nan}, {"norms": np.zeros((2, 2))}]
)
def test_wrong_candidates_are_refused(changes):
    with pytest.raises(ValueError, match=r"norms|columns"):
        candidates(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"products": np.zeros((4, 3), dtype=np.float32)},
        {"products": np.zeros((4, 8), dtype=np.float32)[:, ::2]},
        {"rows": NUMBERS + 1},
        {"rows": NUMBERS - 1},
        {"columns": NUMBERS - 1},
        {"columns": NUMBERS + 1, "both": True},
        {"columns": NUMBERS[::-1].copy(), "both": True},
        {"others": SQUARES[:3]},
        {"squares": SQUARES[:3]},
    ],
)
def test_wrong_products_are_refused(changes):
    with pytest.raises(ValueError, match=r"products|number|columns"):
        add(**changes)


@pytest.mark.parametrize(
    ("X", "Y", "members", "k"),
    [
        (TABLE[:3], TABLE, own_members(4), 2),
        (TABLE, TABLE[:3], own_members(3), 2),
        (TABLE, TABLE[:, :1], own_members(4), 2),
        (TABLE, TABLE, own_members(3), 2),
        (TABLE, TABLE, (np.array([0, 1, 1, 2, 4]), np.arange(4)), 2),
        (TABLE, TABLE, (np.array([0, 1, 2, 3, 5]), np.arange(4)), 2),
        (TABLE, TABLE, own_members(4), 5),
        # differences of these overflow, and come out as 1 or more
        (TABLE, TABLE, (np.array([0, LARGEST, -LARGEST - 1, -1, 4]), np.arange(4)), 2),
    ],
)
def test_wrong_tables_are_refused(X, Y, members, k):
    with pytest.raises(ValueError, match=r"X|row|member|start|candidates"):
        add().nearest(X, Y, members, k, 1)


def test_arrays_of_other_orders_and_narrower_types_are_converted():
    D = np.arange(6.0).reshape(2, 3)
    unaligned = np.zeros(D.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(D.shape)
    unaligned[:] = D
    expected = kernels.kernel.decay(D, 0.5, 1)
    for given in (
        np.asfortranarray(D), D.astype(np.int16), D.astype(np.float32), D.astype(">f8"),
        D.tolist(), D[::-1][::-1], np.repeat(D, 2, axis=1)[:, ::2], unaligned,
    ):  # fmt: skip
        np.testing.assert_array_equal(kernels.kernel.decay(given, 0.5, 1), expected)
    D.flags.writeable = False
    np.testing.assert_array_equal(kernels.kernel.decay(D, 0.5, 1), expected)
    with pytest.raises(TypeError, match="may be changed"):
        kernels.kernel.complete(D, np.zeros(3), np.zeros(2), 1)


def test_empty_arrays_and_single_numbers_have_their_shape():
    for D in (np.zeros((0, 3)), np.zeros((2, 0, 4)), np.array(0.0)):
        assert kernels.kernel.decay(D, 1.0, 1).shape == D.shape


@pytest.mark.parametrize(
    "given",
    [
        (),
        (TABLE,),
        (TABLE, 20, 1, 1),
        (TABLE, 20.0, 1),
        (TABLE, "20", 1),
        (TABLE + 1j, 20, 1),
        (TABLE.astype(object), 20, 1),
        (np.zeros((4, 2), dtype="datetime64[s]"), 20, 1),
        ("rows", 20, 1),
        (None, 20, 1),
    ],
)
def test_what_is_no_number_is_refused(given):
    with pytest.raises((TypeError, ValueError)):
        kernels.kernel.whole(*given)


def test_numbers_that_would_lose_digits_are_refused():
    with pytest.raises(TypeError):
        add(rows=NUMBERS.astype(float))
    with pytest.raises(TypeError):
        add(squares=SQUARES.astype(float))
    with pytest.raises(OverflowError):
        kernels.kernel.whole(TABLE, 2**40, 1)
    with pytest.raises(OverflowError):
        candidates(k=2**70)
    with pytest.raises(TypeError):
        kernels.kernel.Candidates(norms=np.zeros(4), k=2, most=9, c=1e-5, tiny=0.0)
    with pytest.raises(TypeError, match="2 arguments expected, 3 given"):
        add().nearest(TABLE, TABLE, (*own_members(4), 1), 2, 1)


def test_arrays_are_let_go_after_answers_and_errors():
    X, rows, members = TABLE.copy(), NUMBERS.copy(), own_members(4)
    held = [X, rows, *members]
    before = [sys.getrefcount(array) for array in held]
    for _ in range(50):
        add(rows=rows).nearest(X, X, members, 2, 1)
        kernels.kernel.whole(X, 20, 1)
        for k in (5, 0.5):
            with pytest.raises((TypeError, ValueError)):
                add(rows=rows).nearest(X, X, members, k, 1)
    assert [sys.getrefcount(array) for array in held] == before


def test_fewer_candidates_than_neighbours_are_refused():
    with pytest.raises(ValueError, match="fewer candidates"):
        candidates().nearest(TABLE, TABLE, own_members(4), 2, 1)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_a_matrix_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match="D must"):
        kernels.kernel.nearest_by_matrix(np.zeros(shape), np.zeros(4), 1e-9, TABLE, TABLE, 2, 1)


def test_a_matrix_without_numbers_is_refused():
    D = np.full((4, 4), np.nan)
    with pytest.raises(ValueError, match="fewer candidates"):
        kernels.kernel.nearest_by_matrix(D, np.zeros(4), 1e-9, TABLE, TABLE, 2, 1)


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 9)), rng.normal(size=(300, 9))
    D = np.square(X[:, None] - Y).sum(axis=2)
    norms = np.square(X).sum(axis=1)
    one, many = (
        kernels.kernel.nearest_by_matrix(D, norms, 1e-12, X, Y, 7, threads) for threads in (1, 5)
    )
    np.testing.assert_array_equal(one[0], many[0])
    np.testing.assert_array_equal(one[1], many[1])


def test_threads_are_as_many_as_the_work_is_worth(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert [thread_count(work) for work in (0, 2**21, 2**40)] == [1, 2, 3]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= thread_count(2**40) <= (os.cpu_count() or 1)


def by_codes(**changes):
    codes, rows = np.zeros((4, 6), dtype=np.int16), np.zeros((4, 3), dtype=np.float32)
    panels, per_row = np.zeros((1, 3, 16, 2), dtype=np.int16), np.zeros(16, dtype=np.float32)
    given = {
        "x": (codes, SQUARES, np.zeros(4), rows), "y": (panels, per_row, per_row, rows),
        "members": own_members(4), "ranges": np.array([[0, 4]]),
        "k": 2, "size": 3, "most": 9, "threads": 1,
    } | changes  # fmt: skip
    return kernels.kernel.nearest_by_codes(*given.values())


def test_codes_are_searched():
    (squares, index), crowded = by_codes()
    np.testing.assert_array_equal(index, np.tile([0, 1], (4, 1)))
    assert not squares.any()
    assert not crowded.any()


@pytest.mark.parametrize(
    ("name", "part", "table"),
    [
        ("x", 0, np.zeros((3, 6), dtype=np.int16)),
        ("x", 0, np.zeros((4, 4), dtype=np.int16)),
        ("x", 0, np.zeros((4, 5), dtype=np.int16)),
        ("x", 1, SQUARES[:3]),
        ("x", 2, np.zeros(3)),
        ("x", 3, np.zeros((4, 2), dtype=np.float32)),
        ("y", 0, np.zeros((1, 3, 15, 2), dtype=np.int16)),
        ("y", 1, SQUARES),
        ("y", 2, SQUARES),
        ("y", 3, np.zeros((17, 3), dtype=np.float32)),
    ],
)
def test_wrong_codes_are_refused(name, part, table):
    codes, rows = np.zeros((4, 6), dtype=np.int16), np.zeros((4, 3), dtype=np.float32)
    panels, per_row = np.zeros((1, 3, 16, 2), dtype=np.int16), np.zeros(16, dtype=np.float32)
    given = {"x": [codes, SQUARES, np.zeros(4), rows], "y": [panels, per_row, per_row, rows]}
    given[name][part] = table
    with pytest.raises(ValueError, match=r"must"):
        by_codes(x=tuple(given["x"]), y=tuple(given["y"]))


@pytest.mark.parametrize(
    "changes",
    [
        {"ranges": np.array([[0, 5]])},
        {"ranges": np.array([[-1, 3]])},
        {"ranges": np.array([[2, 2]])},
        {"ranges": np.array([0, 4])},
        {"ranges": np.empty((0, 2), dtype=np.int64)},
        {"ranges": np.array([[0, 1]])},
        {"k": 0},
        {"size": 0},
        {"most": 2},
    ],
)
def test_wrong_ranges_are_refused(changes):
    with pytest.raises(ValueError, match=r"must|fewer"):
        by_codes(**changes)


@pytest.mark.parametrize("is_baseline", [False, True])
@pytest.mark.parametrize(
    ("n", "m", "q"), [(1, 3, 5), (2, 1, 9), (7, 9, 300), (40, 20, 1), (5, 4, 0)]
)
def test_tails_by_definition(n, m, q, is_baseline):
    rng = np.random.default_rng(n)
    columns = np.sort(rng.integers(4, size=(m, n)).astype(float), axis=1)
    X = rng.integers(-1, 6, size=(q, m)).astype(float)
    kernels.kernel.use_baseline(is_baseline)
    found = kernels.kernel.tails(columns, X, 2)
    kernels.kernel.use_baseline(False)
    not_above = (columns.T[None] <= X[:, None]).sum(axis=1)
    not_below = (columns.T[None] >= X[:, None]).sum(axis=1)
    np.testing.assert_array_equal(found, np.minimum(not_above, not_below))


@pytest.mark.parametrize(
    ("columns", "X"),
    [
        (np.zeros((3, 4)), np.zeros((2, 4))),
        (np.zeros((3, 0)), np.zeros((2, 3))),
        (np.zeros(3), np.zeros((2, 3))),
        (np.zeros((3, 4)), np.zeros(3)),
    ],
)
def test_wrong_columns_are_refused(columns, X):
    with pytest.raises(ValueError, match="sorted column"):
        kernels.kernel.tails(columns, X, 1)


@pytest.fixture(params=["AVX2", "baseline"])
def build(request):
    kernels.kernel.use_baseline(request.param == "baseline")
    yield
    kernels.kernel.use_baseline(False)


@pytest.mark.usefixtures("build")
def test_decay_is_the_exponential():
    rng = np.random.default_rng(0)
    t = np.append(rng.exponential(30.0, size=5000), [0.0, -0.0, 5e-324, 1e-17, 0.34657, 707.9])
    np.testing.assert_allclose(kernels.kernel.decay(t, 1.0, 2), np.exp(-t), rtol=1e-15, atol=0)
    halved = kernels.kernel.decay(t.reshape(2, -1), 0.5, 1)
    np.testing.assert_allclose(halved, np.exp(-t / 2).reshape(2, -1), rtol=1e-15, atol=0)


@pytest.mark.usefixtures("build")
def test_decay_ends_at_nothing():
    far = kernels.kernel.decay(np.array([708.1, 745.0, 1e9, 1e308, np.inf]), 1.0, 1)
    np.testing.assert_array_equal(far, 0.0)


def test_every_build_decays_to_the_same_bits():
    t = np.random.default_rng(1).exponential(30.0, size=4099)
    kernels.kernel.use_baseline(True)
    baseline = kernels.kernel.decay(t, 1.0, 1)
    kernels.kernel.use_baseline(False)
    np.testing.assert_array_equal(kernels.kernel.decay(t, 1.0, 1), baseline)


@pytest.mark.usefixtures("build")
def test_squares_are_completed_in_place():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(7, 5)), rng.normal(size=(11, 5))
    Y[3] = X[2]
    D, columns, rows = -2.0 * X @ Y.T, (Y**2).sum(axis=1), (X**2).sum(axis=1)
    expected = np.maximum((D + columns) + rows[:, None], 0.0)
    kernels.kernel.complete(D, columns, rows, 2)
    np.testing.assert_array_equal(D, expected)


@pytest.mark.parametrize(
    ("D", "columns", "rows"),
    [
        (np.zeros((2, 3)), np.zeros(2), np.zeros(2)),
        (np.zeros((2, 3)), np.zeros(3), np.zeros(3)),
        (np.zeros(3), np.zeros(3), np.zeros(1)),
    ],
)
def test_squares_must_be_of_the_same_rows(D, columns, rows):
    with pytest.raises(ValueError, match="a square for every row"):
        kernels.kernel.complete(D, columns, rows, 1)


@pytest.mark.parametrize("D", [np.zeros((2, 3), dtype=np.float32), np.zeros((3, 2)).T])
def test_squares_are_not_completed_in_a_copy(D):
    with pytest.raises(TypeError):
        kernels.kernel.complete(D, np.zeros(3), np.zeros(2), 1)


@pytest.mark.usefixtures("build")
def test_whole_numbers_are_those_of_numpy(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(70, 33)) * np.logspace(-200, 200, 70)[:, None]
    rows[3], rows[4, 5:] = 0.0, -0.0
    compiled = quantised._whole(rows, 20)
    monkeypatch.setattr(quantised, "kernel", None)
    for found, expected in zip(compiled, quantised._whole(rows, 20), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bits", [0, 54])
def test_whole_numbers_have_some_bits(bits):
    with pytest.raises(ValueError, match="1 to 53 bits"):
        kernels.kernel.whole(TABLE, bits, 1)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("values", ["different", "few", "equal", "falling", "far"])
@pytest.mark.parametrize(
    ("n", "k"), [(5, 5), (7, 1), (300, 20), (300, 300), (2000, 20), (2000, 1999)]
)
def test_the_smallest_are_the_first_of_a_stable_sort(values, n, k):
    rng = np.random.default_rng(0)
    D = {
        "different": rng.normal(size=(20, n)),
        "few": rng.integers(0, 4, size=(20, n)).astype(float),
        "equal": np.zeros((3, n)),
        "falling": np.sort(rng.normal(size=(20, n)))[:, ::-1].copy(),
        "far": np.where(rng.random((20, n)) < 0.9, np.inf, rng.normal(size=(20, n))),
    }[values]
    expected = D.argsort(axis=1, kind="stable")[:, :k]
    for threads in (1, 2):
        np.testing.assert_array_equal(kernels.kernel.smallest(D, k, threads), expected)


@pytest.mark.parametrize("k", [1, 20, 1000])
def test_what_is_no_number_is_as_far_as_can_be(k):
    rng = np.random.default_rng(0)
    D = rng.normal(size=(20, 2000))
    D[rng.random(D.shape) < 0.3] = np.nan
    D[0], D[1, 5:] = np.nan, np.nan
    expected = np.where(np.isnan(D), np.inf, D).argsort(axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(kernels.kernel.smallest(D, k, 1), expected)


@pytest.mark.parametrize(("D", "k"), [(TABLE, 0), (TABLE, 3), (np.zeros(4), 1)])
def test_there_are_no_more_smallest_than_values(D, k):
    with pytest.raises(ValueError, match="number of columns"):
        kernels.kernel.smallest(D, k, 1)


ENDING = """\
import threading, time
import numpy as np
from ocfuse.solvers import solve_batch

rng = np.random.default_rng(0)
S, y = rng.normal(size=(400, 6)), np.ones(400)
index = rng.integers(0, 400, size=(200, 40))
calls = []

def compute():
    while True:
        solve_batch(S, y, index, np.full(index.shape, 1 / 40), 2.0)
        calls.append(1)

for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
while len(calls) < 3:
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_program_may_end_while_other_threads_compute():
    """As one that is interrupted does: Python then ends a thread where it asks for its lock."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
