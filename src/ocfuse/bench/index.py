"""The index of a folder of results: what is there, how it was made, what to know."""

from collections.abc import Mapping, Sequence
from typing import Any

from ocfuse.bench.consistency import (
    auc_below_gmean,
    published_contradictions,
    published_single_above_members,
)
from ocfuse.bench.limits import unsolved
from ocfuse.bench.measures import DIGITS, RATE
from ocfuse.bench.paper import SETS
from ocfuse.bench.splits import KNOWN, TRAIN, VALIDATION

#: What a reader must know before the figures.
DISCLOSURES = (
    "The rows of the lp fusions (Pure, Non-pure, Previous) have weights that are not negative, as "
    'is our default; the rows ", signed" have the whole ball, which the formula of the paper '
    "implies. The first was made the headline after one result on the test had been seen, and is "
    "the one more favourable to the paper; so both are shown.",
    "Members have the whole grid of the paper: three widths of SVDD and GP; three widths and 2, 6, "
    "10, ... directions of KPCA; and one to five components of the mixture, by the criterion, "
    "which is ours: the paper does not give any. One of each family is chosen; of equal ones the "
    "middle of the grid, neither end. The percentile rho of the min-max, which the paper searches "
    "from 1 to 10, is not searched: it is 5.",
    "RPAU, the locality and the number of known anomalies have no public formula or figure: ours "
    "are reconstructions (`docs/errata.md`). The rows of Fatemifar et al. minimise our "
    "reconstruction of RPAU, and say as much about it as about their method.",
    "The rivals (Fatemifar et al., DEOD, FNDF, RAEOCSVM) are reconstructed from abstracts; their "
    "printed figures are quoted from their papers, with other splits.",
    "Thresholds come from validation normals alone, which have chosen members and p before, so "
    "that the rate of false alarms is not promised strictly; and some sets have few "
    "(`account.md`). Some sets have rows of the test that equal training rows (there too). No "
    "label of the test reaches any choice (`tests/bench/test_paper.py`). What is known in "
    "hindsight (best threshold, candidates, weights fitted on the test) is in tables of its own, "
    "and only explains differences.",
)


def index(
    results: Sequence[dict[str, Any]],
    pages: Sequence[tuple[str, str]],
    about: Mapping[str, str],
) -> str:
    """Return the index as Markdown.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.
    pages : sequence of (str, str)
        Names and titles of the pages.
    about : mapping
        Facts about the run.

    Returns
    -------
    str
        Markdown.
    """
    facts = {**about, **_protocol(results)}
    parts = [
        "# The paper's evidence, reproduced",
        "Made by `ocfuse bench paper`; do not edit. Every table of arXiv 2411.06406 that needs no "
        "video, recomputed on the same sets, beside the printed figures. Each table is also there "
        "as CSV (`csv/`) and LaTeX (`latex/`). What it comes to is told in `docs/reproduction.md`.",
        "## Pages",
        "\n".join(f"- [{title}]({name}.md)" for name, title in pages),
        "## What to know",
        "\n".join(f"{i}. {text}" for i, text in enumerate(DISCLOSURES, 1)),
        "## Checks",
        "\n".join(f"- {text}" for text in checks(results)),
        "## Where and how",
        "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in facts.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def checks(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return what was checked of the results, in sentences.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.

    Returns
    -------
    list of str
        Sentences.
    """
    kept = [record for record in results if "failure" not in record]
    auc = [record["auc"] for record in kept]
    rounding = 0.5 * 10.0**-DIGITS
    n_broken = sum(
        int(auc_below_gmean(auc, [record[m] for record in kept], rounding=rounding).sum())
        for m in ("gmean", "best_gmean")
    )
    printed = dict.fromkeys(
        f"{c.system} on {c.set_name} (AUC {c.auc:g}, G-mean {c.gmean:g})"
        for c in published_contradictions()
    )
    failed = [record for record in results if "failure" in record]
    reasons = dict.fromkeys(f"{r['system']} on {r['set']}: {r['failure']}" for r in failed)
    above = published_single_above_members()
    most = max(above, key=lambda c: c.single - c.member)
    return [
        f"AUC >= G-mean² in {2 * len(kept) - n_broken} of {2 * len(kept)} results of ours, at the "
        f"fixed and at the best threshold. Printed cells that break it: {', '.join(printed)}.",
        f"The printed AUC of Single-best is above those of all four printed members, one of which "
        f"it should be, in {len(above)} of {2 * len(SETS)} cells, by up to "
        f"{most.single - most.member:.1f} points ({most.table} on {most.set_name}: "
        f"{most.single:g}, at most {most.member:g}). A choice in every repetition explains little "
        "of that: perhaps it was made among other candidates, or in hindsight.",
        unsolved(results),
        f"{len(failed)} of {len(results)} results are failures."
        + "".join(f" {reason}." for reason in reasons),
    ]


def _share(value: float) -> str:
    return f"{100 * value:g} %"


def _protocol(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    seeds = sorted({record["seed"] for record in results})
    return {
        "repetitions": f"{len(seeds)} (seeds {', '.join(map(str, seeds))})",
        "sets": ", ".join(dict.fromkeys(record["set"] for record in results)),
        "normals": f"{_share(TRAIN)} to learn from, {_share(VALIDATION)} for validation, the "
        "others for the test",
        "anomalies": f"all for the test; non-pure: {_share(KNOWN)} are known, half of them for "
        "learning and half for validation",
        "features": "gaps filled by medians, then standardised, both on the training normals",
        "threshold": f"conformal, {_share(RATE)} false alarms, from validation normals",
    }
