"""Costs are added, and what is shared is counted once."""

import pytest

from ocfuse.cost import Cost, Shape, guessed_cost


def test_work_is_repeated_in_folds_and_what_is_made_of_rows_is_held_twice():
    once, folded = Shape(100, 7), Shape(100, 7, folds=4)
    assert once.fits() == once.fits(3) == once.held == 1
    assert folded.fits() == 4
    assert folded.fits(2) == 1 + 4 * 0.75**2
    assert folded.held == 1.75
    assert once.cells == 700


def test_costs_are_added_by_kind_and_of_scratch_the_most_counts():
    one = Cost({"a": 1}, {"b": 2}, {"c": 3}, {"d": 4, "e": 9}, {"f": 5})
    two = Cost({"a": 10, "z": 7}, {"b": 20}, {"c": 30}, {"d": 40}, {"f": 50}, is_guess=True)
    both = one + two
    assert both.fit_work == {"a": 11, "z": 7}
    assert both.score_work == {"b": 22}
    assert both.fit_bytes == {"c": 33}
    assert both.scratch_bytes == {"d": 40, "e": 9}
    assert both.model_bytes == {"f": 55}
    assert both.is_guess
    assert not one.is_guess
    assert (one + Cost(fit_bytes={"d": 1})).peak_bytes() == {"c": 3, "d": 5, "e": 9}


def test_what_is_shared_is_counted_once():
    part = Cost(fit_work={"a": 5}, methods=frozenset({"exact"}))
    one = Cost(fit_work={"a": 1}, shared={"key": part})
    total = (one + one + Cost(shared={"other": part})).total()
    assert total.fit_work == {"a": 1 + 1 + 5 + 5}
    assert total.shared == {}
    assert total.methods == {"exact"}


def test_of_what_is_shared_the_most_that_one_asks_for_counts():
    few = Cost(shared={"key": Cost({"a": 1, "b": 9}, scratch_bytes={"c": 1})})
    many = Cost(shared={"key": Cost({"a": 5}, {"s": 2}, scratch_bytes={"c": 3})})
    for both in (few + many, many + few):
        assert both.total() == Cost({"a": 5, "b": 9}, {"s": 2}, scratch_bytes={"c": 3})


def test_a_guess_is_the_bytes_of_the_rows():
    cost = guessed_cost(Shape(100, 7, folds=4))
    assert cost.is_guess
    assert cost.fit_bytes == pytest.approx({"bytes": 1.75 * 8 * 700})
    assert cost.model_bytes == {"bytes": 8 * 700}
    assert cost.fit_work == cost.score_work == {}
