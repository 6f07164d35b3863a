"""Train a network on normal film, and keep it as it was when it knew unseen film best."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ocfuse.bench.rivals.motion.errors import Arrays, Model, frame_errors
from ocfuse.bench.rivals.motion.film import IndexArray
from ocfuse.bench.rivals.motion.network import Weights, initial_weights, torch_module

#: Frames of a step, greatest step of Adam, and longest gradient.
BATCH, RATE, LONGEST_GRADIENT = 16, 4e-3, 1.0
#: Times that the unseen frames are looked at, and how many of them.
N_CHECKS, CHECKED = 10, 256


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread inside: sums then come in one order."""
    torch = torch_module()
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n)


def trained(
    model: Model, known: IndexArray, unseen: IndexArray, n_steps: int, seed: int
) -> tuple[Arrays, list[float]]:
    """Return the best weights met, and how unlikely unseen frames were along the way.

    Parameters
    ----------
    model : Model
        What is trained.
    known, unseen : ndarray
        Frames to learn from, and frames of other runs to judge by.
    n_steps : int
        Steps of Adam; its rate falls to zero as half a cosine.
    seed : int
        Draws the first weights, the frames of each step, and the latents.

    Returns
    -------
    weights : dict of ndarray
        The weights under which unseen frames are likeliest.
    losses : list of float
        Mean negative log-likelihood per pixel of unseen frames, at each check.
    """
    torch = torch_module()
    generator, draws = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    weights = initial_weights(model.shapes, generator)
    adam = torch.optim.Adam([w.requires_grad_() for w in weights.values()], lr=RATE)
    evenly = np.linspace(0, len(unseen) - 1, min(CHECKED, len(unseen)))
    judges = unseen[evenly.astype(np.intp)]
    best, losses = _copied(weights), [np.inf]
    for step in range(n_steps):
        adam.param_groups[0]["lr"] = RATE * 0.5 * (1.0 + np.cos(np.pi * step / n_steps))
        adam.zero_grad()
        model.loss(weights, draws.choice(known, BATCH), generator).backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), LONGEST_GRADIENT)
        adam.step()
        if (step + 1) * N_CHECKS // n_steps > step * N_CHECKS // n_steps:
            losses.append(float(frame_errors(model, _copied(weights), judges)[:, 0].mean()))
            if losses[-1] <= min(losses):
                best = _copied(weights)
    return best, losses[1:]


def _copied(weights: Weights) -> Arrays:
    return {name: w.detach().numpy().copy() for name, w in weights.items()}
