"""The four networks of the paper, with random weights: what is tested is what is done with them."""

import importlib
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ocfuse import load
from ocfuse.exceptions import (
    InvalidInputError,
    MissingPackageError,
    ModelFileError,
    OcfuseWarning,
)
from ocfuse.persistence import save
from ocfuse.vision import PictureDetector, TorchBackbone, networks, open_frames, paper_network
from tests.vision.cases import needs, scene

needs("torch", "safetensors", "PIL.Image")
for package in ("torchvision", "timm"):  # torchvision may be there, and not to be imported yet
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

pytestmark = pytest.mark.usefixtures("operators")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "networks.md"
NAMES = ("alexnet", "mobilenet", "resnet50", "xception")


def opened(name):
    """Return the network itself, with random weights."""
    return networks._network(name, "random", None)[0]


def write_weights(name, path):
    """Write weights that differ from the random ones, as a user would have them on disk."""
    state = {key: value.clone() for key, value in opened(name).state_dict().items()}
    next(iter(state.values())).mul_(2.0)
    if path.suffix == ".safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save(state, path)
    return path


def few_defects(patch):
    """Let detectors learn from few pictures in seconds."""
    patch.setattr("ocfuse.vision.fit.DEFECTS_PER_KIND", 2)
    patch.setattr("ocfuse.vision.fit.N_FOLDS", 2)


@pytest.mark.parametrize(
    ("name", "width", "size"),
    [
        ("alexnet", 4096, 224),
        ("mobilenet", 1280, 224),
        ("resnet50", 2048, 224),
        ("xception", 2048, 299),
    ],
)
def test_features_are_what_the_last_layer_reads(name, width, size):
    backbone = paper_network(name, "random")
    assert backbone.size == size
    pictures = [scene(i / 3, size=100) for i in range(3)]
    features = backbone.extract(pictures)
    assert features.pooled.shape == (3, width)
    assert features.pooled.dtype == np.float32
    assert features.maps == {}
    assert np.isfinite(features.pooled).all()
    assert not np.array_equal(features.pooled[0], features.pooled[2])
    network = opened(name)
    x = torch.tensor(
        np.stack([backbone.prepare(p) for p in pictures]).transpose(0, 3, 1, 2), dtype=torch.float32
    )
    centre, spread = (
        torch.as_tensor(v).reshape(-1, 1, 1) for v in (backbone.centre, backbone.spread)
    )
    with torch.inference_mode():
        classes = network((x - centre) / spread)
        *_, last = (m for m in network.modules() if isinstance(m, torch.nn.Linear))
        read = last(torch.tensor(features.pooled))
    assert torch.allclose(classes, read, rtol=1e-3, atol=1e-3 * float(classes.abs().max()))


def test_pictures_are_standardised_as_in_training():
    """As torchvision and timm say themselves."""
    weights = __import__("torchvision").models.ResNet50_Weights.IMAGENET1K_V1.transforms()
    for name in ("alexnet", "mobilenet", "resnet50"):
        backbone = paper_network(name, "random")
        assert np.allclose(np.divide(backbone.centre, 255), weights.mean)
        assert np.allclose(np.divide(backbone.spread, 255), weights.std)
        assert [backbone.size] == weights.crop_size
    theirs = opened("xception").pretrained_cfg
    backbone = paper_network("xception", "random")
    assert np.allclose(backbone.centre / 255, theirs["mean"])
    assert np.allclose(backbone.spread / 255, theirs["std"])
    assert theirs["input_size"] == (3, backbone.size, backbone.size)


