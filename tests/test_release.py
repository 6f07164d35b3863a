"""What goes out: metadata, wheels, workflows, recipe and pages tell the same, and what is so."""

import io
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from ocfuse.persistence.header import FORMAT
from supply import fresh, release, wheels
from supply.pins import LOWER_BOUND, project
from supply.pythons import at_hand, candidates, promised, tell_version

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
TOLD = ("CHANGELOG.md", "CITATION.cff", "recipe/recipe.yaml", "src/ocfuse/__init__.py")
PYTHON = re.compile(r"3\.\d+")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def commands(workflow):
    """Return all that the steps of a workflow run."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job.get("steps", ()) if "run" in step]


class TestMetadata:
    def test_python_and_state_are_named(self):
        about = project()
        assert promised() == ["3.10", "3.11", "3.12", "3.13", "3.14"]
        assert about["requires-python"] == f">={promised()[0]}"
        assert "Development Status :: 4 - Beta" in about["classifiers"]
        assert about["classifiers"] == sorted(about["classifiers"], key=natural)
        assert {"Documentation", "Changelog", "Issues", "Source"} <= set(about["urls"])

    def test_version_day_and_address_agree(self):
        assert list(release.disagreements()) == []

    @pytest.mark.parametrize(
        ("name", "old", "new", "found"),
        [
            ("CHANGELOG.md", "## [0.1.0] - 2", "## [0.1.0] 2", "CHANGELOG.md has no section"),
            ("CITATION.cff", "released: 2026-11-19", "released: 2026-11-20", "version or day"),
            ("CITATION.cff", "ocfuse/ocfuse\n", "me/ocfuse\n", "another file https"),
            ("recipe/recipe.yaml", 'version: "0.1.0"', 'version: "0.2"', "recipe.yaml tells"),
            ("src/ocfuse/__init__.py", '"0.1.0"', '"0.1.0.dev0"', "no version of a release"),
        ],
    )
    def test_what_does_not_agree_is_found(self, tmp_path, name, old, new, found):
        for told in TOLD:
            (tmp_path / told).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / told).write_text(
                read(told).replace(old, new) if told == name else read(told)
            )
        assert found in "\n".join(release.disagreements(tmp_path))

    def test_nothing_is_published_from_elsewhere(self):
        address = project()["urls"]["Source"]
        assert list(release.not_from_here(f"v{release.version()}", address)) == []
        (wrong,) = release.not_from_here(f"v{release.version()}", "https://github.com/me/ocfuse")
        assert "[project.urls]" in wrong
        (wrong,) = release.not_from_here("v9", address)
        assert "The tag v9" in wrong


def natural(line):
    """Return what puts 3.9 before 3.10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", line)]


