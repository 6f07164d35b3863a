"""Look at what is installed: pins, conflicts, licences, files, and known holes.

Exits with 1 if something is found, and with 2 if nothing is but the database of advisories could
not be reached: who could not look has not found that all is well.
"""

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from supply.pins import ROOT, normal, pins, project

#: The package itself, and what every environment has.
OURS, TOOLS = "ocfuse", frozenset({"pip"})
#: What a user may combine with a package under BSD: words of licences, and those that forbid.
PERMISSIVE = re.compile(
    r"\b(0?BSD|MIT|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|HPND|Zlib|Unlicense|CC0|"
    r"Public Domain|CNRI|BSL-1|Boost|any-OSI)",
    re.IGNORECASE,
)
#: Extras that a user installs; the others are for developers.
FOR_USERS = ("tool", "plot", "video", "bags", "robots", "distributed", "mqtt", "serve")
#: Files with the text of a licence, and letters of them that name it.
LICENCE_FILE, NAMED = re.compile(r"(LICEN[CS]E|COPYING)", re.IGNORECASE), 300
#: What pip-audit says when nobody answers.
UNREACHED = re.compile(
    r"ConnectionError|connect|resolve|timed? ?out|Max retries|ServiceError|Proxy", re.IGNORECASE
)


class UnreachedError(Exception):
    """Say why nothing could be looked up."""


def main(pip_audit: str = "pip-audit") -> None:
    """Print what is found; exit with 1 if it is anything, with 2 if something was not looked up.

    Parameters
    ----------
    pip_audit : str, default="pip-audit"
        The command that looks up advisories.
    """
    installed = {normal(dist.name): dist for dist in distributions()}
    checks = {
        "pins": check_pins({name: dist.version for name, dist in installed.items()}, pins()),
        "conflicts": check_conflicts(),
        "licences": check_licences(brought_by(*FOR_USERS)),
        "files": check_files(installed.values()),
        "advisories": check_advisories(pip_audit),
    }
    n_found = n_unread = 0
    for name, check in checks.items():
        try:
            findings = list(check)
        except UnreachedError as error:
            n_unread += 1
            print(f"{name}: NOT looked up: {error}")
            continue
        n_found += len(findings)
        print(f"{name}: {len(findings) or 'nothing'} found")
        for finding in findings:
            print(f"  {finding}")
    sys.exit(1 if n_found else 2 if n_unread else 0)


def check_pins(installed: dict[str, str], pinned: dict[str, str]) -> Iterator[str]:
    """Yield what is installed otherwise than it is pinned, and pins of nothing."""
    for name in sorted(installed.keys() - {OURS} - TOOLS):
        if name not in pinned:
            yield f"{name} {installed[name]} is installed, but not pinned in constraints.txt"
        elif installed[name].partition("+")[0] != pinned[name]:
            yield f"{name} {installed[name]} is installed, {pinned[name]} is pinned"
    missing = sorted(pinned.keys() - installed.keys() - TOOLS)
    if missing:
        # the documentation and torch are installed on demand
        print(f"not installed, though pinned: {', '.join(missing)}")


def check_conflicts() -> Iterator[str]:
    """Yield requirements that are not met, as pip sees them."""
    command = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        yield from told.stdout.splitlines()
    here = ".".join(map(str, sys.version_info[:3]))
    for dist in distributions():
        wanted = _field(dist, "Requires-Python")
        if wanted and not Requirement(f"python{wanted}").specifier.contains(here):
            yield f"{dist.name} {dist.version} needs Python {wanted}, this is {here}"


def brought_by(*chosen: str) -> dict[str, Distribution]:
    """Return what comes with the package and some of its extras, with all that it needs."""
    about = project()
    extras = about["optional-dependencies"]
    lines = [*about["dependencies"], *(line for extra in chosen for line in extras[extra])]
    waiting = [Requirement(line) for line in lines]
    found: dict[str, Distribution] = {}
    while waiting:
        wanted = waiting.pop()
        name = normal(wanted.name)
        if name == OURS or (name in found and not wanted.extras):
            continue
        dist = found[name] = distribution(name)
        for line in dist.requires or ():
            need = Requirement(line)
            at_hand = ({"extra": extra} for extra in ("", *wanted.extras))
            if need.marker is None or any(need.marker.evaluate(one) for one in at_hand):
                waiting.append(need)
    return found


def check_licences(dists: dict[str, Distribution]) -> Iterator[str]:
    """Yield packages whose licence is not known to go with ours."""
    for name, dist in sorted(dists.items()):
        told = licence(dist) or licence_text(dist)
        if not told:
            yield f"{name} {dist.version} does not tell its licence"
        elif not PERMISSIVE.search(told):
            yield f"{name} {dist.version} is under {told}"


def licence(dist: Distribution) -> str:
    """Return what a package says of its licence; empty if nothing."""
    classified = [
        line.rpartition("::")[2].strip()
        for line in dist.metadata.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    told = [_field(dist, "License-Expression"), *classified, _field(dist, "License")]
    words = [line.strip().splitlines()[0] for line in told if line.strip()]
    return next((line for line in words if line.lower() not in ("unknown", "osi approved")), "")


def _field(dist: Distribution, name: str) -> str:
    return str(next(iter(dist.metadata.get_all(name) or ()), ""))


def licence_text(dist: Distribution) -> str:
    """Return how the file with the licence begins, on one line."""
    for file in dist.files or ():
        if LICENCE_FILE.match(file.name) and Path(file.locate()).is_file():
            return " ".join(file.read_text()[:NAMED].split())
    return ""


def check_files(dists: Iterable[Distribution]) -> Iterator[str]:
    """Yield files that are not as they were installed."""
    for dist in dists:
        record = dist.read_text("RECORD")
        for path, digest, _ in csv.reader(io.StringIO(record or "")):
            if not digest:
                continue
            kind, _, value = digest.partition("=")
            file = dist.locate_file(path)
            try:
                content = hashlib.new(kind, file.read_bytes()).digest()  # type: ignore[attr-defined]
            except OSError:
                yield f"{dist.name}: {path} is gone"
                continue
            if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != value:
                yield f"{dist.name}: {path} was changed"


def check_advisories(pip_audit: str) -> Iterator[str]:
    """Yield known holes of what is pinned, if pip-audit is there and reaches its database."""
    command = [pip_audit, "--format", "json", "--progress-spinner", "off"]
    command += ["--no-deps", "--disable-pip", "-r", str(ROOT / "constraints.txt")]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        raise UnreachedError("pip-audit is not installed") from None
    yield from advisories(told.stdout, told.stderr)


def advisories(out: str, err: str) -> Iterator[str]:
    """Yield what pip-audit has found; say so if nobody answered it."""
    try:
        audited = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (err.strip().splitlines() or ["it said nothing"])[-1]
        if UNREACHED.search(err):
            raise UnreachedError(f"the database was not reached ({reason})") from None
        yield f"pip-audit failed: {reason}"
        return
    # pip-audit calls it a success when it knows none of the packages
    skipped = [package["name"] for package in audited if "skip_reason" in package]
    if skipped and len(skipped) == len(audited):
        reason = audited[0]["skip_reason"]
        raise UnreachedError(f"the database knows no package ({reason})")
    if skipped:
        print(f"advisories were not looked up of: {', '.join(skipped)}")
    for package in audited:
        for hole in package.get("vulns", ()):
            fixed = ", ".join(hole["fix_versions"]) or "none yet"
            yield f"{package['name']} {package['version']}: {hole['id']}, mended in {fixed}"


if __name__ == "__main__":
    main(*sys.argv[1:])
