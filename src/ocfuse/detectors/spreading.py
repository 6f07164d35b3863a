"""Members that learn from the same rows in several processes, and are put together again."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from joblib.parallel import get_active_backend

from ocfuse.detectors.base import BaseDetector, KernelDetector
from ocfuse.detectors.gram import Reference
from ocfuse.detectors.members import Members
from ocfuse.detectors.viewed import Viewed

#: What every process knows of the training rows by itself.
KNOWN = ("X", "centre", "scale")


def jobs_apart() -> int | None:
    """Return the `n_jobs` of tasks that share what they compute unless they run elsewhere.

    One after another they find what those before have left. Only where joblib is told to work
    in other processes, or on other machines, each goes by itself.
    """
    return 1 if getattr(get_active_backend()[0], "supports_sharedmem", False) else None


def families(members: Members) -> list[Members]:
    """Part members so that those which compute the same things stay together."""
    found: defaultdict[Any, Members] = defaultdict(list)
    for name, member in members:
        kind = member.view if isinstance(member, Viewed) else isinstance(member, KernelDetector)
        found[kind].append((name, member))
    return list(found.values())


def part_from(reference: Reference, members: Iterable[BaseDetector]) -> dict[str, Any]:
    """Let fitted members travel without the training rows; return what is known of these now."""
    for member in members:
        if getattr(member, "reference_", None) is reference:
            del member.reference_
    return {k: v for k, v in vars(reference).items() if k not in KNOWN and not k.startswith("_")}


def join_to(reference: Reference, members: Iterable[BaseDetector], known: dict[str, Any]) -> None:
    """Give members the same rows again, and these what was found out about them."""
    for member in members:
        member.__dict__.setdefault("reference_", reference)
    for name, value in known.items():
        if isinstance(value, dict):
            getattr(reference, name).update(value)
        elif value is not None:
            setattr(reference, name, value)
