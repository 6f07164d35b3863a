import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError, MissingPackageError, ModelFileError
from ocfuse.vision import TorchBackbone
from ocfuse.vision.networks import ARCHITECTURES
from tests.vision.cases import needs, scene

needs("torch", "PIL.Image")
import torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("operators")


def random_weights(name, folder):
    """Write weights of the right shapes, as a user would have downloaded them."""
    library, theirs = next(
        (package, known)
        for package, known in zip(("torchvision", "timm"), ARCHITECTURES[name], strict=True)
        if known and _is_here(package)
    )
    torch.manual_seed(0)
    if library == "torchvision":
        network = pytest.importorskip("torchvision").models.get_model(theirs, weights=None)
    else:
        network = pytest.importorskip("timm").create_model(theirs, pretrained=False)
    path = folder / f"{name}.pth"
    torch.save(network.state_dict(), path)
    return str(path)


def _is_here(package):
    try:
        __import__(package)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "channels"),
    [("resnet50", 2048), ("mobilenet", 1280), ("xception", 2048), ("alexnet", 256)],
)
def test_named_networks_with_random_weights(name, channels, tmp_path):
    packages = [p for p, k in zip(("torchvision", "timm"), ARCHITECTURES[name], strict=True) if k]
    if not any(map(_is_here, packages)):
        pytest.skip(f"{' or '.join(packages)} is not installed")
    path = random_weights(name, tmp_path)
    backbone = TorchBackbone(name, path)
    pictures = [scene(i / 3, size=100) for i in range(3)]
    features = backbone.extract(pictures)
    assert features.pooled.shape == (3, channels)
    assert sorted(features.maps) == [8, 16]
    assert features.maps[8].shape[1] in (15, 16)
    assert features.maps[16].shape[1] in (7, 8)
    assert np.isfinite(features.pooled).all()
    alone = backbone.extract(pictures[1:2])
    assert np.allclose(alone.maps[16][0], features.maps[16][1], atol=1e-3)
    assert backbone.digest == TorchBackbone(name, path).digest


def test_other_weights_are_refused_and_told_apart(tmp_path):
    if not (_is_here("torchvision") or _is_here("timm")):
        pytest.skip("torchvision or timm is not installed")
    path = random_weights("mobilenet", tmp_path)
    with pytest.raises(ModelFileError, match="does not fit resnet50"):
        TorchBackbone("resnet50", path).extract([scene()])
    state = torch.load(path, weights_only=True)
    next(iter(state.values())).add_(1.0)
    torch.save(state, tmp_path / "other.pth")
    other = TorchBackbone("mobilenet", str(tmp_path / "other.pth"))
    assert other.digest != TorchBackbone("mobilenet", path).digest


def test_names_and_packages(monkeypatch):
    with pytest.raises(InvalidInputError, match="alexnet"):
        TorchBackbone("vgg").extract([scene(size=128)])

    def refuse(package):
        raise ImportError(package)

    monkeypatch.setattr("ocfuse.system.packages.importlib.import_module", refuse)
    with pytest.raises(MissingPackageError, match=r"\[networks\]"):
        TorchBackbone("xception").extract([scene(size=128)])
