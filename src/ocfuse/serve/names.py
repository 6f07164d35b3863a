"""What models are called."""

from collections.abc import Iterable
from pathlib import Path

from ocfuse.exceptions import InvalidInputError

#: Characters of the name of a model.
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LONGEST_NAME = 64


def named_models(words: Iterable[str]) -> dict[str, Path]:
    """Return files by name, from words such as ``pump=models/pump.ocf`` or ``pump.ocf``.

    Parameters
    ----------
    words : iterable of str
        One per model; without a name a file has that of its own without the ending.

    Returns
    -------
    dict
        Paths by name, in this order.
    """
    found: dict[str, Path] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        path = Path(rest if equals else word)
        name = name if equals else path.stem
        check_name(name)
        if name in found:
            raise InvalidInputError(
                f"Two models are called {name!r}. Give one of them another name: other={path}."
            )
        found[name] = path
    return found


def check_name(name: str) -> None:
    """Refuse the name of a model that cannot stand in an address."""
    if not 0 < len(name) <= LONGEST_NAME or not NAME_CHARACTERS.issuperset(name):
        raise InvalidInputError(
            f"A model may be called by letters, digits, '.', '_' and '-', at most {LONGEST_NAME}. "
            f"Got {name!r}. Name it so: pump=path/to/the/file.ocf."
        )
