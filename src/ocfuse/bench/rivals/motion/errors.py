"""What the two networks learn by, and how wrong they are about a frame."""

from typing import Any, Protocol, TypeAlias

import numpy as np

from ocfuse.bench.rivals.motion.film import Film, IndexArray
from ocfuse.bench.rivals.motion.flow import FloatArray
from ocfuse.bench.rivals.motion.network import (
    Shapes,
    Tensor,
    Weights,
    arm_motion,
    arm_shapes,
    divergence,
    encoded,
    learned_loss,
    negative_log_likelihood,
    posterior,
    predicted,
    prior,
    torch_module,
    unet_shapes,
)

Arrays: TypeAlias = dict[str, FloatArray]

#: Independent numbers in a flow, against which the latent is weighed: the flow hardly
#: changes within the window it was found in, four pixels wide.
FLOW_NUMBERS = 512.0
#: Latents tried on a frame; the first is the middle one.
N_DRAWS = 8
#: Side and distance of the patches of which the worst gives the error of a frame.
PATCH, STRIDE = 8, 4
#: Frames looked at together, always so many: last bits must not depend on the others.
CHUNK = 16
#: Standardised joints are cut here: nothing was learned beyond.
FARTHEST = 6.0


class Model(Protocol):
    """Something that knows which flow leads to a frame."""

    film: Film
    shapes: Shapes

    def loss(self, weights: Weights, frames: IndexArray, generator: Any) -> Tensor:
        """Return what training makes small."""

    def opinions(self, weights: Weights, frames: IndexArray) -> list[tuple[Tensor, Tensor]]:
        """Return mean and deviation of the flow, in each way that it may come."""


class Predictor:
    """The flow from the frames before it: a U-Net with a latent."""

    def __init__(self, film: Film, history: int, width: int, latents: FloatArray) -> None:
        self.film = film
        self.history = history
        self.latents = latents
        self.shapes = unet_shapes(width, 3 * history - 2, latents.shape[1])

    def loss(self, weights: Weights, frames: IndexArray, generator: Any) -> Tensor:
        """Return the loss with a latent that has seen the flow, and what it took from there."""
        torch = torch_module()
        flow = torch.from_numpy(self.film.motion(frames))
        seen, summary = self._seen(weights, frames)
        if not self.latents.shape[1]:
            return learned_loss(flow, *predicted(weights, seen, summary[:, :0]))
        expected, told = prior(weights, summary), posterior(weights, summary, flow)
        latent = told[0] + told[1].exp() * torch.randn(told[0].shape, generator=generator)
        excess = divergence(told, expected).mean() / FLOW_NUMBERS
        return learned_loss(flow, *predicted(weights, seen, latent)) + excess

    def opinions(self, weights: Weights, frames: IndexArray) -> list[tuple[Tensor, Tensor]]:
        """Return mean and deviation of the flow, for each latent tried."""
        seen, summary = self._seen(weights, frames)
        if not self.latents.shape[1]:
            return [predicted(weights, seen, summary[:, :0])]
        mean, log_deviation = prior(weights, summary)
        draws = torch_module().from_numpy(self.latents)
        return [predicted(weights, seen, mean + log_deviation.exp() * draw) for draw in draws]

    def _seen(self, weights: Weights, frames: IndexArray) -> tuple[Tensor, Tensor]:
        past = torch_module().from_numpy(self.film.before(frames, self.history))
        return encoded(weights, past)


class ArmModel:
    """The flow from the joints: what camera and arm should be seen to do."""

    def __init__(self, film: Film, width: int, units: FloatArray) -> None:
        self.film = film
        self.units = units
        self.shapes = arm_shapes(width, units.shape[1])

    def loss(self, weights: Weights, frames: IndexArray, generator: Any) -> Tensor:
        """Return the loss; nothing is drawn."""
        flow = torch_module().from_numpy(self.film.motion(frames))
        return learned_loss(flow, *self.opinions(weights, frames)[0])

    def opinions(self, weights: Weights, frames: IndexArray) -> list[tuple[Tensor, Tensor]]:
        """Return mean and deviation of the flow."""
        middle, spread, turn = self.units
        joints = ((self.film.joints_before(frames) - middle) / spread).clip(-FARTHEST, FARTHEST)
        turns = (self.film.turns(frames) / turn).clip(-FARTHEST, FARTHEST)
        from_numpy = torch_module().from_numpy
        return [arm_motion(weights, from_numpy(joints), from_numpy(turns))]


def joint_units(film: Film, frames: IndexArray) -> FloatArray:
    """Return mean and spread of each joint, and the size of its turns; of shape (3, c)."""
    joints, turns = film.joints_before(frames), film.turns(frames)
    middle, spread = joints.mean(axis=0), joints.std(axis=0)
    turn = np.sqrt(np.square(turns).mean(axis=0))
    return np.stack([middle, _usable(spread), _usable(turn)])


def _usable(scale: FloatArray) -> FloatArray:
    """Return scales to divide by: what never changes is left as it is."""
    return np.where(scale > 0, scale, np.float32(1))


def frame_errors(model: Model, arrays: Arrays, frames: IndexArray) -> FloatArray:
    """Return how unlikely each frame is, and its error, under the model's likeliest opinion.

    Of shape (n, 2). Each frame is looked at beside as many others.
    """
    torch = torch_module()
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    errors = np.empty((len(frames), 2), np.float32)
    with torch.no_grad():
        for start in range(0, len(frames), CHUNK):
            part = frames[start : start + CHUNK]
            found = _errors(model, weights, np.resize(part, CHUNK))
            errors[start : start + CHUNK] = found[: len(part)]
    return errors


def _errors(model: Model, weights: Weights, frames: IndexArray) -> Tensor:
    torch = torch_module()
    flow = torch.from_numpy(model.film.motion(frames))
    opinions = model.opinions(weights, frames)
    unlikely = torch.stack([negative_log_likelihood(flow, *one).mean((1, 2)) for one in opinions])
    errors = torch.stack([_worst_patch(flow, *one) for one in opinions])
    likeliest = unlikely.argmin(0, keepdim=True)
    return torch.cat([unlikely.gather(0, likeliest), errors.gather(0, likeliest)]).T


def _worst_patch(flow: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return the mean squared error, in deviations, of the worst patch.

    What goes wrong may be small. The likelihood itself would call every frame strange
    in which much may happen.
    """
    error = ((flow - mean) / deviation).square().mean(1, keepdim=True)
    return torch_module().nn.functional.avg_pool2d(error, PATCH, STRIDE).amax((1, 2, 3))
