"""Predict the motion of a task and watch for other motion, after Thoduka et al. (2021).

The networks are a small probabilistic U-Net and a decoder from joints to motion, as plain
functions. Weights are a dictionary of tensors, so that a fitted rival is nothing but arrays.
Both networks work at half the side: the input is folded, and each pixel of the output unfolds
into four.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray, IntArray, SingleArray
from ocfuse.detectors.base import require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals.base import next_seed
from ocfuse.system.packages import needed

Arrays: TypeAlias = dict[str, SingleArray]

#: torch is optional, and so are its types.
Tensor: TypeAlias = Any
Weights: TypeAlias = dict[str, Tensor]
Shapes: TypeAlias = dict[str, tuple[int, ...]]

#: Height and width of the pictures.
SIDE = 64
#: Standard deviation of a flow, in pixels, below which nothing is gained.
LEAST_DEVIATION = 0.05


@dataclass(frozen=True)
class Film:
    """One run, or several behind each other; `first` says where the run of a frame begins.

    Half precision: it is a thousandth of a grey value, and of a pixel, and ten thousand
    frames then need 250 MB. Without joints, `joints` has no columns.
    """

    grey: NDArray[np.float16]
    flow: NDArray[np.float16]
    joints: SingleArray
    first: IntArray

    def __len__(self) -> int:
        return len(self.grey)

    def moved(self) -> IntArray:
        """Return the frames that have one before them."""
        return np.flatnonzero(np.arange(len(self)) > self.first)

    def before(self, frames: IntArray, history: int) -> SingleArray:
        """Return the pictures before each frame, and the flows that led to them.

        A run stands still before it begins. The shape is (b, 3 history - 2, side, side).
        """
        back = frames[:, np.newaxis] - np.arange(1, history + 1)
        seen = np.maximum(back, self.first[frames][:, np.newaxis])
        flows = self.flow[seen[:, :-1]].reshape(len(frames), -1, SIDE, SIDE)
        pictures = self.grey[seen].astype(np.float32) - np.float32(0.5)
        return np.concatenate([pictures, flows.astype(np.float32)], axis=1)

    def motion(self, frames: IntArray) -> SingleArray:
        """Return the flows that led to the frames."""
        return self.flow[frames].astype(np.float32)

    def joints_before(self, frames: IntArray) -> SingleArray:
        """Return the joints one frame before each frame."""
        return self.joints[np.maximum(frames - 1, self.first[frames])]

    def turns(self, frames: IntArray) -> SingleArray:
        """Return how far the joints turned towards each frame."""
        return np.asarray(self.joints[frames] - self.joints_before(frames))


def film_of(frames: NDArray[np.uint8], joints: NDArray[np.float64], chunk: int = 64) -> Film:
    """Return one run made small and grey, with the flow from each picture to the next.

    The flow of `chunk` pictures is found at once.
    """
    starts = range(0, len(frames), chunk)
    grey = np.concatenate([shrunk(frames[start : start + chunk]) for start in starts])
    flow = np.zeros((len(grey), 2, SIDE, SIDE), np.float16)
    for start in range(1, len(grey), chunk):
        stop = min(start + chunk, len(grey))
        flow[start:stop] = optical_flow(grey[start - 1 : stop - 1], grey[start:stop])
    first = np.zeros(len(grey), np.intp)
    return Film(grey.astype(np.float16), flow, joints.astype(np.float32), first)


def spliced(films: Sequence[Film]) -> Film:
    """Return one film of several."""
    starts = np.cumsum([0, *(len(film) for film in films[:-1])])
    return Film(
        np.concatenate([film.grey for film in films]),
        np.concatenate([film.flow for film in films]),
        np.concatenate([film.joints for film in films]),
        np.concatenate([film.first + start for film, start in zip(films, starts, strict=True)]),
    )


def shrunk(frames: NDArray[np.uint8]) -> SingleArray:
    """Return colour pictures as small grey ones in [0, 1]: each pixel the mean of its area."""
    luminance = np.array([0.299, 0.587, 0.114], np.float32) / 255.0
    grey = frames.astype(np.float32) @ luminance
    rows, columns = _areas(frames.shape[1]), _areas(frames.shape[2])
    return np.asarray(rows @ grey @ columns.T)


def _areas(n: int) -> SingleArray:
    """Return the share of each of n pixels in each of SIDE pixels of the same whole."""
    edges = np.arange(SIDE + 1) * (n / SIDE)
    pixel = np.arange(n)
    end = np.minimum(edges[1:, np.newaxis], pixel + 1)
    start = np.maximum(edges[:-1, np.newaxis], pixel)
    return np.asarray(np.maximum(end - start, 0.0) * (SIDE / n), np.float32)


@dataclass(frozen=True)
class MotionRun:
    """One run.

    Parameters
    ----------
    frames : ndarray of shape (n, h, w, 3), uint8
        Colour pictures, in order of time.
    joints : ndarray of shape (n, c) or None
        Angles of the joints, and openings of the gripper, at each picture.
    """

    frames: NDArray[np.uint8]
    joints: NDArray[np.float64] | None = None


def films_of(runs: Iterable[Any]) -> list[Film]:
    """Return each run as a film, one after the other, after a check that they fit together."""
    films: list[Film] = []
    for i, run in enumerate(runs):
        films.append(checked_film(run, f"runs[{i}]", None if i == 0 else films[0].joints.shape[1]))
    if not films:
        raise InvalidInputError("runs is empty. Give at least one normal run.")
    n_pairs = sum(len(film) - 1 for film in films)
    if n_pairs < 5:
        raise InvalidInputError(
            f"runs must have at least 5 frames with one before them. Got {n_pairs}. "
            "Give whole runs."
        )
    return films


def checked_film(run: Any, name: str, c: int | None) -> Film:
    """Return a run as a film, or say what is wrong with it; c joints are expected, None = any."""
    frames = np.asarray(run.frames)
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8 or not len(frames):
        raise InvalidInputError(
            f"{name}.frames must be uint8 of shape (n, h, w, 3). "
            f"Got {frames.dtype} of shape {frames.shape}."
        )
    if min(frames.shape[1:3]) < 16:
        raise InvalidInputError(
            f"{name}.frames must be at least 16 pixels high and wide. "
            f"Got {frames.shape[1]} x {frames.shape[2]}."
        )
    film = film_of(frames, _checked_joints(run, name, len(frames)))
    if c is not None and film.joints.shape[1] != c:
        raise InvalidInputError(
            f"{name} has {film.joints.shape[1]} joints, the first training run has {c}. "
            "Give the same joints with every run, or with none."
        )
    return film


def _checked_joints(run: Any, name: str, n: int) -> NDArray[np.float64]:
    if run.joints is None:
        return np.empty((n, 0))
    joints = np.asarray(run.joints, dtype=np.float64)
    if joints.ndim != 2 or len(joints) != n or not joints.shape[1]:
        raise InvalidInputError(
            f"{name}.joints must be of shape (n, c) with one row per frame, n={n}. "
            f"Got shape {joints.shape}. Use None where there are no joints."
        )
    if not np.isfinite(joints).all():
        raise InvalidInputError(
            f"{name}.joints must be finite. Fill missing readings with the last known ones."
        )
    return joints


class Predictor:
    """The flow from the frames before it: a U-Net with a latent."""

    def __init__(self, film: Film, history: int, width: int, latents: SingleArray) -> None:
        self.film = film
        self.history = history
        self.latents = latents
        self.shapes = unet_shapes(width, 3 * history - 2, latents.shape[1])

    def loss(self, weights: Weights, frames: IntArray, generator: Any) -> Tensor:
        """Return the loss with a latent that has seen the flow, and what it took from there."""
        torch = torch_module()
        flow = torch.from_numpy(self.film.motion(frames))
        seen, summary = self._seen(weights, frames)
        if not self.latents.shape[1]:
            return learned_loss(flow, *predicted(weights, seen, summary[:, :0]))
        expected, told = prior(weights, summary), posterior(weights, summary, flow)
        latent = told[0] + told[1].exp() * torch.randn(told[0].shape, generator=generator)
        # independent numbers in a flow, against which the latent is weighed: the flow hardly
        # changes within the window it was found in, four pixels wide
        excess = divergence(told, expected).mean() / 512.0
        return learned_loss(flow, *predicted(weights, seen, latent)) + excess

    def opinions(self, weights: Weights, frames: IntArray) -> list[tuple[Tensor, Tensor]]:
        """Return mean and deviation of the flow, for each latent tried."""
        seen, summary = self._seen(weights, frames)
        if not self.latents.shape[1]:
            return [predicted(weights, seen, summary[:, :0])]
        mean, log_deviation = prior(weights, summary)
        draws = torch_module().from_numpy(self.latents)
        return [predicted(weights, seen, mean + log_deviation.exp() * draw) for draw in draws]

    def _seen(self, weights: Weights, frames: IntArray) -> tuple[Tensor, Tensor]:
        past = torch_module().from_numpy(self.film.before(frames, self.history))
        return encoded(weights, past)


class ArmModel:
    """The flow from the joints: what camera and arm should be seen to do."""

    def __init__(self, film: Film, width: int, units: SingleArray) -> None:
        self.film = film
        self.units = units
        self.shapes = arm_shapes(width, units.shape[1])

    def loss(self, weights: Weights, frames: IntArray, generator: Any) -> Tensor:
        """Return the loss; nothing is drawn."""
        flow = torch_module().from_numpy(self.film.motion(frames))
        return learned_loss(flow, *self.opinions(weights, frames)[0])

    def opinions(self, weights: Weights, frames: IntArray) -> list[tuple[Tensor, Tensor]]:
        """Return mean and deviation of the flow."""
        middle, spread, turn = self.units
        # nothing was learned beyond six deviations
        joints = ((self.film.joints_before(frames) - middle) / spread).clip(-6.0, 6.0)
        turns = (self.film.turns(frames) / turn).clip(-6.0, 6.0)
        from_numpy = torch_module().from_numpy
        return [arm_motion(weights, from_numpy(joints), from_numpy(turns))]


MotionModel: TypeAlias = Predictor | ArmModel


def joint_units(film: Film, frames: IntArray) -> SingleArray:
    """Return mean and spread of each joint, and the size of its turns; of shape (3, c)."""
    joints, turns = film.joints_before(frames), film.turns(frames)
    scales = np.stack([joints.std(axis=0), np.sqrt(np.square(turns).mean(axis=0))])
    # what never changes is left as it is
    return np.vstack([joints.mean(axis=0), np.where(scales > 0, scales, np.float32(1))])


def frame_errors(
    model: MotionModel, arrays: Arrays, frames: IntArray, chunk: int = 16
) -> SingleArray:
    """Return how unlikely each frame is, and its error, under the model's likeliest opinion.

    Of shape (n, 2). Always `chunk` frames are computed together: last bits must not depend
    on how many others there are.
    """
    torch = torch_module()
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    errors = np.empty((len(frames), 2), np.float32)
    with torch.no_grad():
        for start in range(0, len(frames), chunk):
            part = frames[start : start + chunk]
            full = np.resize(part, chunk)
            flow = torch.from_numpy(model.film.motion(full))
            found = model.opinions(weights, full)
            unlikely = torch.stack([negative_log_likelihood(flow, *o).mean((1, 2)) for o in found])
            worst = torch.stack([_worst_patch(flow, *o) for o in found])
            likeliest = unlikely.argmin(0, keepdim=True)
            both = torch.cat([unlikely.gather(0, likeliest), worst.gather(0, likeliest)]).T
            errors[start : start + chunk] = both[: len(part)]
    return errors


def _worst_patch(flow: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return the mean squared error, in deviations, of the worst patch of 8 x 8 pixels.

    What goes wrong may be small. The likelihood itself would call every frame strange
    in which much may happen.
    """
    error = ((flow - mean) / deviation).square().mean(1, keepdim=True)
    return torch_module().nn.functional.avg_pool2d(error, 8, stride=4).amax((1, 2, 3))


