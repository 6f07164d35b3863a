"""What can go wrong in the cell: four types, each in several kinds."""

from collections.abc import Sequence

from ocfuse.exceptions import InvalidInputError

NORMAL, OCCLUSION, GRASP, DROP, OBSTACLE = range(5)

#: Names of the types, by their numbers.
TYPES = {
    OCCLUSION: "camera occlusion",
    GRASP: "grasp failure",
    DROP: "drop",
    OBSTACLE: "obstacle",
}
#: Kinds of each type; their names are unique over all types.
KINDS = {
    OCCLUSION: ("full", "partial", "hand", "smear"),
    GRASP: ("short", "beyond", "high", "onto"),
    DROP: ("open", "slow", "limp"),
    OBSTACLE: ("block", "bottle", "brick", "ball"),
}


def type_of(kind: str) -> int:
    """Return the type that a kind belongs to; "" is normal.

    Examples
    --------
    >>> type_of("ball")
    4
    """
    return next((number for number, kinds in KINDS.items() if kind in kinds), NORMAL)


def find_kinds(names: Sequence[str]) -> list[str]:
    """Return the kinds that numbers of types and names of kinds stand for.

    Parameters
    ----------
    names : sequence of str
        Such as ``["1", "ball"]``.

    Returns
    -------
    list of str
        Kinds, each once, in the order of `KINDS`.

    Examples
    --------
    >>> find_kinds(["3", "ball"])
    ['open', 'slow', 'limp', 'ball']
    """
    wanted: set[str] = set()
    for name in names:
        if name.isdigit() and int(name) in KINDS:
            wanted.update(KINDS[int(name)])
        elif type_of(name) != NORMAL:
            wanted.add(name)
        else:
            known = "; ".join(f"{number}: {', '.join(kinds)}" for number, kinds in KINDS.items())
            raise InvalidInputError(f"There is no type or kind {name!r}. Choose from {known}.")
    return [kind for kinds in KINDS.values() for kind in kinds if kind in wanted]
