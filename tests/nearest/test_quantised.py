"""Neighbours by codes: nearly all of them, and the same from every build and batch."""

import numpy as np
import pytest

from ocfuse import kernels
from ocfuse.nearest import exact, partition, quantised
from ocfuse.nearest import index as search
from ocfuse.nearest.index import NeighbourIndex
from ocfuse.nearest.partition import cell_centres
from ocfuse.nearest.quantised import CodedRows

KERNELS = [None] if kernels.kernel is None else ["AVX2", "baseline", None]


@pytest.fixture(params=KERNELS, ids=str)
def build(request, monkeypatch):
    """Search by the kernel, as built for this machine and for every machine, or by NumPy."""
    monkeypatch.setattr(search, "LEAST_WORK", 0)
    if request.param is None:
        for module in (quantised, exact, quantised, search):
            monkeypatch.setattr(module, "kernel", None)
        yield "NumPy"
        return
    kernels.kernel.use_baseline(request.param == "baseline")
    yield kernels.kernel.instruction_set()
    kernels.kernel.use_baseline(False)


def made_rows(n, m=70, factors=5, seed=0):
    rng = np.random.default_rng(seed)
    loads = np.random.default_rng(1).normal(size=(factors, m))
    return rng.normal(size=(n, factors)) @ loads + 0.1 * rng.normal(size=(n, m))


def by_definition(X, Y, k):
    squares = np.array([np.einsum("nm,nm->n", Y - x, Y - x) for x in X])
    index = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squares, index, axis=1), index


def assert_same(found, expected):
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


def share_found(index, expected):
    return np.mean([np.isin(a, b).mean() for a, b in zip(expected, index, strict=True)])


@pytest.mark.slow
def test_nearly_all_neighbours_are_found_and_measured(build):
    X, Y = made_rows(50, seed=2), made_rows(900)
    rows = NeighbourIndex(Y)
    assert isinstance(rows._products, CodedRows)
    for found, Z in ((rows.of(X, 12), X), (rows.graph(12), Y)):
        expected = by_definition(Z, Y, 12)
        assert share_found(found[1], expected[1]) > 0.99
        gaps = Y[found[1]] - Z[:, None]
        np.testing.assert_allclose(found[0], np.square(gaps).sum(axis=2), rtol=1e-5)
        assert (np.diff(found[0], axis=1) >= 0).all()
    assert (rows.graph(1)[0] == 0).all()


