"""PictureDetector: backbones, families of members, and their fusion."""

import os
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.local_scale import warn_if_far
from ocfuse.persistence import save
from ocfuse.scores import ConformalCalibrator
from ocfuse.scores.threshold import AlarmMixin, check_rate
from ocfuse.vision.explanation import USUAL_LIMIT, PictureExplanation
from ocfuse.vision.extract import CHUNK, Batch, FeatureStore, PictureSample, read_all, read_batches
from ocfuse.vision.features import FeatureArray, Features
from ocfuse.vision.fit import (
    Family,
    FamilyFusion,
    Stillness,
    make_families,
    require_known,
    training_folds,
    warn_if_alike,
)
from ocfuse.vision.fit import learn as learn_families
from ocfuse.vision.frames import FrameSource
from ocfuse.vision.networks import name_backbones
from ocfuse.vision.patches import PatchMember, mean_map
from ocfuse.vision.plan import PicturePlan, plan_pictures
from ocfuse.vision.sources import Runs, open_frames


class PictureDetector(AlarmMixin, BaseEstimator):  # type: ignore[misc]
    """Anomaly detector for pictures: which are unusual, and where.

    Backbones turn pictures into features. Families of members learn these features: at each
    position of the feature maps (`PatchGaussian`, `PatchKNN`), and of whole pictures
    (`PooledMembers`). Their held-out scores are brought to one scale and fused, with weights from
    how well each family finds artificial defects in training pictures (`FamilyFusion`).

    Parameters
    ----------
    backbone : str, Backbone, list or dict, default="lite0"
        One or several networks, as for `make_backbone`; a dictionary gives them names.
    members : list or dict, default=None
        ``(name, member)`` pairs, copied for each backbone, or a dictionary of such lists by the
        name of the backbone. None, or a backbone that is not in the dictionary, has the default
        members: `PatchGaussian`, `PatchKNN` and `PooledMembers`.
    false_alarm_rate : float, default=0.05
        Share of fresh normal pictures that may raise an alarm.
    store : str or path-like, default=None
        Folder in which `fit` stores features of pictures, to read them in later fits
        (`FeatureStore`). Scoring does not use it.
    random_state : int, RandomState instance or None, default=None
        Seed of members, folds and artificial defects.

    Attributes
    ----------
    families_ : list of Family
        The fitted members, with their names and backbones.
    fusion_ : FamilyFusion
        Scales and weights of the families.
    offset_ : float
        Threshold: pictures with a lower fused score raise an alarm.
    threshold_rate_ : float
        False-alarm rate of the threshold.
    stillness_ : Stillness or None
        How similar consecutive frames are; None for independent pictures.
    training_scores_ : ndarray of shape (n,)
        Held-out fused scores of the training pictures.
    place_limit_ : float
        How unusual a place must be to be marked. All places of held-out training pictures are
        below this value, except for a share `false_alarm_rate` of these pictures.

    Examples
    --------
    >>> from ocfuse.vision import PictureDetector
    >>> PictureDetector("lite0", false_alarm_rate=0.01)
    PictureDetector(false_alarm_rate=0.01)
    """

    families_: list[Family]
    fusion_: FamilyFusion
    stillness_: Stillness | None = None  # of pictures that do not follow each other, too

    def __init__(
        self,
        backbone: Any = "lite0",
        *,
        members: Any = None,
        false_alarm_rate: float = 0.05,
        store: str | os.PathLike[str] | None = None,
        random_state: Any = None,
    ) -> None:
        self.backbone = backbone
        self.members = members
        self.false_alarm_rate = false_alarm_rate
        self.store = store
        self.random_state = random_state

    # -- learning ---------------------------------------------------------

    def plan(self, X: Any) -> PicturePlan:
        """Predict memory and time of `fit` without fitting: reads some pictures, counts all.

        Parameters
        ----------
        X : pictures
            Pictures as in `fit`, not features.

        Returns
        -------
        PicturePlan
            Memory and time of a fit with the default members.
        """
        source = self._opened(X)
        if isinstance(source, Batch) or source.is_live:
            raise InvalidInputError(f"plan counts pictures of recordings. Got {source}.")
        n_runs = None
        if source.is_sequence:
            n_runs = len(source.runs) if isinstance(source, Runs) else 1
        return plan_pictures(source, name_backbones(self.backbone), n_runs)

    def fit(self, X: Any, groups: Any = None, context: Any = None) -> "PictureDetector":
        """Learn from normal pictures.

        Parameters
        ----------
        X : pictures, or Features
            Anything that `open_frames` takes, or features of the backbone (with several backbones
            a dictionary of features by name).
        groups : array-like of shape (n,), default=None
            Group of each frame, such as its run or part, including frames that cannot be decoded.
            Pictures of one group are held out together, and the false-alarm rate holds for fresh
            groups. A video without groups is one run: the rate then holds for this run only, and a
            `FewSamplesWarning` says so. None takes the runs of X (`ocfuse.vision.sources.Runs`).
        context : array-like of shape (n,), default=None
            Progress of the task at each frame, or time since its start. Pictures are then compared
            with training pictures at about the same progress. Needs several runs.

        Returns
        -------
        PictureDetector
            The fitted detector.
        """
        check_rate(self.false_alarm_rate)
        fresh = copy(self)  # a fit that fails leaves this detector as it was
        fresh._fit(X, groups, context)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _fit(self, X: Any, groups: Any, context: Any) -> None:
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.backbones_ = {n: b.pinned() for n, b in name_backbones(self.backbone).items()}
        require_known(self.members, self.backbones_)
        largest = max(backbone.size for backbone in self.backbones_.values())
        # pictures in which defects are made up
        sample = PictureSample(120, largest, np.random.default_rng(seed))
        source = self._opened(X)
        batch, count, is_sequence = self._read(source, sample)
        groups = getattr(source, "groups_", None) if groups is None else groups
        context = _known_progress(source) if context is None else context
        if len(batch) < 10:
            raise InvalidInputError(
                f"At least 10 normal pictures are needed to learn from. Got {len(batch)}."
            )
        labels = _per_frame(groups, "groups", batch.index, count)
        if is_sequence and labels is None and context is not None:
            raise InvalidInputError(
                "context cannot be learned from one run: no other run tells what is usual at the "
                "same progress. Give several runs, with groups, or leave context out."
            )
        self.context_range_ = _range(_per_frame(context, "context", batch.index, count))
        self.stillness_ = Stillness.learn(_pooled(batch)) if is_sequence else None
        progress = self._progress(context, batch, count)
        fold = training_folds(labels, len(batch), is_sequence, seed)
        families = make_families(self.members, batch.features, seed)
        held_out, self.fusion_, peaks = learn_families(
            families, batch, fold, progress, sample, self.backbones_, seed
        )
        self.place_limit_ = USUAL_LIMIT
        if peaks is not None:
            rest = 1.0 - self.false_alarm_rate
            self.place_limit_ = float(np.quantile(peaks, rest, method="higher"))
        self.families_ = families
        self.training_scores_ = self.fusion_.fuse(held_out)
        runs = _runs(labels, _pooled(batch), is_sequence)
        self._set_normals(self.training_scores_, runs, is_sequence, is_out_of_fold=True)

    def _set_normals(
        self, scores: FloatArray, groups: Any, is_sequence: bool, is_out_of_fold: bool = False
    ) -> None:
        """Take the threshold and p-values from scores of normals not seen."""
        self.normal_scores_ = scores
        self.normal_groups_ = None
        if groups is not None:
            self.normal_groups_ = np.unique(groups, return_inverse=True)[1]
        calibrator = ConformalCalibrator("run" if is_sequence else "group")
        self.conformal_ = calibrator.fit(
            scores,
            groups=self.normal_groups_,
            is_out_of_fold=is_out_of_fold,
            are_alike=is_sequence and groups is None,
        )
        self.set_threshold(self.false_alarm_rate)

    def calibrate(self, X: Any, groups: Any = None, context: Any = None) -> "PictureDetector":
        """Set the threshold from fresh normal pictures that `fit` has not seen.

        Parameters
        ----------
        X : pictures, or Features
            Normal pictures, as in `fit`.
        groups : array-like of shape (n,), default=None
            Run of each frame. The rate then holds for pictures of fresh runs.
        context : array-like of shape (n,), default=None
            Progress of the task, if `fit` was given it.

        Returns
        -------
        PictureDetector
            The detector, with the threshold at `false_alarm_rate`.
        """
        check_is_fitted(self, "fusion_")
        source = self._opened(X)
        self._warn_of_units(source, context)
        # no maps are kept: there may be many pictures
        scored = [(b.index, _pooled(b), raw) for b, raw in self._scored(source, context)]
        if not scored:
            raise InvalidInputError(f"No picture of {X} could be read.")
        index, pooled, raw = map(np.concatenate, zip(*scored, strict=True))
        count = len(source) if isinstance(source, Batch) else source.n_frames_
        groups = getattr(source, "groups_", None) if groups is None else groups
        labels = _per_frame(groups, "groups", index, count)
        is_sequence = isinstance(source, FrameSource) and source.is_sequence
        runs = _runs(labels, pooled, is_sequence)
        self._set_normals(self.fusion_.fuse(raw), runs, is_sequence)
        return self

    # -- scoring ----------------------------------------------------------

    def score_samples(self, X: Any, context: Any = None) -> FloatArray:
        """Return the fused score of every picture: higher is more normal.

        Frames that cannot be decoded are left out; the source lists them (`FrameSource.skipped_`).
        """
        check_is_fitted(self, "fusion_")
        source = self._opened(X)
        self._warn_of_units(source, context)
        return self.fusion_.fuse(self.transform_raw(source, context))

    def transform_raw(self, X: Any, context: Any = None) -> FloatArray:
        """Return the scores of each family for every picture, in its own units."""
        check_is_fitted(self, "fusion_")
        scores = [scores for _, scores in self._scored(X, context)]
        if not scores:
            raise InvalidInputError(f"No picture of {X} could be read.")
        return np.concatenate(scores)

    def explain(self, X: Any, context: Any = None) -> PictureExplanation:
        """Explain the score of every picture, and where it is unusual."""
        check_is_fitted(self, "fusion_")
        source, raw, maps = self._opened(X), [], []
        context = self._context(source, context)
        for batch, scores in self._scored(source, context):
            raw.append(scores)
            maps.append(self._map(batch, self._progress(context, batch, None)))
        if not raw:
            raise InvalidInputError(f"No picture of {X} could be read.")
        S = np.concatenate(raw)
        Z = self.fusion_.normalised(S)
        score = self.fusion_.fuse(S)
        return PictureExplanation(
            score=score,
            offset=self.offset_,
            p_value=self.conformal_.p_values(score),
            member_names=[family.name for family in self.families_],
            member_scores=S,
            normalised_scores=Z,
            weights=self.fusion_.weights_,
            contributions=Z * self.fusion_.weights_,
            maps=np.concatenate(maps),
            place_limit=getattr(self, "place_limit_", USUAL_LIMIT),  # older files have none
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the detector to one file, which `ocfuse.load` reads; it contains no networks."""
        check_is_fitted(self, "fusion_")
        return save(self, path)

    # -- inside -----------------------------------------------------------

    def _read(self, source: Batch | FrameSource, sample: PictureSample) -> tuple[Batch, int, bool]:
        """Return the features of all pictures, the number of frames, and if these are a video."""
        if isinstance(source, Batch):
            return source, len(source), False
        if source.is_live:
            raise InvalidInputError(f"{source} has no end. Record it, and learn from recordings.")
        store = None if self.store is None else FeatureStore(Path(self.store))
        batch = read_all(source, self.backbones_, store=store, sample=sample)
        return batch, source.n_frames_, source.is_sequence

    def _opened(self, X: Any) -> Batch | FrameSource:
        """Return features as a batch, anything else as a source."""
        if isinstance(X, Batch):
            return X
        given = {next(iter(self.backbones_)): X} if isinstance(X, Features) else X
        if not isinstance(given, Mapping):
            return open_frames(X)
        if set(given) != set(self.backbones_):
            raise InvalidInputError(
                f"Features must be given for the backbones {', '.join(self.backbones_)}. "
                f"Got {', '.join(map(str, given))}."
            )
        n = len(next(iter(given.values())))
        return Batch(dict(given), np.arange(n), np.full(n, np.nan))

    def _batches(self, X: Any, context: Any) -> Iterator[Batch]:
        """Yield the features of X; refuse a context of another length as soon as it is known."""
        given = self._opened(X)
        if hasattr(given, "__len__"):
            _require_length(context, "context", len(given))
        if not isinstance(given, Batch):
            yield from read_batches(given, self.backbones_)
            _require_length(context, "context", given.n_frames_)
            return
        for start in range(0, len(given), CHUNK):
            rows = slice(start, start + CHUNK)
            parts = {name: features.take(rows) for name, features in given.features.items()}
            yield Batch(parts, given.index[rows], given.time[rows])

    def _scored(self, X: Any, context: Any) -> Iterator[tuple[Batch, FloatArray]]:
        source = self._opened(X)
        context = self._context(source, context)
        for batch in self._batches(source, context):
            progress = self._progress(context, batch, None)
            columns = [f.member.score(batch.features[f.backbone], progress) for f in self.families_]
            yield batch, np.column_stack(columns)

    def _context(self, source: Batch | FrameSource, context: Any) -> Any:
        """Return the context, or that of the source if none is given and one was learned."""
        is_needed = context is None and self.context_range_ is not None
        return _known_progress(source) if is_needed else context

    def _warn_of_units(self, source: Batch | FrameSource, context: Any) -> None:
        """Warn of a context that is far from that of training, as one in per cent is."""
        values = self._context(source, context)
        if values is not None and self.context_range_ is not None:
            low, high = self.context_range_
            warn_if_far(values, low, high, stacklevel=4)

    def _map(self, batch: Batch, progress: FloatArray | None) -> NDArray[np.float32]:
        """Return the weighted mean of what the families find unusual at every place."""
        parts, weights = [], []
        for family, weight in zip(self.families_, self.fusion_.weights_, strict=True):
            if isinstance(family.member, PatchMember):
                distances = family.member.distances(batch.features[family.backbone], progress)
                parts.append(family.member.unusual(distances))
                weights.append(weight)
        if not parts:
            return np.empty((len(batch), 0, 0), dtype=np.float32)
        return mean_map(parts, weights)

    def _progress(self, context: Any, batch: Batch, count: int | None) -> FloatArray | None:
        """Return the context of the frames of a batch, from 0 to 1 over that of training."""
        if (context is None) != (self.context_range_ is None):
            raise InvalidInputError(
                "context must be given whenever it was given to fit, and only then. "
                f"Got context={'None' if context is None else 'an array'}."
            )
        if context is None or self.context_range_ is None:
            return None
        values = _per_frame(context, "context", batch.index, count)
        low, high = self.context_range_
        return np.asarray((values - low) / (high - low))


def _known_progress(source: Batch | FrameSource) -> FloatArray | None:
    """Return the progress of the task at every frame, if the source knows it."""
    progress = getattr(source, "progress", None)
    return progress if isinstance(progress, np.ndarray) else None


def _pooled(batch: Batch) -> FeatureArray:
    """Return the pooled features by the first backbone."""
    return next(iter(batch.features.values())).pooled


def _runs(labels: Any, pooled: FeatureArray, is_sequence: bool) -> Any:
    """Return the run of every picture: as given, one for a video, or None if there are none."""
    if labels is None and is_sequence:
        return np.zeros(len(pooled), dtype=np.intp)
    if labels is None:
        warn_if_alike(pooled)
    return labels


def _require_length(values: Any, name: str, count: int) -> None:
    """Refuse values that cannot be those of so many frames."""
    shape = (count,) if values is None else np.shape(values)
    if shape != (count,):
        raise InvalidInputError(
            f"{name} must have one value for each of the {count} frames, those that cannot be "
            f"decoded included. Got shape {shape}."
        )


def _per_frame(values: Any, name: str, index: IntArray, count: int | None) -> Any:
    """Return the values that belong to the frames of an index."""
    if values is None:
        return None
    array = np.asarray(values)
    if count is not None:
        _require_length(array, name, count)
    if array.ndim != 1 or len(array) <= index.max():
        raise InvalidInputError(
            f"{name} must have one value per frame. Got shape {array.shape}, "
            f"and frames up to number {index.max()}."
        )
    picked = array[index]
    if name == "context":
        picked = np.asarray(picked, dtype=np.float64)
        if not np.isfinite(picked).all():
            raise InvalidInputError("context must hold finite numbers. Got NaN or infinity.")
    return picked


def _range(context: Any) -> list[float] | None:
    if context is None:
        return None
    low, high = float(np.min(context)), float(np.max(context))
    if not low < high:
        raise InvalidInputError(
            f"context must vary over the training pictures. Got {low:g} everywhere. Leave it out."
        )
    return [low, high]
