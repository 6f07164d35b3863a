"""More normal rows without learning all anew: what `FusedDetector.update` learns and refuses.

What is learned: neighbours, mean and covariance, tails, mixtures, a share of the trees, kernel
directions by way of the landmarks of before, the local scale of the fusion, and the threshold.
What stays: how columns become numbers, coordinates and landmarks, and how far members are trusted.
Groups that are new, such as machines, are taken up with their own level.
A row is scored before it is learned: that score is one of a row held out, and the threshold
counts it.
"""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.detectors.base import N_FOLDS
from ocfuse.detectors.change import updated_pool
from ocfuse.encoder import FeatureEncoder, warn_of_cells
from ocfuse.ensemble.copies import find_copies
from ocfuse.ensemble.fit import row_numbers
from ocfuse.ensemble.outliers import are_far
from ocfuse.ensemble.score import ScoreChain, Trace
from ocfuse.exceptions import InvalidInputError, SuspectRowsWarning
from ocfuse.explain import UsualValues
from ocfuse.fusion.local_scale import LocalScaleFusion
from ocfuse.scores import ConformalCalibrator
from ocfuse.system.packages import slow
from ocfuse.validation import (
    ANOMALY,
    NORMAL,
    check_training_labels,
    require_fitted,
    require_mostly_normal,
)

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

#: Fewer rows than this are no memory.
LEAST_MEMORY = 100
#: Share of the rows of an update that may be left out as too far outside.
LARGEST_SHARE = 0.2
#: A row is left out if so few of the batches of normal rows have one that scores so low.
RARE_BATCH = 0.01
#: Chance below which alarms among the rows are said to be too many.
RARE_ALARMS = 1e-3
#: How much of the rows may be newer than the fit, how far the middle of a column may move in units
#: of its spread then, and how much its spread may change, before another fit is advised.
MOST_NEWER, MOST_MOVED, MOST_SPREAD = 0.5, 0.5, 1.5
#: Attributes that updates alone leave in a detector.
OF_UPDATES = (
    *("start_", "n_updates_", "n_added_", "n_dropped_"),
    *("unchanged_members_", "refit_reason_", "calibration_numbers_"),
)


@dataclass(frozen=True)
class Start:
    """What a detector was when it was fitted, to see how far its rows have gone from there."""

    mean: FloatArray
    spread: FloatArray


@dataclass
class Update:
    """What the rows of one update are, by their positions among them."""

    learned: IntArray  # to be learned
    far: IntArray  # left out as too far outside
    copied: IntArray  # equal to others
    place: IntArray  # of each row: of a copy, the position of what it equals; else -1
    n_alarms: int  # rows below the threshold


