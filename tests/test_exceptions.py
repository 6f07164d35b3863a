"""The tree of errors and warnings that the docstring draws is the real one."""

import inspect
import re

from ocfuse import exceptions

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
