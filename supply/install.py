"""Install into .venv, by uv where it is there and by pip otherwise, and say what is going on.

``python supply/install.py environment [--anew]`` makes .venv, unless there is one that works;
``python supply/install.py packages WORDS ...`` installs, with the arguments of ``pip install``
behind a few words on what they are. Any Python runs it, without a package.
"""

import argparse
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

VENV = Path(".venv")
INSIDE = VENV / "bin" / "python"
#: Seconds between two lines, and letters of what the installer said last.
PAUSE, WIDTH = 3.0, 70


def main() -> int:
    """Do what the arguments ask for; return an exit code."""
    parser = argparse.ArgumentParser(prog="supply/install.py")
    parser.add_argument("--uv", default="", help="the command uv; without it pip installs")
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("environment").add_argument("--anew", action="store_true")
    tasks.add_parser("packages").add_argument("words", help="what is installed")
    chosen, rest = parser.parse_known_args()
    if chosen.task == "packages":
        command = [*installer(chosen.uv), "-c", "constraints.txt", *rest]
        return run(command, f"{chosen.words}, by {'uv' if chosen.uv else 'pip'}")
    if chosen.anew or not works([] if chosen.uv else ["-m", "pip", "--version"]):
        shutil.rmtree(VENV, ignore_errors=True)
        command = [chosen.uv, "venv", "--quiet", "--python", sys.executable]
        return run(
            [*(command if chosen.uv else [sys.executable, "-m", "venv"]), str(VENV)], ".venv"
        )
    return 0


def installer(uv: str) -> list[str]:
    """Return the command that installs; bytecode is made when a module is first imported."""
    if uv:
        return [uv, "pip", "install", "--python", str(INSIDE)]
    pip = [str(INSIDE), "-m", "pip", "install", "--no-compile", "--progress-bar", "off"]
    return [*pip, "--disable-pip-version-check"]


def works(arguments: list[str]) -> bool:
    """Return whether the environment has a Python that runs, with what is asked of it."""
    try:
        command = [str(INSIDE), *(arguments or ["-c", ""])]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(command: list[str], words: str) -> int:
    """Run a command, tell every few seconds how far it is, and all it said if it fails."""
    print(f"Installing {words} ...", flush=True)
    begin = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        said: list[str] = []
        reader = threading.Thread(target=said.extend, args=(process.stdout,))
        reader.start()
        while reader.is_alive():
            reader.join(PAUSE)
            if reader.is_alive():
                print(f"{time.monotonic() - begin:5.0f} s: {state(said)}", flush=True)
    if process.returncode:
        print(*said, sep="", file=sys.stderr)
    return process.returncode


def state(said: list[str]) -> str:
    """Return how many packages there are, and what the installer said last."""
    count = len(list(VENV.glob("lib/python*/site-packages/*.dist-info")))
    last = " ".join(said[-1].split()) if said else "At work"
    return f"{count} packages so far. {last[:WIDTH]}"


if __name__ == "__main__":
    sys.exit(main())
