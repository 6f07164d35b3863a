"""Search: the same neighbours by the kernel, by its twin and by definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse import kernels
from ocfuse.nearest import exact, partition, quantised
from ocfuse.nearest import index as search
from ocfuse.nearest.index import NeighbourIndex
from ocfuse.nearest.partition import cell_centres

KERNELS = [None] if kernels.kernel is None else ["AVX2", "baseline", None]


@pytest.fixture(params=KERNELS, ids=str)
def build(request, monkeypatch):
    """Search by the kernel, as built for this machine and for every machine, or by NumPy."""
    if request.param is None:
        for module in (exact, quantised, search):
            monkeypatch.setattr(module, "kernel", None)
        yield "NumPy"
        return
    kernels.kernel.use_baseline(request.param == "baseline")
    yield kernels.kernel.instruction_set()
    kernels.kernel.use_baseline(False)


def by_definition(X, Y, k, looked_at=None):
    gaps = Y[None] - X[:, None]
    squares = np.einsum("qnm,qnm->qn", gaps, gaps)
    seen = squares if looked_at is None else np.where(looked_at, squares, np.inf)
    index = np.lexsort((np.broadcast_to(np.arange(len(Y)), squares.shape), seen))[:, :k]
    return np.take_along_axis(squares, index, axis=1), index


def assert_same(found, expected):
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


@st.composite
def tables(draw):
    """Rows to search for and rows to find: ties, duplicates, huge and tiny numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(1, 80)), draw(st.integers(1, 20))
    levels = draw(st.sampled_from([1, 2, 5, None]))
    shape = (n + draw(st.integers(0, 9)), m)
    Z = rng.normal(size=shape) if levels is None else 1.0 * rng.integers(levels, size=shape)
    if draw(st.booleans()):
        Z[:, rng.integers(m)] = 7.0
    if draw(st.booleans()):
        Z[rng.integers(len(Z))] *= draw(st.sampled_from([1e10, 1e30, 1e149]))
    if draw(st.booleans()):  # clusters that single precision sees as points
        Z = 1e-6 * Z + rng.integers(2, size=(len(Z), 1))
    Z = np.clip(Z * draw(st.sampled_from([1e-150, 1.0, 1e20])), -1e150, 1e150)
    return Z[n:], Z[:n]


@pytest.mark.slow
@given(tables=tables(), k=st.integers(1, 90), at_once=st.sampled_from([3, 1024]))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("name", [str(name) for name in KERNELS])
def test_search_agrees_with_the_definition(name, tables, k, at_once):
    X, Y = tables
    k = min(k, len(Y))
    with pytest.MonkeyPatch.context() as patch:
        if name == "None":
            for module in (exact, quantised, search):
                patch.setattr(module, "kernel", None)
        else:
            kernels.kernel.use_baseline(name == "baseline")
        patch.setattr(quantised, "PRODUCT_ROWS", at_once)
        patch.setattr(quantised, "PRODUCTS_AT_ONCE", 20 * at_once)
        patch.setattr(search, "QUERIES_AT_ONCE", 2 * at_once)
        rows = NeighbourIndex(Y)
        found, graph = rows.of(X, k), rows.graph(k)
        if kernels.kernel is not None:
            kernels.kernel.use_baseline(False)
    assert_same(found, by_definition(X, Y, k))
    assert_same(graph, by_definition(Y, Y, k))


def test_no_row_and_no_neighbour(build):
    rows = NeighbourIndex(np.arange(6.0).reshape(3, 2))
    assert rows.of(np.empty((0, 2)), 2)[0].shape == (0, 2)
    assert rows.of(np.ones((4, 2)), 0)[1].shape == (4, 0)
    assert rows.graph(0)[1].shape == (3, 0)


def test_rows_that_are_not_contiguous(build):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(12, 80))
    X, Y = Z.T[::5, ::2], np.asfortranarray(Z.T[:, 1::2])
    expected = by_definition(np.ascontiguousarray(X), np.ascontiguousarray(Y), 9)
    assert_same(NeighbourIndex(Y).of(X, 9), expected)


