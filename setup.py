"""Build the optional C++ kernels; everything else stands in pyproject.toml."""

import os
import sys
from pathlib import Path

import pybind11
from pybind11.setup_helpers import Pybind11Extension
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

#: Packages with a kernel, and what its compiler must not do besides: the
#: distances of rows are those of NumPy to the last bit, which a fused product would change.
KERNELS = {"solvers": [], "kernels": ["-ffp-contract=off"]}

# No flag here may assume that NaN and infinity do not occur (as -ffast-math
# does) or that the machine that runs the wheel is the one that built it.
UNIX_FLAGS = [
    "-O3",
    "-g0",  # a quarter of the time to compile is for debuggers
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-pthread",
    # the same source gives the same bytes, in whatever folder it is built
    f"-ffile-prefix-map={Path.cwd()}=.",
    f"-ffile-prefix-map={pybind11.get_include()}=pybind11",
]
MSVC_FLAGS = ["/O2"]


class OptionalBuild(build_ext):
    """Compile side by side with the flags of the compiler at hand, and survive a failure."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or len(KERNELS)

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args += MSVC_FLAGS
        else:
            ext.extra_compile_args += UNIX_FLAGS + KERNELS[ext.name.split(".")[1]]
            ext.extra_link_args += ["-pthread"]
        try:
            super().build_extension(ext)
        except (BaseError, CCompilerError, OSError):
            say(
                f"the C++ kernel {ext.name} could not be built (the reason stands above); "
                "NumPy will serve"
            )


def say(message: str) -> None:
    print(f"ocfuse: {message}", file=sys.stderr)


def native_extensions() -> list[Extension]:
    if os.environ.get("OCFUSE_NO_NATIVE", "0") not in ("", "0"):
        say("the C++ kernel is left out, because OCFUSE_NO_NATIVE is set")
        return []
    return [native_extension(package) for package in KERNELS]


def native_extension(package: str) -> Extension:
    folder = Path("src/ocfuse") / package / "kernel"
    return Pybind11Extension(
        f"ocfuse.{package}._native",
        sorted(path.as_posix() for path in folder.glob("*.cpp")),
        depends=sorted(path.as_posix() for path in folder.glob("*.hpp")),
        cxx_std=17,
        optional=True,
    )


setup(ext_modules=native_extensions(), cmdclass={"build_ext": OptionalBuild})
