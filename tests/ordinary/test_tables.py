"""Every kind of ordinary table is learned, scored, saved, loaded, explained and reported."""

from functools import cache

import numpy as np
import pytest

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import KNN, KPCA
from ocfuse.exceptions import InvalidInputError
from ocfuse.tables import TableDetector
from tests.ordinary.tables import FRESH, KINDS, draw, through_csv

# what is told of constants, ids or few rows is tested where it is told
pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

RATE = 0.05
SEEDS = (0, 1)
#: Mean of two rates, each Beta(10, 191) over draws of 200 rows: above this once in 300 times.
MOST_ALARMS = 0.084
#: A draw in which the row with the only blank is learned from, not left out as far outside.
SAVED = 1
#: A fault moves a number by so many standard deviations.
FAULT = 8.0


def pool(name):
    """Return the members: of copied tables those that copies deceive most."""
    return [KNN(n_neighbors=1), KPCA(), KNN()] if KINDS[name].copied else "light"


@cache
def tables(name, seed=0):
    train, fresh = draw(KINDS[name], seed)
    return through_csv(train), through_csv(fresh)


@cache
def model(name, seed=0):
    """Return what was learned from a CSV file, as the command does."""
    return TableDetector(FusedDetector(pool(name), random_state=0)).fit(tables(name, seed)[0])


@cache
def scores(name, seed=0):
    """Return the scores of the fresh rows."""
    return model(name, seed).score(tables(name, seed)[1])


@cache
def detector(name, seed=0):
    """Return what was learned from a data frame, as a notebook does."""
    return FusedDetector(pool(name), random_state=0).fit(draw(KINDS[name], seed)[0])


def moved(frame, name, by=FAULT):
    """Return rows with a number moved away from its mean."""
    values = frame[name].astype(float)
    way = np.where(values >= values.mean(), 1.0, -1.0)
    return frame.assign(**{name: values + by * way * values.std()})


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_every_fresh_row_has_a_score_and_no_more_raise_an_alarm_than_stated(name):
    found = [scores(name, seed) for seed in SEEDS]
    for each in found:
        assert len(each) == FRESH
        assert np.isfinite(each["score"]).all()
        assert each["p_value"].between(0, 1, inclusive="right").all()
    assert np.mean([each["is_anomaly"].mean() for each in found]) <= MOST_ALARMS


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_a_number_far_outside_raises_an_alarm(name):
    number = KINDS[name].number
    if number is None:
        pytest.skip("no column of numbers")
    faults = through_csv(moved(draw(KINDS[name])[1].dropna(subset=number), number))
    assert model(name).score(faults)["is_anomaly"].mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_a_loaded_model_gives_the_same_scores_bit_for_bit(name, tmp_path):
    learned, fresh = model(name, SAVED), tables(name, SAVED)[1]
    loaded = ocfuse.load(learned.save(tmp_path / "model.ocf"))
    assert loaded.score(fresh).equals(scores(name, SAVED))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_every_row_is_explained_by_its_columns(name):
    fresh = tables(name)[1][:5]
    found = model(name).explain(fresh)
    assert len(found) == 5
    assert set(found.feature_names) <= set(fresh.columns)
    assert np.isfinite(found.attributions).all()
    assert found.describe(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_every_table_has_a_report(name, tmp_path):
    page = model(name).report(tables(name)[1][:20], name="some rows")
    assert "some rows" in page.save(tmp_path / "report.html").read_text(encoding="utf-8")


# -- the same from a data frame in Python ---------------------------------------------------------

FRAMES = (
    "numbers alone",
    "a number with gaps",
    "numbers and categories",
    "text with blanks",
    "text with one blank",
    "yes, no and blank",
    "rare levels",
    "booleans",
    "text in many scripts",
    "codes of digits and letters",
)
NAMED = {
    "an id in every row": "record_id",
    "a counter": "id",
    "free text": "remark",
    "one row per category": "name",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_a_data_frame_is_learned_and_loaded_with_the_same_scores(name, tmp_path):
    learned, fresh = detector(name, SAVED), draw(KINDS[name], SAVED)[1]
    faults = moved(fresh.dropna(subset="x"), "x")
    assert np.mean(learned.predict(faults) == -1) >= 0.9
    loaded = ocfuse.load(learned.save(tmp_path / "detector.ocf"))
    assert np.array_equal(loaded.score_samples(fresh), learned.score_samples(fresh))


@pytest.mark.parametrize("name", NAMED)
def test_what_names_the_rows_of_a_data_frame_is_refused_or_changes_no_score(name):
    train, fresh = draw(KINDS[name])
    column = NAMED[name]
    try:
        found = FusedDetector("light", random_state=0).fit(train[:100])
    except InvalidInputError:
        return
    plain = FusedDetector("light", random_state=0).fit(train[:100].drop(columns=column))
    expected = plain.score_samples(fresh.drop(columns=column))
    assert np.array_equal(found.score_samples(fresh), expected)


# -- what comes after training --------------------------------------------------------------------


TEXT = ("numbers and categories", "text alone", "rare levels", "text in many scripts")


def new_category(name):
    """Return fresh rows, the same with a category that training has not, and its column."""
    fresh = draw(KINDS[name])[1]
    column = next(c for c in reversed(list(fresh)) if fresh[c].dtype.kind not in "fib")
    return fresh, fresh.assign(**{column: "never seen before"}), column


@pytest.mark.parametrize("name", TEXT)
def test_a_category_never_seen_makes_no_row_more_normal(name):
    fresh, changed, _ = new_category(name)
    assert (detector(name).score_samples(changed) <= detector(name).score_samples(fresh)).all()


@pytest.mark.parametrize("name", TEXT)
def test_a_category_never_seen_is_named_first(name):
    _, changed, column = new_category(name)
    found = detector(name).explain(changed[:20])
    first = [found.feature_names[j] for j in found.attributions.argmax(axis=1)]
    assert np.mean([each == column for each in first]) >= 0.95


@pytest.mark.parametrize("name", ["numbers alone", "numbers and categories", "counts"])
def test_a_gap_that_training_had_not_does_not_stop_the_table(name):
    fresh = draw(KINDS[name])[1]
    column = list(fresh)[-1]
    with_gap = fresh.assign(**{column: fresh[column].mask(np.arange(FRESH) == 3)})
    found = model(name).score(through_csv(with_gap))["score"]
    others = np.arange(FRESH) != 3
    expected = scores(name)["score"]
    np.testing.assert_allclose(found[others], expected[others], rtol=0, atol=1e-10)
