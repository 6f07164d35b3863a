"""What the page says in plain words."""

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.explain import Reading
from ocfuse.report.data import ReportData
from ocfuse.report.timeline import TimelineEvent, find_events
from ocfuse.system.packages import slow

MANY_ALARMS = (
    "More than half of the rows raise an alarm. Check that units, columns and operating state are "
    "those of the training rows."
)


def headline(data: ReportData) -> str:
    """Say how many rows raise an alarm."""
    n, alarms = len(data.scores), int(data.is_alarm.sum())
    if not alarms:
        return f"None of the {count(n, 'row')} raises an alarm"
    return f"{alarms:,} of {count(n, 'row')} {'raises' if alarms == 1 else 'raise'} an alarm"


def verdict(data: ReportData) -> str:
    """Say whether there are more alarms than false alarms would explain, rows' labels counted."""
    n, alarms = len(data.scores), int(data.is_alarm.sum())
    expected = n * data.threshold_rate
    by_chance = f"about {round(expected):,}" if expected >= 1 else "fewer than one"
    basis = f"If every row were normal, {by_chance} would: {rate_words(data)}."
    if not alarms:
        return f"{basis} None does."
    others = data.may_be_normal
    left = int((data.is_alarm & others).sum())
    found = alarms - left
    sentences = [basis]
    if found:
        is_chance = _is_chance(data, found, n - int(others.sum()))
        whose = f"The {count(found, 'alarm')} of rows labelled anomaly {_are(found)}"
        sentences.append(f"{whose} {'no more than chance' if is_chance else 'not chance'}.")
    if left:
        is_normal = data.labels is not None and bool((data.labels[others] > 0).all())
        judge = _of_normals if is_normal else _of_others if found else _of_all
        sentences.append(judge(data, left, int(others.sum())))
    return " ".join(sentences)


def rate_words(data: ReportData) -> str:
    """Say which false-alarm rate was stated, and which one can be reached if it is another."""
    stated, reached = percent(data.stated_rate), percent(data.threshold_rate)
    text = f"the stated false-alarm rate is {stated}"
    if stated == reached:
        return text
    only = "only " if data.threshold_rate > data.stated_rate else ""
    return f"{text}, and with {basis(data)} {only}{reached} can be reached"


def certificate_words(data: ReportData) -> str:
    """Say with what confidence the rate of the threshold holds for this model."""
    found = data.calibrator.certificate(
        float(np.clip(data.stated_rate, 1e-9, 1 - 1e-9)), offset=data.offset
    )
    if np.isnan(found.at_most):
        return "How surely the rate holds is not known: neighbouring rows of one run are alike."
    return f"False alarms: {found}."


def _of_all(data: ReportData, alarms: int, n: int) -> str:
    """Judge the alarms of rows that may all be normal."""
    expected = n * data.threshold_rate
    if alarms > n / 2:
        return "So many suggest that these rows come from another source or state."
    if _is_chance(data, alarms, n):
        whole = "the alarm" if alarms == 1 else "the alarms, taken together,"
        return f"So {whole} may well be chance."
    if expected < alarms / 2:
        return "So most of these alarms are not chance."
    excess = round(alarms - expected)
    return f"So about {excess:,} of them are more than chance, the others may be chance."


def _of_others(data: ReportData, alarms: int, n: int) -> str:
    """Judge the alarms of rows without a label, beside those of labelled anomalies."""
    whole = "The other one" if alarms == 1 else f"The other {alarms:,}, taken together,"
    if _is_chance(data, alarms, n):
        return f"{whole} may well be chance."
    by_chance = round(n * data.threshold_rate)
    return f"{whole} {_are(alarms)} more than chance, which explains about {by_chance:,}."


