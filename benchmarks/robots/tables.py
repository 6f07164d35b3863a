"""Figures of systems as tables."""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.report import Table
from benchmarks.robots.measures import Figures, mean_area
from ocfuse.stats import SkillingsMack, skillings_mack, wilcoxon_holm
from ocfuse.vision.trials import TYPES

RESAMPLES = 10_000
LEVELS = ("frame", "run")


def type_names(types: Iterable[str]) -> list[str]:
    """Return headings, such as "3 drop"; "-1" is the one type of runs that have none."""
    return [f"{kind} {TYPES[int(kind)]}" if int(kind) in TYPES else "all" for kind in types]


def auc_table(found: Sequence[Figures], view: str) -> Table:
    """Return areas under the ROC curve by type, of frames and of runs."""
    rows = []
    for figures in found:
        cells = [figures["name"]]
        for level in LEVELS:
            values = [kind[level]["auc"] for kind in figures["types"].values()]
            cells += [f"{v:.1f}" for v in [*values, mean_area(figures, level)]]
        rows.append(cells)
    header = ["system"]
    for level in LEVELS:
        header += [f"{level}s: {name}" for name in [*type_names(found[0]["types"]), "mean"]]
    return Table(f"AUC-ROC, %: {view}", header, rows)


def precision_table(found: Sequence[Figures], view: str) -> Table:
    """Return areas under precision and recall; the first row is what chance has."""
    chance = ["chance (prevalence)"]
    header = ["system"]
    for level in LEVELS:
        kinds = found[0]["types"].values()
        chance += [f"{kind[level]['prevalence']:.1f}" for kind in kinds]
        header += [f"{level}s: {name}" for name in type_names(found[0]["types"])]
    rows = [
        [
            figures["name"],
            *(f"{k[level]['ap']:.1f}" for level in LEVELS for k in figures["types"].values()),
        ]
        for figures in found
    ]
    return Table(f"AUC-PR of the anomalies, %: {view}", header, [chance, *rows])


def alarm_table(found: Sequence[Figures], view: str) -> Table:
    """Return what the thresholds do: false alarms, anomalies found, and how soon."""
    rows = []
    for figures in found:
        alarms = figures["alarms"]
        normal = np.array(alarms["false alarms"])
        rows.append(
            [
                figures["name"],
                f"{normal.mean():.1f} ({normal.min():.0f} to {normal.max():.0f})",
                on_before_text(alarms),
                *map(delay_text, alarms["types"].values()),
            ]
        )
    header = ["system", "false alarms, % of frames", "on before", *type_names(found[0]["types"])]
    return Table(f"Alarms: {view}", header, rows)


def on_before_text(alarms: Figures) -> str:
    """Say how many anomalies began while an alarm was on."""
    types = alarms["types"].values()
    return f"{sum(t['on before'] for t in types)} of {sum(t['anomalies'] for t in types)}"


def delay_text(kind: Figures) -> str:
    """Say in how many of the other anomalies an alarm was raised, and after how long."""
    delays = [delay for delay in kind["delays"] if delay is not None]
    digits = 1 if kind["unit"] == "s" else 0
    soon = f", {np.median(delays):.{digits}f} {kind['unit']}" if delays else ""
    return f"{kind['found']} of {len(kind['delays'])}{soon}"


def kind_table(found: Sequence[Figures], view: str, unseen: Sequence[str]) -> Table:
    """Return the AUC of frames by kind; stars are for those that no choice has seen."""
    kinds = list(found[0]["kinds"])
    rows = [
        [figures["name"], *(f"{figures['kinds'][kind]:.1f}" for kind in kinds)] for figures in found
    ]
    header = ["system", *(f"{kind}*" if kind in unseen else kind for kind in kinds)]
    return Table(f"Frame-level AUC-ROC by kind, %: {view}", header, rows)


def rank_table(found: Sequence[Figures], view: str, ours: int) -> Table:
    """Rank systems on every anomalous run; say if they differ, and which from ours."""
    by_run = np.array([figures["runs"] for figures in found]).T
    by_type = np.array(
        [[k["frame"]["auc"] for k in figures["types"].values()] for figures in found]
    ).T
    whole = skillings_mack(by_run, n_resamples=RESAMPLES, random_state=0)
    tests = [whole]
    if len(by_type) > 1:
        tests.append(skillings_mack(by_type, n_resamples=RESAMPLES, random_state=0))
    pairs = {pair.second: pair for pair in wilcoxon_holm(by_run, control=ours)}
    rows = []
    for j, figures in enumerate(found):
        cells = ["", "", ""]
        if j in pairs:
            p = pairs[j]
            cells = [
                f"{p.mean_difference:+.1f}",
                f"{p.wins} / {p.ties} / {p.losses}",
                f"{p.adjusted_p_value:.2g}",
            ]
        ranks = [f"{test.mean_ranks[j]:.1f}" for test in tests]
        rows.append([figures["name"], *ranks, *cells])
    words = (
        f"Skillings-Mack over {whole.n_sets} anomalous runs (AUC of the anomalous frames of each "
        f"against all frames of the normal test runs): {test_text(whole)}. "
        + "".join(
            f"Over the {t.n_sets} types, as in the paper: {test_text(t)}. " for t in tests[1:]
        )
        + "On the right, ours against each: Wilcoxon's test over the runs, adjusted by Holm."
    )
    ranked = ["mean rank, runs", "mean rank, types"][: len(tests)]
    header = ["system", *ranked, "ours above by", "wins / ties / losses", "p"]
    return Table(f"Ranks: {view}", header, rows, words)


def test_text(test: SkillingsMack) -> str:
    return (
        f"T = {test.statistic:.1f}, {test.df} degrees of freedom, "
        f"p = {test.resampled_p_value:.2g} by {RESAMPLES:,} resamples"
    )
