"""All files of the tables: complete, well formed, and the same every time."""

import csv
import json
import re
from pathlib import Path

import pytest

from ocfuse.datasets.uci import UCI_SETS
from ocfuse.lab.paper import ranking
from ocfuse.lab.paper.account import checks, threshold_cells
from ocfuse.lab.paper.deviations import differences
from ocfuse.lab.paper.published import PUBLISHED_SETS
from ocfuse.lab.paper.runner import facts
from ocfuse.lab.paper.tables import write
from ocfuse.stats import skillings_mack
from tests.lab.paper.records import failure, hand_made

ABLATION = {
    "data": {
        "local": [
            {
                "p": 8 / 7,
                "tol": 0.01,
                "printed": 2.26,
                "runs": [
                    {"interior_point": 1.0, "paper": 2.0, "strong": 0.5}
                    | {"is_paper_capped": True, "is_strong_capped": False},
                    {"interior_point": 1.0, "paper": 8.0, "strong": 0.5}
                    | {"is_paper_capped": False, "is_strong_capped": False},
                ],
            }
        ]
    }
}


CELL = {
    "data": {
        "systems": [
            {
                "view": view,
                "name": "Pure2 RPAU",
                "types": {str(k): {"frame": {"auc": 90.0 + k}} for k in range(1, 5)},
            }
            for view in ("camera", "joints")
        ]
    }
}


@pytest.fixture(scope="module", autouse=True)
def fast():
    """Resample less: what is tested here is the writing."""

    def quick(table, n_resamples, random_state):
        return skillings_mack(table, n_resamples=100, random_state=random_state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "skillings_mack", quick)
        yield


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, found in (("solvers/ablation", ABLATION), ("robots/cell", CELL)):
        (folder / name).parent.mkdir()
        (folder / f"{name}.json").write_text(json.dumps(found))
    write(hand_made(), folder / "one", about={"command": "x"}, others=folder)
    return folder / "one"


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def test_everything_is_there(out):
    names = {path.name for path in out.iterdir()}
    tables = ("rpau", "pseudo-negative", "comparison")
    assert {"README.md", "account.md", "deviations.md", "thresholds.md", "auc-pr.md"} <= names
    for table in tables:
        assert {f"{table}.md", f"ranks-{table}.md"} <= names
        for measure in ("auc", "gmean"):
            assert f"ranks-{table}-{measure}.svg" in names
            for stem in (f"{table}-{measure}", f"ranks-{table}-{measure}"):
                assert (out / "csv" / f"{stem}.csv").is_file()
                assert (out / "latex" / f"{stem}.tex").is_file()


def test_links_lead_somewhere(out):
    for page in out.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (out / target).is_file(), (page.name, target)


def test_markdown_tables_have_equal_columns(out):
    n_tables = 0
    for page in out.glob("*.md"):
        for block in re.findall(r"(?:^\|.*\|\n?)+", page.read_text(), flags=re.MULTILINE):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().splitlines()}
            assert len(counts) == 1, (page.name, block[:200])
            n_tables += 1
    assert n_tables > 20


def test_csv_files_are_rectangular(out):
    for path in (out / "csv").iterdir():
        rows = list(csv.reader(path.read_text().splitlines()))
        assert len({len(row) for row in rows}) == 1, path.name
        assert "nan" not in path.read_text()


def test_latex_files_are_tables(out):
    for path in (out / "latex").iterdir():
        text = path.read_text()
        assert text.count(r"\begin{") == text.count(r"\end{") == 1
        width = len(re.search(r"\\begin\{\w+\}\{([lr]+)\}", text).group(1))
        for line in text.splitlines():
            if line.endswith(r" \\") and "multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == width - 1, path.name
        assert text.isascii(), path.name
        assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))


@pytest.mark.slow
def test_same_results_give_the_same_files(out, tmp_path):
    write(hand_made(), tmp_path, about={"command": "x"}, others=out.parent)
    assert files(tmp_path) == files(out)
    for path in files(out):
        assert (tmp_path / path).read_bytes() == (out / path).read_bytes(), path


