"""Part "install": ``make demo`` in a fresh clone, by pip and by uv."""

import os
import shutil
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, Data, Report, Table, Target

#: Packages, megabytes, CPU seconds by installer, seconds until the first line of the demo.
PACKAGES, MEGABYTES, CPU_SECONDS, FIRST_LINE = 50, 700, {"pip": 75, "uv": 30}, 10
#: How the last line of the installation and the first line of the demo begin.
LAST, FIRST = "C++ kernel", "ocfuse "


def run(quick: bool) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        commands = {"uv": uv_command(Path(folder))}
        if not quick:
            commands = {"pip": ""} | commands
        found = {name: demo(path) for name, path in commands.items()}
    return Report(
        "The first `make demo`",
        "`git clone` into a folder with spaces in its name, and `make demo` there, once: "
        "empty caches, Python and a compiler at hand. CPU seconds of all processes, compilation of "
        "the kernels and the demo itself included; wall time depends on network and machine.",
        [target for name, data in found.items() for target in targets(name, data)],
        [
            Table(
                "What it takes",
                ["installer", "packages", "MB", "CPU s", "wall s", "first line", "longest silence"],
                [row(name, data) for name, data in found.items()],
                "*first line*: seconds from the end of the installation to the demo's first line; "
                "*longest silence*: seconds without a line until then.",
            )
        ],
        found,
    )


def uv_command(folder: Path) -> str:
    """Return the path of uv, which is installed into a folder where there is none."""
    found = shutil.which("uv")
    if found is not None:
        return found
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "uv"], check=True)
    return str(folder / "bin/uv")


def demo(uv: str) -> Data:
    with tempfile.TemporaryDirectory(prefix="first minute ") as folder:
        clone, cache = Path(folder) / "a clone", Path(folder) / "cache"
        calm = ("-c", "advice.detachedHead=false")
        subprocess.run(["git", *calm, "clone", "--quiet", str(ROOT), str(clone)], check=True)
        caches = {"PIP_CACHE_DIR": str(cache), "UV_CACHE_DIR": str(cache)}
        # make in here is no child of the make that may have begun this, nor Python of its Python
        own = {
            name: value
            for name, value in os.environ.items()
            if "MAKE" not in name and not name.startswith(("PYTHON", "VIRTUAL_ENV"))
        }
        begin = time.perf_counter()
        process = subprocess.Popen(
            ["make", "demo", f"UV={uv}"],
            cwd=clone,
            env=own | caches,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = [(time.perf_counter() - begin, line.rstrip()) for line in process.stdout or ()]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit("\n".join(line for _, line in lines))
        measured = {"cpu": used.ru_utime + used.ru_stime, "wall": time.perf_counter() - begin}
        return measured | environment(clone / ".venv") | waits(lines)


def environment(folder: Path) -> dict[str, Any]:
    files = [path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()]
    packages = list(folder.glob("lib/python*/site-packages/*.dist-info"))
    return {"packages": len(packages), "bytes": sum(files)}


def waits(lines: list[tuple[float, str]]) -> dict[str, Any]:
    times = [at for at, _ in lines]
    last = next(i for i, (_, line) in enumerate(lines) if line.startswith(LAST))
    first = next(i for i in range(last, len(lines)) if lines[i][1].startswith(FIRST))
    gaps = [
        after - before for before, after in zip([0.0, *times], times[: first + 1], strict=False)
    ]
    return {"first_line": times[first] - times[last], "silence": max(gaps), "lines": len(lines)}


def row(name: str, data: Data) -> list[str]:
    numbers = [data["bytes"] / 1e6, data["cpu"], data["wall"]]
    return [
        name,
        str(data["packages"]),
        *(f"{value:.0f}" for value in numbers),
        f"{data['first_line']:.1f}",
        f"{data['silence']:.1f}",
    ]


def targets(name: str, data: Data) -> list[Target]:
    size, limit = data["bytes"] / 1e6, CPU_SECONDS[name]
    return [
        Target(
            f"{name}: at most {PACKAGES} packages",
            str(data["packages"]),
            data["packages"] <= PACKAGES,
        ),
        Target(f"{name}: at most {MEGABYTES} MB", f"{size:.0f} MB", size <= MEGABYTES),
        Target(f"{name}: at most {limit} CPU s", f"{data['cpu']:.0f} s", data["cpu"] <= limit),
        Target(
            f"{name}: first line of the demo within {FIRST_LINE} s",
            f"{data['first_line']:.1f} s",
            data["first_line"] <= FIRST_LINE,
        ),
    ]
