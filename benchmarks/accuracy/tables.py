"""Tables of a variant: means, ranks, wins and tests, set by set, failures."""

import numpy as np

from benchmarks.accuracy.choice import oracle, share_closed
from benchmarks.accuracy.results import Results, means
from benchmarks.accuracy.systems import DEFAULT, SUM
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Table
from ocfuse.stats import compare, mean_ranks, skillings_mack

RESAMPLES = 10_000
#: Shown set by set, beside the defaults, the two best members and the rivals.
SHOWN = (SUM, "aom", "local-lp 8/7", "competence", "single-best")


def overview(title: str, results: Results) -> Table:
    """Compare all systems on all sets, the best mean AUC first."""
    names = results.systems
    ranks = dict(zip(names, mean_ranks(results.table(names)), strict=True))
    order = sorted(names, key=lambda name: -np.nan_to_num(_mean(results, name)))
    rows = [_row(results, name, ranks[name]) for name in order]
    best = oracle(results)
    empty = [""] * 7
    rows.append(["*best member of each set*", "", f"{best.mean():.2f}", *empty, "100%", "", ""])
    header = ["system", "kind", "AUC", "rank", "G-mean", "false alarms", "AUC-PR"]
    header += ["against it", "p", "worst against sum", "closed", "fit", "score"]
    return Table(title, header, rows, _note(results))


def _row(results: Results, name: str, rank: float) -> list[str]:
    auc = results.column(name)
    shown = f"**{name}**" if name == DEFAULT else name
    if np.isnan(auc).all():
        return [shown, results.groups[name], "failed", *[""] * 10]
    low = np.nanmin(auc - results.column(SUM))
    failed = int(np.isnan(auc).sum())
    return [
        shown,
        results.groups[name],
        f"{_mean(results, name):.2f}" + (f", {failed} sets failed" if failed else ""),
        f"{rank:.2f}",
        f"{_mean(results, name, 'gmean'):.1f}",
        f"{_mean(results, name, 'false_alarms'):.1f}",
        f"{_mean(results, name, 'ap'):.1f}",
        *against_default(results, name),
        f"{low:+.1f}",
        f"{share_closed(results, auc):.0%}",
        f"{_mean(results, name, 'fit'):.2f} s",
        f"{_mean(results, name, 'score'):.2f} s",
    ]


def against_default(results: Results, name: str, measure: str = "auc") -> list[str]:
    """Return wins, ties and losses of the default against a system, and the p-value."""
    ours, theirs = results.column(DEFAULT, measure), results.column(name, measure)
    if name == DEFAULT or np.isnan(ours - theirs).all():
        return ["", ""]
    found = compare(ours, theirs)
    return [f"{found.wins}/{found.ties}/{found.losses}", f"{found.p_value:.2g}"]


def _note(results: Results) -> str:
    test = skillings_mack(results.table(results.systems), n_resamples=RESAMPLES, random_state=0)
    return (
        f"Means over the sets, in %. Prevalence of anomalies, the AUC-PR of chance: "
        f"{results.prevalence.mean():.1f}. Rank: mean rank in AUC among all rows. G-mean at the "
        "threshold for 5 % false alarms on the validation normals, and the false alarms that "
        "came of it. Against it: wins/ties/losses of the default in AUC, and Wilcoxon's p. "
        "Closed: share of the way from the sum rule to the best member of each set. Skillings-Mack "
        f"over all: T = {test.statistic:.1f}, {test.df} degrees of freedom, p = {test.p_value:.2g} "
        f"({test.resampled_p_value:.2g} resampled)."
    )


def shown_systems(results: Results) -> list[str]:
    """Return the systems that are shown set by set and in the picture."""
    members = sorted(results.of("member"), key=lambda name: -_mean(results, name))[:2]
    ours = [*results.of("detector"), *(name for name in SHOWN if name in results.groups)]
    return [*ours, *members, *results.of("rival")]


def per_set(title: str, results: Results, measure: str = "auc") -> Table:
    """Show the main systems set by set."""
    names = shown_systems(results)
    best = oracle(results)
    table = results.table(names, measure)
    rows = [
        [name, *_marked(row), f"{top:.1f}"]
        for name, row, top in zip(results.sets, table, best, strict=True)
    ]
    rows.append(["**mean**", *(f"**{v:.2f}**" for v in means(table)), f"**{best.mean():.2f}**"])
    return Table(title, ["set", *names, "best member"], rows, "Bold: the highest of the row.")


def failure_table(results: Results) -> Table:
    """List what failed, and how."""
    rows = [
        [name, set_name, reason.replace("|", "/"), str(count)]
        for (name, set_name, reason), count in results.failures.items()
    ]
    header = ["system", "set", "error", "splits"]
    return Table("Failures", header, rows or [["none", "", "", ""]])


def _marked(row: FloatArray) -> list[str]:
    top = np.nanmax(row)
    return [f"**{v:.1f}**" if v == top else "failed" if np.isnan(v) else f"{v:.1f}" for v in row]


def _mean(results: Results, name: str, measure: str = "auc") -> float:
    return float(means(results.column(name, measure)[:, np.newaxis])[0])