def test_a_crowd_of_duplicates_hides_nobody(build):
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(40, 3)).repeat(rng.integers(1, 60, size=40), axis=0)
    Y = Y[rng.permutation(len(Y))]
    assert_same(NeighbourIndex(Y).graph(30), by_definition(Y, Y, 30))


@pytest.mark.slow
@pytest.mark.skipif(kernels.kernel is None, reason="the kernel is not built")
def test_single_precision_alone_answers_ordinary_rows(monkeypatch):
    X = np.random.default_rng(2).normal(size=(3000, 30))

    def refuse(*_):
        raise AssertionError("double precision was asked")

    monkeypatch.setattr(NeighbourIndex, "_by_distances", refuse)
    rows = NeighbourIndex(X[:2500])
    assert_same(rows.of(X[2500:], 20), by_definition(X[2500:], X[:2500], 20))
    rows.graph(20)


def test_a_crowd_goes_to_double_precision(build):
    # All distances are below the rounding of single precision.
    rng = np.random.default_rng(3)
    Y = 1e4 * np.repeat([[1.0], [-1.0]], 400, axis=0) + 1e-4 * rng.normal(size=(800, 4))
    assert_same(NeighbourIndex(Y).graph(5), by_definition(Y, Y, 5))


@pytest.fixture
def small_cells(monkeypatch):
    monkeypatch.setattr(partition, "ROWS_PER_CELL", 20)
    monkeypatch.setattr(partition, "ROWS_LOOKED_AT", 150)
    monkeypatch.setattr(search, "ROWS_LOOKED_AT", 150)


def looked_at(X, Y, centres):
    """Tell by definition which rows a search looks at."""
    _, order = by_definition(centres, centres, len(centres))
    cell_of, home = (by_definition(Z, centres, 1)[1][:, 0] for Z in (Y, X))
    different = [len(np.unique(Y[cell_of == c], axis=0)) for c in range(len(centres))]
    seen = np.zeros((len(X), len(Y)), dtype=bool)
    for i, own in enumerate(home):
        total = 0
        for c in order[own]:
            seen[i, cell_of == c] = True
            total += different[c]
            if total >= 150:
                break
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("levels", [3, None])
def test_cells_give_the_nearest_of_the_rows_looked_at(build, small_cells, levels):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(1200, 5)) if levels is None else 1.0 * rng.integers(levels, size=(1200, 5))
    X, Y = Z[:200], Z[200:]
    centres = cell_centres(Y)
    rows = NeighbourIndex(Y, centres)
    assert_same(rows.of(X, 12), by_definition(X, Y, 12, looked_at(X, Y, centres)))
    assert_same(rows.graph(12), by_definition(Y, Y, 12, looked_at(Y, Y, centres)))


def test_with_cells_a_row_does_not_depend_on_its_batch(build, small_cells):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(60, 6)), rng.normal(size=(900, 6))
    rows = NeighbourIndex(Y, cell_centres(Y))
    together = rows.of(X, 7)
    alone = [rows.of(X[i : i + 1], 7) for i in range(60)]
    assert_same(together, tuple(np.concatenate(part) for part in zip(*alone, strict=True)))


def test_a_graph_too_large_to_hold_is_the_same(build, small_cells, monkeypatch):
    Y = np.random.default_rng(6).normal(size=(700, 4))
    centres = cell_centres(Y)
    expected = NeighbourIndex(Y, centres).graph(9)
    monkeypatch.setattr(search, "MOST_CANDIDATES", 1)
    assert_same(NeighbourIndex(Y, centres).graph(9), expected)


def test_more_neighbours_than_are_looked_at(build, small_cells):
    X, Y = np.random.default_rng(7).normal(size=(2, 600, 3))
    found = NeighbourIndex(Y, cell_centres(Y)).of(X[:20], 400)
    assert_same(found, by_definition(X[:20], Y, 400))