def wheel(tag, *libraries, machine=0x3E, says=None):
    """Return a wheel with the heads of some libraries."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ocfuse-1.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {says or tag}\n")
        for library in libraries:
            archive.writestr(library, bytes(18) + machine.to_bytes(2, "little") + bytes(8))
    return packed.getvalue()


class TestWheels:
    LIMITED = "cp311-abi3-manylinux_2_17_x86_64"
    BOTH = tuple(f"{kernel}.abi3.so" for kernel in wheels.KERNELS)

    @pytest.fixture
    def audits(self, monkeypatch):
        """Return what auditwheel and abi3audit find, to be changed."""
        found = {"platform": "manylinux_2_17_x86_64", "violations": 0}

        def audited(command, *arguments):
            told = f'consistent with the following\nplatform tag: "{found["platform"]}".'
            code = found["violations"] if command == "abi3audit" else 0
            return subprocess.CompletedProcess([command], code, told, "")

        monkeypatch.setattr(wheels, "audited", audited)
        return found

    def test_one_wheel_serves_all_later_pythons_and_one_everybody(self, monkeypatch, capsys):
        monkeypatch.setattr(wheels, "at_hand", lambda: {"3.10": Path("/python3.10")})
        tags = [one.tag for one in wheels.planned()]
        assert tags == [
            "py3-none-any",
            self.LIMITED,
            self.LIMITED.replace("x86_64", "aarch64"),
            "cp310-cp310-manylinux_2_17_x86_64",
            "cp310-cp310-manylinux_2_17_aarch64",
        ]
        assert capsys.readouterr().out == ""
        monkeypatch.setattr(wheels, "at_hand", dict)
        assert [one.tag for one in wheels.planned()] == tags[:3]
        assert "No Python 3.10 was found" in capsys.readouterr().out

    def test_compilers_build_for_the_old_library(self):
        arm = wheels.compiled("cp310-cp310", Path("/python3.10"), "aarch64")
        assert "-target aarch64-linux-gnu.2.17" in arm.environment["CXX"]
        assert arm.environment["SETUPTOOLS_EXT_SUFFIX"] == ".cpython-310-aarch64-linux-gnu.so"
        assert arm.options == ("--plat-name=manylinux_2_17_aarch64",)

    def test_what_is_whole_goes_out(self, audits):
        name = f"ocfuse-1-{self.LIMITED}.whl"
        assert list(wheels.faults(name, wheel(self.LIMITED, *self.BOTH))) == []
        audits["platform"] = "manylinux_2_5_x86_64"  # serves more than it promises
        assert list(wheels.faults(name, wheel(self.LIMITED, *self.BOTH))) == []
        assert list(wheels.faults("ocfuse-1-py3-none-any.whl", wheel("py3-none-any"))) == []

    @pytest.mark.parametrize(
        ("tag", "content", "found"),
        [
            (LIMITED, wheel(LIMITED, BOTH[0]), "must hold the kernels"),
            (LIMITED, wheel(LIMITED, *BOTH, machine=0xB7), "is for another machine"),
            (LIMITED, wheel(LIMITED, *BOTH, says="cp311-abi3-linux_x86_64"), "not call itself"),
            ("py3-none-any", wheel("py3-none-any", *BOTH), "must hold the kernels"),
        ],
    )
    def test_what_lacks_something_does_not(self, audits, tag, content, found):
        assert found in "\n".join(wheels.faults(f"ocfuse-1-{tag}.whl", content))

    def test_audits_are_heard(self, audits):
        name, content = f"ocfuse-1-{self.LIMITED}.whl", wheel(self.LIMITED, *self.BOTH)
        audits["platform"] = "manylinux_2_34_x86_64"
        assert [line[:15] for line in wheels.faults(name, content)] == ["auditwheel says"]
        audits |= {"platform": "linux_x86_64", "violations": 1}
        assert [line[:14] for line in wheels.faults(name, content)] == [
            "auditwheel say",
            "abi3audit says",
        ]

    def test_pythons_are_found_and_asked(self, tmp_path):
        here = ".".join(map(str, sys.version_info[:2]))
        assert tell_version(Path(sys.executable)) == here
        (tmp_path / "broken").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "broken").chmod(0o755)
        assert tell_version(tmp_path / "broken") == ""
        assert next(candidates("3.99"), None) is None
        assert set(at_hand()) <= set(promised())

    @pytest.mark.parametrize(
        ("answers", "serves"),
        [
            (["", "", "C++ and C++", "demo", "9 passed"], True),
            (["", "", "NumPy, because", "demo", "9 passed"], False),
            (["", "", "C++ and C++", None], False),
        ],
    )
    def test_a_wheel_that_fails_in_a_fresh_environment_is_told(
        self, monkeypatch, capsys, answers, serves
    ):
        told = iter(answers)

        def run(command, place):
            answer = next(told)
            return subprocess.CompletedProcess(command, answer is None, answer or "", "broken")

        monkeypatch.setattr(fresh, "run", run)
        assert fresh.serves("3.12", Path("python"), Path(), True) == serves
        assert ("demo failed" in capsys.readouterr().out) == (answers[-1] is None)


class TestForge:
    @pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
    def test_workflows_run_what_is_there(self, workflow):
        lines = "\n".join(commands(workflow))
        targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
        assert set(re.findall(r"\bmake ([a-z-]+)", lines)) <= targets
        named = re.findall(r"(?<![\w/])(?:tests|\.ci)/[\w./]+", lines)
        assert [path for path in named if not (ROOT / path).exists()] == []
        assert all(find_spec(name) for name in re.findall(r"-m (supply\.\w+)", lines))

    def test_tests_run_on_every_promised_python(self):
        jobs = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
        matrix = jobs["newest"]["strategy"]["matrix"]
        assert matrix["python"] == promised()
        assert {"ubuntu-latest", "macos-latest", "windows-latest"} <= set(matrix["os"])
        assert "make test-oldest" in commands(ROOT / ".github/workflows/test.yml")

    @pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
    def test_workflows_may_do_little(self, workflow):
        """Write access and tokens stand at the jobs that need them; nothing waits for hours."""
        about = yaml.safe_load(workflow.read_text())
        assert about["permissions"] == {"contents": "read"}
        own = {name: job.get("permissions") for name, job in about["jobs"].items()}
        assert {name for name, more in own.items() if more} <= {"publish", "page"}
        steps = [job for job in about["jobs"].values() if "steps" in job]
        assert all(job["timeout-minutes"] <= 60 for job in steps)
        for job in steps:
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout"):
                    assert step["with"]["persist-credentials"] is False

    def test_only_what_was_checked_is_published(self):
        jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
        assert set(jobs["publish"]["needs"]) == {"dist", "wheels"}
        assert jobs["publish"]["permissions"] == {"id-token": "write"}
        assert jobs["publish"]["environment"] == "release"
        lines = [step.get("run", "") for step in jobs["dist"]["steps"]]
        checked = next(i for i, line in enumerate(lines) if "supply.release" in line)
        assert checked < lines.index("make dist") < lines.index("make test-wheels")

    def test_the_recipe_needs_what_the_package_needs(self):
        recipe = yaml.safe_load(read("recipe/recipe.yaml"))
        about = project()
        wanted = [*about["dependencies"], *about["optional-dependencies"]["tool"]]
        listed = recipe["requirements"]["run"]
        python = f"python {about['requires-python']}"
        assert listed == [python, *(line.replace(">=", " >=") for line in wanted)]
        assert recipe["about"]["license"] == about["license"]

    def test_wheels_of_other_systems_cover_the_promised_pythons(self):
        if sys.version_info < (3, 11):
            pytest.skip("tomllib came with Python 3.11")
        import tomllib  # noqa: PLC0415

        about = tomllib.loads(read("pyproject.toml"))["tool"]["cibuildwheel"]
        first, *_, last = promised()
        assert about["build"] == [
            f"cp{version.replace('.', '')}-*" for version in (first, "3.11", last)
        ]

    @pytest.mark.parametrize(
        ("schema", "files"),
        [
            ("github-workflows", WORKFLOWS),
            ("github-issue-forms", FORMS),
            ("github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
            ("dependabot", [ROOT / ".github/dependabot.yml"]),
            ("citation-file-format", [ROOT / "CITATION.cff"]),
        ],
    )
    @pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="needs check-jsonschema")
    def test_files_have_the_form_that_others_expect(self, schema, files):
        assert files
        lint("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)

    @pytest.mark.parametrize(
        "command",
        [
            ("actionlint",),
            ("zizmor", "--offline", "--min-severity", "medium", ".github"),
            ("cffconvert", "--validate"),
        ],
    )
    def test_linters_that_are_here_find_nothing(self, command):
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        lint(*command)


def lint(command, *arguments):
    """Run a linter; fail with what it says."""
    program = shutil.which(command, path=Path(sys.executable).parent) or shutil.which(command)
    done = subprocess.run(
        [program, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class TestPages:
    def test_every_extra_that_is_named_is_there(self):
        extras = set(project()["optional-dependencies"])
        pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        pages += [*(ROOT / "examples").glob("*.py"), *(ROOT / "src").rglob("*.py")]
        named = {
            extra
            for page in pages
            for group in re.findall(r"(?:\bocfuse|'\.|\.whl)\[([a-z,-]+)\]", page.read_text())
            for extra in group.split(",")
        }
        assert {"tool", "plot", "video"} <= named
        assert named <= extras

    def test_messages_ask_where_the_package_came_from(self):
        """Only one place writes such a line, and where all must have one version that is named."""
        written = {
            path.relative_to(ROOT / "src/ocfuse").as_posix()
            for path in (ROOT / "src").rglob("*.py")
            if "pip install 'ocfuse[" in path.read_text()
        }
        assert written == {"system/packages.py", "distributed/cluster.py"}

    def test_the_installation_is_told_before_and_after_the_release(self):
        part = read("README.md").split("\n## Install\n")[1].split("\n## ")[0]
        assert f"Python {promised()[0]} to {promised()[-1]}" in part
        assert part.index("pip install 'ocfuse[tool]'") < part.index("Until then")
        assert part.index("Until then") < part.index("pip install '.[tool]'")
        (name,) = re.findall(r"\./(ocfuse-\S+\.whl)", part)
        assert name == f"ocfuse-{release.version()}-{TestWheels.LIMITED}.whl"

    def test_every_dependency_has_its_reason(self):
        """A row of a table names packages, perhaps their extra, and why they are needed."""
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in read("docs/dependencies.md").splitlines()
            if line.startswith("| ")
        ]
        told = {name for names, *_, why in cells if len(why) > 3 for name in names.split(", ")}
        lines = [*project()["dependencies"], *chain(*project()["optional-dependencies"].values())]
        needed = {Requirement(line).name for line in lines} - {"ocfuse"}
        assert needed <= told, f"tell why in docs/dependencies.md: {sorted(needed - told)}"

    def test_bounds_that_are_told_with_a_reason_are_those_of_the_package(self):
        """A reason may say "from 1.2 on", or "typer from 1.2 on" where a row names several."""
        lines = [*project()["dependencies"], *chain(*project()["optional-dependencies"].values())]
        bounds = {m["name"]: m["version"] for m in map(LOWER_BOUND.match, lines) if m}
        told = {}
        for row in re.findall(r"^\| (.*) \|$", read("docs/dependencies.md"), re.MULTILINE):
            names, why = row.split(" | ")[0].split(", "), row.split(" | ")[-1]
            for name, bound in re.findall(r"(?:([\w-]+) )?from ([\d.]+) on(?!\))", why):
                told[name if name in names else names[0]] = bound
        assert len(told) > 5
        assert told == {name: bounds[name] for name in told}

    def test_the_readme_lists_every_extra_of_users(self):
        part = read("README.md").split("\n## Install\n")[1].split("\n## ")[0]
        cells = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        listed = [extra for cell in cells for extra in re.findall(r"`([a-z]+)`", cell)]
        ours = {"rivals", "rivals-torch", "dev", "docs", "release"}
        assert sorted(listed) == sorted(project()["optional-dependencies"].keys() - ours)

    def test_compatibility_tells_the_bounds_of_the_package(self):
        page = read("docs/compatibility.md")
        lowest = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| lowest", page, re.MULTILINE))
        names = {"NumPy": "numpy", "SciPy": "scipy"}
        bounds = [LOWER_BOUND.fullmatch(line) for line in project()["dependencies"]]
        expected = {match["name"]: match["version"] for match in bounds}
        assert {names.get(name, name): version for name, version in lowest.items()} == expected
        (row,) = re.findall(r"^\| Python \| (.*) \|$", page, re.MULTILINE)
        assert PYTHON.findall(row) == [promised()[0], *promised()]
        assert re.findall(r"^\| (\d) \| ", page, re.MULTILINE)[0] == str(FORMAT)

    def test_every_wheel_is_told(self):
        page = read("docs/releasing.md")
        assert TestWheels.LIMITED in page
        assert "cp310-cp310-manylinux_2_17_x86_64" in page
        assert wheels.PURE in page

    @pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "AGENTS.md"])
    def test_links_lead_somewhere_and_nobody_is_asked_to_write_mail(self, name):
        links = re.findall(r"\]\((?!https?:)([^)#]+)", read(name))
        assert [link for link in links if not (ROOT / link).exists()] == []
        assert not re.search(r"\S@\S+\.\w", read(name))
        assert name in read("README.md")

    def test_what_a_release_holds_is_in_the_source_distribution(self):
        manifest = read("MANIFEST.in")
        for line in (
            "include *.md CITATION.cff",
            "recursive-include recipe *.yaml",
            ".github *.yml",
        ):
            assert line in manifest

    def test_requirements_of_a_release_are_bounded_from_below_only(self):
        extras = project()["optional-dependencies"]
        lines = [Requirement(line) for line in extras["release"]]
        assert {line.name for line in lines} >= {"auditwheel", "abi3audit", "ziglang"}
        assert all(str(line.specifier).startswith(">=") for line in lines)
