"""The examples of the documentation run, and keep the contracts that they show."""

import asyncio
import importlib
import json
import runpy
import socket
import sys
from array import array
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from examples.own_detector import Parzen
from examples.own_fusion import SteadyFusion
from ocfuse import FusedDetector
from ocfuse.streaming import LiveMonitor, StreamDetector, StreamTable

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("own_*.py")))
def test_it_runs(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "[ 1 -1 -1]" in capsys.readouterr().out


@parametrize_with_checks([Parzen()])
def test_the_detector_is_an_estimator(estimator, check):
    check(estimator)


def test_the_detectors_closed_form_equals_refits():
    X = np.random.default_rng(0).normal(size=(12, 2))
    whole = Parzen().fit(X)
    gram = whole.reference_.query(X)
    expected = [gram.kernel(0.5)[i][np.arange(12) != i].mean() for i in range(12)]
    out_of_fold = np.sort(expected)
    assert whole.offset_ == pytest.approx(out_of_fold[0])


def test_the_fusion_adds_up():
    Z = np.random.default_rng(0).random((30, 3)) * [1.0, 0.1, 3.0]
    fusion = clone(SteadyFusion()).fit(Z)
    assert np.argmax(fusion.weights(Z[:1])) == 1
    base, C = fusion.contributions(Z)
    np.testing.assert_allclose(base + C.sum(1), fusion.fuse(Z))


# -- machines ------------------------------------------------------------


@pytest.fixture(scope="module")
def joints(tmp_path_factory):
    """Return the model of a robot's joints, and its file."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[:, 1] = 0.5 * X[:, 0] + 0.1 * X[:, 1]
    runs = pd.DataFrame(X, columns=["position.shoulder", "position.elbow"])
    runs = runs.assign(run=np.arange(1000) // 100, time=np.arange(1000) % 100 / 10.0)
    detector = FusedDetector("light", false_alarm_rate=0.1, random_state=0)
    model = StreamTable(StreamDetector(detector, windows=(5,)), group="run", time="time").fit(runs)
    path = tmp_path_factory.mktemp("model") / "joints.ocf"
    model.save(path)
    return model, path


class Fields(SimpleNamespace):
    """A message as rclpy makes it."""

    def get_fields_and_field_types(self):
        return dict.fromkeys(vars(self), "")


class Status(Fields):
    OK, WARN, ERROR, STALE = b"\0", b"\1", b"\2", b"\3"


def joint_state(i, elbow=None):
    stamp = Fields(sec=i // 10, nanosec=i % 10 * 10**8)
    shoulder, noise = np.random.default_rng(200 + i).normal(size=2)
    elbow = 0.5 * shoulder + 0.1 * noise if elbow is None else elbow
    names, position = ["shoulder", "elbow"], array("d", [shoulder, elbow])
    return Fields(header=Fields(stamp=stamp), name=names, position=position, effort=array("d"))


class Node:
    """What a node of rclpy does here: parameters, and lists instead of topics."""

    given: dict

    def __init__(self, name):
        self.heard = self.looks = None

    def declare_parameter(self, name, default):
        return SimpleNamespace(value=self.given.get(name, default))

    def create_publisher(self, kind, topic, depth):
        told = []
        return SimpleNamespace(told=told, publish=told.append)

    def create_subscription(self, kind, topic, callback, qos):
        self.heard = callback

    def create_timer(self, seconds, callback):
        self.looks = callback

    def get_clock(self):
        now = SimpleNamespace(nanoseconds=0, to_msg=lambda: Fields(sec=0, nanosec=0))
        return SimpleNamespace(now=lambda: now)

    def get_logger(self):
        return SimpleNamespace(warning=lambda text: None)


def array_of(status):
    return Fields(status=status, header=Fields(stamp=None))


@pytest.fixture
def ros(monkeypatch):
    """Return the example, with modules in place of those of ROS."""
    content = {
        "rclpy": {},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"qos_profile_sensor_data": None},
        "rosidl_runtime_py": {},
        "rosidl_runtime_py.utilities": {"get_message": lambda kind: Fields},
        "diagnostic_msgs": {},
        "diagnostic_msgs.msg": {
            "DiagnosticArray": array_of,
            "DiagnosticStatus": Status,
            "KeyValue": Fields,
        },
        "std_msgs": {},
        "std_msgs.msg": {"String": Fields},
    }
    for name, names in content.items():
        module = ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / "ros2_node.py")))


def test_the_ros_node_tells_alarms_as_events_and_as_diagnostics(ros, joints, monkeypatch):
    now = count()
    monkeypatch.setattr("ocfuse.streaming.monitor.monotonic", lambda: float(next(now)))
    monkeypatch.setattr(Node, "given", {"model": str(joints[1]), "timeout": 50.0}, raising=False)
    node = ros.Watcher()
    for i in range(60):
        node.heard(joint_state(i, None if i < 40 else 9.0))
    node.heard(Fields(header=Fields(stamp=None), data="no joints"))
    told = [json.loads(message.data) for message in node.events.told]
    alarms = [record for record in told if record["kind"] == "alarm"]
    assert sum(record["row"] < 40 for record in alarms) <= 1  # by chance
    alarm = next(record for record in alarms if record["row"] >= 40)
    assert alarm["channels"][0]["name"] == "position.elbow"
    assert (alarm["model"], alarm["stream"]) == ("joints", "/joint_states")
    node.looks()
    (status,) = [s for s in node.diagnostics.told[-1].status if s.name.endswith(": anomaly")]
    assert status.level == Status.ERROR
    assert status.message.startswith("position.elbow ")
    for _ in range(60):
        node.looks()
    silent = {s.name: s for s in node.diagnostics.told[-1].status}["ocfuse /joint_states: silent"]
    assert silent.level == Status.STALE


def test_the_ros_node_says_when_something_is_over(ros):
    for record in ({"kind": "event"}, {"kind": "missing", "state": "end", "channel": "a"}):
        about, status = ros.status_of(record | {"stream": "/s"})
        assert (status.level, status.message) == (Status.OK, "over")
        assert about == {"event": "anomaly", "missing": "missing a"}[record["kind"]]


@pytest.mark.slow
def test_the_nodes_of_an_opc_ua_server_are_watched(joints):
    asyncua = pytest.importorskip("asyncua")
    example = importlib.import_module("examples.opcua_watch")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"opc.tcp://127.0.0.1:{taken.getsockname()[1]}/line"
    nodes = {"position.shoulder": "ns=2;s=a", "position.elbow": "ns=2;s=b"}
    monitor = LiveMonitor(joints[0].restart(), min_rows=2)
    clock = count(0.0, 0.1)
    take = monitor.take
    monitor.take = lambda values, time: take(values, next(clock))  # not that of the wall

    async def until(feed, kind):
        while (record := await asyncio.wait_for(anext(feed), 60))["kind"] != kind:
            pass
        return record

    async def run():
        server = asyncua.Server()
        await server.init()
        server.set_endpoint(address)
        server.set_security_policy([asyncua.ua.SecurityPolicyType.NoSecurity])
        space = await server.register_namespace("urn:line")
        add = server.nodes.objects.add_variable
        _, elbow = [await add(asyncua.ua.NodeId(name, space), name, 0.2) for name in "ab"]
        async with server:
            feed = example.watch(monitor, address, nodes, period=0.02)
            stuck = await until(feed, "stuck")  # both stand still from the beginning
            await elbow.write_value(9.0)
            alarm = await until(feed, "alarm")
            broken = asyncua.ua.StatusCode(asyncua.ua.StatusCodes.BadSensorFailure)
            await elbow.write_value(asyncua.ua.DataValue(asyncua.ua.Variant(9.0), broken))
            missing = await until(feed, "missing")
            await feed.aclose()
            rows = example.watch(None, address, {"c": "ns=2;s=a"}, period=0.02)
            row = await anext(rows)
            await rows.aclose()
        return stuck, alarm, missing, row

    stuck, alarm, missing, row = asyncio.run(run())
    assert stuck["channel"] in nodes
    assert alarm["channels"][0]["name"] == "position.elbow"
    assert missing["channel"] == "position.elbow"
    assert row["c"] == 0.2
