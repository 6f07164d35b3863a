"""The experiment: every row runs, and no test label reaches any choice."""

import json
import os
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper import experiment as paper
from ocfuse.lab.paper import systems
from ocfuse.lab.paper import systems as running
from ocfuse.lab.paper.experiment import Paper, paper_cells, records, rerun, run_paper
from ocfuse.lab.paper.published import published_table
from ocfuse.lab.paper.repetitions import PROTOCOLS, draw, prepare
from ocfuse.lab.paper.runner import Cell, other_thresholds, run_cells
from ocfuse.lab.paper.systems import SYSTEMS, TABLES, Context, run_recipe
from ocfuse.paper import Candidates
from ocfuse.scores import conformal_threshold
from ocfuse.solvers.native import is_available
from tests.lab.paper.cases import load_toy

EVERY = [(protocol, name) for protocol in PROTOCOLS for name in SYSTEMS[protocol]]


@lru_cache
def context(protocol, is_poisoned=False):
    """Return a cell of the toy set, perhaps with wrong labels of the test and rows, each second."""
    data = load_toy("toy")
    split = draw(data.y, "toy", protocol, 1)
    X = data.X.copy()
    if is_poisoned:
        X[[*split.test, *split.test_anomalies][1::2]] = -7.0
    trial = prepare(X, split)
    if is_poisoned:
        trial = replace(trial, is_normal=~trial.is_normal)
    return Context(trial, Candidates(trial.known))


def outcome(protocol, name, is_poisoned, monkeypatch):
    """Return choices, scores and threshold of a system as the experiment computes them."""
    given = []

    def measure(validation, test, is_normal, negatives):
        given.extend((validation, test, negatives))
        return {}

    monkeypatch.setattr(running, "measure", measure)
    found = run_recipe(name, SYSTEMS[protocol][name].recipe)(context(protocol, is_poisoned))
    validation, test, negatives = given
    thresholds = conformal_threshold(validation, 0.05), other_thresholds(validation, negatives)
    return found[name]["choices"], thresholds, validation, test


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
@pytest.mark.parametrize(("protocol", "name"), EVERY)
def test_no_test_label_reaches_any_choice(protocol, name, monkeypatch):
    clean, poisoned = (outcome(protocol, name, bad, monkeypatch) for bad in (False, True))
    assert poisoned[0] == clean[0]
    assert poisoned[1] == clean[1]
    np.testing.assert_array_equal(poisoned[2], clean[2])
    np.testing.assert_array_equal(poisoned[3][::2], clean[3][::2])
    # the poison was there
    truth = [context(protocol, bad).trial for bad in (False, True)]
    assert (truth[0].is_normal != truth[1].is_normal).all()
    is_changed = (truth[0].test != truth[1].test).any(axis=1)
    assert is_changed[1::2].all()
    assert not is_changed[::2].any()


@pytest.mark.parametrize("table", TABLES)
def test_every_published_row_runs(table):
    assert set(published_table(table).systems) <= set(TABLES[table])
    names = {name for protocol in PROTOCOLS for name in SYSTEMS[protocol]}
    assert set(TABLES[table].values()) <= names


def test_names_are_unique_over_the_protocols():
    assert len({name for _, name in EVERY}) == len(EVERY)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    cells = [Cell("paper", protocol, "toy", 0) for protocol in PROTOCOLS]
    return run_cells(Paper(load_toy), cells, folder)


def test_every_system_runs_and_is_consistent(stored):
    found = records(stored)
    assert not [record for record in found if "failure" in record]
    assert {(r["table"], r["row"]) for r in found} == {
        (table, row) for table, rows in TABLES.items() for row in rows
    }
    for record in found:
        at = [value for name, value in record.items() if "gmean" in name]
        assert len(at) == 7
        assert record["auc"] >= max(at) ** 2 / 100 - 1e-5
        assert max(at) == record["best_gmean"]
        assert 0 < record["prevalence"] < 100
        assert (record["n_train"], record["n_validation"]) == (42, 12)
        assert record["repeated"] == {"normals": 0.0, "anomalies": 0.0}
        assert record["set"] == "toy"
    json.dumps(found, allow_nan=False)


def test_tuned_systems_say_what_they_chose(stored):
    runs = stored[0]["runs"]
    choices = runs["Pure2 RPAU"]["results"]["Pure2 RPAU"]["choices"]
    assert len(choices["members"]) == len(choices["values"]) == len(choices["ties"]) == 4
    assert choices["p"] >= 1
    assert choices["solved"] == 1.0
    assert choices["gap"] <= 1e-4
    single = runs["Single-best RPAU"]["results"]["Single-best RPAU"]["choices"]
    assert single["member"] in choices["members"]


def test_solvers_agree(stored):
    by_name = {r["system"]: r for r in records(stored)}
    for one, two in [
        ("Pure1 RPAU", "Pure2 RPAU"),
        ("Pure1 pseudo-negative", "Pure2 pseudo-negative"),
        ("Non-pure1", "Non-pure2"),
    ]:
        assert by_name[one]["auc"] == pytest.approx(by_name[two]["auc"], abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["Pure2 RPAU", "KPCA pseudo-negative", "IF"])
def test_a_record_is_computed_again(stored, system):
    written = json.loads(json.dumps(records(stored)))
    again, before = rerun(written, system, "toy", 0, load_toy)
    assert again == before
    assert before == stored[0]["runs"][system]["results"][system]


def test_other_data_have_other_keys():
    def shifted(name):
        data = load_toy(name)
        return replace(data, X=data.X + 1)

    cell = Cell("paper", "pure", "toy", 0)
    keys = [[s.key for s in Paper(load).systems(cell)] for load in (load_toy, shifted)]
    assert len(set(keys[0])) == len(keys[0])
    assert not set(keys[0]) & set(keys[1])


