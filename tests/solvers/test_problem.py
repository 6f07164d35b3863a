"""Bad input is refused with what was given, what is expected and what to do."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseError
from ocfuse.solvers import solve, solve_batch
from ocfuse.solvers.problem import Problem

S = np.array([[0.5, 0.2], [0.1, 0.9], [0.4, 0.4]])
Y = np.array([1.0, 1.0, -1.0])


def with_entry(value):
    bad = S.copy()
    bad[1, 0] = value
    return bad


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"S": with_entry(np.nan)}, ["S must be finite", "nan", "(1, 0)"]),
        ({"S": with_entry(np.inf)}, ["S must be finite", "inf", "(1, 0)"]),
        ({"S": S[:, 0]}, ["shape (n_samples, n_detectors)", "(3,)", "reshape"]),
        ({"S": np.empty((0, 2)), "y": []}, ["at least 1", "(0, 2)"]),
        ({"S": [["a", "b"]] * 3}, ["S must hold real numbers"]),
        ({"S": S.astype(complex)}, ["S must hold real numbers", "complex"]),
        ({"y": [1, 1]}, ["y must have shape (3,)", "(2,)"]),
        ({"y": [1, 0, 1]}, ["+1 (normal) and -1 (anomaly)", "Got 0", "1 - 2 * labels"]),
        ({"y": [1, np.nan, 1]}, ["+1 (normal) and -1 (anomaly)", "nan"]),
        ({"p": 0.5}, ["[1, inf]", "p=0.5"]),
        ({"p": -np.inf}, ["[1, inf]", "-inf"]),
        ({"p": np.nan}, ["[1, inf]", "nan"]),
        ({"p": [2.0, 2.0]}, ["solve_batch", "(2,)"]),
        ({"p": "two"}, ["p must hold real numbers"]),
        ({"sample_weight": [1, -1, 1]}, ["not be negative", "-1.0"]),
        ({"sample_weight": [1, np.nan, 1]}, ["sample_weight must be finite"]),
        ({"sample_weight": [1, 1]}, ["sample_weight must have shape (3,)", "(2,)"]),
        ({"sample_weight": [1e308, 1e308, 1e308]}, ["sum of sample_weight", "Divide"]),
        ({"tol": 0.0}, ["tol must be", "tol=0.0"]),
        ({"tol": -1e-4}, ["tol must be", "-0.0001"]),
        ({"tol": np.nan}, ["tol must be", "nan"]),
        ({"tol": "1e-4"}, ["tol must be", "'1e-4'"]),
        ({"tol": 1e-300}, ["at least 1e-12", "1e-300"]),
        ({"p": 10**400}, ["p must hold real numbers"]),
        ({"solver": "Frank_Wolfe"}, ["solver must be one of", "Frank_Wolfe"]),
        ({"max_iter": 0}, ["max_iter must be", "0"]),
        ({"max_iter": 1.5}, ["max_iter must be", "1.5"]),
        ({"solver": "simplex"}, ["solver must be one of", '"interior-point"', "'simplex'"]),
        ({"solver": 3}, ["solver must be one of", "3"]),
        ({"backend": "cuda"}, ["backend must be", "'cuda'"]),
    ],
)
def test_solve_refuses(change, words):
    arguments = {"S": S, "y": Y, "p": 2.0, **change}
    with pytest.raises(InvalidInputError) as error:
        solve(**arguments)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"index": [0, 1]}, ["index must have shape", "(2,)"]),
        ({"index": np.empty((2, 0), dtype=int)}, ["at least one neighbour", "(2, 0)"]),
        ({"index": [[0.0, 1.0]]}, ["index must hold integers", "float64"]),
        ({"index": [[0, 3]]}, ["[0, 2]", "from 0 to 3"]),
        ({"index": [[-1, 2]]}, ["[0, 2]", "from -1 to 2"]),
        ({"sample_weight": [[1.0, 1.0]]}, ["sample_weight must have shape (2, 2)", "(1, 2)"]),
        ({"p": [2.0, 2.0, 2.0]}, ["shape (2,)", "(3,)"]),
        ({"p": [2.0, 0.9]}, ["[1, inf]", "0.9"]),
        ({"n_threads": 0}, ["n_threads must be", "0"]),
        ({"n_threads": True}, ["n_threads must be", "True"]),
    ],
)
def test_solve_batch_refuses(change, words):
    arguments = {"S": S, "y": Y, "index": [[0, 1], [1, 2]], "sample_weight": None, "p": 2.0}
    with pytest.raises(InvalidInputError) as error:
        solve_batch(**{**arguments, **change})
    for word in words:
        assert word in str(error.value)


def test_errors_are_of_the_usual_kinds_too():
    with pytest.raises(ValueError, match="finite"):
        solve(with_entry(np.nan), Y, 2.0)
    with pytest.raises(TypeError, match="integers"):
        solve_batch(S, Y, [[0.5]], None, 2.0)
    assert issubclass(InvalidTypeError, OcfuseError)


def test_accepts_lists_integers_booleans_and_other_orders_of_memory():
    expected = solve(S, Y, 2.0, tol=1e-8).w
    for scores in (S.tolist(), np.asfortranarray(S), S.astype(object), S[::1]):
        np.testing.assert_allclose(solve(scores, Y, 2.0, tol=1e-8).w, expected, atol=1e-12)
    assert solve((S > 0.3).astype(bool), Y.astype(int), 2).status == 0
    index = np.array([[0, 1, 2]], dtype=np.uint8)
    answer = solve_batch(np.asfortranarray(S), Y, index, None, 2, tol=1e-8)
    np.testing.assert_allclose(answer.W[0], expected, atol=1e-6)


def test_any_number_of_iterations_may_be_allowed():
    assert solve(S, Y, 2.0, max_iter=2**40).status == 0


def test_input_is_not_changed():
    scores, labels, weight = S.copy(), Y.copy(), np.array([1.0, 2.0, 3.0])
    for array in (scores, labels, weight):
        array.flags.writeable = False
    solve(scores, labels, 2.0, weight)
    np.testing.assert_array_equal(scores, S)


def test_a_global_problem_shares_the_margins():
    problem = Problem.from_scores(S, Y, 2.0, None, False)
    assert np.shares_memory(problem.gather(), problem.A)


def test_no_problem_gives_an_empty_answer():
    answer = solve_batch(S, Y, np.empty((0, 2), dtype=int), None, 2.0)
    assert len(answer) == 0
    assert answer.W.shape == (0, 2)
