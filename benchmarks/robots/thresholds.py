"""What our detectors' alarms do under three rules for their threshold."""

import warnings
from collections.abc import Mapping

import numpy as np

from benchmarks.report import Table
from benchmarks.robots.measures import RATE, Figures, alarms_of
from benchmarks.robots.our_systems import Learned
from benchmarks.robots.recordings import Recordings
from benchmarks.robots.tables import delay_text, on_before_text, type_names
from ocfuse.exceptions import FewSamplesWarning
from ocfuse.scores import ConformalCalibrator, conformal_threshold

#: The rule of the library, and of the targets.
BY_RUN = "by run: held-out training runs and validation runs"
#: Figures of alarms by what a detector sees and by rule.
Alarms = dict[str, dict[str, Figures]]


def offsets(learned: Learned, data: Recordings) -> dict[str, float]:
    """Return thresholds at the nominal rate, from normal runs that were held out."""
    validation = learned.scored[-1].validation
    scores = np.r_[learned.held_out, validation]
    run = np.r_[data.train.run, len(data.train.trials) + data.validation.run]
    with warnings.catch_warnings(action="ignore", category=FewSamplesWarning):
        by_run, _ = ConformalCalibrator().fit(scores, groups=run).threshold(RATE)
    return {
        BY_RUN: by_run,
        "by frame: the same runs": conformal_threshold(scores, RATE)[0],
        "by frame: validation runs, as all systems above": learned.scored[-1].offset,
    }


def by_rule(learned: Mapping[str, Learned], data: Recordings) -> Alarms:
    """Return what the alarms of each detector do under each rule."""
    return {
        view: {
            rule: alarms_of(part.scored[-1].test, offset, data)
            for rule, offset in offsets(part, data).items()
        }
        for view, part in learned.items()
    }


def threshold_table(found: Alarms, data: Recordings) -> Table:
    """Return false alarms on fresh runs, and which anomalies raise one, and when."""
    rows = [
        [view, rule, *cells(alarms)]
        for view, rules in found.items()
        for rule, alarms in rules.items()
    ]
    first = next(iter(next(iter(found.values())).values()))
    header = [
        "sees",
        "threshold",
        "false alarms, normal runs, % (of a run)",
        "false alarms, normal frames of the other runs, %",
        "anomalous frames found, %",
        "on before",
        *type_names(first["types"]),
    ]
    n_runs = len(data.train.trials) + len(data.validation.trials)
    note = (
        f"Nominal {100 * RATE:g} %. By run is the rule of `ConformalCalibrator` with groups, and "
        f"so of `PictureDetector` and `StreamDetector`: {n_runs} normal runs can promise "
        f"{100 / (n_runs + 1):.1f} % at best, and the threshold is the lowest score of all. "
        "On before: anomalies that began while an alarm was on. Of the others, by type: in how "
        "many an alarm was raised, and the median time to it."
    )
    return Table("Ours: thresholds, false alarms, detection", header, rows, note)


def cells(alarms: Figures) -> list[str]:
    by_run = alarms["false alarms"]
    elsewhere = alarms["false alarms elsewhere"]
    return [
        f"{np.mean(by_run):.2f} ({min(by_run):.0f} to {max(by_run):.0f})",
        "" if elsewhere is None else f"{elsewhere:.2f}",
        f"{alarms['frames found']:.1f}",
        on_before_text(alarms),
        *map(delay_text, alarms["types"].values()),
    ]