def test_cells_cover_the_experiment():
    cells = paper_cells(["D5", "D10"], 3)
    assert len(set(cells)) == 12
    assert {cell.name for cell in paper_cells()} == {f"D{i}" for i in range(1, 11)}


@pytest.mark.parametrize(("sets", "seeds"), [(["D11"], 1), ([], 1), (["D1"], 0)])
def test_impossible_cells(sets, seeds):
    with pytest.raises(InvalidInputError, match="must be"):
        paper_cells(sets, seeds)


@pytest.mark.parametrize("place", [("Sum", "toy", 0), ("IF", "D1", 0), ("IF", "toy", 1)])
def test_what_is_not_recorded_is_not_run(stored, place):
    with pytest.raises(InvalidInputError, match=r"They have system: .*; set: toy; seed: 0"):
        rerun(records(stored), *place, load_toy)


@pytest.mark.parametrize("wrong", [None, 3, {}, [3]])
def test_what_is_no_list_of_records_is_not_run(wrong):
    with pytest.raises(InvalidInputError, match="must be a list of records"):
        rerun(wrong, "IF", "toy", 0, load_toy)


def test_another_split_is_refused(stored):
    def longer(name):
        data = load_toy(name)
        return replace(data, X=np.vstack([data.X, data.X]), y=np.append(data.y, data.y))

    with pytest.raises(InvalidInputError, match="is another one now"):
        rerun(records(stored), "IF", "toy", 0, longer)


def test_every_system_is_in_a_table():
    shown = {system for rows in TABLES.values() for system in rows.values()}
    assert shown == {name for _, name in EVERY}


@pytest.mark.parametrize(
    "wish",
    [
        {"sets": None},
        {"sets": "D5"},
        {"sets": 5},
        {"seeds": 1.5},
        {"seeds": "3"},
        {"seeds": True},
        {"jobs": 0},
        {"jobs": 1.0},
    ],
)
def test_impossible_wishes(tmp_path, wish):
    with pytest.raises(InvalidInputError, match=f"{next(iter(wish))} must be"):
        run_paper(tmp_path / "out", **({"sets": ["D5"], "seeds": 1} | wish))
    assert not (tmp_path / "out").exists()


def test_sets_are_taken_once_and_in_any_case():
    assert paper_cells(["d5", " D5", "D10"], 1) == paper_cells(["D5", "D10"], 1)


def test_large_sets_are_spread_over_the_run():
    cells = paper_cells(["D1", "D5"], 3)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)


def test_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "run_cells", None)  # nothing is computed
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="file' must be one to write to"):
        run_paper(tmp_path / "file", ["D5"], 1)


@pytest.fixture
def instant(monkeypatch):
    """Replace the runs: what is tested is which results are written."""

    def run(experiment, cells, folder, jobs):
        return [{"set": cell.name, "seed": cell.seed} for cell in cells]

    monkeypatch.setattr(paper, "run_cells", run)
    monkeypatch.setattr(paper, "records", list)
    monkeypatch.setattr(paper, "mean_bounds", lambda stored: {})


@pytest.mark.usefixtures("instant")
@pytest.mark.parametrize(("sets", "seeds"), [(["D5"], 2), (["D5", "D9"], 1), (["D1"], 9)])
def test_results_are_not_replaced_by_fewer(tmp_path, sets, seeds):
    run_paper(str(tmp_path), ["D5", "D9"], 2)
    before = (tmp_path / "results.json").read_text()
    with pytest.raises(InvalidInputError, match="the sets D5,D9 and 2 repetitions"):
        run_paper(tmp_path, sets, seeds)
    assert (tmp_path / "results.json").read_text() == before
    assert len(run_paper(tmp_path, ["D9", "D1", "D5"], 3)[0]) == 18
    assert len(json.loads((tmp_path / "results.json").read_text())) == 18


@pytest.mark.usefixtures("instant")
@pytest.mark.parametrize("text", ["", "[3]", "{}", "null", '[{"set": "D1"}]'])
def test_spoilt_results_are_replaced(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    found, _ = run_paper(tmp_path, ["D5"], 1)
    assert found == json.loads((tmp_path / "results.json").read_text())


@pytest.mark.slow
def test_keys_depend_on_versions_and_kernel(monkeypatch):
    def key():
        systems._code.cache_clear()
        return SYSTEMS["pure"]["IF"].key

    before = key()
    for package in ("numpy", "scipy", "scikit-learn"):
        with monkeypatch.context() as patch:
            patch.setattr(
                systems, "version", lambda name, p=package: "0" if name == p else version(name)
            )
            assert key() != before
    with monkeypatch.context() as patch:
        patch.setattr(systems, "is_available", lambda: not is_available())
        assert key() != before
    assert key() == before


@pytest.mark.slow
@pytest.mark.skipif("OCFUSE_DATA" not in os.environ, reason="OCFUSE_DATA names no data")
@pytest.mark.parametrize(
    "place",
    [("Pure2 RPAU", "D5", 0), ("KPCA pseudo-negative", "D7", 1), ("Previous Non-pure", "D10", 2)],
)
def test_committed_results_are_those_of_the_code(place):
    file = Path(__file__).parents[3] / "benchmarks" / "results" / "paper" / "results.json"
    again, stored = rerun(json.loads(file.read_text(encoding="utf-8")), *place)
    assert again.keys() == stored.keys()
    for name in again.keys() - {"choices"}:
        assert again[name] == pytest.approx(stored[name], abs=0.01), name
    for name in ("member", "members", "p", "rho"):
        assert again["choices"].get(name) == stored["choices"].get(name)
