"""Build the distributions of a commit twice, in two places, and keep them if they are the same.

A source distribution, and from it the wheels that ``supply/wheels.py`` names.
"""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from supply.pins import ROOT
from supply.wheels import Wheel, faults, planned

#: What must not make a difference.
SURROUNDINGS = (
    {"TZ": "UTC", "PYTHONHASHSEED": "1", "LC_ALL": "C"},
    {"TZ": "Asia/Kolkata", "PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8"},
)
#: Of all files, but for those that are run.
PLAIN, EXECUTABLE = 0o644, 0o755


def main() -> None:
    """Build, compare, check, and write to dist/."""
    commit, epoch = _git("rev-parse", "HEAD").strip(), _git("log", "-1", "--format=%ct").strip()
    if _git("status", "--porcelain", "--untracked-files=no"):
        print("Changes that are not committed are not in these distributions.")
    wheels = planned()
    with tempfile.TemporaryDirectory(prefix="ocfuse-dist-") as folder:
        places = [Path(folder) / "a", Path(folder) / "another" / "place"]
        first, second = (
            built(commit, wheels, place, {**around, "SOURCE_DATE_EPOCH": epoch})
            for place, around in zip(places, SURROUNDINGS, strict=True)
        )
        require_same(first, second)
        for content in first.values():
            require_no_paths(content, [Path(folder), ROOT, Path.home(), Path(sys.prefix)])
    for name, content in first.items():
        if name.endswith(".whl") and (found := list(faults(name, content))):
            sys.exit("\n  ".join([f"{name} cannot go out:", *found]))
    target = ROOT / "dist"
    target.mkdir(exist_ok=True)
    for former in target.glob("ocfuse-*"):
        former.unlink()
    files = [target / name for name in first]
    for file in files:
        file.write_bytes(first[file.name])
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
    for file in files:
        print(f"sha256 {hashlib.sha256(first[file.name]).hexdigest()}  {file.relative_to(ROOT)}")
    print(f"Two builds of commit {commit[:12]} are the same, byte for byte.")


def built(
    commit: str, wheels: list[Wheel], place: Path, around: dict[str, str]
) -> dict[str, bytes]:
    """Return the distributions of a commit, by name, built in a folder of its own."""
    place.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
    ).stdout
    unpack(archive, place / "commit")
    out = place / "out"
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", out],
        cwd=place / "commit",
        env=os.environ | around,
        check=True,
        stdout=subprocess.DEVNULL,
        umask=0o022,
    )
    (sdist,) = out.iterdir()
    packed = repacked(sdist.read_bytes(), int(around["SOURCE_DATE_EPOCH"]))
    for wheel in wheels:
        print(f"building {wheel.tag}", flush=True)
        unpack(packed, place / wheel.tag)
        (source,) = (place / wheel.tag).iterdir()
        wheel.build(source, out, around)
    found = {file.name: file.read_bytes() for file in sorted(out.glob("*.whl"))}
    return {sdist.name: packed, **found}


def unpack(archive: bytes, place: Path) -> None:
    """Unpack an archive into a new folder."""
    place.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(place, filter="data")


def repacked(sdist: bytes, epoch: int) -> bytes:
    """Return an archive with the same files in order, of nobody, all of one time."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, epoch
            is_run = member.isdir() or bool(member.mode & 0o100)
            clean.mode = EXECUTABLE if is_run else PLAIN
            new.addfile(clean, old.extractfile(member))
    return gzip.compress(packed.getvalue(), mtime=0)


def require_same(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """Exit if two builds differ, and say in which files."""
    if first.keys() != second.keys():
        sys.exit(f"The builds gave other files: {sorted(first)} and {sorted(second)}.")
    for name, content in first.items():
        if content != second[name]:
            one, other = dict(parts(content)), dict(parts(second[name]))
            differing = [part for part in one | other if one.get(part) != other.get(part)]
            sys.exit(f"{name} differs: {differing or 'only in order, modes or times'}.")


def require_no_paths(content: bytes, folders: list[Path]) -> None:
    """Exit if a distribution holds the name of a folder of this machine."""
    for name, part in parts(content):
        for folder in folders:
            if os.fsencode(folder) in part:
                sys.exit(f"{name} holds the path {folder} of this machine.")


def parts(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive by name."""
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar.getmembers():
            if (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
