"""Build the optional C++ kernel; everything else stands in pyproject.toml."""

import os
import sys
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

KERNEL = Path("src/ocfuse/solvers/kernel")

# No flag here may assume that NaN and infinity do not occur (as -ffast-math
# does) or that the machine that runs the wheel is the one that built it.
UNIX_FLAGS = [
    "-O3",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-pthread",
]
MSVC_FLAGS = ["/O2"]


class OptionalBuild(build_ext):
    """Compile with the flags of the compiler at hand, and survive a failure."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args += MSVC_FLAGS
        else:
            ext.extra_compile_args += UNIX_FLAGS
            ext.extra_link_args += ["-pthread"]
        try:
            super().build_extension(ext)
        except (BaseError, CCompilerError, OSError):
            say("the C++ kernel could not be built (the reason stands above); NumPy will serve")


def say(message: str) -> None:
    print(f"ocfuse: {message}", file=sys.stderr)


def native_extensions() -> list[Extension]:
    if os.environ.get("OCFUSE_NO_NATIVE", "0") not in ("", "0"):
        say("the C++ kernel is left out, because OCFUSE_NO_NATIVE is set")
        return []
    return [
        Pybind11Extension(
            "ocfuse.solvers._native",
            sorted(path.as_posix() for path in KERNEL.glob("*.cpp")),
            depends=sorted(path.as_posix() for path in KERNEL.glob("*.hpp")),
            cxx_std=17,
            optional=True,
        )
    ]


setup(ext_modules=native_extensions(), cmdclass={"build_ext": OptionalBuild})