class MotionUNet(BaseEstimator):  # type: ignore[misc]
    """Score frames by how well their motion was foreseen and fits the joints.

    Known, from the abstract of Thoduka, Gall and Plöger, "Using Visual Anomaly Detection
    for Task Execution Monitoring", IROS 2021: a probabilistic U-Net learns from normal
    runs to predict optical flow; kinematics and a 3D model of the robot tell the motion
    of camera and body; the errors between observed and predicted motion give the score.
    Published on a robot that places a book, per frame: AUC-ROC 0.752 by the network
    alone, 0.804 with camera and body; AUC-PR 0.467 and 0.549.

    Ours, written from that and without sight of their code: grey pictures of 64 x 64, and
    flow by Lucas and Kanade, coarse to fine. From the last pictures and the flows between
    them a U-Net with a Gaussian latent z (after Kohl et al. 2018, whose network they name)
    gives mean m and deviation s of each pixel's next flow f. It minimises::

        mean over pixels of |f - m|^2 / (2 s^2) + 2 log s, plus
        KL(q(z | past, f), p(z | past)) / 512

    The deviation forgives what nobody can foresee, the latent what may come in several
    ways. No 3D model is asked for: a second network learns from the normal runs which
    flow goes with joints and their turns, by the same loss without z.

    The error of a frame is the mean of ``|f - m|^2 / (2 s^2)`` over its worst patch of
    8 x 8 pixels, under the likeliest of eight draws of z. One run in five is not learned
    from: a network stays as it was when its loss there was least, and its errors there
    set their unit (median 0, 95th percentile 1). The score is minus the mean of the two
    errors, or minus the one if there are no joints.

    Frame t is scored from frames and joints up to t. A first frame has no motion and
    scores 0, as a typical normal frame does. For a score of a run, take the minimum or a
    low percentile of its frames'.

    Parameters
    ----------
    history : int, default=3
        Pictures that the next flow is predicted from.
    width : int, default=16
        Channels at the top of the U-Net; 4 times as many at its bottom.
    n_latent : int, default=6
        Numbers in the latent; 0 leaves the Gaussian alone.
    n_steps : int, default=1500
        Training steps, of 16 frames each.
    random_state : int, RandomState or None, default=None
        Draws first weights, frames and latents. Equal seeds give equal scores.

    Attributes
    ----------
    weights_ : list of dict of ndarray
        Weights of the U-Net and, with joints, of the second network.
    losses_ : list of list of float
        Mean negative log-likelihood of normal runs not learned from, as training went on.
    n_parameters_ : int
        Numbers learned.
    n_joints_ : int
        Joints of the training runs, 0 if there were none.

    Examples
    --------
    >>> from ocfuse.lab.rivals.motion_unet import MotionRun, MotionUNet
    >>> runs = (MotionRun(frames, joints) for frames, joints in normal)  # doctest: +SKIP
    >>> model = MotionUNet(random_state=0).fit(runs)  # doctest: +SKIP
    >>> model.score(MotionRun(new_frames, new_joints))  # doctest: +SKIP
    """

    def __init__(
        self,
        history: int = 3,
        width: int = 16,
        n_latent: int = 6,
        n_steps: int = 1500,
        random_state: Any = None,
    ) -> None:
        self.history = history
        self.width = width
        self.n_latent = n_latent
        self.n_steps = n_steps
        self.random_state = random_state

    def fit(self, runs: Iterable[MotionRun], y: Any = None) -> "MotionUNet":
        """Learn the motion of normal runs, read once; y is ignored."""
        require_count("history", self.history, 1, "Use 3.")
        require_count("width", self.width, 1, "Use 16.")
        require_count("n_latent", self.n_latent, 0, "Use 6.")
        require_count("n_steps", self.n_steps, 1, "Use 1500.")
        random = check_random_state(self.random_state)
        films = films_of(runs)
        film = spliced(films)
        known, unseen = _split([len(film) for film in films])
        self.n_joints_ = film.joints.shape[1]
        # eight latents are tried on a frame; the first is the middle one
        self.latents_ = random.standard_normal((8, self.n_latent)).astype(np.float32)
        self.latents_[0] = 0.0
        self.joint_units_ = joint_units(film, known)
        with one_torch_thread():
            seed = next_seed(random)
            fits = [
                trained(model, known, unseen, self.n_steps, seed) for model in self._models(film)
            ]
            self.weights_: list[Arrays] = [weights for weights, _ in fits]
            self.losses_: list[list[float]] = [losses for _, losses in fits]
            errors = self._errors(film, unseen)
        self.n_parameters_ = sum(w.size for one in self.weights_ for w in one.values())
        # errors of unseen normal frames: their median becomes 0, their 95th percentile 1
        self.typical_ = np.percentile(errors, 50.0, axis=0)
        # errors about a film without motion are all the same
        self.unit_ = np.maximum(np.percentile(errors, 95.0, axis=0) - self.typical_, 1e-6)
        return self

    def score(self, run: MotionRun) -> FloatArray:
        """Return one score per frame: higher is more normal."""
        return np.asarray(-self.errors(run).mean(axis=1))

    def errors(self, run: MotionRun) -> FloatArray:
        """Return, per frame, the error of the prediction and that of the joints' motion.

        Of shape (n, 2), or (n, 1) without joints; higher is stranger.
        """
        check_is_fitted(self)
        film = checked_film(run, "run", self.n_joints_)
        units = np.zeros((len(film), len(self.typical_)))
        with one_torch_thread():
            errors = self._errors(film, film.moved())
        units[film.moved()] = (errors - self.typical_) / self.unit_
        return units

    def _models(self, film: Film) -> list[MotionModel]:
        """Return what there is to ask about a film: its past and, if given, its joints."""
        models: list[MotionModel] = [Predictor(film, self.history, self.width, self.latents_)]
        if self.n_joints_:
            models.append(ArmModel(film, self.width, self.joint_units_))
        return models

    def _errors(self, film: Film, frames: IntArray) -> FloatArray:
        """Return the errors about some frames, one column per network, in their own units."""
        asked = zip(self._models(film), self.weights_, strict=True)
        columns = [frame_errors(model, weights, frames)[:, 1] for model, weights in asked]
        return np.stack(columns, axis=1).astype(np.float64)


