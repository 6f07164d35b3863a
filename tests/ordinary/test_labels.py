"""Tables in which a few anomalies are tagged, and the rest is blank."""

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.detectors import KNN
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.tables import Schema, TableDetector

N, TAGGED = 100, (3, 17, 40, 77)


def tagged(word="leak", blank=None):
    """Return rows of two numbers, four of which lie outside and are tagged."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 2)), columns=["flow", "current"])
    frame["tag"] = pd.Series([blank] * N, dtype=object)
    frame.loc[list(TAGGED), "flow"] = 9 + np.arange(4)
    frame.loc[list(TAGGED), "tag"] = word
    return frame


def small():
    return FusedDetector([("knn", KNN(3))], random_state=0)


def labels(frame, **given):
    return Schema.infer(frame, "tag", **given).labels_of(frame).tolist()


@pytest.mark.parametrize("anomaly", ["leak", ["leak"], "LEAK"])
@pytest.mark.parametrize("blank", [None, "", np.nan])
def test_tagged_rows_are_anomalies_and_blank_ones_unknown(blank, anomaly):
    found = labels(tagged(blank=blank), anomaly=anomaly)
    assert [i for i, label in enumerate(found) if label == -1] == list(TAGGED)
    assert set(found) == {-1, 0}


def test_a_word_for_anomalies_needs_no_naming():
    assert set(labels(tagged("fault"))) == {-1, 0}
    assert set(labels(tagged("-1"))) == {-1, 0}


@pytest.mark.parametrize("word", ["leak", "1"])
def test_the_message_advises_to_name_what_is_tagged(word):
    with pytest.raises(TableError) as caught:
        labels(tagged(word))
    said = str(caught.value)
    assert f"{word} (4 rows); 96 cells are empty and count as unknown." in said
    assert f"Name the anomalies, for instance anomaly='{word}'. Or name the normal ones" in said


def test_the_message_names_flags_on_the_command_line(tmp_path, run_command):
    tagged().to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run_command("fit", tmp_path / "t.csv", "--label", "tag", "-o", tmp_path / "m")
    assert (code, "for instance --anomaly 'leak'" in err) == (3, True)


def test_other_labels_are_normal_where_anomalies_are_named():
    frame = pd.DataFrame({"x": range(5), "tag": ["a", "b", "c", "?", None]})
    assert labels(frame, anomaly="b") == [1, -1, 1, 0, 0]
    assert labels(frame, anomaly=["a", "b"]) == [-1, -1, 1, 0, 0]


def test_labels_that_nobody_names_are_unknown_where_both_kinds_are_named():
    frame = pd.DataFrame({"x": range(4), "tag": ["a", "b", "c", None]})
    assert labels(frame, normal="a", anomaly="b") == [1, -1, 0, 0]


def test_no_label_is_normal_and_an_anomaly():
    with pytest.raises(TableError, match=r"not both\. Got leak"):
        labels(tagged(), normal="leak", anomaly="leak")


def test_anomalies_must_occur():
    with pytest.raises(TableError, match="anomaly must name values of column 'tag', which holds"):
        labels(tagged(), anomaly="crack")


def test_anomalies_need_a_label_column():
    with pytest.raises(InvalidInputError, match="anomaly needs a label column"):
        Schema.infer(tagged(), anomaly="leak")


@pytest.mark.slow
def test_a_model_learns_from_tags_and_says_what_they_are(tmp_path):
    frame = tagged()
    model = TableDetector(small(), label="tag", anomaly="leak").fit(frame)
    assert model.schema_.columns[-1].reason == (
        "as asked for: 0 normal, 4 anomalies, 96 unknown; anomalies are leak"
    )
    assert model.score(frame)["is_anomaly"].loc[list(TAGGED)].all()
    later = load(model.save(tmp_path / "m.ocf"))
    assert later.schema_.labels_of(frame).tolist() == model.schema_.labels_of(frame).tolist()


@pytest.mark.slow
def test_the_command_takes_several_values(tmp_path, run_command):
    frame = tagged()
    frame.loc[3, "tag"] = "crack"
    frame.to_csv(tmp_path / "t.csv", index=False)
    flags = ("--label", "tag", "--anomaly", "leak", "--anomaly", "crack", "--members", "knn-5")
    code, text, err = run_command("fit", tmp_path / "t.csv", *flags, "-o", tmp_path / "m.ocf")
    assert (code, "0 normal, 4 anomalies, 96 unknown" in text) == (0, True), err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "category"])
def test_gaps_in_the_labelled_anomalies_alone_are_learned_with(kind):
    frame = tagged()
    if kind == "category":
        frame["current"] = np.where(frame["current"] > 0, "high", "low")
    frame.loc[[3, 17], "current"] = None
    model = TableDetector(small(), label="tag", anomaly="leak").fit(frame)
    scores = model.score(frame)
    assert scores["score"].notna().all()
    assert scores["is_anomaly"].loc[list(TAGGED)].all()
