import os
import shutil

import numpy as np
import pytest

from ocfuse import load
from ocfuse.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingPackageError,
    ModelFileError,
)
from ocfuse.persistence import save
from ocfuse.vision import Lite0, OnnxBackbone, make_backbone, paper_network
from ocfuse.vision.backbone import sorted_outputs
from ocfuse.vision.lite0 import lite0_graph
from ocfuse.vision.networks import name_backbones
from tests.vision.cases import Blocks, needs, scene

needs("onnx", "onnxruntime", "PIL.Image")
import onnx  # noqa: E402
from onnx import helper  # noqa: E402


@pytest.fixture
def small_network(tmp_path):
    """Write a network that averages blocks of 8 pixels; an inner tensor has them doubled."""
    info = helper.make_tensor_value_info
    given = info("pixels", 1, ["n", 3, 32, 32])
    nodes = [
        helper.make_node(
            "AveragePool", ["pixels"], ["blocks"], kernel_shape=[8, 8], strides=[8, 8]
        ),
        helper.make_node("Add", ["blocks", "blocks"], ["twice"]),
        helper.make_node("GlobalAveragePool", ["twice"], ["all"]),
        helper.make_node("Flatten", ["all"], ["flat"]),
    ]
    outputs = [info("blocks", 1, None), info("flat", 1, None)]
    graph = helper.make_graph(nodes, "small", [given], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "small.onnx"
    onnx.save(model, path)
    return path


def test_any_onnx_file(small_network):
    backbone = OnnxBackbone(str(small_network), size=32, centre=0.0, spread=1.0)
    picture = scene(size=32)
    features = backbone.extract([picture])
    blocks = picture.reshape(4, 8, 4, 8, 3).astype(float).mean((1, 3))
    assert np.allclose(features.maps[8][0], blocks, atol=1e-3)
    assert np.allclose(features.pooled[0], 2 * picture.mean((0, 1)), atol=1e-3)


def test_inner_tensors_can_be_put_out(small_network):
    backbone = OnnxBackbone(str(small_network), size=32, tensors=["twice"], centre=0.0, spread=1.0)
    plain = OnnxBackbone(str(small_network), size=32, centre=0.0, spread=1.0)
    pictures = [scene(size=32)]
    doubled, single = backbone.extract(pictures), plain.extract(pictures)
    assert np.allclose(doubled.maps[8], 2 * single.maps[8])
    assert np.allclose(doubled.pooled, doubled.maps[8].mean((1, 2)))  # for want of an output
    assert backbone.digest != plain.digest
    with pytest.raises(InvalidInputError, match="no tensors nowhere"):
        OnnxBackbone(str(small_network), size=32, tensors=["nowhere"]).extract(pictures)


def test_a_network_that_changed_is_refused(small_network):
    pinned = OnnxBackbone(str(small_network), size=32).pinned()
    pinned.extract([scene(size=32)])
    content = small_network.read_bytes().replace(b"small", b"other")
    small_network.write_bytes(content)
    pinned.threads = 2  # another session
    with pytest.raises(ModelFileError, match="checksum differs"):
        pinned.extract([scene(size=32)])
    small_network.unlink()
    with pytest.raises(ModelFileError, match="cannot be read"):
        OnnxBackbone(str(small_network)).extract([scene(size=32)])


def test_what_is_no_network_is_refused(tmp_path):
    path = tmp_path / "no.onnx"
    path.write_bytes(b"no network")
    with pytest.raises(ModelFileError, match="no ONNX network"):
        make_backbone(path).extract([scene()])


def test_features_do_not_depend_on_the_batch():
    backbone = Blocks()
    pictures = [scene(i / 20, seed=i) for i in range(20)]
    together = backbone.extract(pictures)
    alone = backbone.extract(pictures[17:18])
    assert np.allclose(together.maps[8][17], alone.maps[8][0], atol=1e-6)


def test_pictures_are_squeezed_to_a_square():
    wide = np.repeat(scene(size=64), 2, axis=1)
    assert np.allclose(
        Blocks().extract([wide]).maps[16], Blocks().extract([scene(size=64)]).maps[16], atol=0.05
    )


def test_outputs_are_told_by_rank_and_stride():
    maps = [np.ones((2, 3, 15, 15)), np.zeros((2, 4, 16, 16)), np.ones((2, 5, 7, 7))]
    features = sorted_outputs([*maps, np.ones((2, 9, 1, 1))], 128)
    assert sorted(features.maps) == [8, 16]
    assert features.maps[8].shape == (2, 16, 16, 4)  # the last with its stride
    assert features.pooled.shape == (2, 9)
    with pytest.raises(ModelFileError, match="rank 2 or 4"):
        sorted_outputs([np.ones((2, 3, 4))], 128)


def test_names():
    assert isinstance(make_backbone("lite0"), Lite0)
    assert list(name_backbones([Blocks(), Blocks(32)])) == ["blocks", "blocks-2"]
    assert list(name_backbones({"left": Blocks()})) == ["left"]
    with pytest.raises(InvalidInputError, match=r"resnet50.*Got 'vgg'"):
        make_backbone("vgg")


def test_networks_of_the_paper_need_weights_on_disk(tmp_path):
    with pytest.raises(InvalidInputError, match=r"alexnet.*Got 'vgg'"):
        paper_network("vgg", "random")
    with pytest.raises(InvalidTypeError, match=r"resnet50\. Got None\. Nothing is downloaded"):
        paper_network("resnet50", None)
    with pytest.raises(ModelFileError, match=r"no\.pth of resnet50 cannot be read: No such file"):
        paper_network("resnet50", tmp_path / "no.pth")
    (tmp_path / "here.pth").touch()
    found = paper_network("resnet50", tmp_path / "here.pth")
    assert found.weights == str((tmp_path / "here.pth").resolve())
    assert (found.size, found.output) == (224, "penultimate")


def test_a_missing_torch_names_its_extra(monkeypatch):
    def refuse(package):
        raise ImportError(package)

    monkeypatch.setattr("ocfuse.system.packages.importlib.import_module", refuse)
    with pytest.raises(MissingPackageError, match=r"torch is needed.*\[networks\]"):
        paper_network("xception", "random").extract([scene(size=299)])


def test_weights_of_another_network_are_refused():
    with pytest.raises(ModelFileError, match="_conv_stem"):
        lite0_graph({"fc.weight": np.ones((2, 2))})


@pytest.mark.slow
def test_a_loaded_network_is_looked_for_beside_the_model_alone(small_network, tmp_path):
    """Whatever path training knew: a file from elsewhere opens nothing beside itself."""
    pictures, (there, elsewhere) = [scene(size=32)], (tmp_path / "there", tmp_path / "elsewhere")
    for folder in (there, elsewhere):
        folder.mkdir()
    backbone = OnnxBackbone(str(small_network), size=32).pinned()
    found = load(save(backbone, there / "model.ocf"))
    assert found.path == str(there / "small.onnx")
    with pytest.raises(ModelFileError, match=r"beside the model file.*networks="):
        found.extract(pictures)
    shutil.copy(small_network, elsewhere)
    given = load(there / "model.ocf", networks=elsewhere)
    assert np.array_equal(given.extract(pictures).pooled, backbone.extract(pictures).pooled)
    shutil.copy(small_network, there)
    assert np.array_equal(found.extract(pictures).pooled, backbone.extract(pictures).pooled)


@pytest.mark.parametrize("path", ["/dev/zero", "../../dev/zero", "C:\\nets\\zero"])
def test_paths_of_a_stranger(path, tmp_path):
    found = load(save(OnnxBackbone(path, size=32), tmp_path / "model.ocf"))
    assert found.path == str(tmp_path / "zero")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices")
def test_devices_and_large_files_are_no_networks(small_network, tmp_path, monkeypatch):
    (tmp_path / "device.onnx").symlink_to("/dev/zero")
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        make_backbone(tmp_path / "device.onnx").extract([scene(size=32)])
    monkeypatch.setattr("ocfuse.vision.backbone.MOST_BYTES", 10)
    with pytest.raises(ModelFileError, match="at most 10"):
        make_backbone(small_network).extract([scene(size=32)])


def test_a_network_that_keeps_tensors_in_other_files_is_refused(tmp_path):
    weights = onnx.numpy_helper.from_array(np.ones((3, 3, 8, 8), np.float32), "w")
    info = helper.make_tensor_value_info
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[8, 8])
    graph = helper.make_graph(
        [node], "split", [info("x", 1, ["n", 3, 32, 32])], [info("y", 1, None)], [weights]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "split.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    with pytest.raises(ModelFileError, match="tensors in other files"):
        make_backbone(path).extract([scene(size=128)])
