"""What is deployed names flags, addresses and metrics that exist."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from ocfuse.cli.options import read_routes
from ocfuse.serve import Settings, create_app

DEPLOY = Path(__file__).parent.parent / "deploy"
TOKEN = "a-token-for-the-tests-of-the-container"


@pytest.fixture(scope="module")
def metrics(plant_folder):
    """Return the names of all that a service exports."""
    service = create_app(Settings({"plant": plant_folder / "model.ocf"}))
    try:
        families = list(service.metrics.registry.collect())
    finally:
        service.close()
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
    return {family.name + end for family in families for end in endings.get(family.type, [""])}


def names_in(expression):
    return set(re.findall(r"\b(?:ocfuse|process)_[a-z_]+", expression))


def test_alert_rules_ask_for_metrics_that_exist(metrics):
    (group,) = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    asked = set().union(*(names_in(rule["expr"]) for rule in group["rules"]))
    assert asked
    assert asked <= metrics
    assert all({"summary"} == set(rule["annotations"]) for rule in group["rules"])


def test_an_alarm_itself_is_a_rule_and_all_rules_are_documented():
    (group,) = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    (rule,) = (one for one in group["rules"] if 'state="alarm"' in one["expr"])
    assert rule["for"] in ("15s", "30s")  # one or two scrapes
    page = (DEPLOY.parent / "docs/howto/deploy.md").read_text()
    assert not [one["alert"] for one in group["rules"] if f"`{one['alert']}`" not in page]


def test_the_dashboard_asks_for_metrics_that_exist_and_overlaps_nowhere(metrics):
    board = json.loads((DEPLOY / "grafana/dashboards/ocfuse.json").read_text())
    asked = set().union(
        *(names_in(target["expr"]) for panel in board["panels"] for target in panel["targets"])
    )
    assert len(asked) > 5
    assert asked <= metrics
    taken = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert all(x < 24 for x, _ in taken)


def test_files_that_containers_mount_are_there():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounted = [v.split(":")[0] for one in services.values() for v in one.get("volumes", ())]
    ours = [DEPLOY / path for path in mounted if path.startswith("./")]
    assert len(ours) == 4
    assert all(path.exists() for path in ours)
    rules = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["rule_files"]
    assert all((DEPLOY / "prometheus" / rule).exists() for rule in rules)


def test_the_routes_that_are_shown_can_be_read_as_they_are(tmp_path):
    text = (DEPLOY / "routes.toml").read_text()
    assert read_routes(None, DEPLOY / "routes.toml") == ()
    secret = tmp_path / "hook"
    secret.write_text("shared by both")
    shown = "\n".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    shown = shown[shown.index("[[route]]") :].replace("/run/secrets/hook", str(secret))
    path = tmp_path / "routes.toml"
    path.write_text(shown)
    assert [route.name for route in read_routes(None, path)][:2] == ["on call", "shift"]


def entry_points():
    docker = (DEPLOY / "Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", docker, re.M)
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["ocfuse"]
    yield pytest.param([*json.loads(entry), *service["command"]], id="compose")
    (unit,) = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "ocfuse.service").read_text(), re.M)
    yield pytest.param(shlex.split(unit), id="systemd")


@pytest.mark.parametrize("words", list(entry_points()))
def test_events_and_states_outlive_a_restart_in_the_same_place(words):
    events, states = (Path(words[words.index(flag) + 1]) for flag in ("--events", "--state"))
    assert events.parent == states.parent
    assert str(events.parent) in ("/events", "${STATE_DIRECTORY}")


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("words", list(entry_points()))
def test_the_entry_points_serve_answer_the_probe_and_end_at_sigterm(words, plant_folder, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "routes.toml").write_text("")
    places = {
        "/models/pump.ocf": plant_folder / "model.ocf",
        "/etc/ocfuse/pump.ocf": plant_folder / "model.ocf",
        "/run/secrets/token": tmp_path / "token",
        "${CREDENTIALS_DIRECTORY}/token": tmp_path / "token",
        "/etc/ocfuse/routes.toml": tmp_path / "routes.toml",
        "/events/events.sqlite": tmp_path / "events.sqlite",
        "/events/states": tmp_path / "states",
        "${STATE_DIRECTORY}/events.sqlite": tmp_path / "events.sqlite",
        "${STATE_DIRECTORY}/states": tmp_path / "states",
        "0.0.0.0": "127.0.0.1",
    }
    given = [str(places.get(word, word)) for word in words[1:]]
    assert not [word for word in given if "${" in word]
    command = [sys.executable, "-m", "ocfuse", *given, "--port", "0", "--json"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ}
    )
    try:
        address = json.loads(child.stdout.readline())["address"]
        with urllib.request.urlopen(f"{address}/healthz", timeout=30) as answer:
            assert answer.status == 200
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) in (0, 143)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert (tmp_path / "events.sqlite").exists()
