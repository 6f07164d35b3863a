"""The data that the page's script draws, as JSON that is safe inside HTML."""

import json
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.explain import Reading
from ocfuse.report.data import Embedding, ReportData, compare_rates, count_p_values, tabulate, whose
from ocfuse.report.timeline import ChannelCourse, find_runs, find_sections, thin_out
from ocfuse.report.words import events
from ocfuse.scores.axis import ScoreAxis
from ocfuse.system.packages import slow


def to_json(data: ReportData) -> str:
    """Return the drawn data as JSON without the characters that end a script or begin a tag."""
    text = json.dumps(payload(data), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def payload(data: ReportData) -> dict[str, Any]:
    """Return the drawn data as lists, texts and numbers."""
    axis = ScoreAxis.over(data.normal_scores, data.scores)
    named = np.union1d(data.rows, data.embedding.rows[data.embedding.is_new])
    return {
        "n": len(data.scores),
        "nAnomalies": 0 if data.labels is None else int((data.labels < 0).sum()),
        "nNormals": 0 if data.labels is None else int((data.labels > 0).sum()),
        "ids": {str(row): data.ids[row] for row in named},
        "axis": {
            "centre": axis.centre,
            "unit": axis.unit,
            "low": axis.low,
            "high": axis.high,
            "ticks": axis.ticks(),
        },
        "histogram": {
            "normal": axis.count(data.normal_scores),
            "fresh": axis.count(data.scores),
        },
        "thresholds": _thresholds(data),
        "members": data.explanation.member_names,
        "nFeatures": len(data.explanation.feature_names),
        "details": _details(data),
        "map": _map(data.embedding),
        "agreement": None if data.agreement is None else _agreement(data.agreement),
        "trust": _trust(data),
        "timeline": _timeline(data),
    }


def _thresholds(data: ReportData) -> dict[str, Any]:
    table = tabulate(data)
    return {
        "value": table.values.tolist(),
        "rate": _rounded(table.rates, 6),
        "alarms": table.alarms.tolist(),
        "found": None if table.found is None else table.found.tolist(),
        "wrong": None if table.wrong is None else table.wrong.tolist(),
        "start": table.start,
    }


def _details(data: ReportData) -> list[dict[str, Any]]:
    """Return what unfolds under each ranked row."""
    why = data.explanation
    return [
        {
            "row": int(row),
            "weights": _rounded(why.weights[i], 4),
            "scores": _rounded(why.normalised_scores[i], 4),
            "base": _number(why.base[i], 5),
            "shares": _rounded(why.contributions[i], 5),
            "score": _number(why.score[i], 5),
            "p": _number(why.local_p[i], 3),
            "near": why.nearest_rows[i].tolist(),
            "far": _rounded(why.nearest_distances[i], 3),
            "readings": [
                [r.name, r.value, _usual(r), _number(r.cost, 5)] for r in data.readings[i]
            ],
            # of all features, also those that are not listed
            "cost": _number(why.attributions[i].sum(), 5),
        }
        for i, row in enumerate(data.rows)
    ]


def _usual(reading: Reading) -> str:
    """Return what is usual, and how the value stands to it."""
    known = reading.judgement
    if known is None:
        return ""
    remark = known.remark if known.is_unusual else "as usual"
    return ", ".join(filter(None, [known.usual, remark]))


def _map(embedding: Embedding) -> dict[str, Any]:
    points = embedding.points
    return {
        "x": _rounded(points[:, 0], 4),
        "y": _rounded(points[:, 1], 4),
        "isNew": embedding.is_new.astype(int).tolist(),
        "row": embedding.rows.tolist(),
        "score": embedding.scores.tolist(),
        "top": np.abs(embedding.weights).argmax(axis=1).tolist(),
        "p": _levels(embedding.local_p),
        "weights": [_levels(column) for column in embedding.weights.T],
    }


def _levels(values: FloatArray) -> dict[str, Any] | None:
    """Return values as 64 letters between two ends; None if they do not vary or are not there."""
    if np.isnan(values).any() or np.ptp(values) < 1e-6:
        return None
    low, high = values.min(), values.max()
    alphabet = f"{ascii_uppercase}{ascii_lowercase}{digits}-_"
    levels = np.round((values - low) / (high - low) * (len(alphabet) - 1)).astype(int)
    letters = "".join(alphabet[level] for level in levels)
    return {"low": _number(low, 4), "high": _number(high, 4), "levels": letters}


def _agreement(R: FloatArray) -> dict[str, Any]:
    """Return the correlations, and an order in which members that agree stand together."""
    if len(R) < 3:
        order = list(range(len(R)))
    else:
        distance = 1.0 - np.nan_to_num(R)[np.triu_indices(len(R), 1)]
        trees = slow("scipy.cluster.hierarchy")
        order = trees.leaves_list(
            trees.linkage(distance, "average", optimal_ordering=True)
        ).tolist()
    return {"values": _rounded(R, 3), "order": order}


def _trust(data: ReportData) -> dict[str, Any]:
    trust = compare_rates(data)
    return {
        "rates": _rounded(trust.rates, 5),
        "low": _rounded(trust.low, 5),
        "high": _rounded(trust.high, 5),
        "heldOut": _rounded(trust.held_out, 5),
        "fresh": _rounded(trust.fresh, 5),
        "pValues": count_p_values(data.p_values),
        "whose": whose(data),
    }


def _timeline(data: ReportData, most_events: int = 3000) -> dict[str, Any] | None:
    if data.times is None:
        return None
    labelled = None
    if data.labels is not None:  # labelled anomalies that follow each other, the longest runs
        runs = sorted(find_runs(data.times, data.labels < 0), key=len, reverse=True)[:most_events]
        labelled = [[float(data.times[run[0]]), float(data.times[run[-1]])] for run in runs]
    drawn = thin_out(data.times, data.scores)
    section = find_sections(data.times)[drawn]
    return {
        "time": data.times[drawn].tolist(),
        # not rounded: every point must lie on its side of the threshold
        "score": data.scores[drawn].tolist(),
        "breaks": (np.flatnonzero(np.diff(section)) + 1).tolist(),
        "isDate": data.is_date,
        "labelled": labelled,
        "events": [[event.start, event.end] for event in events(data)[:most_events]],
        "channels": [_channel(channel, data.times) for channel in data.channels],
    }


def _channel(channel: ChannelCourse, times: FloatArray) -> dict[str, Any]:
    """Return the course of a channel, of many rows the extremes, and what is usual of it."""
    gap = np.isnan(channel.values)
    drawn = thin_out(times, np.where(gap, channel.low, channel.values))
    low, high = (
        end[drawn] if len(end) > 1 else np.repeat(end, len(drawn))
        for end in (channel.low, channel.high)
    )
    return {
        "name": channel.name,
        "time": times[drawn].tolist(),
        "value": _rounded(channel.values[drawn], 6),
        "low": _rounded(low, 4),
        "high": _rounded(high, 4),
        "breaks": (np.flatnonzero(np.diff(find_sections(times)[drawn])) + 1).tolist(),
    }


def _rounded(values: FloatArray, digits: int) -> Any:
    """Return nested lists of numbers with so many significant digits, None for NaN."""
    if values.ndim > 1:
        return [_rounded(row, digits) for row in values]
    return [_number(value, digits) for value in values.tolist()]


def _number(value: float, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None
