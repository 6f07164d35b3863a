"""Names that are not known are answered with the close ones."""

import difflib
from collections.abc import Iterable

from ocfuse.exceptions import InvalidInputError

MOST_NAMES = 12


def unknown(what: str, name: str, known: Iterable[str], hint: str = "") -> InvalidInputError:
    """Return the error for a name that is not known, with suggestions and perhaps a hint."""
    choices = list(known)
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
    found = [choice for key, choice in folded.items() if str(name).casefold() in key]
    suggestions = list(dict.fromkeys([*(folded[key] for key in close), *found]))[:3]
    if suggestions:
        advice = f"Did you mean {' or '.join(map(repr, suggestions))}?"
    elif choices:
        more = f" and {len(choices) - MOST_NAMES} more" if len(choices) > MOST_NAMES else ""
        advice = f"Known are {', '.join(choices[:MOST_NAMES])}{more}."
    else:
        advice = "None is known here."
    text = f"{what} must be a known name. Got {name!r}. {advice} {hint}"
    return InvalidInputError(text.rstrip())
