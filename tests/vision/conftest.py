import pytest

#: What is defined stays only while it is held.
OPERATORS: list = []


@pytest.fixture(scope="session")
def operators():
    """Let torchvision be imported where it was built for another torch, such as CUDA's.

    It then finds none of its compiled operators, which the networks do not need.
    """
    torch = pytest.importorskip("torch", reason="torch is not installed")
    try:
        __import__("torchvision")
    except ImportError:
        return
    except RuntimeError:
        OPERATORS.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            OPERATORS[0].define(
                f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
