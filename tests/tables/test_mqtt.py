"""Rows from a broker: addresses, messages, and a real broker that comes and goes."""

import re
import shutil
import socket
import subprocess
import time

import pytest

from ocfuse.exceptions import InvalidInputError, MissingPackageError
from ocfuse.system.packages import install_line
from ocfuse.tables.mqtt import Topic, lines_of_topic, split_message


def test_addresses_name_a_topic():
    assert Topic.of("mqtt://host/line/9") == Topic("host", 1883, "line/9")
    assert Topic.of("mqtts://me@host/a%20b?client=c") == Topic(
        "host", 8883, "a b", "me", "c", is_encrypted=True
    )
    assert Topic.of("mqtt://[::1]:99/t") == Topic("::1", 99, "t")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://host/topic", r"Expected mqtt://\[user@\]host"),
        ("mqtt://host", "Expected mqtt://"),
        ("mqtt:///topic", "Expected mqtt://"),
        ("mqtt://host:nine/topic", "is no address"),
        ("mqtt://me:secret@host/topic", "into the environment as OCFUSE_MQTT_PASSWORD"),
        ("mqtt://host/line/+/pump", "Start one ocfuse watch for each"),
        ("mqtt://host/line/#", "Start one ocfuse watch for each"),
        ("mqtt://host/topic?qos=2", r"The only option behind \? is client=NAME"),
    ],
)
def test_other_addresses_are_refused_in_words(address, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        Topic.of(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        (b"1,2", [b"1,2"]),
        (b"1,2\r\n3,4\n\n", [b"1,2", b"3,4"]),
        (b'{"a": 1}\n{"a": 2}', [b'{"a": 1}', b'{"a": 2}']),
        (b'{\n  "a": {\n "b": 1}\n}\n', [b'{   "a": {  "b": 1} }']),
        (b"", []),
    ],
)
def test_a_message_holds_rows(message, lines):
    assert split_message(message) == lines


def test_the_package_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "paho.mqtt.client", None)
    with pytest.raises(MissingPackageError, match=re.escape(install_line("mqtt"))):
        next(lines_of_topic("mqtt://127.0.0.1/topic", print))


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def broker(port, tmp_path):
    """Return what starts a broker that knows one user, and what publishes to it."""
    pytest.importorskip("paho.mqtt")
    for tool in ("mosquitto", "mosquitto_passwd", "mosquitto_pub"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    started = []
    people, settings = tmp_path / "people", tmp_path / "broker.conf"
    people.touch(mode=0o600)
    tool = ("mosquitto_passwd", "-b", str(people), "me", "open sesame")
    subprocess.run(tool, check=True, capture_output=True)
    settings.write_text(f"listener {port} 127.0.0.1\npassword_file {people}\nuser root\n")

    def start():
        started.append(subprocess.Popen(["mosquitto", "-c", settings], stderr=subprocess.DEVNULL))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


def publish(port, *messages, retain=False):
    """Publish once the broker answers."""
    told = ("-h", "127.0.0.1", "-p", str(port), "-t", "line/9", "-q", "1")
    for message in messages:
        command = ["mosquitto_pub", *told, "-u", "me", "-P", "open sesame", "-m", message]
        for _ in range(100):
            if not subprocess.run([*command, *["-r"] * retain], capture_output=True).returncode:
                break
            time.sleep(0.05)


def take(lines, n):
    """Return so many lines, within ten seconds."""
    found, until = [], time.monotonic() + 10
    while len(found) < n and time.monotonic() < until:
        found += next(lines)
    return found


def until(lines, is_so):
    end = time.monotonic() + 20
    while not is_so() and time.monotonic() < end:
        assert next(lines) == []
    assert is_so()


def test_rows_come_while_the_broker_comes_and_goes(broker, port, monkeypatch):
    monkeypatch.setenv("OCFUSE_MQTT_PASSWORD", "open sesame")
    told = []
    address = f"mqtt://me@127.0.0.1:{port}/line/9?client=w"
    lines = lines_of_topic(address, told.append, 0.05)
    assert next(lines) == []  # nobody is there
    assert "cannot be reached" in told[0]
    first = broker()
    publish(port, "old", retain=True)
    until(lines, lambda: len(told) == 2)
    assert "is back" in told[1]
    publish(port, '{"a": 1}', "2,3\n4,5")
    assert take(lines, 3) == [b'{"a": 1}', b"2,3", b"4,5"]
    first.terminate()
    first.wait()
    until(lines, lambda: len(told) == 3)
    assert "is gone" in told[2]
    broker()
    until(lines, lambda: len(told) == 4)
    assert "is back" in told[3]
    publish(port, "6,7")
    assert take(lines, 1) == [b"6,7"]
    lines.close()
    publish(port, "8,9")  # is kept for the client
    again = lines_of_topic(address, told.append, 0.05)
    assert take(again, 1) == [b"8,9"]
    again.close()


def test_a_wrong_password_is_told_at_once(broker, port, monkeypatch, tmp_path):
    broker()
    publish(port, "1")
    (tmp_path / "secret").write_text("wrong\n")
    monkeypatch.setenv("OCFUSE_MQTT_PASSWORD_FILE", str(tmp_path / "secret"))
    lines = lines_of_topic(f"mqtt://me@127.0.0.1:{port}/line/9", print)
    with pytest.raises(InvalidInputError, match="refuses us: Not authorized"):
        take(lines, 1)
    monkeypatch.setenv("OCFUSE_MQTT_PASSWORD_FILE", str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        next(lines_of_topic(f"mqtt://me@127.0.0.1:{port}/line/9", print))