def update(
    detector: "FusedDetector", X: Any, y: Any, context: Any, memory: int | None
) -> dict[str, Any]:
    """Return the attributes that a detector has after an update; see `FusedDetector.update`."""
    require_updatable(detector, memory)
    table = detector._checked(X)
    labels = check_training_labels(y, len(table))
    require_mostly_normal(y)
    normal = np.flatnonzero((labels != ANOMALY) & ~_beyond_limits(detector, table))
    # rows of new groups are measured from their own level before anything is learned of them
    encoder, cells = detector.encoder_.with_groups(table, normal)
    codes = encoder.read(table)
    warn_of_cells(encoder.changes(table, codes))
    trace = replace(ScoreChain.of(detector), encoder=encoder).trace(table, codes, context, cells)
    rows = _sorted_out(detector, trace.take(normal), labels[normal] == NORMAL)
    _tell(detector, rows, len(normal))
    learned, far = normal[rows.learned], normal[rows.far]
    if not len(learned):
        return {}
    before = np.asarray(detector.training_rows_)
    numbers = len(detector.training_scores_) + learned
    if memory is None or len(before) + len(learned) <= memory:
        first = 0
    else:
        first = int(np.sort(np.append(before, numbers))[-memory])
    kept, recent = np.flatnonzero(before >= first), learned[numbers >= first]
    pool, unchanged = updated_pool(detector.pool_, detector.training_, kept, trace.encoded[recent])
    known = pool.out_of_fold_scores_
    fold = (len(known) + np.arange(len(recent))) % (int(pool.fold_.max(initial=N_FOLDS - 1)) + 1)
    pool.out_of_fold_scores_ = np.vstack([known, trace.member_scores[recent]])
    pool.fold_ = np.append(pool.fold_, fold)
    training = np.vstack([detector.training_[kept], trace.encoded[recent]])
    training.flags.writeable = False
    theirs = detector.training_context_
    if theirs is not None and trace.context is not None:
        theirs = np.vstack([theirs[kept], trace.context[recent]])
    state: dict[str, Any] = {
        "encoder_": encoder,
        "pool_": pool,
        "training_": training,
        "training_context_": theirs,
        "training_rows_": np.append(before[kept], numbers[numbers >= first]) - first,
        "unchanged_members_": unchanged,
        "start_": _start_of(detector),
        "n_updates_": detector.n_updates_ + 1,
        "n_added_": detector.n_added_ + len(learned),
        "n_dropped_": detector.n_dropped_ + len(before) + len(learned) - len(training),
    }
    state |= _numbered(detector, rows, normal, trace, kept, first)
    state |= _fused(detector, pool, training, theirs)
    state["usual_"] = _usual(detector, encoder, trace, np.union1d(learned, far))
    state |= _calibration(detector, trace.score, learned, len(far), first, state)
    state["refit_reason_"] = _refit_reason(state)
    if state["refit_reason_"]:
        warnings.warn(
            f"{state['refit_reason_']} A new fit, which learns columns, landmarks and trust anew, "
            "would be better now.",
            SuspectRowsWarning,
            stacklevel=4,
        )
    return state


def require_updatable(detector: "FusedDetector", memory: int | None) -> None:
    """Refuse a detector that cannot take up rows, and a memory that is none."""
    require_fitted(detector, "pool_")
    if hasattr(detector, "validation_rows_"):
        raise InvalidInputError(
            f"{type(detector).__name__} holds rows back to choose its members and cannot be "
            "updated. Fit again with all rows."
        )
    conformal = detector.conformal_
    if conformal.n_groups_ is not None or conformal.are_alike_:
        raise InvalidInputError(
            "update is for rows that stand alone. The threshold of this detector counts groups, "
            "such as runs, and which of them new rows belong to cannot be told apart later: fit "
            "again with all of them."
        )
    is_count = isinstance(memory, int | np.integer) and not isinstance(memory, bool)
    if memory is not None and not (is_count and memory >= LEAST_MEMORY):
        raise InvalidInputError(
            f"memory must be a number of rows of at least {LEAST_MEMORY}, or None for all. "
            f"Got {memory!r}."
        )


def _beyond_limits(detector: "FusedDetector", X: Any) -> BoolArray:
    """Return which rows break a limit, which are anomalies whatever is said of them."""
    rules = detector.broken_limits(X)
    is_broken: BoolArray = rules != ""
    if is_broken.any():
        which = "; ".join(sorted(set(rules[is_broken]))[:3])
        warnings.warn(
            f"{int(is_broken.sum()):,} of {len(rules):,} rows break a limit ({which}) and were not "
            "learned from.",
            SuspectRowsWarning,
            stacklevel=5,
        )
    return is_broken


def _sorted_out(detector: "FusedDetector", trace: Trace, vouched: BoolArray) -> Update:
    """Return which rows are to be learned; rows that are vouched for are never too far."""
    n = len(trace)
    place, copied = _copies(detector.training_, trace.encoded)
    rare = np.log10(n / RARE_BATCH)
    is_far = detector.conformal_.severity(trace.score) > rare
    known = detector.pool_.out_of_fold_scores_, detector.training_
    is_far |= are_far(trace.member_scores, trace.encoded, *known)
    is_far &= ~vouched & ~copied
    return Update(
        learned=np.flatnonzero(~copied & ~is_far),
        far=np.flatnonzero(is_far),
        copied=np.flatnonzero(copied),
        place=place,
        n_alarms=int((trace.score < detector.offset_).sum()),
    )