def _of_normals(data: ReportData, alarms: int, n: int) -> str:
    """Judge the alarms of rows that are all labelled normal."""
    what = f"The {count(alarms, 'alarm')} of rows labelled normal {_are(alarms)}"
    if _is_chance(data, alarms, n):
        return f"{what} no more than the rate explains."
    why = "these rows differ from training, or labels are wrong"
    return f"{what} more than the rate explains: {why}."


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _is_chance(data: ReportData, alarms: int, n_rows: int, rare: float = 0.05) -> bool:
    """Return whether so many normal rows alone raise as many alarms, or more, not too rarely.

    The rate of the threshold is itself uncertain, as in `compare_rates`: the number
    of alarms is beta-binomial.
    """
    n = data.n_independent
    k = min(data.threshold_rate * (n + 1), n)
    return bool(slow("scipy.stats").betabinom.sf(alarms - 1, n_rows, k, n + 1 - k) >= rare)


def first_look(data: ReportData) -> str:
    """Say where to look first."""
    row = int(data.rows[0])
    readings = reasons(data, 0)
    text = f"The lowest score has row {data.ids[row]}"
    if data.times is not None:
        text += f", at {when(data, float(data.times[row]))}"
    if readings:
        parts = [f"{r.name} is {r.value} ({reason_words(r)})" for r in readings]
        text += f": {' and '.join(parts)}"
    return f"{text}."


def reasons(data: ReportData, i: int) -> list[Reading]:
    """Return the features of an explained row that are named first."""
    return [r for r in data.readings[i] if r.is_named][:2]


def reason_words(reading: Reading) -> str:
    """Say what is usual, or that the value is usual and only the combination is not."""
    if not reading.is_unusual:
        return "usual alone, unusual together with the others"
    return reading.words.removeprefix(f"{reading.value}, ")


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
    if is_lowest and data.threshold_rate > data.wanted_rate * (1 + 1e-9):
        lines.append(
            f"{basis(data)} are too few for the false-alarm rate that was asked for, "
            f"{percent(data.wanted_rate)}: the threshold stands for {percent(data.threshold_rate)}."
        )
    n_left_out = data.calibrator.n_left_out_
    if n_left_out:
        lines.append(
            f"{count(n_left_out, 'training row')} far outside the others "
            f"{'was' if n_left_out == 1 else 'were'} not learned from. If normal, label "
            "such rows +1 and fit again: rows like them raise alarms."
        )
    others = data.may_be_normal
    if others.any() and data.is_alarm[others].mean() > 0.5:
        lines.append(MANY_ALARMS)
    elif others.any() and np.median(data.p_values[others]) < 0.2:
        which = "these rows" if others.all() else "the rows that are not labelled anomaly"
        lines.append(
            f"Half of {which} have a p-value below {np.median(data.p_values[others]):.2g}; of "
            "normal rows it would be 0.5. Even ordinary rows look less normal than in training: "
            "conditions may have drifted."
        )
    return lines


def events(data: ReportData) -> list[TimelineEvent]:
    """Return the events at the detector's threshold, the lowest score first."""
    if data.times is None:
        return []
    if data.events is None:
        found = find_events(data.times, data.scores, data.is_alarm)
    else:
        found = [_event_of(data.times, data, rows) for rows in data.events]
    return sorted(found, key=lambda event: float(data.scores[event.row]))


def joined(data: ReportData) -> str:
    """Say which alarms are one event."""
    if data.events is not None:
        return "Events are made as `ocfuse watch` and the service make them."
    return (
        "Alarms with at most three quiet rows, and no pause of the recording, between them are one "
        "event, at the detector's own threshold."
    )


def _event_of(times: FloatArray, data: ReportData, rows: IntArray) -> TimelineEvent:
    lowest = int(rows[np.argmin(data.scores[rows])])
    n_alarms = int(data.is_alarm[rows].sum())
    return TimelineEvent(float(times[rows[0]]), float(times[rows[-1]]), n_alarms, lowest)


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
    return text.replace("-", "\N{MINUS SIGN}")


def when(data: ReportData, time: float) -> str:
    """Return a time of the rows as people write it."""
    if not np.isfinite(time):
        return "unknown time"
    if not data.is_date:
        return f"{time:.10g}"
    return str(np.datetime64(int(time), "ms").astype("datetime64[s]")).replace("T", " ")