@pytest.mark.slow
def test_ablation(out, tmp_path):
    # the geometric mean of 2 and 8, of which one was stopped
    assert "| 8/7 | 0.01 | 2.26 | >4 |" in (out / "solvers.md").read_text()
    assert "| 8/7 | 0.01 | 2.26 | 0.5 |" in (out / "solvers.md").read_text()
    write(hand_made(), tmp_path, others=Path("nowhere"))
    assert "Left out" in (tmp_path / "solvers.md").read_text()
    assert "| all | simulated cell | not measured |" in (tmp_path / "liranomaly.md").read_text()


def test_every_table_of_the_paper_has_a_page(out):
    """Thirteen by their labels: sets, three of results, six of ranks, two of videos, the time."""
    sets = (out / "datasets.md").read_text()
    assert "| D10 | Hepatitis | 155 | 123 | 19 | 155 | 123 | 19 |" in sets
    assert "| D12 | LiRAnomaly | 37076 | 31642 | - | - | - | - | not public" in sets
    toyota = (out / "toyota.md").read_text()
    assert "| Pure2 pseudo-negative | 82.16 | 96.63 | not measured |" in toyota
    robot = (out / "liranomaly.md").read_text()
    assert "| Non-pure | paper: LiRAnomaly | 99.94 | 96.88 | 94.33 | 92.98 | 1.00 |" in robot
    assert "| Pure2 RPAU | ours: simulated cell | 91.00 | 92.00 | 93.00 | 94.00 | - |" in robot
    assert "another set" in robot


def test_counts_of_the_sets_are_the_printed_ones():
    for found in UCI_SETS.values():
        printed = PUBLISHED_SETS[found.paper_id]
        counts = found.n_rows, found.n_normals, len(found.feature_names)
        assert counts == (printed.samples, printed.normals, printed.features), found.name


def test_thresholds(out):
    text = (out / "thresholds.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("| all |")]
    _, _, n_cells, *gaps, _ = (cell.strip(" *") for cell in line.split("|"))
    assert len(gaps) == 7
    cells = threshold_cells(differences(hand_made()))
    assert int(n_cells) == len(cells)
    # all of these are 60 in the hand-made list
    expected = sum(abs(60.0 - cell.paper) for cell in cells) / len(cells)
    assert [float(gap) for gap in gaps[1:6]] == pytest.approx([expected] * 5, abs=0.05)


def test_account(out):
    text = (out / "account.md").read_text()
    assert "| local against global weights | Pure2 RPAU against Previous RPAU |" in text
    # three steps of 1.25 in the hand-made list, on two sets
    assert "| -3.75 | 0/0/2 | 0.5 |" in text
    assert "Printed cells that break it: ALP on D5 (AUC 92.2, G-mean 97.88)." in text


def test_checks_find_what_is_wrong():
    results = hand_made()
    fine, single, solved, failures = checks(results)
    assert "in 16 of 20 cells, by up to 12.3 points (rpau on D3: 90.34, at most 78.04)" in single
    assert solved.startswith("0 of 0 fits")
    assert f"in {2 * len(results)} of {2 * len(results)} results" in fine
    assert failures == f"0 of {len(results)} results are failures."
    results[0]["gmean"] = 99.0
    results[1] = failure("rpau", "LOF", "D1", 0)
    broken, *_, failures = checks(results)
    assert f"in {2 * len(results) - 3} of {2 * len(results) - 2} results" in broken
    assert "1 of" in failures
    assert "LOF on D1: ValueError: no_such & luck." in failures


@pytest.mark.slow
@pytest.mark.parametrize("name", ["D4", "D5"])
def test_a_single_set(tmp_path, name):
    pages = write([r for r in hand_made() if r["set"] == name], tmp_path)
    assert all("nan" not in page.read_text() for page in pages)


def test_index(out):
    text = (out / "README.md").read_text()
    for expected in ("| command | x |", "3 (seeds 0, 1, 2)", "70 % to learn from", "signed"):
        assert expected in text


def test_facts():
    found = facts("ocfuse bench paper")
    assert found["command"] == "`ocfuse bench paper`"
    assert {"processor", "numpy", "scikit-learn", "date"} <= set(found)
