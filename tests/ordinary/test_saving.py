"""A model of any table that can be fitted is saved and loaded, and scores the same bit for bit."""

import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import FunctionTransformer

from ocfuse import FusedDetector, load
from ocfuse.cli import fit
from ocfuse.detectors import GMM, KNN, Pool
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseError
from ocfuse.tables import TableDetector

#: Rows of a generated table.
N = 16
#: Words that files and formats take for something of their own.
ODD_WORDS = [
    "", " ", "nan", "None", "NA", "null", "true", "1", "1.0", "1e400", "__loader__", "__id__",
    "__class__", "content", "key_types", "\x00", "a\x00", "\u0301", "\ufeff", "\u202e",
    "\U0010ffff", "\n", "\r", "\x1b[2J", "../x", "=1+1", "é", "e\u0301", "日本",
]  # fmt: skip
TEXT = st.one_of(st.sampled_from(ODD_WORDS), st.text(st.characters(exclude_categories=("Cs",))))
FLOATS = st.floats(-1e300, 1e300) | st.floats(-5, 5)
GAPS = st.sampled_from([None, np.nan, pd.NA, float("nan")])
VALUES = {
    "float": FLOATS,
    "whole": st.integers(-3, 3),
    "huge whole": st.integers(-(10**40), 10**40),
    "bool": st.booleans(),
    "decimal": st.decimals(-1000, 1000, allow_nan=False, places=3),
    "text": TEXT,
    "mixed": st.one_of(TEXT, FLOATS, st.booleans(), st.integers(), st.just(Decimal("0.1"))),
}
TYPES = {
    "float": ["float64", "float32", "object", "Float64", "category"],
    "whole": ["int64", "int8", "Int64", "object", "category", "string"],
    "huge whole": ["object", "category"],
    "bool": ["bool", "boolean", "object", "category"],
    "decimal": ["object", "category"],
    "text": ["object", "str", "string", "category"],
    "mixed": ["object", "category"],
}
WITHOUT_GAPS = ("bool", "int8", "int64")


@st.composite
def columns(draw):
    """Return a column: of few or many values, with or without gaps, in one of pandas' types."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    dtype = draw(st.sampled_from(TYPES[kind]))
    n_different = draw(st.sampled_from([1, 2, 3, N]))
    known = draw(st.lists(VALUES[kind], min_size=n_different, max_size=n_different))
    cells = [known[i % n_different] for i in range(N)]
    if dtype not in WITHOUT_GAPS:
        for i in draw(st.sets(st.integers(0, N - 1), max_size=3)):
            cells[i] = draw(GAPS)
    if dtype in ("float64", "float32", "Float64"):
        cells = [np.nan if pd.isna(cell) else cell for cell in cells]
    with np.errstate(over="ignore"):
        return pd.Series(cells, dtype="object").astype(dtype)


@st.composite
def frames(draw):
    """Return a table of a few such columns, beside one of numbers, under any names."""
    found = draw(st.lists(columns(), min_size=1, max_size=3))
    others = draw(st.lists(TEXT, min_size=len(found), max_size=len(found), unique=True))
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=N)})
    for name, column in zip(others, found, strict=True):
        table[name] = column
    return table


def light():
    """Return a detector that learns in no time: what is saved here is a table."""
    return FusedDetector([KNN(3), GMM(1)], random_state=0)


def saved_and_loaded(model):
    with tempfile.TemporaryDirectory() as folder:
        return load(model.save(Path(folder) / "model.ocf"))


def assert_same(score, model, table):
    """Assert that a model and its file give every row the same score, rows of other order too."""
    loaded = saved_and_loaded(model)
    for rows in (table, table.iloc[::-1].iloc[:5]):
        np.testing.assert_array_equal(score(model, rows), score(loaded, rows))


def scores_of(model, rows):
    return model.score_samples(rows)


def results_of(model, rows):
    return model.score(rows)[["score", "p_value", "is_anomaly"]].to_numpy(dtype=float)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # there are few rows, on purpose
def test_one_empty_cell_in_a_text_column():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    table["c"] = np.take(["x", "y"], rng.integers(2, size=100))
    table.loc[3, "c"] = None
    assert_same(scores_of, light().fit(table), table)
    assert_same(results_of, TableDetector(light()).fit(table), table)


def mixed_table(word="y", name="c"):
    """Return a table of numbers and of two categories, of which one and the column are given."""
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=N)})
    table[1] = pd.Series(["a", word] * (N // 2), dtype=object)
    return table.set_axis(pd.Index(["x", name], dtype=object), axis=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("word", ["__loader__", "__id__", "\x00", "\U0010ffff", "x" * 100_000])
def test_a_category_or_column_of_any_name(word):
    for table in (mixed_table(word), mixed_table(name=word)):
        assert_same(scores_of, light().fit(table), table)
        assert_same(results_of, TableDetector(light()).fit(table), table)


@pytest.mark.parametrize("broken", ["\ud800", "\ud83d\ude00"])
@pytest.mark.parametrize("model", [light(), TableDetector(light())], ids=["array", "table"])
def test_text_that_no_file_can_hold_is_refused_before_learning(model, broken, monkeypatch):
    monkeypatch.setattr(Pool, "fit", lambda *_, **__: pytest.fail("it learned"))
    for table in (mixed_table(broken), mixed_table(name=broken)):
        with pytest.raises(InvalidInputError, match="half of a surrogate pair"):
            model.fit(table)


def test_labels_that_no_file_can_hold_are_refused_before_learning():
    table = mixed_table("\ud800")
    with pytest.raises(InvalidInputError, match="half of a surrogate pair"):
        TableDetector(light(), label="c", normal="\ud800").fit(table)


def test_a_model_that_cannot_be_saved_is_refused_before_a_table_is_read(tmp_path):
    members = [("own", FunctionTransformer(lambda x: x))]
    model = TableDetector(FusedDetector(members))
    with pytest.raises(InvalidTypeError, match="cannot be saved"):
        fit.learn(model, lambda: pytest.fail("it read"), tmp_path / "m.ocf", None, 3, quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "score"),
    [(light, scores_of), (lambda: TableDetector(light()), results_of)],
    ids=["array", "table"],
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=frames())
def test_any_table_that_can_be_fitted(make, score, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = make().fit(table)
        except OcfuseError:
            return  # refused in words, before anything was learned
        assert_same(score, model, table)
