"""Choosing among our systems without looking at the set that judges the choice."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.results import Results, means
from benchmarks.accuracy.sets import family
from benchmarks.accuracy.systems import SUM
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Table
from ocfuse.stats import compare


@dataclass(frozen=True)
class Choice:
    """What was chosen for every set from the sets of other families, and its AUC there."""

    names: list[str]
    auc: FloatArray


def oracle(results: Results) -> FloatArray:
    """Return the AUC of the best single member of each set, known only afterwards."""
    return np.asarray(np.nanmax(results.table(results.of("member")), axis=1))


def share_closed(results: Results, auc: FloatArray) -> float:
    """Return which share of the way from the sum rule to that oracle is covered."""
    ran = np.isfinite(auc)
    low, high = results.column(SUM)[ran].mean(), oracle(results)[ran].mean()
    return float((auc[ran].mean() - low) / (high - low)) if high > low else np.nan


def chosen_elsewhere(results: Results, candidates: list[str]) -> Choice:
    """Take for every set the candidate with the best mean AUC on other families."""
    table = results.table(candidates)
    families = np.array([family(name) for name in results.sets])
    picked = []
    for own in families:
        others = table[families != own]
        picked.append(int(np.nanargmax(means(others))) if len(others) else 0)
    return Choice([candidates[j] for j in picked], table[np.arange(len(table)), picked])


def choice_table(results: Results) -> Table:
    """Tell what choosing the best of ours elsewhere gives, against the best in hindsight."""
    kinds = {
        "rules": results.of("rule"),
        "rules and fusions": results.of("rule", "fusion"),
        "all of ours": results.of("rule", "fusion", "detector"),
    }
    rows = []
    for kind, candidates in kinds.items():
        choice = chosen_elsewhere(results, candidates)
        against = compare(choice.auc, results.column(SUM))
        rows.append(
            [
                kind,
                f"{choice.auc.mean():.2f}",
                f"{means(results.table(candidates)).max():.2f}",
                f"{against.mean_difference:+.2f}",
                f"{against.p_value:.2g}",
                f"{share_closed(results, choice.auc):.0%}",
                ", ".join(f"{name} ({n})" for name, n in Counter(choice.names).most_common()),
            ]
        )
    header = ["candidates", "AUC", "in hindsight", "against sum", "p", "closed", "chosen (sets)"]
    note = (
        "For every set the candidate that is best in the mean over the sets of all other families "
        "(sets of one source are one family) is used: what a choice of the default is worth on "
        "sets that it has not seen."
    )
    return Table("Chosen on other sets", header, rows, note)
