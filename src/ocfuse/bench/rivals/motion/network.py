"""A small probabilistic U-Net, and a decoder from joints to motion, as plain functions.

Weights are a dictionary of tensors, so that a fitted rival is nothing but arrays. Both
networks work at half the side: the input is folded, and each pixel of the output
unfolds into four.
"""

from typing import Any, TypeAlias

from ocfuse.optional import needed

#: torch is optional, and so are its types.
Tensor: TypeAlias = Any
Weights: TypeAlias = dict[str, Tensor]
Shapes: TypeAlias = dict[str, tuple[int, ...]]

#: Standard deviation of a flow, in pixels, below which nothing is gained.
LEAST_DEVIATION = 0.05
#: Units of the hidden layer between joints and motion, and side of its first map.
HIDDEN, SEED_SIDE = 128, 8


def torch_module() -> Any:
    """Return torch, or say which extra brings it."""
    return needed("torch", "by the rival MotionUNet", "rivals-torch")


def unet_shapes(width: int, n_inputs: int, n_latent: int) -> Shapes:
    """Return the shapes of the weights of the U-Net; `width` channels at its top."""
    w, deep = width, 4 * width
    shapes: Shapes = {
        "in": (w, 4 * n_inputs, 3, 3),
        "top": (w, w, 3, 3),
        "down": (2 * w, w, 3, 3),
        "middle": (2 * w, 2 * w, 3, 3),
        "deep": (deep, 2 * w, 3, 3),
        "deepest": (deep, deep, 3, 3),
        "up": (2 * w, deep + 2 * w, 3, 3),
        "last": (w, 3 * w, 3, 3),
        "mix": (w, w + n_latent, 1, 1),
        "out": (16, w, 1, 1),
    }
    if n_latent:
        shapes["prior"] = (2 * n_latent, deep)
        shapes["look"] = (w, 8, 3, 3)
        shapes["look again"] = (deep, w, 3, 3)
        shapes["posterior"] = (2 * n_latent, 2 * deep)
    return shapes


def arm_shapes(width: int, n_joints: int) -> Shapes:
    """Return the shapes of the weights of the decoder, `width` channels at its last map."""
    return {
        "joints": (HIDDEN, 2 * n_joints),
        "seed": (2 * width * SEED_SIDE**2, HIDDEN),
        "middle": (2 * width, 2 * width, 3, 3),
        "last": (width, 2 * width, 3, 3),
        "out": (8 * n_joints + 8, width, 1, 1),
    }


def initial_weights(shapes: Shapes, generator: Any) -> Weights:
    """Draw weights so that rectified layers keep the size of what they are given."""
    torch = torch_module()
    weights: Weights = {}
    for name, shape in shapes.items():
        fan_in = 1
        for n in shape[1:]:
            fan_in *= n
        spread = (2.0 / fan_in) ** 0.5
        if name in ("out", "prior", "posterior"):
            spread *= 0.1  # begin near no motion, and near a standard latent
        weights[name] = torch.randn(shape, generator=generator) * spread
        weights[name + " bias"] = torch.zeros(shape[0])
    return weights


def encoded(weights: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the U-Net sees, before the latent: a map, and a summary of the deepest one."""
    F = torch_module().nn.functional
    cat = torch_module().cat
    top = _layer(weights, "top", _layer(weights, "in", F.pixel_unshuffle(x, 2)))
    middle = _layer(weights, "middle", _layer(weights, "down", F.avg_pool2d(top, 2)))
    deep = _layer(weights, "deepest", _layer(weights, "deep", F.avg_pool2d(middle, 2)))
    up = _layer(weights, "up", cat([_doubled(deep), middle], 1))
    return _layer(weights, "last", cat([_doubled(up), top], 1)), deep.mean((2, 3))


def prior(weights: Weights, summary: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log deviation of the latent, from the past alone."""
    halves: tuple[Tensor, Tensor] = _linear(weights, "prior", summary).chunk(2, 1)
    return halves


def posterior(weights: Weights, summary: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log deviation of the latent, from the past and the flow that came."""
    torch = torch_module()
    F = torch.nn.functional
    look = _layer(weights, "look", F.pixel_unshuffle(flow, 2))
    look = _layer(weights, "look again", F.avg_pool2d(look, 2)).mean((2, 3))
    both = torch.cat([summary, look], 1)
    halves: tuple[Tensor, Tensor] = _linear(weights, "posterior", both).chunk(2, 1)
    return halves


def predicted(weights: Weights, seen: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of the next flow, given a latent of shape (b, n_latent)."""
    torch = torch_module()
    spread = latent[:, :, None, None].expand(-1, -1, *seen.shape[2:])
    pixels = _unfolded(weights, _layer(weights, "mix", torch.cat([seen, spread], 1)))
    return pixels[:, :2], _deviation(pixels[:, 2:])


def arm_motion(weights: Weights, joints: Tensor, turns: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of the flow that goes with joints and their turns.

    As in any mechanism, the motion of a point is linear in small turns: the network gives
    one flow per joint, and the mean is their sum, each times how far its joint turned.
    """
    F = torch_module().nn.functional
    hidden = F.relu(_linear(weights, "joints", torch_module().cat([joints, turns], 1)))
    seed = F.relu(_linear(weights, "seed", hidden))
    x = seed.reshape(len(turns), -1, SEED_SIDE, SEED_SIDE)
    x = _layer(weights, "middle", _doubled(x))
    pixels = _unfolded(weights, _layer(weights, "last", _doubled(x)))
    each = pixels[:, :-2].unflatten(1, (-1, 2))
    return (each * turns[:, :, None, None, None]).sum(1), _deviation(pixels[:, -2:])


def negative_log_likelihood(flow: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return how unlikely the flow of each pixel is, of shape (b, SIDE, SIDE); 0 at best."""
    error = (flow - mean) / deviation
    return (0.5 * error.square() + (deviation / LEAST_DEVIATION).log()).sum(1)


def learned_loss(flow: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return the mean negative log-likelihood, pixels weighted by their deviation.

    The weights are those of Seitzer et al. (2022) with beta = 1/2: without them a network
    that has called a motion uncertain has little reason to learn it.
    """
    weight = deviation.detach()
    error = 0.5 * ((flow - mean) / deviation).square() + deviation.log()
    return 2.0 * (weight * error).mean() / weight.mean()


def divergence(at: tuple[Tensor, Tensor], of: tuple[Tensor, Tensor]) -> Tensor:
    """Return the Kullback-Leibler divergence of Gaussians given as mean and log deviation."""
    (mean, log_deviation), (other, other_log) = at, of
    ratio = (2 * (log_deviation - other_log)).exp()
    shift = (mean - other).square() * (-2 * other_log).exp()
    return (0.5 * (ratio + shift - 1) + other_log - log_deviation).sum(1)


def _layer(weights: Weights, name: str, x: Tensor) -> Tensor:
    F = torch_module().nn.functional
    kernel = weights[name]
    return F.relu(F.conv2d(x, kernel, weights[name + " bias"], padding=kernel.shape[-1] // 2))


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return torch_module().nn.functional.linear(x, weights[name], weights[name + " bias"])


def _doubled(x: Tensor) -> Tensor:
    return torch_module().nn.functional.interpolate(x, scale_factor=2)


def _unfolded(weights: Weights, x: Tensor) -> Tensor:
    """Return the output at full side, from the last map at half of it."""
    F = torch_module().nn.functional
    return F.pixel_shuffle(F.conv2d(x, weights["out"], weights["out bias"]), 2)


def _deviation(x: Tensor) -> Tensor:
    return LEAST_DEVIATION + torch_module().nn.functional.softplus(x)