@pytest.mark.parametrize("name", NAMES)
def test_networks_do_not_learn(name):
    network = opened(name)
    assert not any(module.training for module in network.modules())
    assert not any(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("output", ["penultimate", "maps"])
def test_features_do_not_depend_on_the_batch_nor_on_the_call(name, output):
    backbone = TorchBackbone(name, "random", size=96, output=output)
    pictures = [scene(i / 18, size=96, seed=i) for i in range(18)]
    together = backbone.extract(pictures)
    for i in (0, 7, 17):
        alone = backbone.extract(pictures[i : i + 1])
        assert np.array_equal(alone.pooled[0], together.pooled[i])
        for stride in together.maps:
            assert np.array_equal(alone.maps[stride][0], together.maps[stride][i])


def test_random_weights_are_always_the_same_and_leave_other_draws_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    networks._network.cache_clear()
    first = paper_network("mobilenet", "random").digest
    assert torch.equal(torch.rand(3), expected)
    networks._network.cache_clear()
    assert paper_network("mobilenet", "random").digest == first
    assert TorchBackbone("mobilenet", "random").digest != first  # other features


@pytest.mark.parametrize("ending", [".pth", ".pt", ".safetensors"])
def test_weights_come_from_a_file(ending, tmp_path):
    path = write_weights("mobilenet", tmp_path / f"net{ending}")
    pictures = [scene(size=96)]
    found = paper_network("mobilenet", path).extract(pictures).pooled
    assert not np.array_equal(found, paper_network("mobilenet", "random").extract(pictures).pooled)
    network = opened("mobilenet")
    kept = {key: value.clone() for key, value in network.state_dict().items()}
    torch.save(kept, path.with_suffix(".same.pth"))
    same = paper_network("mobilenet", path.with_suffix(".same.pth"))
    expected = paper_network("mobilenet", "random")
    assert np.array_equal(same.extract(pictures).pooled, expected.extract(pictures).pooled)
    assert same.digest == expected.digest


def test_files_without_counters_of_training_steps_are_read(tmp_path):
    state = opened("mobilenet").state_dict()
    old = {key: value for key, value in state.items() if not key.endswith("num_batches_tracked")}
    assert len(old) < len(state)
    torch.save(old, tmp_path / "old.pth")
    assert (
        paper_network("mobilenet", tmp_path / "old.pth").digest
        == paper_network("mobilenet", "random").digest
    )


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = write_weights("mobilenet", tmp_path / "net.pth")
    before = paper_network("mobilenet", path)
    pinned, digest = before.pinned(), before.digest
    torch.save(opened("mobilenet").state_dict(), path)
    assert before.digest != digest
    with pytest.raises(ModelFileError, match=r"net\.pth of mobilenet are not those.*train again"):
        pinned.extract([scene(size=96)])
    path.unlink()
    with pytest.raises(ModelFileError, match=r"No such file.*networks="):
        before.extract([scene(size=96)])


def test_files_of_other_things_are_refused(tmp_path):
    picture = [scene(size=96)]
    path = write_weights("mobilenet", tmp_path / "net.pth")
    with pytest.raises(ModelFileError, match=r"does not fit resnet50.*torchvision's resnet50"):
        paper_network("resnet50", path).extract(picture)
    with pytest.raises(ModelFileError, match=r"does not fit xception.*timm's legacy_xception"):
        paper_network("xception", path).extract(picture)
    state = opened("mobilenet").state_dict()
    for content, reason in (
        ({"state_dict": state}, "and nothing around it"),
        (dict(list(state.items())[:-1]), r"it has 261.*classifier\.1\.bias"),
        (state | {"more": torch.zeros(1)}, "the first that is wrong is more"),
        (state | {"classifier.1.bias": torch.zeros(5)}, r"classifier\.1\.bias"),
        ([1, 2], "of 262 tensors it has 0"),
        (Path, "without running code"),  # a class of another package
    ):
        torch.save(content, path)
        with pytest.raises(ModelFileError, match=reason):
            paper_network("mobilenet", path).extract(picture)
    for name in ("text.pth", "text.safetensors"):
        (tmp_path / name).write_bytes(b"no weights")
        with pytest.raises(ModelFileError, match="no file of weights"):
            paper_network("mobilenet", tmp_path / name).extract(picture)
    with pytest.raises(ModelFileError, match="cannot be read"):
        paper_network("mobilenet", tmp_path).extract(picture)  # a folder


def test_names_and_packages(monkeypatch):
    with pytest.raises(InvalidInputError, match=r"output must be .*Got 'all'"):
        TorchBackbone("mobilenet", "random", output="all").extract([scene(size=96)])
    with pytest.raises(InvalidInputError, match=r"mobilenet.*Got 'vgg'"):
        TorchBackbone("vgg", "random").extract([scene(size=96)])
    networks._network.cache_clear()
    given = importlib.import_module

    def refuse(package):
        if package in ("timm", "torchvision.models"):
            raise ImportError(package)
        return given(package)

    monkeypatch.setattr("ocfuse.vision.networks.importlib.import_module", refuse)
    for name, wanted in (("xception", "timm"), ("resnet50", "torchvision or timm")):
        with pytest.raises(MissingPackageError, match=rf"{wanted} is.*'ocfuse\[networks\]'"):
            paper_network(name, "random").extract([scene(size=96)])


def test_models_of_before_have_maps(tmp_path):
    backbone = TorchBackbone("mobilenet", "random", size=96)
    del backbone.output, backbone.sha256
    found = load(save(backbone, tmp_path / "old.ocf"))
    assert (found.output, found.sha256) == ("maps", None)
    features = found.extract([scene(size=96)])
    assert sorted(features.maps) == [8, 16]


@pytest.mark.slow
def test_a_detector_learns_scores_and_is_saved_without_its_network(tmp_path, monkeypatch):
    few_defects(monkeypatch)
    (tmp_path / "nets").mkdir()
    path = write_weights("alexnet", tmp_path / "nets" / "alexnet.pth")
    normal = np.stack([scene(0.5, size=96, seed=i) for i in range(24)])
    new = np.stack([scene(0.5, size=96, seed=100 + i) for i in range(4)])
    new[0, 20:60, 20:60] = 0
    detector = PictureDetector(paper_network("alexnet", path), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)  # few pictures
        detector.fit(normal)
    scores = detector.score_samples(new)
    assert scores.argmin() == 0
    assert [family.name for family in detector.families_] == ["pooled"]
    assert np.allclose(detector.score_samples(new[:1]), scores[:1], rtol=1e-9)
    file = detector.save(tmp_path / "model.ocf")
    assert file.stat().st_size < 20e6 < path.stat().st_size
    with pytest.raises(ModelFileError, match=r"alexnet\.pth of alexnet.*beside the model file"):
        load(file).score_samples(new)
    found = load(file, networks=tmp_path / "nets")
    assert np.array_equal(found.score_samples(new), scores)
    torch.save(opened("alexnet").state_dict(), path)
    with pytest.raises(ModelFileError, match="checksum differs"):
        load(file, networks=tmp_path / "nets").score_samples(new)


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    """All of it but the download."""
    monkeypatch.chdir(tmp_path)
    few_defects(monkeypatch)
    monkeypatch.setattr("ocfuse.vision.fit.DEFECTS_PER_KIND", 1)
    # takes a sixth of the time
    small = lambda name, path: paper_network(name, path).set_params(size=96)  # noqa: E731
    monkeypatch.setattr("ocfuse.vision.paper_network", small)
    (tmp_path / "weights").mkdir()
    for name in NAMES:
        state = opened(name).state_dict()
        if name in ("mobilenet", "xception"):  # random ones give features that are almost nothing
            *_, key = (k for k in state if k.endswith("weight") and state[k].ndim == 1)
            state = state | {key: state[key] * (1e8 if name == "mobilenet" else 1e4)}
        torch.save(state, tmp_path / "weights" / f"{name}.pth")
    for folder, n in (("nominal", 14), ("new", 2)):
        (tmp_path / folder).mkdir()
        for i in range(n):
            picture = scene(0.5, size=96, seed=i if folder == "nominal" else 100 + i)
            if folder == "new" and i == 0:
                picture[20:60, 20:60] = 0
            Image.fromarray(picture).save(tmp_path / folder / f"{i}.png")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    assert "pretrained=True" in blocks.pop(0)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)  # few pictures
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    assert names["detector"].score_samples("new/").argmin() == 0
    assert [family.name for family in names["detector"].families_] == [
        f"{name}/pooled" for name in names["names"]
    ]
    assert names["features"]("new/").shape == (2, 4096 + 2048 + 2048 + 1280)
    assert names["sixteen"].transform_raw(open_frames("new/")).shape == (2, 16)
    assert names["sixteen"].families_[8].name == "resnet50/svdd"
