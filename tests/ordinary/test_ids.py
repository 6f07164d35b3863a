"""Ids, counters and free text: every row has another value, and nothing can be learned."""

import numpy as np
import pandas as pd
import pytest

from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.exceptions import IgnoredColumnsWarning, InvalidInputError, SuspectInputWarning
from ocfuse.tables import Schema, TableDetector

N = 150


def parts(seed=0, **more):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"flow": rng.normal(size=N), "current": rng.normal(size=N), **more})


#: Columns that name or describe rows, and the reason that is told.
NAMES = {
    "part_id": ([f"p{i}" for i in range(N)], "a different text in every row, named like an id"),
    "note": ([f"seen by {i % 97}" for i in range(N)], "text with 97 different values in 150 rows"),
    "no": (np.arange(1, N + 1), "counts the rows"),
    "serial": (np.arange(N) * 7 % 1009, "a different whole number in every row, named like an id"),
}


@pytest.fixture(scope="module")
def plain_scores():
    """Return the scores of rows by a detector that never saw a name."""
    return FusedDetector("light", random_state=0).fit(parts()).score_samples(parts())


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_names_rows_is_left_out_and_told(name, plain_scores):
    values, reason = NAMES[name]
    frame = parts(**{name: values})
    detector = FusedDetector("light", random_state=0)
    with pytest.warns(IgnoredColumnsWarning, match=rf"not learned from: {name} \({reason}\)"):
        detector.fit(frame)
    assert detector.n_features_in_ == 3
    np.testing.assert_array_equal(detector.encoder_.ignored_, [False, False, True])
    other = frame.assign(**{name: "something else"})
    np.testing.assert_array_equal(detector.score_samples(other), plain_scores)
    why = detector.explain(other.iloc[:2])
    np.testing.assert_array_equal(why.attributions[:, 2], 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_and_python_leave_out_the_same_columns(name):
    values, reason = NAMES[name]
    column = Schema.infer(parts(**{name: values})).columns[2]
    assert (column.kind in ("id", "ignored"), column.reason) == (True, reason)


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.IgnoredColumnsWarning")
def test_a_shift_is_found_beside_an_id_and_a_note():
    frame = parts(part_id=NAMES["part_id"][0], note=NAMES["note"][0])
    detector = FusedDetector("light", random_state=0).fit(frame)
    assert (detector.predict(frame.assign(flow=frame["flow"] + 8)) < 0).mean() >= 0.99


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.IgnoredColumnsWarning")
def test_labelled_anomalies_among_the_rows_do_not_hide_a_counter():
    y = np.where(np.arange(N) % 10 == 3, -1, 1)
    detector = FusedDetector("light", random_state=0).fit(parts(no=np.arange(N)), y)
    np.testing.assert_array_equal(detector.encoder_.ignored_, [False, False, True])


def test_a_frame_of_nothing_but_names_is_refused():
    frame = parts(part_id=NAMES["part_id"][0])[["part_id"]]
    with pytest.raises(InvalidInputError, match=r"no column to learn from: part_id \(a different"):
        FusedDetector("light").fit(frame)


def test_a_column_can_be_used_all_the_same():
    frame = parts(note=NAMES["note"][0])
    encoder = FeatureEncoder(categories=["note"])
    with pytest.warns(SuspectInputWarning, match="values come too rarely to differ"):
        detector = FusedDetector("light", random_state=0, encoder=encoder).fit(frame)
    assert not detector.encoder_.ignored_.any()


def test_arrays_have_no_ids():
    X = parts(no=np.arange(N)).to_numpy()
    assert not FusedDetector("light", random_state=0).fit(X).encoder_.ignored_.any()


@pytest.mark.parametrize("text", ["{:.2f}%", "${:,.2f}", "{:.3f}"])
def test_numbers_written_as_text_are_told_as_such_in_python(text):
    table = parts()
    table["rate"] = [text.format(1000 + 7.3 * i) for i in range(len(table))]
    with pytest.warns(IgnoredColumnsWarning, match=r"rate \(numbers written as text, such as"):
        FusedDetector("light", random_state=0).fit(table)
    model = TableDetector(FusedDetector("light", random_state=0)).fit(table)
    assert "rate" in model.schema_.features


def test_a_wrong_setting_is_asked_about():
    with pytest.raises(InvalidInputError, match=r"Got 'robst'\. Did you mean 'robust'"):
        FeatureEncoder("robst").fit(parts())
    name = parts().columns[0]
    with pytest.raises(InvalidInputError, match=f"Did you mean '{name}'"):
        FeatureEncoder(categories=[name + "x"]).fit(parts())
