"""The experiment: every row runs, and no test label reaches any choice."""

import json
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from ocfuse.bench import paper
from ocfuse.bench.cells import Cell, run_cells
from ocfuse.bench.members import Candidates
from ocfuse.bench.paper import Context, Paper, paper_cells, records, rerun
from ocfuse.bench.published import published_table
from ocfuse.bench.splits import PROTOCOLS, draw
from ocfuse.bench.systems import SYSTEMS, TABLES
from ocfuse.bench.trial import prepare
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import conformal_threshold
from tests.bench.cases import load_toy

EVERY = [(protocol, name) for protocol in PROTOCOLS for name in SYSTEMS[protocol]]


@lru_cache
def context(protocol, poison="none"):
    """Return a cell of the toy set, perhaps with test rows or labels that are wrong."""
    data = load_toy("toy")
    split = draw(data.y, "toy", protocol, 1)
    X = data.X.copy()
    if poison == "rows":
        X[split.test + split.test_anomalies] = -7.0
    trial = prepare(X, split)
    if poison == "labels":
        trial = replace(trial, is_normal=~trial.is_normal)
    return Context(trial, Candidates(trial.known))


def outcome(protocol, name, poison, monkeypatch):
    """Return choices, scores and threshold of a system as the experiment computes them."""
    given = []
    monkeypatch.setattr(paper, "measure", lambda *scores: given.extend(scores) or {})
    found = paper._run(name, SYSTEMS[protocol][name].recipe)(context(protocol, poison))
    validation, test, _ = given
    return found[name]["choices"], conformal_threshold(validation, 0.05), validation, test


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
@pytest.mark.parametrize(("protocol", "name"), EVERY)
def test_no_test_label_reaches_any_choice(protocol, name, monkeypatch):
    clean = outcome(protocol, name, "none", monkeypatch)
    labels = outcome(protocol, name, "labels", monkeypatch)
    rows = outcome(protocol, name, "rows", monkeypatch)
    for poisoned in (labels, rows):
        assert poisoned[0] == clean[0]
        assert poisoned[1] == clean[1]
        np.testing.assert_array_equal(poisoned[2], clean[2])
    np.testing.assert_array_equal(labels[3], clean[3])
    # the poison was there
    truth = [context(protocol, poison).trial for poison in ("none", "labels", "rows")]
    assert (truth[0].is_normal != truth[1].is_normal).all()
    assert (truth[0].test != truth[2].test).any()


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
        assert record["auc"] >= record["gmean"] ** 2 / 100 - 1e-5
        assert 0 < record["prevalence"] < 100
        assert record["n_train"] == 42
        assert record["set"] == "toy"
    json.dumps(found, allow_nan=False)


def test_tuned_systems_say_what_they_chose(stored):
    runs = stored[0]["runs"]
    choices = runs["Pure2 RPAU"]["results"]["Pure2 RPAU"]["choices"]
    assert len(choices["members"]) == 4
    assert choices["p"] >= 1
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


@pytest.mark.parametrize("system", ["Pure2 RPAU", "KPCA pseudo-negative", "IF"])
def test_stored_split_gives_the_same_again(stored, system):
    cell = json.loads(json.dumps(stored[0]))
    assert rerun(cell, system, load_toy) == cell["runs"][system]["results"]


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


def test_unknown_system(stored):
    with pytest.raises(InvalidInputError, match="system must be one of"):
        rerun(stored[0], "Sum", load_toy)
