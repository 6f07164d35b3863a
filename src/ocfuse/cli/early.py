"""Start quickly: scikit-learn without packages that it imports and hardly ever uses."""

import gc
import importlib.util
import sys
from types import ModuleType
from typing import Any

#: Packages that scikit-learn's base imports, itself or by way of SciPy, for the sake of a function
#: or for none. They take more than half of the seconds that it takes to import it.
HARDLY_USED = ("numpy.f2py", "numpy.testing", "scipy.stats", "pandas")


class _Later(ModuleType):
    """Stands for a module until somebody asks it for something; that imports the module."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_in(self) -> None:
        """Be what an import finds."""
        sys.modules[self.__name__] = self
        package, _, own_name = self.__name__.rpartition(".")
        if package:
            setattr(sys.modules[package], own_name, self)

    def step_aside(self) -> None:
        """Be it no longer."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        package, _, own_name = self.__name__.rpartition(".")
        if package and vars(sys.modules[package]).get(own_name) is self:
            delattr(sys.modules[package], own_name)


def import_early(*modules: str) -> None:
    """Import the base of scikit-learn, but not what it hardly uses, and then some modules.

    For programs that soon end, to be called in their only thread. Others stand for those
    packages while scikit-learn is imported, and are gone when it is: what is imported from
    then on is imported as ever. Whoever has kept one gets all that the package has.

    Imports leave hardly any garbage. None is looked for meanwhile, nor later among what they
    made, which lives as long as the program. Does nothing if scikit-learn is there already.
    """
    if "sklearn" in sys.modules:
        return
    gc.disable()
    try:
        stand_ins = [
            _Later(name)
            for name in HARDLY_USED
            if name not in sys.modules and importlib.util.find_spec(name) is not None
        ]
        for module in stand_ins:
            module.step_in()
        try:
            importlib.import_module("sklearn.base")
        finally:
            for module in stand_ins:
                module.step_aside()
        for name in modules:
            importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
