"""Part "pure": learning from normals only, 60 % of them."""

import numpy as np

from benchmarks.accuracy.choice import choice_table, share_closed
from benchmarks.accuracy.results import Results, run_variants
from benchmarks.accuracy.sets import all_sets
from benchmarks.accuracy.systems import DEFAULT, SUM
from benchmarks.accuracy.tables import failure_table, overview, per_set, shown_systems
from benchmarks.report import Report, Target
from ocfuse.lab.paper import Cell
from ocfuse.lab.paper.ranking import critical_difference_diagram
from ocfuse.stats import compare, mean_ranks

SEEDS = 5
LEVEL, CLOSED, WORST = 0.01, 0.75, -3.0

METHOD = """
{seeds} splits of the normals, at most 1,000, into {protocol} for learning, threshold and test;
further normals, up to 1,000 in all, and all anomalies, up to 1,000, join the test. Gaps are filled
by training medians; rivals get standardised rows. Every system sees the same rows and has its
threshold set on the same validation normals. All members, rules and fusions share the members of
the default detector, fitted once; `FusedDetector()` is fitted anew, as a user would. The five
detectors of PyOD are LOF 10 and 30, kNN 5, isolation forest and a mixture of one component; AOM and
MOA, which need equal buckets, have LOF 20 as a sixth. CPU seconds on one thread; those of a fusion
include its members, those of a member are its share.
"""


def run(quick: bool, jobs: int) -> Report:
    return report("60/20/20", "Learning from normals only", quick, jobs)


def report(protocol: str, title: str, quick: bool, jobs: int) -> Report:
    """Run one protocol and report on it."""
    seeds = range(1 if quick else SEEDS)
    cells = [Cell("pure", protocol, name, seed) for name in all_sets(quick) for seed in seeds]
    results = run_variants(cells, jobs)[protocol]
    names = shown_systems(results)
    heading = f"Mean ranks in AUC over {len(results.sets)} sets, {protocol}"
    picture = critical_difference_diagram(
        results.table(names), names, highlight=[DEFAULT], title=heading
    )
    return Report(
        f"{title}: {protocol}",
        METHOD.format(seeds=len(seeds), protocol=protocol).strip(),
        targets(results),
        [
            *(overview(source, part) for source, part in results.by_source().items()),
            choice_table(results),
            per_set("AUC, %, set by set", results),
            failure_table(results),
        ],
        results.record(),
        {f"critical-difference-{protocol.replace('/', '-')}.svg": picture},
    )


def targets(results: Results) -> list[Target]:
    """Return the promises of the default, each with what was found."""
    auc = results.column(DEFAULT)
    closed = share_closed(results, auc)
    gain = auc - results.column(SUM)
    worst = int(np.nanargmin(gain))
    return [
        *_first(results),
        *_separated(results),
        Target(
            f"{CLOSED:.0%} of the way from the sum rule to the best member of each set",
            f"{closed:.0%}",
            closed >= CLOSED,
        ),
        Target(
            f"no set more than {-WORST:g} points of AUC below the sum rule",
            f"{gain[worst]:+.1f} on {results.sets[worst]}",
            bool(gain[worst] >= WORST),
        ),
    ]


def _first(results: Results) -> list[Target]:
    """Compare with every member, rule and rival by mean and by mean rank."""
    others = results.of("member", "rule", "rival")
    # on the sets where the other did not fail
    gains = {n: compare(results.column(DEFAULT), results.column(n)).mean_difference for n in others}
    nearest = min(gains, key=lambda name: gains[name])
    rank = mean_ranks(results.table([DEFAULT, *others]))
    second = 1 + int(np.argmin(rank[1:]))
    whom = "every member, rule and rival"
    return [
        Target(
            f"first in mean AUC among {whom}",
            f"{results.column(DEFAULT).mean():.2f}; {gains[nearest]:+.2f} against {nearest}",
            gains[nearest] > 0,
        ),
        Target(
            f"first in mean rank among {whom}",
            f"{rank[0]:.2f}; next {others[second - 1]}, {rank[second]:.2f}",
            bool(rank[0] < rank[second]),
        ),
    ]


def _separated(results: Results) -> list[Target]:
    """Test the default against the sum rule, LSCP and each member, both-sided."""
    found = []
    for title, names in {
        "the sum rule": [SUM],
        "LSCP": ["PyOD LSCP"],
        "each single member": results.of("member"),
    }.items():
        tests = {n: compare(results.column(DEFAULT), results.column(n)) for n in names}
        # a loss, however significant, is no success
        worst = max(tests, key=lambda n: tests[n].p_value if tests[n].mean_difference > 0 else 2)
        test = tests[worst]
        measured = f"p = {test.p_value:.2g}, {test.mean_difference:+.2f}"
        found.append(
            Target(
                f"better than {title}, p < {LEVEL:g}",
                measured + (f" ({worst})" if len(names) > 1 else ""),
                test.p_value < LEVEL and test.mean_difference > 0,
            )
        )
    return found
