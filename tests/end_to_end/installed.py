"""The command as a user has it: a wheel in an environment of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.test_install import LEFT_OUT, build_wheel, copy_sources
from tests.test_install import run as run_python


@dataclass(frozen=True)
class Installed:
    """An environment with the command in it."""

    folder: Path

    @property
    def script(self):
        return self.folder / "bin" / "ocfuse"

    def start(self, *arguments, cwd, before=(), **options):
        """Start the command with hardly any variables, as a timer or a service would."""
        files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [*map(str, before), str(self.script), *map(str, arguments)],
            cwd=cwd,
            env=variables | options.pop("env", {}),
            **files | {"text": True} | options,
        )

    def run(self, *arguments, cwd, **options):
        """Run the command to its end; return its code and its two outputs."""
        process = self.start(*arguments, cwd=cwd, **options)
        out, err = process.communicate()
        assert "Traceback" not in err
        return process.returncode, out, err


def install(folder):
    """Build a wheel and install it, offline, beside the dependencies that are here already."""
    source = copy_sources(folder / "clone")
    # that the kernel is built is tested elsewhere; it would take most of the time here
    build_wheel(source, folder / "wheel", **LEFT_OUT)
    (wheel,) = (folder / "wheel").glob("*.whl")
    place = folder / "environment"
    run_python("-m", "venv", "--without-pip", place, cwd=folder)
    pip = ("-m", "pip", "--python", place / "bin" / "python", "install", "--no-deps")
    run_python(*pip, wheel, cwd=folder)
    (site,) = place.glob("lib/python*/site-packages")
    # a path in a .pth file comes last, and the .pth files there are not read: ours comes first
    here = [path for path in sys.path if path.endswith("-packages")]
    (site / "dependencies.pth").write_text("\n".join(here) + "\n")
    return Installed(place)
