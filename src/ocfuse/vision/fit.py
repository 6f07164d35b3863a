"""One fit: families of members, and weights by how well each sees made-up defects."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.base import core_rows
from ocfuse.ensemble import FusedDetector
from ocfuse.exceptions import InvalidInputError, ThresholdWarning
from ocfuse.fusion.base import auc_of
from ocfuse.groups import Groups, group_folds
from ocfuse.scores import make_normaliser
from ocfuse.vision.backbone import Backbone
from ocfuse.vision.defects import Defects, with_defects, with_swaps
from ocfuse.vision.extract import Batch, PictureSample
from ocfuse.vision.features import Features
from ocfuse.vision.patches import PatchGaussian, PatchKNN, PatchMember, mean_map
from ocfuse.vision.pooled import PooledMembers, pooled_detector

#: Distances of frames that follow each other whose median says whether a scene moves, and the
#: share of the lowest in training below which it hardly does.
N_STEPS, SLOW = 31, 0.7
#: Folds in which pictures are held out.
N_FOLDS = 5
#: Defects of each kind that are made up in pictures.
DEFECTS_PER_KIND = 120


class FamilyFusion(BaseEstimator):  # type: ignore[misc]
    """Weighted mean of the scores of families, each on the scale of its held-out normals.

    The competence of a family is ``2 AUC - 1``, not below 0, at separating normals
    from made-up defects, both unknown to it, averaged over the kinds of
    defects. Families whose competence is within a tenth of the highest count
    alike: made-up defects cannot rank them. Below that the weight falls
    with the tenth power.

    After `fit`, `areas_` of shape (d, kinds) are the areas under the ROC curves, `competence_`
    has 1 for the best family, and `weights_` add up to 1.
    """

    def fit(self, held_out: FloatArray, defects: FloatArray, kind: IntArray) -> "FamilyFusion":
        """Learn scales and weights from scores of n normals and q defects, none of them seen."""
        self.normaliser_: Any = make_normaliser("z-score").fit(held_out)
        areas = [auc_of(held_out, defects[kind == k]) for k in np.unique(kind)]
        self.areas_ = np.column_stack(areas)
        # a family that sees no defect at all still counts a little, if all others are as blind
        competence = np.maximum(2.0 * self.areas_ - 1.0, 0.0).mean(axis=1) + 1e-3
        self.competence_ = competence / competence.max()
        trust = np.minimum(self.competence_ / 0.9, 1.0) ** 10
        self.weights_ = trust / trust.sum()
        return self

    def normalised(self, scores: FloatArray) -> FloatArray:
        """Return the scores of the families on one scale, shape (n, d)."""
        return np.asarray(self.normaliser_.transform(scores))

    def fuse(self, scores: FloatArray) -> FloatArray:
        """Return the fused scores, shape (n,): 0 for a typical normal."""
        return np.asarray((self.normalised(scores) * self.weights_).sum(axis=1))


class Family(BaseEstimator):  # type: ignore[misc]
    """A member, its name and that of the backbone whose features it sees."""

    def __init__(self, name: str, member: Any, backbone: str) -> None:
        self.name = name
        self.member = member
        self.backbone = backbone


def make_families(members: Any, features: Mapping[str, Features], seed: int) -> list[Family]:
    """Return the families, not fitted: every backbone with copies of its members."""
    families = []
    for backbone, found in features.items():
        wanted = members.get(backbone) if isinstance(members, Mapping) else members
        pairs = default_members(bool(found.maps), seed) if wanted is None else wanted
        for name, member in _checked(pairs):
            full = name if len(features) == 1 else f"{backbone}/{name}"
            families.append(Family(full, clone(member), backbone))
    if len({family.name for family in families}) < len(families):
        raise InvalidInputError(
            f"Names of members must differ. Got {', '.join(f.name for f in families)}."
        )
    return families


def require_known(members: Any, backbones: Mapping[str, Any]) -> None:
    """Refuse members for a backbone that is not there."""
    unknown = [n for n in members if n not in backbones] if isinstance(members, Mapping) else []
    if unknown:
        raise InvalidInputError(
            f"members must be given by the names of the backbones: {', '.join(backbones)}. "
            f"Got {', '.join(map(repr, unknown))}."
        )


def default_members(has_maps: bool, seed: int) -> list[tuple[str, Any]]:
    """Return members for positions, if there are maps, and for the picture as a whole."""
    if not has_maps:
        return [("pooled", PooledMembers(pooled_detector(seed)))]
    # beside those that see positions its weight is small: a few members are enough
    pooled = PooledMembers(FusedDetector("light", random_state=seed))
    return [("gaussian", PatchGaussian()), ("knn", PatchKNN()), ("pooled", pooled)]


def training_folds(groups: Any, n: int, is_sequence: bool, seed: int) -> Groups:
    """Return the fold of every picture: by group, by stretch of a video, or by chance.

    Next to a stretch that is held out frames are like it: a quarter of a stretch on either side
    is not learned either.
    """
    if groups is not None:
        return Groups(group_folds(groups, n, N_FOLDS), are_folds=True)
    even = np.arange(n) * N_FOLDS // n
    if is_sequence:
        return Groups(even, np.arange(n), int(0.25 * n / N_FOLDS), are_folds=True)
    return Groups(np.random.default_rng(seed).permutation(even), are_folds=True)


@dataclass(frozen=True)
class Stillness:
    """How alike frames that follow each other are in training, by their pooled features.

    Attributes
    ----------
    distance : float
        Frames that are no farther apart repeat each other: a quarter of what all but a hundredth
        of training are, or 0, if frames repeat there, too.
    most : float
        Frames in a row that may repeat: twice as many as in training, and 10; inf if a tenth
        of training or more repeats, as of a scene that rests.
    slow : float
        A scene hardly moves if the median of 31 distances is lower: 0.7 times the lowest in
        training, where such a scene is a rest that is longer than any.
    """

    distance: float
    most: float
    slow: float = 0.0

    @classmethod
    def learn(cls, pooled: Any) -> "Stillness":
        """Learn from the features of frames in order, of shape (n, m)."""
        before, distances = None, []
        for row in pooled:
            if before is not None:
                distances.append(frame_distance(before, row))
            before = row
        steps = np.array(distances)
        if not len(steps):
            return cls(0.0, np.inf)
        distance = 0.25 * float(np.quantile(steps, 0.01))
        repeats = steps <= distance
        ends = np.flatnonzero(np.r_[True, ~repeats, True])
        longest = int(np.diff(ends).max()) - 1
        most = np.inf if repeats.mean() >= 0.1 else 2.0 * longest + 10.0
        if len(steps) < N_STEPS:
            return cls(distance, most)
        slowest = np.median(np.lib.stride_tricks.sliding_window_view(steps, N_STEPS), axis=1).min()
        return cls(distance, most, SLOW * float(slowest))


def frame_distance(one: Any, other: Any) -> float:
    """Return how far apart the features of two frames are, as a share of their size."""
    a, b = (np.asarray(x, dtype=np.float64) for x in (one, other))
    return float(np.linalg.norm(a - b) / max(float(np.linalg.norm(a)), np.finfo(float).tiny))


def warn_if_alike(pooled: Any) -> None:
    """Warn if pictures, by their pooled features in order, look like frames of unknown runs.

    They do if neighbours are, by squared distance, less than half as far apart as any two.
    """
    if len(pooled) < 20:
        return
    rows = core_rows(len(pooled) - 1, 4000)
    X, following = (np.asarray(pooled[r], dtype=np.float64) for r in (rows, rows + 1))
    between = ((following - X) ** 2).sum(axis=1).mean()
    if between < X.var(axis=0).sum():
        warnings.warn(
            "Pictures next to each other are far more alike than others, as frames of one run "
            "are. Scored by what has learned their neighbours they look too normal, so that fresh "
            "runs may raise many more false alarms than stated. Give groups: the run, part or "
            "batch of each picture.",
            ThresholdWarning,
            stacklevel=4,
        )


def learn(
    families: Sequence[Family],
    batch: Batch,
    fold: Groups,
    progress: FloatArray | None,
    sample: PictureSample,
    backbones: Mapping[str, Backbone],
    seed: int,
) -> tuple[FloatArray, FamilyFusion, FloatArray | None]:
    """Fit the families; return their scores of pictures not seen, their fusion, and peaks.

    A peak is how unusual the most unusual place of a picture was to fits without it; None if no
    family looks at places.
    """
    defects, kind = _made_up(batch, sample, backbones, np.random.default_rng(seed))
    held_out, strange, maps = [], [], []
    for family in families:
        name = family.backbone
        normal, made = family.member.fit(batch.features[name], fold, progress, defects[name])
        held_out.append(normal)
        strange.append(made)
        if isinstance(family.member, PatchMember):
            maps.append(family.member.take_unseen(fold))
    H, D = np.column_stack(held_out), np.column_stack(strange)
    fusion = FamilyFusion().fit(H, D, kind)
    if not maps:
        return H, fusion, None
    looks = [isinstance(family.member, PatchMember) for family in families]
    return H, fusion, mean_map(maps, fusion.weights_[looks]).max(axis=(1, 2))


def _made_up(
    batch: Batch,
    sample: PictureSample,
    backbones: Mapping[str, Backbone],
    random: np.random.Generator,
) -> tuple[dict[str, Defects], IntArray]:
    """Return features with defects for every backbone, and the kind of each."""
    rows, pictures = sample.pictures()
    if pictures:
        made, kind = with_defects(pictures, DEFECTS_PER_KIND, random)
        turns = np.arange(DEFECTS_PER_KIND) % len(pictures)
        origin = rows[np.tile(turns, len(made) // DEFECTS_PER_KIND)]
        return {name: Defects(b.extract(made), origin) for name, b in backbones.items()}, kind
    n_swaps = 240
    rows = core_rows(len(batch), n_swaps)
    origin = rows[np.arange(n_swaps) % len(rows)]
    state = random.bit_generator.state
    defects = {}
    for name, features in batch.features.items():
        random.bit_generator.state = state  # the same places for every backbone
        swapped, kind = with_swaps(features.take(rows), n_swaps, random)
        defects[name] = Defects(swapped, origin)
    return defects, kind


def _checked(pairs: Any) -> list[tuple[str, Any]]:
    entries = list(pairs) if isinstance(pairs, list | tuple) else []
    for entry in entries:
        is_pair = isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str)
        if not is_pair or not all(hasattr(entry[1], name) for name in ("learn", "fit", "score")):
            raise InvalidInputError(
                "members must be (name, member) pairs, with members such as PatchKNN(). "
                f"Got {entry!r}."
            )
    if not entries:
        raise InvalidInputError("members must hold at least one (name, member) pair. Got none.")
    return [(name, member) for name, member in entries]
