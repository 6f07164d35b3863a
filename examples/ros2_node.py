"""A ROS 2 node that watches a topic of numbers, and publishes alarms as diagnostics.

    ocfuse fit bags/ --stream --topic /joint_states -o joints.ocf
    python ros2_node.py --ros-args -p model:=joints.ocf -p topic:=/joint_states

It runs where ROS 2 is set up (rclpy, diagnostic_msgs), with `pip install 'ocfuse[tool,bags]'`.
Every record is published as JSON on `~/events`, and what is so now on `/diagnostics` once a
second.
"""

import json
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rosidl_runtime_py.utilities import get_message
from std_msgs.msg import String

from ocfuse import load
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import LiveMonitor
from ocfuse.system.bags import seconds_of
from ocfuse.tables.bags import flat


class Watcher(Node):  # type: ignore[misc]
    """Watch one topic."""

    def __init__(self) -> None:
        super().__init__("ocfuse")
        given = {
            "model": "model.ocf",
            "topic": "/joint_states",
            "type": "sensor_msgs/msg/JointState",
        }
        model, topic, kind = (self.declare_parameter(*pair).value for pair in given.items())
        timeout = self.declare_parameter("timeout", 5.0).value
        names = {"model": Path(model).stem, "stream": topic}
        self.monitor = LiveMonitor(load(model), timeout=timeout, names=names)
        self.statuses: dict[str, Any] = {}  # by what they are about, the latest of each
        self.events = self.create_publisher(String, "~/events", 10)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(get_message(kind), topic, self.take, qos_profile_sensor_data)
        self.create_timer(1.0, self.look)

    def take(self, message: Any) -> None:
        """Take a message of the topic."""
        try:
            made = seconds_of(message, self.get_clock().now().nanoseconds)
            self.tell(self.monitor.take(flat(message), made))
        except InvalidInputError as error:
            self.get_logger().warning(f"a message is left out: {error}")
            self.tell(self.monitor.miss(self.monitor.n_rows))

    def look(self) -> None:
        """Notice a silence, and say again what is so: diagnostics are old after some seconds."""
        self.tell(self.monitor.listen())
        array = DiagnosticArray(status=list(self.statuses.values()))
        array.header.stamp = self.get_clock().now().to_msg()
        self.diagnostics.publish(array)

    def tell(self, records: list[dict[str, Any]]) -> None:
        """Publish what has happened, and keep it for the diagnostics."""
        for record in records:
            self.events.publish(String(data=json.dumps(record, default=str)))
            about, status = status_of(record)
            self.statuses[about] = status


def status_of(record: dict[str, Any]) -> tuple[str, Any]:
    """Return what a record is about, and the status of that."""
    kind = record["kind"]
    about = "anomaly" if kind in ("alarm", "event") else kind
    about = " ".join(filter(None, (about, record.get("channel"))))
    is_over = kind == "event" or record.get("state") == "end"
    grave = {"alarm": DiagnosticStatus.ERROR, "silent": DiagnosticStatus.STALE}
    named = record.get("channels", ())  # of a drift names alone
    words = "; ".join(one if isinstance(one, str) else one["words"] for one in named)
    told = {name: record[name] for name in ("event", "score", "severity") if name in record}
    return about, DiagnosticStatus(
        level=DiagnosticStatus.OK if is_over else grave.get(kind, DiagnosticStatus.WARN),
        name=f"ocfuse {record['stream']}: {about}",
        message="over" if is_over else record.get("text") or words or kind,
        hardware_id=record["stream"],
        values=[KeyValue(key=name, value=str(value)) for name, value in told.items()],
    )


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(Watcher())
