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
        for method in cls:
            if name == method.public_name:
                return method
        known = ", ".join(f'"{method.public_name}"' for method in cls)
        raise InvalidInputError(f"solver must be one of {known}. Got {name!r}.")

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
    """How to solve; `max_iter` bounds whichever method runs."""

    method: Method
    tol: float
    max_iter: int | None = None

    @classmethod
    def of(cls, solver: str, tol: float, max_iter: int | None) -> "Settings":
        """Return the settings of a call."""
        return cls(Method.named(solver), tol, max_iter)

    @property
    def interior_point_limit(self) -> int:
        """Iterations allowed to the interior point."""
        return 200 if self.max_iter is None else self.max_iter

    @property
    def frank_wolfe_limit(self) -> int:
        """Iterations allowed to Frank-Wolfe."""
        return 10_000 if self.max_iter is None else self.max_iter

    @property
    def may_retry(self) -> bool:
        """Tell whether a problem that the kernel did not solve is worth another try."""
        by_interior_point = self.method in (Method.AUTO, Method.INTERIOR_POINT)
        return by_interior_point and self.max_iter is None
