"""The names of the methods, and what a caller may set about them."""

from dataclasses import dataclass
from enum import IntEnum

from ocfuse.exceptions import InvalidInputError


class Method(IntEnum):
    """What solves a problem; `AUTO` in an answer means the closed form."""

    AUTO = 0
    INTERIOR_POINT = 1
    FRANK_WOLFE = 2
    FRANK_WOLFE_PAPER = 3

    @classmethod
    def named(cls, name: str) -> "Method":
        """Return the method that a user asks for."""
        try:
            return cls[name.upper().replace("-", "_")]
        except (KeyError, AttributeError):
            known = ", ".join(f'"{method.public_name}"' for method in cls)
            raise InvalidInputError(f"solver must be one of {known}. Got {name!r}.") from None

    @property
    def public_name(self) -> str:
        """Return the name as users write it."""
        return self.name.lower().replace("_", "-")

    @property
    def solver(self) -> str:
        """Return what a Solution calls the method that produced it."""
        return "closed-form" if self is Method.AUTO else self.public_name


@dataclass(frozen=True)
class Settings:
    """How to solve; the limits are iterations."""

    method: Method
    tol: float
    interior_point_limit: int = 200
    frank_wolfe_limit: int = 10_000

    @classmethod
    def of(cls, solver: str, tol: float, max_iter: int | None) -> "Settings":
        """Return the settings of a call; `max_iter` bounds whichever method runs."""
        method = Method.named(solver)
        if max_iter is None:
            return cls(method, tol)
        return cls(method, tol, max_iter, max_iter)