def _split(lengths: list[int], one_in: int = 5) -> tuple[IntArray, IntArray]:
    """Return frames to learn from and frames to judge by: of one run in five, or the end."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    first = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    moved = np.arange(len(run)) > first
    is_held = run % one_in == one_in - 1
    if len(lengths) < one_in:
        is_held = run == len(lengths) - 1
    if not (moved & is_held).any() or not (moved & ~is_held).any():
        order = moved.cumsum() / moved.sum()
        is_held = order > 1.0 - 1.0 / one_in
    return np.flatnonzero(moved & ~is_held), np.flatnonzero(moved & is_held)


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
    model: MotionModel,
    known: IntArray,
    unseen: IntArray,
    n_steps: int,
    seed: int,
    rate: float = 4e-3,
    n_checks: int = 10,
) -> tuple[Arrays, list[float]]:
    """Return the weights under which unseen frames are likeliest, and the loss at each check.

    Adam takes `n_steps` steps of 16 known frames; its rate falls to zero as half a cosine. The
    loss is the mean negative log-likelihood per pixel of at most 256 unseen frames.
    """
    torch = torch_module()
    generator, draws = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    weights = initial_weights(model.shapes, generator)
    adam = torch.optim.Adam([w.requires_grad_() for w in weights.values()], lr=rate)
    evenly = np.linspace(0, len(unseen) - 1, min(256, len(unseen)))
    judges = unseen[evenly.astype(np.intp)]
    best, losses = _copied(weights), [np.inf]
    for step in range(n_steps):
        adam.param_groups[0]["lr"] = rate * 0.5 * (1.0 + np.cos(np.pi * step / n_steps))
        adam.zero_grad()
        model.loss(weights, draws.choice(known, 16), generator).backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        adam.step()
        if (step + 1) * n_checks // n_steps > step * n_checks // n_steps:
            losses.append(float(frame_errors(model, _copied(weights), judges)[:, 0].mean()))
            if losses[-1] <= min(losses):
                best = _copied(weights)
    return best, losses[1:]


def _copied(weights: Weights) -> Arrays:
    return {name: w.detach().numpy().copy() for name, w in weights.items()}


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


def arm_shapes(width: int, n_joints: int, hidden: int = 128) -> Shapes:
    """Return the shapes of the weights of the decoder, `width` channels at its last map."""
    return {
        "joints": (hidden, 2 * n_joints),
        "seed": (2 * width * (SIDE // 8) ** 2, hidden),
        "middle": (2 * width, 2 * width, 3, 3),
        "last": (width, 2 * width, 3, 3),
        "out": (8 * n_joints + 8, width, 1, 1),
    }


def initial_weights(shapes: Shapes, generator: Any) -> Weights:
    """Draw weights so that rectified layers keep the size of what they are given."""
    torch = torch_module()
    weights: Weights = {}
    for name, shape in shapes.items():
        spread = (2.0 / math.prod(shape[1:])) ** 0.5
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
    x = seed.reshape(len(turns), -1, SIDE // 8, SIDE // 8)
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


def optical_flow(before: SingleArray, after: SingleArray) -> SingleArray:
    """Return where the pixels of each picture went, in pixels.

    Each pair of pictures is looked at on its own. At each size, the flow v of a pixel
    minimises ``sum (after(x + v) - before(x))^2`` over a Gaussian window, by damped
    Gauss-Newton steps from the flow found at half the size.

    Parameters
    ----------
    before, after : ndarray of shape (n, h, w), float32 in [0, 1]
        Grey pictures; h and w can be halved twice.

    Returns
    -------
    ndarray of shape (n, 2, h, w), float32
        Motion to the right and motion down.
    """
    # lamps that flicker, and exposure that changes, are no motion: the brightness of the
    # neighbourhood is taken off
    pyramid = [tuple(pictures - _blurred(pictures, 8.0) for pictures in (before, after))]
    for _ in range(2):
        pyramid.append(tuple(_halved(pictures) for pictures in pyramid[-1]))
    n, h, w = pyramid[-1][0].shape
    flow = np.zeros((n, 2, h, w), np.float32)
    for first, second in reversed(pyramid):
        if first.shape[1] != flow.shape[2]:
            flow = 2.0 * flow.repeat(2, axis=2).repeat(2, axis=3)
        flow = _refined(first, second, flow)
    return flow


def _halved(pictures: SingleArray) -> SingleArray:
    n, h, w = pictures.shape
    return np.asarray(pictures.reshape(n, h // 2, 2, w // 2, 2).mean(axis=(2, 4)))


def _blurred(maps: Any, width: float) -> SingleArray:
    return np.asarray(gaussian_filter(maps, (0, width, width), mode="nearest", truncate=2.0))


def _refined(
    before: SingleArray,
    after: SingleArray,
    flow: SingleArray,
    n_steps: int = 3,
    window: float = 2.0,
    damping: float = 3e-4,
) -> SingleArray:
    """Return a flow improved by some steps; gradients are those of the first picture.

    The motion is taken as one within a Gaussian window. The damping is added to the squared
    gradients, of pictures in [0, 1]: where there is less structure than camera noise has, the
    flow stays near zero.
    """
    dy, dx = np.gradient(before, axis=(1, 2))
    xx, yy = (_blurred(d * d, window) + damping for d in (dx, dy))
    xy = _blurred(dx * dy, window)
    determinant = xx * yy - xy * xy
    for _ in range(n_steps):
        missing = before - _warped(after, flow)
        x, y = _blurred(dx * missing, window), _blurred(dy * missing, window)
        step = np.stack([yy * x - xy * y, xx * y - xy * x], axis=1) / determinant[:, np.newaxis]
        flow = flow + step.clip(-1.0, 1.0)
    return flow


def _warped(pictures: SingleArray, flow: SingleArray) -> SingleArray:
    """Return the pictures seen where the flow points, bilinear, the border held."""
    n, h, w = pictures.shape
    x = np.clip(np.arange(w, dtype=np.float32) + flow[:, 0], 0, w - 1)
    y = np.clip(np.arange(h, dtype=np.float32)[:, np.newaxis] + flow[:, 1], 0, h - 1)
    left, top = np.minimum(x.astype(np.intp), w - 2), np.minimum(y.astype(np.intp), h - 2)
    x, y = x - left.astype(np.float32), y - top.astype(np.float32)
    flat = pictures.ravel()
    corner = (np.arange(n)[:, np.newaxis, np.newaxis] * h + top) * w + left
    upper = flat[corner] * (1 - x) + flat[corner + 1] * x
    lower = flat[corner + w] * (1 - x) + flat[corner + w + 1] * x
    return np.asarray(upper * (1 - y) + lower * y)
