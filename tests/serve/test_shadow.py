"""Models that are tried beside those that are served count differences and raise nothing."""

import json
import warnings

import httpx
import pytest

from ocfuse import load
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Settings, paths_by_model
from ocfuse.serve.shadow import ShadowStream
from ocfuse.serve.stream import JudgedRow
from tests.serve.asking import connect, wait_until
from tests.serve.conftest import sensors
from tests.serve.looking import Running
from tests.serve.test_stream import NORMAL, ODD, tell


@pytest.fixture(scope="module")
def shadows(model_files, tmp_path_factory):
    """Return files of models with other thresholds than those that are served."""
    folder = tmp_path_factory.mktemp("shadows")
    found = {}
    for name, offset in (("plant", -1e9), ("runs", 1e9)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = load(model_files[name])
            model.detector_.set_threshold(offset=offset)
            found[name] = model.save(folder / f"{name}-new.ocf")
    return found


@pytest.fixture(scope="module")
def running(model_files, shadows):
    with Running(create_app(Settings(model_files, shadows=shadows))) as server:
        server.service = server.server.config.app
        yield server


def told(running, model):
    answer = httpx.get(f"http://{running.address}/v1/shadow").json()["shadows"]
    return next(one for one in answer if one["model"] == model)


def test_a_shadow_that_never_alarms_differs_where_the_model_alarms(running):
    with connect(f"ws://{running.address}/v1/stream?model=plant&stream=a") as stream:
        assert json.loads(stream.recv(timeout=60))["type"] == "ready"
        rows = [NORMAL, ODD, ODD, {"pressure": "high"}, NORMAL, ODD]
        answers = [tell(stream, row=row) for row in rows]
        alarms = [answer.get("alarm") for answer in answers]
        assert alarms == [None, "begin", None, None, "end", "begin"]
        wait_until(lambda: told(running, "plant")["rows"] == 5)
    counts = told(running, "plant")
    assert (counts["only_served"], counts["only_shadow"]) == (3, 0)
    assert (counts["events_served"], counts["events_shadow"]) == (2, 0)
    assert counts["file"] == "plant-new.ocf"
    assert [one["stream"] for one in counts["streams"]] == ["a"]
    text = httpx.get(f"http://{running.address}/metrics").text
    assert 'ocfuse_shadow_total{count="only_served",model="plant"} 3.0' in text


def test_a_shadow_that_always_alarms_raises_nothing(running):
    with connect(f"ws://{running.address}/v1/stream?model=runs&stream=b") as stream:
        assert json.loads(stream.recv(timeout=60))["type"] == "ready"
        tell(stream, rows=sensors("x", 5, n=40).to_dict("records"))
        wait_until(lambda: told(running, "runs")["rows"] == 40)
    counts = told(running, "runs")
    assert counts["only_shadow"] + counts["only_served"] == counts["only_shadow"] > 30
    assert counts["events_shadow"] == 1
    assert counts["events_served"] == len(
        [one for one in running.service.events.list() if one.model == "runs"]
    )


def test_rows_that_come_faster_than_they_are_scored_are_left_out_and_counted(running, monkeypatch):
    monkeypatch.setattr(ShadowStream, "most_waiting", 2)
    service = running.service
    before = told(running, "plant")

    class Slow(ShadowStream):
        async def _work(self):
            self._waiting.clear()

    shadow = service.shadows.stream(service.registry.get("plant"), "c", None)
    slow = Slow(service.shadows, shadow._model, shadow._feed, shadow._found, None)
    slow._task = object()  # it is at work
    slow.put([JudgedRow(NORMAL, False, False)] * 5)
    assert told(running, "plant")["left_out"] == before["left_out"] + 3


def test_the_page_is_told(running):
    with connect(f"ws://{running.address}/v1/live") as page:
        hello = {"type": "hello", "store": None, "after": None, "source": None}
        page.send(json.dumps(hello))
        while (message := json.loads(page.recv(timeout=60)))["type"] != "shadows":
            pass
    assert {one["model"] for one in message["shadows"]} == {"plant", "runs"}


def test_a_shadow_needs_a_model_beside_it(model_files):
    with pytest.raises(InvalidInputError, match="There are: plant, array, runs"):
        create_app(Settings(model_files, shadows={"fan": model_files["plant"]}))
    assert list(paths_by_model(["new.ocf", "b=other.ocf"], "a")) == ["a", "b"]
