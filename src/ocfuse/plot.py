"""Figures for notebooks and papers, drawn with matplotlib (extra `plot`).

Every function draws on the given axes, or on new ones, and returns them. Set size and title, and
save the figure, with matplotlib.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation
from ocfuse.scores.axis import ScoreAxis
from ocfuse.stats.ranks import critical_difference as nemenyi
from ocfuse.stats.ranks import mean_ranks, rank_correlation
from ocfuse.system.packages import needed

__all__ = ["agreement", "critical_difference", "explanation", "scores", "timeline", "weights"]

#: matplotlib's axes: it may not be installed, so that it has no name here.
Axes: TypeAlias = Any

#: After Okabe and Ito: told apart by the colour-blind, and by their lightness.
NORMAL, ALARM, QUIET, INK = "#0072B2", "#D55E00", "#8B98A5", "#222222"


def scores(
    normal: Any,
    new: Any = None,
    *,
    offset: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distribution of scores, and the threshold.

    The axis is nearly linear among the normal scores and compressed far from them.

    Parameters
    ----------
    normal : fitted detector, or array-like of shape (n,)
        A FusedDetector, TableDetector, StreamDetector or StreamTable; or scores of held-out normal
        rows, such as ``detector.normal_scores_``.
    new : array-like, default=None
        If `normal` is a detector, rows to score with it; rows without a score are left out. If
        `normal` are scores, scores of other rows, of shape (q,).
    offset : float, default=None
        The threshold; None takes that of the detector, if there is one.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    inner = getattr(normal, "detector_", normal)
    if hasattr(inner, "normal_scores_"):
        new = None if new is None else _scored(normal, new)
        offset = inner.offset_ if offset is None else offset
        normal = inner.normal_scores_
    elif hasattr(normal, "fit"):
        raise InvalidInputError(
            f"The first argument must be a fitted detector of ocfuse, or scores. Got {normal!r}. "
            "Fit it first."
        )
    ax = _axes(ax)
    known = _finite(normal, "normal", 1)
    fresh = np.empty(0) if new is None else _finite(new, "new", 1)
    axis = ScoreAxis.over(known, fresh if len(fresh) else known)
    edges = axis.score(np.linspace(axis.low, axis.high, axis.n_bins + 1))
    for values, colour, label in ((known, NORMAL, "normal, held out"), (fresh, ALARM, "new")):
        if len(values):
            share = np.full(len(values), 1 / len(values))
            ax.hist(values, edges, weights=share, color=colour, alpha=0.6, label=label)
    ax.set_xscale("function", functions=(axis.place, axis.score))
    ax.set_xticks(axis.ticks(), [f"{tick:g}" for tick in axis.ticks()])
    if offset is not None:
        ax.axvline(offset, color=INK, linestyle="--", label=f"threshold {offset:.3g}")
    ax.set_xlabel("score, higher = more normal")
    ax.set_ylabel("share of rows")
    ax.legend()
    return ax


def _scored(detector: Any, rows: Any) -> FloatArray:
    """Return the scores of rows that have one."""
    is_table = hasattr(detector, "schema_")
    found = detector.score(rows)["score"] if is_table else detector.score_samples(rows)
    values = np.asarray(found, dtype=np.float64)
    return values[~np.isnan(values)]


def weights(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Draw the weight of each member for each row, as a heat map.

    Parameters
    ----------
    explanation : Explanation
        Explanation of the rows, from `FusedDetector.explain`.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = _axes(ax)
    image = ax.imshow(explanation.weights, aspect="auto", cmap="cividis", interpolation="nearest")
    _name_ticks(ax.xaxis, explanation.member_names)
    ax.tick_params(axis="x", labelrotation=90)
    ax.set_ylabel("row")
    ax.figure.colorbar(image, ax=ax, label="weight")
    return ax


def explanation(
    explanation: Explanation, row: int = 0, *, n_features: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how much the most unusual features lower the score of one row.

    Parameters
    ----------
    explanation : Explanation
        Explanation of rows, from `FusedDetector.explain`.
    row : int, default=0
        Position among the explained rows.
    n_features : int, default=10
        Most features to show, the most unusual first.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    if not -len(explanation) <= row < len(explanation):
        raise InvalidInputError(
            f"row must be one of the {len(explanation)} rows explained. Got row={row}."
        )
    ax = _axes(ax)
    costs = explanation.attributions[row]
    top = np.argsort(-costs, kind="stable")[:n_features]
    colours = [ALARM if cost > 0 else QUIET for cost in costs[top]]
    ax.barh(np.arange(len(top)), costs[top], color=colours)
    _name_ticks(ax.yaxis, [explanation.feature_names[j] for j in top])
    ax.invert_yaxis()
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel("what the score would gain at the nearest normal value")
    state = "anomaly" if explanation.is_anomaly[row] else "normal"
    ax.set_title(f"{state}: score {explanation.score[row]:.3g}, threshold {explanation.offset:.3g}")
    return ax


def timeline(
    scores: ArrayLike,
    *,
    time: ArrayLike | None = None,
    y: ArrayLike | None = None,
    offset: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw scores over time, with alarms and known events.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the samples in order, such as ``stream.score_run(samples)``; NaN leaves a gap.
    time : array-like of shape (n,), default=None
        Times of the samples, numbers or dates; None counts samples.
    y : array-like of shape (n,), default=None
        Labels of the samples; the background of samples with -1 is coloured.
    offset : float, default=None
        The threshold: scores below it are alarms.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    values = np.asarray(scores, dtype=np.float64)
    places = np.arange(len(values)) if time is None else np.asarray(time)
    labels = None if y is None else np.asarray(y)
    for name, array in (("scores", values), ("time", places), ("y", labels)):
        if array is not None and array.shape != (len(values),):
            raise InvalidInputError(
                f"{name} must have one value per sample, shape ({len(values)},). "
                f"Got shape {array.shape}."
            )
    ax = _axes(ax)
    ax.plot(places, values, color=QUIET, linewidth=0.8)
    if labels is not None:
        edges = np.flatnonzero(np.diff(np.r_[False, labels < 0, False]))
        for i, (start, stop) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
            until = places[min(stop, len(places) - 1)]
            label = None if i else "known event"
            ax.axvspan(places[start], until, color=NORMAL, alpha=0.15, linewidth=0, label=label)
    if offset is not None:
        below = values < offset
        ax.plot(places[below], values[below], ".", color=ALARM, markersize=3, label="alarm")
        ax.axhline(offset, color=INK, linestyle="--", label=f"threshold {offset:.3g}")
    ax.set_ylabel("score, higher = more normal")
    ax.set_xlabel("sample" if time is None else "time")
    if labels is not None or offset is not None:
        ax.legend()
    return ax


def agreement(member_scores: ArrayLike, names: Sequence[str], *, ax: Axes | None = None) -> Axes:
    """Draw the rank correlation between the scores of members, as a heat map.

    Parameters
    ----------
    member_scores : array-like of shape (n, d)
        Scores of n rows by d members, such as ``detector.transform(X)``.
    names : sequence of str
        Names of the members, such as ``detector.get_feature_names_out()``.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    S = _finite(member_scores, "member_scores", 2)
    _check_names(names, S.shape[1])
    ax = _axes(ax)
    R = rank_correlation(S)
    image = ax.imshow(R, cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest")
    for i, j in np.ndindex(*R.shape) if len(R) <= 12 else ():  # of more, figures are too small
        colour = "white" if abs(R[i, j]) > 0.7 else INK
        ax.text(j, i, f"{R[i, j]:.2f}", ha="center", va="center", color=colour, fontsize="x-small")
    _name_ticks(ax.xaxis, names)
    _name_ticks(ax.yaxis, names)
    ax.tick_params(axis="x", labelrotation=90)
    ax.figure.colorbar(image, ax=ax, label="rank correlation")
    return ax


def critical_difference(
    table: ArrayLike, names: Sequence[str], *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the mean ranks of systems, the best on top, with bars of half the critical difference.

    Two systems differ significantly in Nemenyi's test if their bars do not overlap. Systems whose
    bars overlap that of the best one have its colour.

    Parameters
    ----------
    table : array-like of shape (n_sets, n_systems)
        Results of each system on each set; higher is better, NaN for a missing result.
    names : sequence of str
        Names of the systems.
    alpha : float, default=0.05
        Significance level of the test.
    ax : Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ranks = mean_ranks(table)
    _check_names(names, len(ranks))
    gap = nemenyi(len(ranks), len(np.asarray(table)), alpha)
    ax = _axes(ax)
    order = np.argsort(ranks, kind="stable")
    for place, i in enumerate(order):
        colour = NORMAL if ranks[i] - ranks[order[0]] <= gap else QUIET
        ax.errorbar(ranks[i], place, xerr=gap / 2, fmt="o", color=colour, capsize=4)
    _name_ticks(ax.yaxis, [names[i] for i in order])
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)
    ax.set_xlabel(f"mean rank, 1 = best (critical difference {gap:.2f})")
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    pyplot = needed("matplotlib.pyplot", "to draw", "plot")
    return pyplot.subplots(layout="constrained")[1]


def _name_ticks(axis: Any, names: Sequence[str]) -> None:
    """Name the positions 0, 1, ... of an axis."""
    # a dollar sign in a name is no formula
    axis.set_ticks(range(len(names)), [str(name).replace("$", r"\$") for name in names])


def _finite(values: ArrayLike, name: str, n_axes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != n_axes or not array.size or not np.isfinite(array).all():
        raise InvalidInputError(
            f"{name} must hold finite numbers in {n_axes} dimension(s). Got shape {array.shape}."
        )
    return array


def _check_names(names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise InvalidInputError(f"names must name all {count} columns. Got {len(names)} names.")
