"""One command for rows, streams and pictures: what does not belong together is refused."""

import importlib

import pytest
import typer

from ocfuse.cli import fit, fit_video, watch_video
from ocfuse.cli.kinds import FLAGS, KINDS, Heading
from ocfuse.cli.options import TABLES
from ocfuse.cli.runtime import COMMANDS
from ocfuse.exceptions import InvalidInputError

#: What every kind has, beside the options of every command.
OF_EVERY_KIND = {
    "fit": {"out", "false_alarms", "force", "keep"},
    "watch": {"model", "show_all", "threshold", "false_alarms", "fail_on_anomaly"},
}


def plain(err):
    """Return what stands in the box around an error."""
    return " ".join(err.replace("│", " ").split())


def params(name):
    return typer.main.get_command(importlib.import_module(COMMANDS[name][0]).app).params


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit a.csv --windows 5", "--windows is for streams: add --stream."),
        ("fit a.csv --size 64", "--size is for pictures: add --video."),
        ("fit a.csv --no-progress", "--progress is for pictures: add --video."),
        ("fit a.csv --stream --tune labels", "--tune is for rows: leave --stream out."),
        ("fit a.csv --stream --engine dask", "--engine is for rows: leave --stream out."),
        (
            "fit a.csv --stream --size 64",
            "--size is for pictures: give --video instead of --stream.",
        ),
        ("fit --video a --label y", "--label is for rows and streams: leave --video out."),
        (
            "fit --windows 5 --video a",
            "--windows is for streams: give --stream instead of --video.",
        ),
        ("fit --video=a --scale none", "--scale is for rows: leave --video out."),
        ("fit a.csv --stream --video a", "--stream is for tables of sensors, --video for pictures"),
        ("fit --video a b", "unexpected extra argument(s) (b). Recordings are named by --video."),
        ("fit", "Missing argument 'data'."),
        ("fit --stream", "Missing argument 'data'."),
        ("watch m.ocf --progress x", "--progress is for pictures: add --video."),
        ("watch m.ocf --video a -f", "--follow is for rows and streams: leave --video out."),
        ("watch m.ocf --video a --min-rows 2", "--min-rows is for streams: leave --video out."),
        ("watch m.ocf a.csv --video a", "unexpected extra argument(s) (a.csv)."),
        ("watch m.ocf --stream", "No such option"),
    ],
)
def test_an_option_of_another_kind_is_refused(run_command, line, words):
    code, text, err = run_command(*line.split())
    assert (code, text) == (2, "")
    assert words in plain(err)


@pytest.mark.parametrize("line", ["fit --stream --help", "fit --help --windows 5", "fit x --help"])
def test_every_help_is_the_same(run_command, line):
    code, text, _ = run_command(*line.split())
    assert code == 0
    assert text == run_command("fit", "--help")[1]
    for panel in ("Rows", "Rows and streams", "Streams (--stream)", "Pictures (--video)"):
        assert f"╭─ {panel} ─" in text


@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_every_option_has_its_kinds(name):
    rest = {
        param.name
        for param in params(name)
        if getattr(param, "rich_help_panel", None) not in (*KINDS, Heading.ALL)
    }
    assert rest - {"data", "help"} == OF_EVERY_KIND[name]


def test_commands_have_the_flags_of_their_kinds():
    with_flag = {"stream": {"fit", "plan"}, "video": {"fit", "plan", "watch"}}
    assert set(FLAGS.values()) == set(with_flag)
    for flag, names in with_flag.items():
        assert {n for n in COMMANDS if any(p.name == flag for p in params(n))} == names
        assert {table for table in TABLES if table.endswith(f"-{flag}")} == {
            f"{name}-{flag}" for name in names
        }


# -- settings in a file --------------------------------------------------

SETTINGS = """
seed = 3
[fit]
scale = "robust"
false-alarms = 0.2
[fit-stream]
windows = "4,8"
false-alarms = 0.3
[fit-video]
size = 64
false-alarms = 0.4
"""


