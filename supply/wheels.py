"""The wheels of a release: for which Pythons and machines, how each is built, what it must hold.

A compiler that brings the headers of every glibc (Zig, from the package index) builds for old
systems and for other processors on any machine. One wheel without kernels serves everybody else.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

from supply.pythons import at_hand

#: The oldest C library that wheels ask for: that of manylinux2014.
GLIBC = (2, 17)
#: Machines, and their numbers in the header of an ELF file.
MACHINES = {"x86_64": 0x3E, "aarch64": 0xB7}
#: In every wheel that is for some machine.
KERNELS = ("ocfuse/kernels/_native", "ocfuse/solvers/_native")
#: Without kernels, on any Python and machine.
PURE = "py3-none-any"
#: The first Python whose limited API knows buffers, and one before, with a build of its own.
LIMITED, BEFORE = "cp311-abi3", "3.10"

BUILD = """\
import json, sys
from setuptools.build_meta import build_wheel
build_wheel(sys.argv[1], json.loads(sys.argv[2]))
"""


@dataclass(frozen=True)
class Wheel:
    """One wheel: its tags, and what builds it.

    Parameters
    ----------
    tag : str
        Python, ABI and platform, as in the name of its file.
    python : Path
        The interpreter that builds it.
    environment : dict
        Variables of the build.
    options : tuple of str
        Options of the command bdist_wheel.
    """

    tag: str
    python: Path
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def build(self, source: Path, out: Path, around: dict[str, str]) -> None:
        """Build it from a folder of sources into another folder."""
        settings = json.dumps({"--build-option": list(self.options)})
        with tempfile.TemporaryDirectory(prefix="ocfuse-setuptools-") as tools:
            # nothing else of this environment: it may be one of another Python
            ours = distribution("setuptools")
            for top in {file.parts[0] for file in ours.files or ()} - {"..", "__pycache__"}:
                (Path(tools) / top).symlink_to(str(ours.locate_file(top)))
            variables = {"PYTHONPATH": tools, "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run(
                [self.python, "-c", BUILD, out, settings],
                cwd=source,
                env=os.environ | around | self.environment | variables,
                capture_output=True,
                text=True,
                umask=0o022,
                check=False,
            )
        if done.returncode:
            sys.exit(f"The wheel {self.tag} could not be built:\n{done.stdout}{done.stderr}")


def planned() -> list[Wheel]:
    """Return the wheels that can be built here, and say which cannot."""
    here = Path(sys.executable)
    found = [Wheel(PURE, here, {"OCFUSE_NO_NATIVE": "1"})]
    found += [compiled(LIMITED, here, machine) for machine in MACHINES]
    before = at_hand().get(BEFORE)
    if before is None:
        print(f"No Python {BEFORE} was found: there are no kernels for it in this release.")
        return found
    tag = "cp" + BEFORE.replace(".", "")
    return found + [compiled(f"{tag}-{tag}", before, machine) for machine in MACHINES]


def compiled(python_and_abi: str, python: Path, machine: str) -> Wheel:
    """Return a wheel with kernels for one kind of machine."""
    platform = "manylinux_{}_{}_".format(*GLIBC) + machine
    target = f"-target {machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    compilers = {
        name: f"{sys.executable} -m ziglang {language} {target}{more}"
        for name, language, more in (
            ("CC", "cc", ""),
            ("CXX", "c++", ""),
            # without symbols and folders of the library that is linked in
            ("LDSHARED", "cc", " -shared -s"),
            ("LDCXXSHARED", "c++", " -shared -s"),
        )
    }
    impl, _, abi = python_and_abi.partition("-")
    if abi != "abi3":
        name = impl.replace("cp", "cpython-")
        compilers["SETUPTOOLS_EXT_SUFFIX"] = f".{name}-{machine}-linux-gnu.so"
    return Wheel(f"{python_and_abi}-{platform}", python, compilers, (f"--plat-name={platform}",))


def faults(name: str, content: bytes) -> Iterator[str]:
    """Yield what is wrong with a wheel: its kernels, their machine, what they ask of a system."""
    tag = "-".join(Path(name).stem.split("-")[2:])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        libraries = {part: archive.read(part) for part in archive.namelist() if ".so" in part}
        (about,) = (part for part in archive.namelist() if part.endswith(".dist-info/WHEEL"))
        if f"Tag: {tag}" not in archive.read(about).decode().splitlines():
            yield f"it does not call itself {tag}"
    expected = () if tag == PURE else KERNELS
    if sorted(part.partition(".")[0] for part in libraries) != sorted(expected):
        yield f"it must hold the kernels {expected}, and holds {sorted(libraries)}"
    for part, library in libraries.items():
        number = next((n for machine, n in MACHINES.items() if tag.endswith(machine)), None)
        if int.from_bytes(library[18:20], "little") != number:
            yield f"{part} is for another machine"
    if libraries:
        yield from faults_of_platform(name, content, tag)


def faults_of_platform(name: str, content: bytes, tag: str) -> Iterator[str]:
    """Yield what auditwheel says against the platform of a wheel, and abi3audit against its ABI."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        told = audited("auditwheel", "show", file).stdout
        found = re.search(r'platform tag: "(\w+)"', " ".join(told.split()))
        if found is None or glibc(found[1]) > glibc(tag.rpartition("-")[2]):
            yield f"auditwheel says: {told.strip()}"
        if "abi3" in tag and (done := audited("abi3audit", "--strict", file)).returncode:
            yield f"abi3audit says: {done.stdout}{done.stderr}"


def audited(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Return what a command of this environment has found."""
    program = str(Path(sys.executable).parent / command)
    line = [program, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def glibc(platform: str) -> tuple[int, int]:
    """Return the version of the C library in the name of a platform; the newest if none is."""
    found = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    return (int(found[1]), int(found[2])) if found else (sys.maxsize, 0)
