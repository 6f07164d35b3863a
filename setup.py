"""Build the optional C++ kernels; everything else stands in pyproject.toml."""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

#: Packages with a kernel, and what its compiler must not do besides: on x86-64 the distances of
#: rows are those of NumPy to the last bit, which a fused product would change.
KERNELS = {"solvers": [], "kernels": ["-ffp-contract=off"]}

#: One build for this and all later versions of Python: from 3.11 on the buffer protocol is part
#: of the limited API. Earlier versions, and those without a global lock, have builds of their own.
LIMITED = (3, 11)
IS_LIMITED = sys.version_info >= LIMITED and not sysconfig.get_config_var("Py_GIL_DISABLED")
LIMITED_MACRO = ("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*LIMITED))
LIMITED_TAG = {"bdist_wheel": {"py_limited_api": "cp{}{}".format(*LIMITED)}}

# No flag here may assume that NaN and infinity do not occur (as -ffast-math
# does) or that the machine that runs the wheel is the one that built it.
UNIX_FLAGS = [
    "-std=c++17",
    "-O3",
    "-g0",  # a quarter of the time to compile is for debuggers
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-Wno-psabi",
    "-pthread",
    # the same source gives the same bytes, in whatever folder it is built
    f"-ffile-prefix-map={Path.cwd()}=.",
]
# The oldest macOS whose library has what C++17 needs.
MACOS_FLAGS = ["-mmacosx-version-min=10.14"] if sys.platform == "darwin" else []
# Windows' headers name their own min and max, unless told otherwise.
MSVC_FLAGS = ["/std:c++17", "/EHsc", "/O2", "/fp:precise", "/DNOMINMAX"]


class OptionalBuild(build_ext):
    """Compile side by side with the flags of the compiler at hand, and survive a failure."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or len(KERNELS)

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args += MSVC_FLAGS
        else:
            own = KERNELS[ext.name.split(".")[1]]
            ext.extra_compile_args += UNIX_FLAGS + MACOS_FLAGS + own
            ext.extra_link_args += ["-pthread", *MACOS_FLAGS]
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
    root = Path("src/ocfuse")
    headers = [path for name in (package, "system") for path in root.glob(f"{name}/kernel/*.hpp")]
    return Extension(
        f"ocfuse.{package}._native",
        sorted(path.as_posix() for path in root.glob(f"{package}/kernel/*.cpp")),
        depends=sorted(path.as_posix() for path in headers),
        define_macros=[LIMITED_MACRO] if IS_LIMITED else [],
        py_limited_api=IS_LIMITED,
        language="c++",
        optional=True,
    )


setup(
    ext_modules=native_extensions(),
    cmdclass={"build_ext": OptionalBuild},
    options=LIMITED_TAG if IS_LIMITED else {},
)
