"""Start quickly: scikit-learn without packages that it imports and hardly ever asks."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

#: Packages of which scikit-learn's base uses one function each, and none to score rows. They
#: take more than half of the seconds that it takes to import it.
HARDLY_USED = ("scipy.stats", "pandas")


class _Later(ModuleType):
    """Stands for a module until somebody asks it for something; that imports the module."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Be no longer what an import finds."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def import_sklearn() -> None:
    """Import the base of scikit-learn, but not what it hardly uses.

    For programs that soon end, to be called in their only thread. Others stand for those
    packages while scikit-learn is imported, and are gone when it is: what is imported from
    then on is imported as ever. Whoever has kept one gets all that the package has.
    """
    if "sklearn" in sys.modules:
        return
    stand_ins = [_Later(name) for name in HARDLY_USED if _can_wait(name)]
    sys.modules.update({module.__name__: module for module in stand_ins})
    try:
        importlib.import_module("sklearn.base")
    finally:
        for module in stand_ins:
            module.step_aside()


def _can_wait(name: str) -> bool:
    return name not in sys.modules and importlib.util.find_spec(name) is not None
