"""The site holds every page and every public name, and its words agree with the code."""

import importlib
import pkgutil
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import ocfuse
from ocfuse import FusedDetector
from ocfuse.cli.runtime import COMMANDS
from ocfuse.detectors import make_pool
from ocfuse.detectors.base import MANY_ROWS
from supply.pins import lowest, project

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Made when the site is built.
MADE = {"gallery", "generated", "templates"}
#: What has an `__all__` for other modules, and is nobody's entry.
INTERNAL = {"ocfuse.cli", "ocfuse.ensemble", "ocfuse.persistence"}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    """Return the pages that people have written, by their names below docs."""
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return {page.with_suffix("").as_posix() for page in found if page.parts[0] not in MADE}


def listed():
    """Return the pages that stand in a table of contents."""
    names = set()
    for page in pages():
        folder = (DOCS / page).parent
        for block in TOCTREE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
            lines = [line.strip() for line in block.splitlines()]
            entries = [line for line in lines if line and not line.startswith(":")]
            places = [(folder / line).resolve().relative_to(DOCS) for line in entries]
            names |= {place.as_posix() for place in places}
    return names


def test_every_page_stands_in_a_table_of_contents_and_every_entry_is_there():
    there = pages() | {"gallery/index"}
    assert there - listed() == {"index"}
    assert listed() <= there


# -- the reference -------------------------------------------------------


