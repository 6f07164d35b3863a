"""Learning from verdicts when the page asks for that: a new file, and nothing is replaced."""

import hashlib
import inspect
import json
import shutil
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from ocfuse import load
from ocfuse.cli import fit_events
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve import Settings, create_app
from ocfuse.serve.learning import Learning
from tests.cli.test_fit_events import line
from tests.serve.looking import Running

__all__ = ["line"]
ORDER = {"who": "Ada", "model": "pump"}


@pytest.fixture
def plant(line, tmp_path):
    """Return a folder of its own with model, events with verdicts, and training data."""
    return shutil.copytree(line, tmp_path / "plant")


def settings(plant, training="data"):
    models, events = {"pump": plant / "pump.ocf"}, plant / "events.db"
    return Settings(models, events=events, training={"pump": plant / training})


@contextmanager
def asking(plant, training="data"):
    """Return a client of a service that runs."""
    with (
        Running(create_app(settings(plant, training))) as running,
        httpx.Client(base_url=f"http://{running.address}") as client,
    ):
        yield client


def wait_for(client):
    """Return what has been learned once nothing is under way."""
    for _ in range(2400):
        (found,) = client.get("/v1/learn").json()["models"]
        if found["state"] != "running":
            return found
        time.sleep(0.1)
    raise AssertionError("it takes too long")


def test_a_new_model_is_written_beside_the_old_one_and_told(plant, monkeypatch):
    monkeypatch.setattr("ocfuse.serve.learning.NICE", 0)  # it need not wait for other tests
    before = hashlib.sha256((plant / "pump.ocf").read_bytes()).digest()
    with asking(plant) as client:
        counts = client.get("/v1/verdicts").json()["models"]
        assert {one["model"]: one["can_learn"] for one in counts} == {"pump": True, "fan": False}
        assert client.get("/v1/learn").json() == {"models": []}
        assert client.post("/v1/learn", json=ORDER | {"who": " "}).status_code == 422
        assert client.post("/v1/learn", json=ORDER | {"model": "fan"}).status_code == 404
        begun = client.post("/v1/learn", json=ORDER).json()
        assert (begun["state"], begun["who"]) == ("running", "Ada")
        assert client.post("/v1/learn", json=ORDER).status_code == 409
        found = wait_for(client)
    assert found["state"] == "done", found
    assert "Real events: 8 of 8 alarm, before 8" in found["text"]
    assert "pump-new.ocf is written, and pump.ocf is served as before" in found["text"]
    assert str(plant) not in found["text"]
    assert load(plant / "pump-new.ocf").card_["verdicts"] == {"real": 8, "false alarm": 8}
    assert hashlib.sha256((plant / "pump.ocf").read_bytes()).digest() == before


def replaced(monkeypatch, code):
    """Let another program run in place of the command."""
    monkeypatch.setattr(Learning, "command", lambda *_: [sys.executable, "-c", code])


def test_what_cannot_be_learned_is_said_without_names_of_folders(plant, monkeypatch):
    replaced(monkeypatch, f"raise SystemExit('Error: no table in {plant / 'data'}.')")
    with asking(plant) as client:
        client.post("/v1/learn", json=ORDER)
        found = wait_for(client)
    assert (found["state"], found["text"]) == ("failed", "Error: no table in data.")


def test_one_verdict_is_said_to_tell_nothing_in_the_words_of_the_command(plant, monkeypatch):
    counts = {"events": 0, "quiet_before": 0, "quiet_after": 0, "alarm_before": 0, "alarm_after": 0}
    told = json.dumps({"held_out": {"false_alarms": counts, "real": counts}})
    replaced(monkeypatch, f"print({told!r})")
    with asking(plant) as client:
        client.post("/v1/learn", json=ORDER)
        found = wait_for(client)
    assert found["state"] == "done"
    words = "One verdict tells nothing of how others are judged: none was held out."
    assert found["text"].startswith(f"{words} pump-new.ocf is written")
    assert words in inspect.getsource(fit_events)
    assert "of 0" not in found["text"]


def test_a_service_that_stops_ends_it(plant):
    service = create_app(settings(plant))
    service.learning.start("pump", "Ada")
    process = service.learning._process
    service.close()
    assert process.wait(20) != 0
    assert not (plant / "pump-new.ocf").exists()


def test_data_of_strange_models_or_without_events_are_refused(plant):
    models, data = {"pump": plant / "pump.ocf"}, {"pump": plant / "data"}
    with pytest.raises(InvalidInputError, match="--events FILE"):
        Settings(models, training=data)
    with pytest.raises(InvalidInputError, match="'fan', which is not served"):
        Settings(models, events=plant / "events.db", training={"fan": plant / "data"})
    with pytest.raises(InvalidInputError, match="no training data"):
        Settings(models, events=plant / "events.db", training={"pump": plant / "gone"})


def test_the_button_of_the_page_learns(plant, monkeypatch):
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("the browser chromium is not installed")
    held_out = {
        "false_alarms": {"events": 4, "quiet_before": 0, "quiet_after": 3},
        "real": {"events": 4, "alarm_before": 4, "alarm_after": 4},
    }
    replaced(monkeypatch, f"print({json.dumps(json.dumps({'held_out': held_out}))})")
    with Running(create_app(settings(plant))) as running, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://{running.address}/")
        page.locator("#who").fill("Ada")
        page.get_by_role("button", name="Learn from 16 verdicts").click()
        page.locator("#learn", has_text="Learned (Ada, ").wait_for()
        text = page.locator("#learn").inner_text()
        assert "False alarms: 3 of 4 quiet, before 0. Real events: 4 of 4 alarm" in text
        browser.close()
