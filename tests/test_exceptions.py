"""The tree of errors that the docstring draws is the real one; names with a slip are answered."""

import inspect
import re

import pytest

from ocfuse import FusedDetector, exceptions
from ocfuse.detectors import make_pool
from ocfuse.fusion import make_fusion
from ocfuse.negatives import make_negatives
from ocfuse.scores import make_normaliser
from ocfuse.tuning import make_criterion

CLASSES = {
    name: kind
    for name, kind in vars(exceptions).items()
    if inspect.isclass(kind) and kind.__module__ == exceptions.__name__
}


def test_the_tree_is_complete_and_true():
    drawn = {}
    above = {}
    for line in exceptions.__doc__.splitlines():
        found = re.match(r"    ([│├└─ ]*)(\w+(?:Error|Warning))\b(?: \((?:also )?(\w+)\))?", line)
        if found:
            depth, name, other = len(found[1]), found[2], found[3]
            above[depth] = name
            drawn[name] = {above.get(depth - 4), other} - {None}
    assert drawn.keys() == CLASSES.keys()
    for name, kind in CLASSES.items():
        bases = {base.__name__ for base in kind.__bases__} - {"Exception"}
        assert drawn[name] == bases, name


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (lambda: make_pool("defalt"), "Did you mean 'default'"),
        (lambda: make_pool("knn5"), "Did you mean 'knn-5'"),
        (lambda: make_pool("knn-5,lof30"), "Did you mean 'lof-30'"),
        (lambda: make_pool("zzz"), "Members of them go by name too: "),
        (lambda: make_fusion("competance"), "Did you mean 'competence'"),
        (lambda: make_fusion("Median"), "Did you mean 'median'"),
        (lambda: make_normaliser("minmax"), "Did you mean 'min-max'"),
        (lambda: make_negatives("pc-shuffle"), "Did you mean 'pcshuffle'"),
        (lambda: make_criterion("pseudo_negatives"), "Did you mean 'pseudo-negatives'"),
        (lambda: FusedDetector("lihgt").fit([[i] for i in range(9)]), "Did you mean 'light'"),
    ],
)
def test_a_name_with_a_slip_is_answered_with_the_close_one(refused, says):
    with pytest.raises(exceptions.InvalidInputError, match=says):
        refused()


def test_members_go_by_name_in_python_too():
    names = [name for name, _ in make_pool("knn-5, lof-30")]
    assert names == ["knn-5", "lof-30"]


def test_what_is_no_name_is_not_asked_about():
    assert exceptions.did_you_mean(3.5, ["sum"]) == exceptions.did_you_mean("", ["sum"]) == ""
