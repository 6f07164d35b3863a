"""What the page says in plain words."""

import numpy as np
from scipy.stats import betabinom

from ocfuse.report.data import ReportData
from ocfuse.report.timeline import Event, find_events

#: As many alarms that normal rows raise more rarely than this are no chance.
RARE = 0.05
#: A share of alarms from which on the rows, not their anomalies, are the news.
MOST = 0.5
MANY_ALARMS = (
    "More than half of the rows raise an alarm. Check that units, columns and operating state are "
    "those of the training rows."
)
#: Half of normal rows have a p-value above 0.5; half of these rows are below this.
DRIFTED = 0.2
MINUS = "\N{MINUS SIGN}"


def headline(data: ReportData) -> str:
    """Say how many rows raise an alarm."""
    n, alarms = len(data.scores), int(data.is_alarm.sum())
    if not alarms:
        return f"None of the {count(n, 'row')} raises an alarm"
    return f"{alarms:,} of {count(n, 'row')} {'raises' if alarms == 1 else 'raise'} an alarm"


def verdict(data: ReportData) -> str:
    """Say whether there are more alarms than false alarms would explain."""
    n, alarms = len(data.scores), int(data.is_alarm.sum())
    expected = n * data.stated_rate
    by_chance = f"about {round(expected):,}" if expected >= 1 else "fewer than one"
    basis = (
        f"If every row were normal, {by_chance} would: the stated false-alarm rate is "
        f"{percent(data.stated_rate)}."
    )
    if not alarms:
        return f"{basis} None does."
    if alarms > MOST * n:
        return f"{basis} So many suggest that these rows come from another source or state."
    if _chance(data) < RARE:
        if expected < alarms / 2:
            return f"{basis} So most of these alarms are not chance."
        excess = round(alarms - expected)
        return (
            f"{basis} So about {excess:,} of them are more than chance, the others may be chance."
        )
    whole = "the alarm" if alarms == 1 else "the alarms, taken together,"
    return f"{basis} So {whole} may well be chance."


def _chance(data: ReportData) -> float:
    """Return how often normal rows alone raise as many alarms, or more.

    The rate of the threshold is itself uncertain, as in `compare_rates`: the number
    of alarms is beta-binomial.
    """
    n, alarms = data.n_independent, int(data.is_alarm.sum())
    k = min(data.stated_rate * (n + 1), n)
    return float(betabinom.sf(alarms - 1, len(data.scores), k, n + 1 - k))


def first_look(data: ReportData) -> str:
    """Say where to look first."""
    row = int(data.rows[0])
    readings = [r for r in data.readings[0] if r.cost > 0][:2]
    text = f"The lowest score has row {data.ids[row]}"
    if data.times is not None:
        text += f", at {time_text(float(data.times[row]), data.is_date)}"
    if readings:
        parts = [f"{r.name} is {r.value} (in the nearest normal row: {r.normal})" for r in readings]
        text += f": {' and '.join(parts)}"
    return f"{text}."


def label_words(data: ReportData) -> str | None:
    """Say how many labelled rows were judged rightly."""
    if data.labels is None or not data.labels.any():
        return None
    parts = []
    for sign, word, what in ((-1, "anomaly", "raise an alarm"), (1, "normal", "do, falsely")):
        chosen = data.labels == sign
        if chosen.any():
            hits = int((chosen & data.is_alarm).sum())
            parts.append(
                f"of {count(int(chosen.sum()), 'row')} labelled {word}, {hits:,} "
                f"({percent(hits / chosen.sum())}) {what}"
            )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def notes(data: ReportData) -> list[str]:
    """Say what limits the trust in this page."""
    lines = list(data.remarks)
    n_normal = len(data.normal_scores)
    if data.n_groups is not None:
        name = data.calibrator.group
        lines.append(
            f"The threshold rests on {count(n_normal, 'normal row')} of "
            f"{count(data.n_groups, name)}. Rows of one {name} are alike: rates, p-values and what "
            f"this page says of chance count {name}s, not rows, and are those of rows of a fresh "
            f"{name}; many alarms of one new {name} are one surprise."
        )
    # a threshold that the user moved says nothing about the number of rows
    is_lowest = data.offset <= data.normal_scores[0]
    if is_lowest and data.stated_rate > data.wanted_rate * (1 + 1e-9):
        lines.append(
            f"{basis(data)} are too few for the false-alarm rate that was asked for, "
            f"{percent(data.wanted_rate)}: the threshold stands for {percent(data.stated_rate)}."
        )
    n_left_out = data.calibrator.n_left_out_
    if n_left_out:
        lines.append(
            f"{count(n_left_out, 'training row')} far outside the others "
            f"{'was' if n_left_out == 1 else 'were'} not learned from. If normal, label "
            "such rows +1 and fit again: rows like them raise alarms."
        )
    if data.is_alarm.mean() > MOST:
        lines.append(MANY_ALARMS)
    elif np.median(data.p_values) < DRIFTED:
        lines.append(
            f"Half of these rows have a p-value below {np.median(data.p_values):.2g}; of normal "
            "rows it would be 0.5. Even ordinary rows look less normal than in training: "
            "conditions may have drifted."
        )
    return lines


def events(data: ReportData) -> list[Event]:
    """Return the events at the detector's threshold, the lowest score first."""
    if data.times is None:
        return []
    found = find_events(data.times, data.scores, data.is_alarm)
    return sorted(found, key=lambda event: float(data.scores[event.row]))


def basis(data: ReportData) -> str:
    """Return what the threshold rests on, in so far as it is independent."""
    name = "normal row" if data.n_groups is None else data.calibrator.group
    return count(data.n_independent, name)


def count(n: int, noun: str, several: str = "") -> str:
    """Return such as "1 row" or "1,200 rows"."""
    return f"{n:,} {noun if n == 1 else several or f'{noun}s'}"


def percent(share: float) -> str:
    """Return a share in per cent, with two digits that count."""
    digits = 0 if share >= 0.0995 or share == 0 else 1 if share >= 0.00995 else 2
    return f"{100 * share:.{digits}f} %"


def number(value: float) -> str:
    """Return a score with three decimals, or in short if these do not tell it from others."""
    text = f"{value:.3f}" if 0.01 <= abs(value) < 1e6 or value == 0 else f"{value:.2e}"
    return text.replace("-", MINUS)


def time_text(time: float, is_date: bool) -> str:
    """Return a time as people write it."""
    if not np.isfinite(time):
        return "unknown time"
    if not is_date:
        return f"{time:.10g}"
    return str(np.datetime64(int(time), "ms").astype("datetime64[s]")).replace("T", " ")
