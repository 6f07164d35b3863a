"""Rows of models that measure by group and season are judged by the service as by the model."""

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.scoring import scorer_of
from ocfuse.tables import TableDetector


def machines(days, seed, *, zone=None):
    """Return rows of three machines, an hour apart, with a wave over the day."""
    rng = np.random.default_rng(seed)
    when = pd.date_range("2026-02-02", periods=24 * days, freq="1h", tz=zone)
    machine = rng.integers(0, 3, size=len(when))
    flow = 100.0 * machine + 20 * np.sin(when.hour * np.pi / 12) + rng.normal(size=len(when))
    return pd.DataFrame({"when": when, "machine": [f"m{i}" for i in machine], "flow": flow})


def as_json(rows):
    return rows.assign(when=[str(time) for time in rows["when"]]).to_dict("records")


@pytest.fixture(scope="module", params=[None, "Europe/Berlin"], ids=str)
def zone(request):
    return request.param


@pytest.fixture(scope="module")
def model(zone):
    inner = FusedDetector("light", random_state=0)
    return TableDetector(inner, by="machine", season="day").fit(machines(40, 1, zone=zone))


def test_scores_are_those_of_the_model(model, zone):
    rows = machines(3, 2, zone=zone)
    scorer = scorer_of(model)
    assert {"when", "machine"} <= set(scorer.names)
    assert scorer.plain(as_json(rows)) is None  # times are read more closely
    features = scorer.read(as_json(rows))
    expected = model.score(rows)["score"]
    assert np.allclose(scorer.score(features).score, expected, rtol=0, atol=1e-10)
    cells = scorer.score_cells(scorer.cells_of(features))
    assert np.allclose(cells.score, expected, rtol=0, atol=1e-10)
    odd = scorer.explain(features.assign(flow=5000.0))
    assert "for machine" in odd.readings(0, 1)[0].words


def test_a_row_without_its_machine_or_time_is_refused(model):
    row = as_json(machines(1, 2))[0]
    for name in ("machine", "when"):
        rest = {key: value for key, value in row.items() if key != name}
        with pytest.raises(InvalidInputError, match=f"Missing: {name}"):
            scorer_of(model).read([rest])


def test_a_detector_of_arrays_is_served_too():
    rows = machines(40, 1).assign(machine=lambda table: table["machine"].str[1:].astype(int))
    rows["when"] = rows["when"].astype("datetime64[s]").astype(np.int64)
    X = rows.to_numpy(np.float64)
    detector = FusedDetector("light", by=1, time=0, season="day", random_state=0).fit(X)
    scorer = scorer_of(detector)
    features = scorer.read(X[:20].tolist())
    assert np.allclose(scorer.score(features).score, detector.score_samples(X[:20]), atol=1e-10)


def test_a_detector_of_frames_is_served_too(zone):
    rows = machines(40, 1, zone=zone)
    detector = FusedDetector("light", by="machine", time="when", season="day", random_state=0)
    detector.fit(rows)
    scorer = scorer_of(detector)
    fresh = machines(2, 3, zone=zone)
    found = scorer.score(scorer.read(as_json(fresh))).score
    assert np.allclose(found, detector.score_samples(fresh), rtol=0, atol=1e-10)