@pytest.mark.parametrize("m", [48, 63, 131])
def test_every_build_gives_the_same(build, m, monkeypatch):
    X, Y = made_rows(40, m, seed=3), made_rows(700, m)
    Y[100:180] = Y[3]  # more duplicates than neighbours
    Y[200:400, : m // 2] = np.round(Y[200:400, : m // 2])
    X[:5] = Y[:5]
    X[5] *= 1e12
    X[6] = 1e149
    found = NeighbourIndex(Y).of(X, 20)
    with monkeypatch.context() as patch:
        patch.setattr(quantised, "kernel", None)
        assert_same(found, NeighbourIndex(Y).of(X, 20))
    assert (found[0][3, :1] == 0).all()
    np.testing.assert_array_equal(found[1][3], [3, *range(100, 119)])


@pytest.mark.slow
def test_a_row_does_not_depend_on_its_batch(build):
    X, Y = made_rows(70, seed=4), made_rows(600)
    rows = NeighbourIndex(Y)
    together = rows.of(X, 7)
    for size in (1, 6):
        parts = [rows.of(X[i : i + size], 7) for i in range(0, 70, size)]
        assert_same(together, tuple(np.concatenate(part) for part in zip(*parts, strict=True)))
    squares, index = rows.graph(7)
    assert_same((squares, index), rows.of(Y, 7))


def test_only_the_cells_around_a_row_are_looked_at(build, monkeypatch):
    monkeypatch.setattr(partition, "ROWS_PER_CELL", 20)
    monkeypatch.setattr(partition, "ROWS_LOOKED_AT", 150)
    monkeypatch.setattr(search, "ROWS_LOOKED_AT", 150)
    groups = np.random.default_rng(5).integers(4, size=(900, 1))
    Y = made_rows(900) + 50.0 * groups
    rows = NeighbourIndex(Y, cell_centres(Y))
    assert isinstance(rows._products, CodedRows)
    squares, index = rows.graph(9)
    assert (groups[index] == groups[:, None]).all()
    assert_same(rows.of(Y[::7], 9), (squares[::7], index[::7]))
    for c, near in enumerate(rows._cells.near):
        own = rows._distinct.numbers_of([rows._cells.rows[c]])
        seen = rows._distinct.numbers_of([rows._cells.rows[d] for d in near])
        assert np.isin(index[own], seen).all()


def test_rows_without_leading_directions_are_searched_exactly(build):
    Y = np.random.default_rng(6).normal(size=(800, 60))
    rows = NeighbourIndex(Y)
    assert not isinstance(rows._products, CodedRows)
    assert share_found(rows.graph(5)[1], by_definition(Y, Y, 5)[1]) == 1.0


@pytest.mark.slow
def test_in_cells_rows_without_leading_directions_go_by_all_columns(build):
    Y = np.random.default_rng(9).normal(size=(1200, 7))
    rows = NeighbourIndex(Y, cell_centres(Y))
    assert isinstance(rows._products, CodedRows)
    assert share_found(rows.graph(20)[1], by_definition(Y, Y, 20)[1]) > 0.999


def test_few_rows_need_no_directions():
    assert quantised.leading(made_rows(60)) is None


@pytest.mark.slow
def test_what_is_very_near_is_measured_in_double_precision(build):
    Y = made_rows(900)
    Y[1::2] = Y[::2] + 1e-9 * made_rows(450, seed=8)
    squares, index = NeighbourIndex(Y).graph(2)
    expected = np.arange(900).reshape(-1, 2)[:, ::-1].ravel()
    np.testing.assert_array_equal(index[:, 1], expected)
    np.testing.assert_array_equal(squares[:, 1], by_definition(Y, Y, 2)[0][:, 1])


def test_a_crowd_at_one_distance_is_measured_exactly(build):
    # Not by codes, which cannot tell them apart: 5,000 different rows, all as far from each
    # other as single precision can tell.
    rng = np.random.default_rng(7)
    Y = np.zeros((5000, 96))
    Y[:, :2] = rng.normal(size=(5000, 2))
    Y[2000:] = Y[2000] + 1e-9 * rng.normal(size=(3000, 96))
    found = NeighbourIndex(Y).of(Y[2000:2010], 5)
    assert_same(found, by_definition(Y[2000:2010], Y, 5))


def test_what_is_said_of_a_crowd_is_not_read(build, monkeypatch):
    name = "_by_numpy" if build == "NumPy" else "_by_kernel"
    search_codes = getattr(CodedRows, name)

    def leaves_anything(self, x, looked_at, k):
        (squares, index), crowded = search_codes(self, x, looked_at, k)
        squares[crowded], index[crowded] = -1.0, 2**40
        return (squares, index), crowded

    monkeypatch.setattr(CodedRows, name, leaves_anything)
    Y = made_rows(3000)
    # Rows that are not among those by which directions are tried.
    crowd = [i for i in range(1000) if i % (3000 // 128 + 1)]
    Y[crowd] = 5.0 * Y[1] + 1e-9 * Y[crowd]
    rows = NeighbourIndex(Y)
    assert isinstance(rows._products, CodedRows)
    assert rows._products.of(Y[:90], np.zeros(90, dtype=np.intp), 5)[1].any()
    assert_same(rows.of(Y[1:4], 5), by_definition(Y[1:4], Y, 5))


@pytest.mark.parametrize("far", [1e3, 1e4, 1e6])
def test_clusters_too_far_from_each_other_for_codes_are_searched_otherwise(build, far):
    Y = made_rows(1000)
    Y[1::2] += far * np.eye(70)[0]
    expected = by_definition(Y[:40], Y, 9)
    squares, index = NeighbourIndex(Y).of(Y[:40], 9)
    assert share_found(index, expected[1]) > 0.99
    np.testing.assert_allclose(squares[:, -1], expected[0][:, -1], rtol=1e-2)


def test_in_cells_too_rows_too_far_for_codes_are_searched_otherwise(build):
    Y = np.random.default_rng(9).normal(size=(1200, 7))
    Y[5] += 1e9
    rows = NeighbourIndex(Y, cell_centres(Y))
    assert not isinstance(rows._products, CodedRows)
    assert share_found(rows.graph(20)[1], by_definition(Y, Y, 20)[1]) > 0.999


@pytest.mark.parametrize("far", [0.0, 10.0, 30.0, 100.0])
def test_distances_are_right_to_five_digits(build, far):
    rng = np.random.default_rng(10)
    Y = made_rows(1000)
    Y[::2] += far * rng.normal(size=70)
    X = Y[:60] + 0.01 * rng.normal(size=(60, 70))
    squares, index = NeighbourIndex(Y).of(X, 9)
    gaps = Y[index] - X[:, None]
    np.testing.assert_allclose(np.sqrt(squares), np.linalg.norm(gaps, axis=2), rtol=1e-5)