def in_reference():
    """Return the names that the page of the reference lists."""
    return re.findall(r"^   (ocfuse[\w.]*)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.M)


def public_modules():
    """Return the modules that say what they make public."""
    modules = pkgutil.walk_packages(ocfuse.__path__, "ocfuse.")
    specs = {one.name: one.module_finder.find_spec(one.name) for one in modules}
    sources = {name: Path(spec.origin) for name, spec in specs.items()}
    written = {name: path for name, path in sources.items() if path.suffix == ".py"}
    return {name for name, path in written.items() if "\n__all__ = " in path.read_text("utf-8")}


def test_every_public_package_is_in_the_reference():
    missing = public_modules() - INTERNAL - set(in_reference())
    assert not missing, f"list them in docs/api.md: {sorted(missing)}"


def test_every_module_of_the_reference_says_what_it_makes_public():
    silent = {
        name
        for name in set(in_reference()) - {"ocfuse"} - public_modules()
        if not name.rpartition(".")[2][0].isupper() and importable(name)
    }
    assert not silent, f"give them an __all__: {sorted(silent)}"


def importable(name):
    """Return whether a name is that of a module."""
    try:
        return bool(find_spec(name))
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("name", in_reference())
def test_every_name_of_the_reference_is_there(name):
    try:
        importlib.import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        owner = importlib.import_module(module)
        assert hasattr(owner, attribute)
        assert attribute not in getattr(owner, "__all__", ()), "its package lists it already"


# -- words ---------------------------------------------------------------


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def written():
    """Return what the README and all pages say."""
    return "\n".join([text_of("README.md"), *(text_of(f"docs/{page}.md") for page in pages())])


def test_the_versions_that_the_questions_name_are_those_of_the_package():
    bounds = dict(line.split("==") for line in lowest(project()["dependencies"]))
    page = re.sub(r"\s+", " ", text_of("docs/faq.md"))
    assert f"NumPy {bounds['numpy']} and scikit-learn {bounds['scikit-learn']}" in page
    needed = re.search(r"The library needs (.*?)\. ", page)[1]
    names = re.split(", | and ", needed.lower())
    assert sorted(names) == sorted(bounds)


def test_the_guide_counts_members_and_rows_as_the_code_does():
    page = text_of("docs/guide.md")
    for pool in ("default", "large", "wide"):
        (count,) = re.findall(rf'^\| `"{pool}"` \| (\d+):', page, re.MULTILINE)
        assert int(count) == len(make_pool(pool))
    assert f"where more than {MANY_ROWS:,} rows" in page
    assert f"above {MANY_ROWS:,} rows" in text_of("docs/howto/speed.md")
    assert f"above {MANY_ROWS:,} rows" in text_of("docs/accuracy.md")


def test_the_least_rows_that_the_questions_name_are_needed_and_enough():
    n = int(re.search(r"How many rows do I need\?\*\* At least (\d+)", text_of("docs/faq.md"))[1])
    detector = FusedDetector("light", false_alarm_rate=0.2, random_state=0)
    X = [[0.1 * i, (i * i) % 3] for i in range(n)]
    detector.fit(X)
    with pytest.raises(ValueError, match=f"At least {n} rows"):
        detector.fit(X[:-1])


@cache
def options():
    """Return the options of every command."""
    found = {"--help", "--version"}
    waiting = [typer.main.get_command(importlib.import_module(m).app) for m, _ in COMMANDS.values()]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        for parameter in command.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def test_every_command_that_pages_name_is_there():
    named = set(re.findall(r"(?:`|^\$ |^    )ocfuse ([a-z][a-z-]+)\b", written(), re.MULTILINE))
    assert len(named) > 10
    assert named <= set(COMMANDS)


def test_every_option_that_is_named_behind_a_command_is_there():
    lines = re.findall(r"`ocfuse [a-z-]+ [^`\n]*`|^ocfuse [a-z-]+ .*$", written(), re.MULTILINE)
    named = {option for line in lines for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", line)}
    assert len(named) > 30
    assert named <= options(), sorted(named - options())


def test_every_method_of_a_detector_that_pages_call_is_there():
    pages_of_tables = ("guide", "faq", "migration", "howto/labels", "howto/members", "howto/save")
    calls = {
        name
        for page in pages_of_tables
        for name in re.findall(r"\bdetector\.([a-z]\w*)\(", text_of(f"docs/{page}.md"))
    }
    assert {"fit", "explain", "set_threshold"} <= calls
    assert [name for name in calls if not hasattr(FusedDetector, name)] == []


def test_the_table_of_pools_tells_what_was_measured():
    page = text_of("docs/accuracy.md")
    measured = text_of("benchmarks/results/accuracy/pools.md")
    for pool in ("default", "large", "light"):
        (told,) = re.findall(rf"^\| {pool} \|(.*)\|$", page, re.MULTILINE)
        (found,) = re.findall(rf"^\| {pool} \|(.*)\|$", measured, re.MULTILINE)
        told, found = told.split("|"), found.split("|")
        assert told == found[:5] + found[6:]  # without wins and losses


# -- beside others -------------------------------------------------------

#: Rows of the table of `docs/peers.md` that say yes of us, and what would then be there.
HAVE = {
    "learned fusion of detectors": "ocfuse.fusion:TrustFusion",
    "states a false-alarm rate, not a contamination": "ocfuse:FusedDetector.set_threshold",
    "p-values, false discovery rate": "ocfuse:FusedDetector.discoveries",
    "a certificate for this calibration set": "ocfuse:FusedDetector.certificate",
    "guarantees for new runs, not only for rows": "ocfuse.groups:group_folds",
    "false alarms per hour can be stated": "--false-alarms-per-hour",
    "no labels, some or all in one `fit`": "ocfuse.fusion:LabelledFusion",
    "reads gaps and categories": "ocfuse:FeatureEncoder.set_params",
    "compares a row with its group, thousands in one model": "--by",
    "compares a row with its hour and day of the week": "--season",
    "one harmful side of a column": "--high",
    "learns new rows without a new fit": "ocfuse:FusedDetector.update",
    "threshold follows slow change, within a bound": "--adaptive",
    "explains each row": "ocfuse:FusedDetector.explain",
    "plots of shap": "ocfuse.explain:Explanation.to_shap",
    "measures of events: VUS, ranges, delays": "ocfuse.metrics:event_scores",
    "a report for people": "ocfuse:FusedDetector.report",
    "a service with a live page": "ocfuse.serve.dashboard:dashboard_router",
    "sends alarms: webhook, MQTT, mail": "--notify",
    "learns from verdicts on alarms": "--learn-from",
    "command line": "ocfuse.cli:main",
    "model files that run no code": "ocfuse.persistence:load",
    "clones, searches and pipelines of scikit-learn": "ocfuse.metrics:scorer",
    "tables of Excel, at `https://`, at `s3://`": "ocfuse.tables.remote:open_remote",
    "pandas, polars, Arrow": "ocfuse.frame_columns:read_frame",
    "ONNX": "ocfuse.onnx:export",
    "MLflow": "ocfuse.mlflow:log_model",
    "an MCP server for assistants": "ocfuse.mcp:make_server",
    "many machines": "ocfuse.distributed:fit",
}


def our_column():
    """Return what the table says of us, by row."""
    lines = [
        line.strip("|").split("|") for line in text_of("docs/peers.md").splitlines() if "|" in line
    ]
    rows = [[cell.strip(" *") for cell in line] for line in lines]
    return {row[0]: row[1] for row in rows if row[0] and row[1] and set(row[0]) != {"-"}}


def test_what_the_table_says_that_we_have_is_known_here():
    said = {row for row, ours in our_column().items() if ours.startswith("Y")}
    assert said == set(HAVE)


@pytest.mark.parametrize("row", HAVE)
def test_what_the_table_says_that_we_have_is_there(row):
    if HAVE[row].startswith("--"):
        assert HAVE[row] in options()
        return
    module, _, name = HAVE[row].partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_the_table_counts_our_detectors():
    detectors = importlib.import_module("ocfuse.detectors")
    others = {"Pool", "from_pyod", "make_pool"}
    count = len(set(detectors.__all__) - others)
    assert our_column()["detectors to choose from"] == f"{count}, and all of PyOD"


def test_what_the_table_says_that_we_lack_is_still_not_there():
    column = our_column()
    for row in ("GPU", "text, audio, graphs", "years of use by many people"):
        assert column[row] == "-"
    sources = " ".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert "cuda" not in sources.lower()
    assert not hasattr(FusedDetector, "partial_fit")


def test_the_table_is_linked_from_the_first_pages():
    assert "docs/peers.md" in text_of("README.md")
    assert "(peers.md)" in text_of("docs/index.md")