def _copies(training: FloatArray, rows: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return what each row equals, and which rows are copies by accident.

    What a row equals is the number of a training row, n and more for an earlier one of these, and
    -1 if it equals none. Where equal rows are natural, training has several of one kind.
    """
    n, q = len(training), len(rows)
    place = np.full(q, -1)
    # rows with a first value that occurs in training, of which there are few unless they are copies
    near = np.flatnonzero(np.isin(training[:, 0], rows[:, 0]))
    same = row_numbers(np.vstack([training[near], rows]))
    first: dict[int, int] = {}
    several = set()
    for number, row in zip(same[: len(near)].tolist(), near.tolist(), strict=True):
        if number in first:
            several.add(number)
        first.setdefault(number, row)
    theirs = same[len(near) :].tolist()
    is_natural = any(number in several for number in theirs)
    is_copy = np.zeros(q, dtype=bool)
    if is_natural:
        return place, is_copy
    own = find_copies(rows) if q > 1 else np.zeros(q, dtype=np.intp)
    seen: dict[int, int] = {}
    for i, number in enumerate(theirs):
        found = first.get(number, seen.get(int(own[i]), -1))
        if found >= 0:
            place[i], is_copy[i] = found, True
        seen.setdefault(int(own[i]), found if 0 <= found < n else n + i)
    return place, is_copy


def _tell(detector: "FusedDetector", rows: Update, n: int) -> None:
    """Refuse rows too many of which are far outside, and say what is odd about them."""
    n_far = len(rows.far)
    if n_far > max(1, LARGEST_SHARE * n):
        raise InvalidInputError(
            f"{n_far} of {n} rows are far outside what was learned, and nothing was changed. If "
            "they are anomalies, leave them out or label them with y = -1. If they are the new "
            "normal, fit again with them; if the units have changed, change them back."
        )
    if n_far:
        warnings.warn(
            f"{n_far} of {n} rows are far outside and were not learned from. If they are normal, "
            "say so with y = +1.",
            SuspectRowsWarning,
            stacklevel=5,
        )
    rate = float(np.clip(detector.threshold_rate_, 1e-9, 1.0))
    k = rows.n_alarms  # so many or more, by chance
    chance = float(slow("scipy.special").betainc(k, n - k + 1, rate)) if k else 1.0
    if chance < RARE_ALARMS:
        warnings.warn(
            f"{rows.n_alarms} of {n} rows are below the threshold, where {rate:.2g} of normal "
            "rows are: the source has changed, or some of them are anomalies, which are now "
            "learned as normal unless they are far outside. Look at them before this model is "
            "used.",
            SuspectRowsWarning,
            stacklevel=5,
        )


def _numbered(
    detector: "FusedDetector",
    rows: Update,
    normal: IntArray,
    trace: Trace,
    kept: IntArray,
    first: int,
) -> dict[str, Any]:
    """Return what is known of all rows by their numbers, those of this update at the end.

    Rows before the first that is kept are forgotten.
    """
    n_before, n_training = len(detector.training_scores_), len(detector.training_)
    moved = np.full(n_training + 1, -1)  # the last is where -1 leads
    moved[kept] = np.arange(len(kept))
    old = moved[detector.training_place_]
    # the learned rows of now stand behind those that stay; -1 is that they are forgotten already
    position = np.full(len(trace), -1)
    learned = normal[rows.learned]
    learned = learned[n_before + learned >= first]
    position[learned] = len(kept) + np.arange(len(learned))
    new = position.copy()
    for i in rows.copied.tolist():
        what = int(rows.place[i])
        is_old = what < n_training
        new[normal[i]] = moved[what] if is_old else position[normal[what - n_training]]

    def from_first(before: IntArray, own: IntArray) -> IntArray:
        found = np.append(before, n_before + normal[own])
        return found[found >= first] - first

    return {
        "training_scores_": np.append(detector.training_scores_, trace.score)[first:],
        "training_place_": np.append(old, new)[first:],
        "trimmed_rows_": from_first(detector.trimmed_rows_, rows.far),
        "copied_rows_": from_first(detector.copied_rows_, rows.copied),
    }


def _fused(
    detector: "FusedDetector", pool: Any, training: FloatArray, context: FloatArray | None
) -> dict[str, Any]:
    """Return the fusion with the local scale of the rows of now, if it has one."""
    fusion = detector.fusion_
    if not isinstance(fusion, LocalScaleFusion):
        return {}
    Z = np.clip(detector.normaliser_.transform(pool.out_of_fold_scores_), -1e6, 1e6)
    return {"fusion_": fusion.with_normals(Z, training, context)}


def _usual(
    detector: "FusedDetector", encoder: FeatureEncoder, trace: Trace, rows: IntArray
) -> UsualValues | None:
    """Return what is usual, with the rows that have come; those that have gone count on."""
    if detector.usual_ is None:
        return None
    theirs = UsualValues.of(trace.take(rows).X, encoder)
    return detector.usual_.joined(theirs)


def _calibration(
    detector: "FusedDetector",
    scores: FloatArray,
    learned: IntArray,
    n_far: int,
    first: int,
    state: dict[str, Any],
) -> dict[str, Any]:
    """Return the calibrator of the scores that are kept and the new ones, and whose they are."""
    before = detector.conformal_
    at = getattr(detector, "calibration_rows_", None)
    if at is None:  # rows that calibrate was given, which have no number, stay
        numbers = getattr(detector, "calibration_numbers_", None)
        numbers = np.full(len(before.scores_), -1) if numbers is None else numbers
        is_kept = (numbers < 0) | (numbers >= first)
    else:
        numbers = np.asarray(detector.training_rows_)[at]
        is_kept = numbers >= first
    numbers = np.append(numbers[is_kept], len(detector.training_scores_) + learned)
    found = np.append(before.scores_[is_kept], scores[learned])
    if at is not None:
        found, numbers = found[numbers >= first], numbers[numbers >= first]
    order = np.argsort(found, kind="stable")
    numbers = np.where(numbers < 0, -1, numbers - first)[order]
    n_left_out = n_far
    if before.n_left_out_:
        n_left_out = len(state["trimmed_rows_"])
    conformal = ConformalCalibrator(before.group).fit(found, n_left_out, is_out_of_fold=True)
    if at is None:
        return {"conformal_": conformal, "calibration_numbers_": numbers}
    position = np.full(len(state["training_scores_"]), -1)
    position[state["training_rows_"]] = np.arange(len(state["training_rows_"]))
    return {"conformal_": conformal, "calibration_rows_": position[numbers]}


def _start_of(detector: "FusedDetector") -> Start:
    if detector.start_ is not None:
        return detector.start_
    rows = detector.training_
    return Start(rows.mean(axis=0), rows.std(axis=0))


def _refit_reason(state: dict[str, Any]) -> str:
    """Say why another fit is better now; empty if it is not."""
    rows, start = state["training_"], state["start_"]
    newer = min(state["n_added_"] / len(rows), 1.0)
    unit = np.where(start.spread > 1e-9, start.spread, 1.0)
    moved = np.abs(rows.mean(axis=0) - start.mean) / unit
    ratio = np.maximum(rows.std(axis=0), 1e-9) / unit
    is_wide = (start.spread > 1e-9) & (np.maximum(ratio, 1.0 / ratio) > MOST_SPREAD)
    n_far = int(np.sum((moved > MOST_MOVED) | is_wide))
    if n_far:
        return (
            f"{n_far} of {len(moved)} encoded columns have moved by more than {MOST_MOVED:g} of "
            "their spread, or spread otherwise, since the fit."
        )
    if newer > MOST_NEWER:
        return f"{newer:.0%} of the rows have come since the fit."
    return ""
