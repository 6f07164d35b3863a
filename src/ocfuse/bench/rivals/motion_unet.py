"""Predict the motion of a task and watch for other motion, after Thoduka et al. (2021)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocfuse.bench.rivals.base import FloatArray, next_seed
from ocfuse.bench.rivals.motion.errors import (
    N_DRAWS,
    ArmModel,
    Arrays,
    Model,
    Predictor,
    frame_errors,
    joint_units,
)
from ocfuse.bench.rivals.motion.film import Film, IndexArray, spliced
from ocfuse.bench.rivals.motion.run import MotionRun, checked_film, films_of
from ocfuse.bench.rivals.motion.training import one_torch_thread, trained
from ocfuse.detectors.base import require_count

__all__ = ["MotionRun", "MotionUNet"]

#: One run of this many is not learned from: it says when to stop, and what an error means.
HELD_OUT = 5
#: Percentiles of the errors of unseen normal frames that become 0 and 1.
TYPICAL, HIGH = 50.0, 95.0


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
    >>> from ocfuse.bench.rivals.motion_unet import MotionRun, MotionUNet
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
        self.latents_ = random.standard_normal((N_DRAWS, self.n_latent)).astype(np.float32)
        self.latents_[0] = 0.0
        self.joint_units_ = joint_units(film, known)
        with one_torch_thread():
            self._train(self._models(film), known, unseen, next_seed(random))
            errors = self._errors(film, unseen)
        self.typical_ = np.percentile(errors, TYPICAL, axis=0)
        # errors about a film without motion are all the same
        self.unit_ = np.maximum(np.percentile(errors, HIGH, axis=0) - self.typical_, 1e-6)
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

    def _models(self, film: Film) -> list[Model]:
        """Return what there is to ask about a film: its past and, if given, its joints."""
        models: list[Model] = [Predictor(film, self.history, self.width, self.latents_)]
        if self.n_joints_:
            models.append(ArmModel(film, self.width, self.joint_units_))
        return models

    def _train(self, models: list[Model], known: IndexArray, unseen: IndexArray, seed: int) -> None:
        self.weights_: list[Arrays] = []
        self.losses_: list[list[float]] = []
        for model in models:
            weights, losses = trained(model, known, unseen, self.n_steps, seed)
            self.weights_.append(weights)
            self.losses_.append(losses)
        self.n_parameters_ = sum(w.size for one in self.weights_ for w in one.values())

    def _errors(self, film: Film, frames: IndexArray) -> FloatArray:
        """Return the errors about some frames, one column per network, in their own units."""
        asked = zip(self._models(film), self.weights_, strict=True)
        columns = [frame_errors(model, weights, frames)[:, 1] for model, weights in asked]
        return np.stack(columns, axis=1).astype(np.float64)


def _split(lengths: list[int]) -> tuple[IndexArray, IndexArray]:
    """Return frames to learn from and frames to judge by: of other runs, or the end of the one."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    first = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    moved = np.arange(len(run)) > first
    is_held = run % HELD_OUT == HELD_OUT - 1
    if len(lengths) < HELD_OUT:
        is_held = run == len(lengths) - 1
    if not (moved & is_held).any() or not (moved & ~is_held).any():
        order = moved.cumsum() / moved.sum()
        is_held = order > 1.0 - 1.0 / HELD_OUT
    return np.flatnonzero(moved & ~is_held), np.flatnonzero(moved & is_held)