@pytest.fixture
def built(tmp_path, monkeypatch, run_command):
    """Return what runs `ocfuse fit` by a file of settings up to the model that it would fit."""
    (tmp_path / "s.toml").write_text(SETTINGS)
    found = {}

    def stop(**given):
        found.update(given)
        raise InvalidInputError("far enough")

    def stop_stream(detector, windows, *rest):
        stop(false_alarms=detector.false_alarm_rate, windows=windows, seed=detector.random_state)

    def stop_rows(model, *rest):
        detector = model.detector
        scale = detector.encoder.scale
        stop(false_alarms=detector.false_alarm_rate, scale=scale, seed=detector.random_state)

    def stop_video(places, topic, out, **flags):
        stop(places=places, **{name: flags[name] for name in ("false_alarms", "size", "seed")})

    monkeypatch.setattr(fit, "learn", stop_rows)
    monkeypatch.setattr(fit, "make_stream", stop_stream)
    monkeypatch.setattr(fit_video, "fit_recordings", stop_video)

    def run_it(*line):
        found.clear()
        code, _, err = run_command("fit", "-o", tmp_path / "m.ocf", *line)
        assert (code, "far enough" in err) == (3, True), err
        return dict(found)

    return run_it


@pytest.mark.parametrize("is_first", [True, False])
def test_each_kind_has_its_table(built, tmp_path, is_first):
    config = ("--config", tmp_path / "s.toml")

    def told(*line):
        return built(*((*config, *line) if is_first else (*line, *config)))

    assert told("a.csv") == {"false_alarms": 0.2, "scale": "robust", "seed": 3}
    assert told("a.csv", "--stream") == {"false_alarms": 0.3, "windows": "4,8", "seed": 3}
    assert told("--video", "a", "--video", "b", "--size", 96) == {
        **{"places": ["a", "b"], "false_alarms": 0.4, "size": 96, "seed": 3}
    }


@pytest.mark.parametrize(
    ("settings", "line", "words"),
    [
        ("[fit]\nwindows = '5'", "fit a.csv", "unknown key 'windows' in [fit]."),
        ("[fit]\nstream = true", "fit a.csv", "unknown key 'stream' in [fit]."),
        ("[fit-stream]\nscale = 'none'", "fit a.csv --stream", "'scale' in [fit-stream]."),
        ("[fit-video]\nlabel = 'y'", "fit --video a", "'label' in [fit-video]."),
        ("[watch-video]\nstrict = true", "watch m --video a", "'strict' in [watch-video]."),
        ("[watch]\nprogress = 'x'", "watch m", "unknown key 'progress' in [watch]."),
    ],
)
def test_keys_of_another_kind_are_refused(run_command, tmp_path, settings, line, words):
    (tmp_path / "s.toml").write_text(settings)
    code, _, err = run_command(*line.split(), "--config", tmp_path / "s.toml")
    assert code == 2
    assert words in plain(err)


def test_the_folder_of_events_is_looked_for_before_pictures(run_command, tmp_path):
    events = tmp_path / "none" / "e.jsonl"
    code, _, err = run_command("watch", "m.ocf", "--video", "a", "--events", events)
    assert code == 2
    assert "Invalid value for '--events'" in plain(err)


def test_pictures_are_watched_with_what_is_asked_for(run_command, tmp_path, monkeypatch):
    found = {}
    monkeypatch.setattr(
        watch_video, "watch_recording", lambda *given, **flags: found.update(flags, given=given)
    )
    code, _, err = run_command(
        *("watch", "m.ocf", "--video", "0", "--events", tmp_path / "e", "--leave", 1, "--all")
    )
    assert (code, err) == (0, "")
    assert [str(word) for word in found["given"]] == ["m.ocf", "0", "None", "None", "None"]
    assert found["outputs"] == watch_video.Outputs(tmp_path / "e")
    assert (found["leave"], found["show_all"], found["min_frames"]) == (1.0, True, 3)
