"""What the script draws: complete, bounded, and safe inside HTML."""

import json
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np

from ocfuse.report.payload import payload, to_json
from tests.report import examples


def test_json_cannot_end_a_script_or_begin_a_tag():
    text = to_json(examples.full_data())
    assert not set("<>&") & set(text)
    assert json.loads(text)["ids"]["0"] == f"{examples.HOSTILE} 0"


def test_bars_count_every_row():
    data = examples.full_data()
    bars = payload(data)["histogram"]
    assert sum(bars["fresh"]) == len(data.scores)
    assert sum(bars["normal"]) == len(data.normal_scores)


def test_levels_stand_for_weights():
    data = examples.full_data()
    weights = np.random.default_rng(0).random(data.embedding.weights.shape)
    varied = replace(data, embedding=replace(data.embedding, weights=weights))
    alphabet = f"{ascii_uppercase}{ascii_lowercase}{digits}-_"
    for column, drawn in zip(weights.T, payload(varied)["map"]["weights"], strict=True):
        levels = np.array([alphabet.index(letter) for letter in drawn["levels"]]) / 63
        restored = drawn["low"] + levels * (drawn["high"] - drawn["low"])
        assert np.abs(restored - column).max() < 0.01


def test_what_does_not_vary_has_no_levels():
    data = examples.full_data()
    same = np.full_like(data.embedding.weights, 0.5)
    none = np.full_like(data.embedding.local_p, np.nan)
    drawn = payload(replace(data, embedding=replace(data.embedding, weights=same, local_p=none)))
    assert drawn["map"]["p"] is None
    assert set(drawn["map"]["weights"]) == {None}


def test_members_that_agree_stand_together():
    R = np.eye(4)
    R[0, 2] = R[2, 0] = R[1, 3] = R[3, 1] = 0.9
    order = payload(replace(examples.full_data(), agreement=R))["agreement"]["order"]
    assert sorted(order) == [0, 1, 2, 3]
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}


def test_constant_member_is_drawn_empty():
    R = np.eye(3)
    R[2] = R[:, 2] = np.nan
    drawn = payload(replace(examples.full_data(), agreement=R))["agreement"]
    assert drawn["values"][2] == [None, None, None]
    assert sorted(drawn["order"]) == [0, 1, 2]


def test_points_stay_on_their_side_of_the_threshold():
    data = examples.full_data()
    near = np.nextafter(data.offset, [-np.inf, np.inf])
    scores = np.concatenate([near, data.scores[2:]])
    drawn = payload(replace(data, scores=scores))["timeline"]["score"]
    assert [score < data.offset for score in drawn[:2]] == [True, False]


def test_labelled_anomalies_are_drawn_as_runs():
    data = examples.full_data()
    drawn = payload(data)["timeline"]
    assert drawn["labelled"] == [[data.times[examples.N_NORMAL], data.times[-1]]]
    assert drawn["breaks"] == []
    assert payload(replace(data, labels=None))["timeline"]["labelled"] is None


def test_small_scores_keep_their_digits():
    data = examples.full_data()
    tiny = replace(data.explanation, contributions=1e-7 * data.explanation.contributions)
    shares = payload(replace(data, explanation=tiny))["details"][0]["shares"]
    assert np.allclose(shares, tiny.contributions[0], rtol=1e-4, atol=0)


def test_many_rows_make_no_large_page():
    data, n = examples.full_data(), 50_000
    rng = np.random.default_rng(0)
    many = replace(
        data,
        scores=rng.normal(size=n),
        ids=[f"row number {i}" for i in range(n)],
        labels=rng.choice([-1, 1], size=n),
        times=np.arange(n) * 6e4,
    )
    assert len(to_json(many)) < 1e6
