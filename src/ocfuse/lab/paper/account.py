"""The account in numbers: what agrees, how far figures can be trusted, and an index of results."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ocfuse.lab.paper.beside import GLASS, Records, set_order, summarise
from ocfuse.lab.paper.deviations import (
    FAR,
    FLOOR,
    MEASURES,
    REASONS,
    THRESHOLDS,
    Difference,
    evidence,
    reason_of,
)
from ocfuse.lab.paper.experiment import SETS
from ocfuse.lab.paper.published import (
    auc_below_gmean,
    published_contradictions,
    published_single_above_members,
    published_table,
)
from ocfuse.lab.paper.ranking import CONTRASTS, Ranking, contrast_sheet, measured, printed
from ocfuse.lab.paper.runner import DIGITS, RATE
from ocfuse.lab.paper.sheet import GAP, Bold, Cell, Sheet, number
from ocfuse.scores import conformal_threshold
from ocfuse.stats import mean_ranks
from ocfuse.tuning.search import PAPER_P

#: Groups of systems that the paper has, in words.
GROUPS = {
    "local": "local fusion (Pure, Non-pure)",
    "global": "global fusion (previous work)",
    "member": "members (GMM, SVDD, GP, KPCA)",
    "rule": "sum rule",
    "single": "single best",
    "detector": "LOF, isolation forest, ALP",
    "rival": "quoted rivals",
}
#: Fusions whose choices show what the criteria could tell.
JUDGED = {
    "Pure2 RPAU": "RPAU",
    "Pure2 pseudo-negative": "pseudo-negatives",
    "Non-pure2": "labels",
}


def deviation_sheets(cells: Sequence[Difference]) -> list[Sheet]:
    """Return the reasons with their counts, and the cells that are far off."""
    far = [(cell, reason_of(cell)) for cell in cells if cell.is_far]
    counts = Counter((reason.key, cell.measure) for cell, reason in far)
    summary: list[list[Cell]] = [
        [reason.key, *(str(counts[reason.key, m]) for m in MEASURES), reason.text]
        for reason in REASONS
        if any(counts[reason.key, m] for m in MEASURES)
    ]
    rows: list[list[Cell]] = [
        [
            cell.set_name,
            cell.system,
            MEASURES[cell.measure],
            number(cell.ours),
            number(cell.paper),
            number(cell.difference, sign="+"),
            number(abs(cell.difference) / cell.error, 1),
            number(abs(cell.difference) / cell.std, 1),
            reason.key,
            evidence(cell),
        ]
        for cell, reason in far
    ]
    header = ["set", "system", "measure", "ours", "paper", "difference", "standard errors"]
    return [
        Sheet("reasons", "Reasons", ["reason", "AUC", "G-mean", "in words"], summary),
        Sheet("deviations", "Cells", [*header, "deviations", "reason", "evidence"], rows),
    ]


def agreement_sheet(cells: Sequence[Difference]) -> Sheet:
    """Return how many cells agree, by the kind of system, without Glass."""
    rows: list[list[Cell]] = []
    kept = [cell for cell in cells if cell.set_name != GLASS]
    for measure in MEASURES:
        for group, words in GROUPS.items():
            found = [c for c in kept if (c.measure, c.group) == (measure, group)]
            if found:
                gaps = [cell.difference for cell in found]
                rows.append(
                    [
                        MEASURES[measure],
                        words,
                        str(len(found)),
                        str(sum(not cell.is_far for cell in found)),
                        str(sum(not cell.is_far_out for cell in found)),
                        number(fmean(gaps), sign="+"),
                        number(fmean(map(abs, gaps))),
                    ]
                )
    header = ["measure", "systems", "cells", "within two standard errors"]
    header += ["within two deviations", "mean difference", "mean absolute difference"]
    note = (
        "Standard error of the difference of two means over repetitions; the deviation of one "
        "repetition is a yardstick so wide that little can fall outside."
    )
    title = "Agreement with the printed figures, without Glass"
    return Sheet("agreement", title, header, rows, note)


def threshold_sheet(cells: Sequence[Difference]) -> Sheet:
    """Return how far printed G-means are from ours, by the rule that sets our threshold."""
    found = threshold_cells(cells)
    rows: list[list[Cell]] = []
    for group, words in {**GROUPS, "": "all"}.items():
        own = [c for c in found if group in ("", c.group)]
        if own:
            gaps = [fmean(abs(c.at[rule] - c.paper) for c in own) for rule in THRESHOLDS]
            shown = [number(gap, 1) for gap in gaps]
            best = min(range(len(gaps) - 1), key=gaps.__getitem__)
            marked = [Bold(text) if j == best else text for j, text in enumerate(shown)]
            rows.append([words, str(len(own)), *marked])
    note = (
        "Mean absolute difference of our G-mean and the printed one, in points, without Glass and "
        "quoted rivals. All rules but the last are fixed beforehand, on validation rows: rates of "
        "false alarms; equal errors, or the best G-mean, of validation normals and pseudo-"
        "negatives (the pure modes) or known anomalies (non-pure). Bold: the nearest of these."
    )
    header = ["systems", "cells", *THRESHOLDS.values()]
    return Sheet("thresholds", "How far the printed G-mean is from ours", header, rows, note)


def threshold_cells(cells: Sequence[Difference]) -> list[Difference]:
    """Return the G-means whose threshold is the paper's own: not those of quoted systems."""
    return [
        c
        for c in cells
        if c.measure == "gmean" and c.group in GROUPS and c.group != "rival"
        if c.set_name != GLASS
    ]


def account_page(results: Records, cells: Sequence[Difference]) -> tuple[str, list[Sheet]]:
    """Return the sentences of the account, as Markdown, and its sheets."""
    sheets = [agreement_sheet(cells)]
    sheets += [
        contrast_sheet(results, measure, f"Claims about pairs, {words}")
        for measure, words in MEASURES.items()
    ]
    sheets += limit_sheets(results)
    lines = [
        *_agreement(cells),
        *_places(results),
        _solvers(results),
        *_thresholds(cells),
        *_members(cells),
        *_beyond(cells),
        *limit_lines(results),
        *checks(results),
    ]
    return "\n".join(f"- {line}" for line in lines if line), sheets


def _agreement(cells: Sequence[Difference]) -> list[str]:
    parts = []
    for measure, words in MEASURES.items():
        found = [c for c in cells if c.measure == measure and c.set_name != GLASS]
        near = sum(not cell.is_far for cell in found)
        wide = sum(not cell.is_far_out for cell in found)
        parts.append(f"{near} of {len(found)} in {words} ({wide} within {FAR:g} deviations)")
    far = sum(cell.is_far for cell in cells if cell.set_name == GLASS)
    glass = sum(cell.set_name == GLASS for cell in cells)
    return [
        f"Cells within {FAR:g} standard errors of the difference, without Glass: "
        f"{', '.join(parts)}. Deviation: root mean square of ours and of the printed one, each of "
        f"one repetition, at least {FLOOR} points; the standard error is that of two means of such "
        "repetitions.",
        f"On Glass {far} of {glass} cells are further off." if glass else "",
    ]


def _places(results: Records) -> list[str]:
    """Return the mean rank of Pure2 among the paper's systems, printed and ours."""
    lines = []
    for name in ("rpau", "pseudo-negative"):
        for measure, words in MEASURES.items():
            ranking = Ranking(summarise(results, name, measure), published_table(name, measure))
            control = ranking.control()
            if control is not None:
                at = ranking.systems.index(control)
                ours, theirs = mean_ranks(ranking.table), mean_ranks(ranking.printed_table)
                lines.append(
                    f"Mean rank of {control}, {name}, {words}, of {len(ours)} systems: printed "
                    f"{_place(theirs, at)}; ours {_place(ours, at)}, first {ranking.best}."
                )
    return lines


def _place(ranks: Any, at: int) -> str:
    return f"{ranks[at]:.2f} (place {1 + int(np.sum(ranks < ranks[at]))})"


def _solvers(results: Records) -> str:
    """Return how far the two solvers of one problem are apart."""
    contrast = next(c for c in CONTRASTS if c.question == "solver")
    gaps = []
    for first, second in (printed(contrast, "auc"), measured(results, contrast, "auc")):
        apart = np.abs(first - second)
        gaps.append(f"{np.nanmax(apart):.2f}" if not np.isnan(apart).all() else "unknown")
    return (
        "Largest difference in AUC between the two solvers of the same problem (Pure1 and Pure2 "
        f"with RPAU, without Glass): printed {gaps[0]}, ours {gaps[1]}."
    )


def _thresholds(cells: Sequence[Difference]) -> list[str]:
    found = threshold_cells(cells)
    if not found:
        return []
    gaps = {rule: fmean(abs(c.at[rule] - c.paper) for c in found) for rule in THRESHOLDS}
    *before, last = [f"{gaps[rule]:.1f} ({words})" for rule, words in THRESHOLDS.items()]
    best = min(list(THRESHOLDS)[:-1], key=gaps.__getitem__)
    nearer = sum(abs(c.oracle - c.paper) < abs(c.at[best] - c.paper) for c in found)
    return [
        f"The printed G-mean is on average so many points from ours, by the rule of the threshold: "
        f"{', '.join(before)}; {last}. It is nearer to the best in hindsight than to the nearest "
        f"of the others in {nearer} of {len(found)} cells (without Glass and quoted rivals)."
    ]


def _members(cells: Sequence[Difference]) -> list[str]:
    found = [
        c
        for c in cells
        if (c.measure, c.group) == ("auc", "member") and not math.isnan(c.lowest)
        if c.set_name != GLASS
    ]
    if not found:
        return []
    under = sum(cell.paper < cell.lowest for cell in found)
    outside = sum(not cell.lowest - 1e-6 <= cell.ours <= cell.highest + 1e-6 for cell in found)
    return [
        f"Of {len(found)} printed AUC of members, {under} are below that of the worst of our "
        "candidates of the family, all of the printed grid; mean of ours less the printed ones "
        f"{fmean(cell.difference for cell in found):+.1f} points. Of ours, {outside} are outside "
        "the range of their own candidates, as none can be.",
    ]


def _beyond(cells: Sequence[Difference]) -> list[str]:
    found = [
        c for c in cells if c.measure == "auc" and not math.isnan(c.linear) and c.set_name != GLASS
    ]
    if not found:
        return []
    above = Counter(cell.set_name for cell in found if cell.paper > cell.linear + cell.std)
    where = ", ".join(f"{name} ({n})" for name, n in above.items()) or "none"
    return [
        f"Of {len(found)} printed AUC of fusions, {sum(above.values())} are more than a deviation "
        "above a linear combination of our four members with weights fitted on the test itself, "
        "which fusions of these members with one vector of weights can hardly pass (local ones "
        f"might): {where}."
    ]


def index(
    results: Records,
    pages: Sequence[tuple[str, str]],
    about: Mapping[str, str],
) -> str:
    """Return the index as Markdown: pages by name and title, disclosures, checks and facts."""
    disclosures = (
        "The rows of the lp fusions (Pure, Non-pure, Previous) have weights that are not "
        'negative, as is our default; the rows ", signed" have the whole ball, which the '
        "formula of the paper implies. The first was made the headline after one result on the "
        "test had been seen, and is the one more favourable to the paper; so both are shown.",
        "Members have the whole grid of the paper: three widths of SVDD and GP; three widths "
        "and 2, 6, 10, ... directions of KPCA; and one to five components of the mixture, by "
        "the criterion, which is ours: the paper does not give any. One of each family is "
        "chosen; of equal ones the middle of the grid, neither end. The norm p and the percentile "
        "rho of the min-max, from 1 to 10, are searched together; of equal ones the p nearest 2 "
        "is taken, and of these the middle rho.",
        "RPAU, the locality and the number of known anomalies have no formula or figure in any "
        "text that we could read: ours are reconstructions (`docs/errata.md`). The rows of "
        "Fatemifar et al. minimise our reconstruction of RPAU, and say as much about it as about "
        "their method.",
        "The rivals (Fatemifar et al., DEOD, FNDF, RAEOCSVM) are reconstructed from abstracts; "
        "their printed figures are quoted from their papers, with other splits.",
        "Thresholds come from validation normals alone, which have chosen members and p before,"
        " so that the rate of false alarms is not promised strictly; and some sets have few "
        "(`account.md`). Some sets have rows of the test that equal training rows (there too). "
        "No label of the test reaches any choice (`tests/lab/paper/test_paper.py`). What is "
        "known in hindsight (best threshold, candidates, weights fitted on the test) is in "
        "tables of its own, and only explains differences.",
    )
    facts = {**about, **_protocol(results)}
    parts = [
        "# The paper's evidence, reproduced",
        "Made by `ocfuse bench paper`; do not edit. The 13 tables of arXiv 2411.06406 beside the "
        "printed figures, recomputed on the same sets; of the two of videos, the one is not "
        "measured and the other on a substitute, as is said there. Each table is also there as CSV "
        "(`csv/`) and LaTeX (`latex/`). What it comes to is told in `docs/reproduction.md`.",
        "## Pages",
        "\n".join(f"- [{title}]({name}.md)" for name, title in pages),
        "## What to know",
        "\n".join(f"{i}. {text}" for i, text in enumerate(disclosures, 1)),
        "## Checks",
        "\n".join(f"- {text}" for text in checks(results)),
        "## Where and how",
        "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in facts.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def checks(results: Records) -> list[str]:
    """Return what was checked of the results, in sentences."""
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


def _protocol(results: Records) -> dict[str, str]:
    seeds = sorted({record["seed"] for record in results})
    return {
        "repetitions": f"{len(seeds)} (seeds {', '.join(map(str, seeds))})",
        "sets": ", ".join(dict.fromkeys(record["set"] for record in results)),
        "normals": "70 % to learn from, 20 % for validation, the others for the test",
        "anomalies": "all for the test; non-pure: 20 % are known, half of them for learning and "
        "half for validation",
        "features": "gaps filled by medians, then standardised, both on the training normals",
        "threshold": f"conformal, {100 * RATE:g} % false alarms, from validation normals",
    }


def limit_sheets(results: Records) -> list[Sheet]:
    """Return tables of how problems were solved, how criteria could choose, and of rows."""
    found = [_solver_sheet(results), _criterion_sheet(results), _row_sheet(results)]
    return [sheet for sheet in found if sheet.rows]


def limit_lines(results: Records) -> list[str]:
    """Return what limits the figures, in sentences."""
    return [*_criterion_lines(results), *_repeated_line(results), *_bound_line(results)]


def unsolved(results: Records) -> str:
    """Return how many fits did not reach their tolerance, system by system, as a sentence."""
    counts = {name: (len(fits), _short(fits)) for name, fits in _fits(results).items()}
    total, short = sum(n for n, _ in counts.values()), sum(k for _, k in counts.values())
    where = ", ".join(f"{name} {k} of {n}" for name, (n, k) in counts.items() if k)
    return (
        f"{short} of {total} fits of lp fusions have problems that did not reach the tolerance of "
        f"the solver{': ' + where if where else ''}."
    )


def once(results: Records) -> Iterator[dict[str, Any]]:
    """Yield every result once, though its system may be in two tables; no failures."""
    seen = set()
    for record in results:
        place = record["system"], record["set"], record["seed"]
        if place not in seen and "failure" not in record:
            seen.add(place)
            yield record


def _fits(results: Records) -> dict[str, list[dict[str, Any]]]:
    """Return the choices of fusions that have a certificate, by system."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in once(results):
        if "solved" in record.get("choices", {}):
            found.setdefault(record["system"], []).append(record["choices"])
    return found


def _short(fits: Sequence[dict[str, Any]]) -> int:
    return sum(fit["solved"] < 1.0 for fit in fits)


def _solver_sheet(results: Records) -> Sheet:
    rows: list[list[Cell]] = []
    for name, fits in _fits(results).items():
        gaps = [fit["gap"] for fit in fits]
        largest = GAP if None in gaps else f"{max(gaps):.2g}"
        share = 100.0 * fmean(fit["solved"] for fit in fits)
        rows.append([name, str(len(fits)), str(_short(fits)), number(share, 1), largest])
    header = ["system", "fits", "not to tolerance", "problems solved, %", "largest gap"]
    note = (
        "The last fit of every repetition: with the norm that was chosen, to all that is learned "
        "from. The gap is the certified relative one; a dash if there is none."
    )
    return Sheet("convergence", "How the problems were solved", header, rows, note)


def _judged(results: Records) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return what the criteria said, by criterion and set."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in once(results):
        if record["system"] in JUDGED and "candidates" in record.get("choices", {}):
            place = JUDGED[record["system"]], record["set"]
            found.setdefault(place, []).append(record["choices"])
    order = {name: i for i, name in enumerate(set_order({s for _, s in found}))}
    words = list(JUDGED.values())
    return dict(sorted(found.items(), key=lambda e: (words.index(e[0][0]), order[e[0][1]])))


def is_saturated(choices: dict[str, Any]) -> bool:
    """Return whether an AUC is so high for all candidates that it cannot choose."""
    return bool(choices["candidates"][0] >= 0.99)


def is_near_chance(choices: dict[str, Any]) -> bool:
    """Return whether an AUC is so near to one half that its choice is mostly chance."""
    return bool(abs(choices["candidates"][1] - 0.5) <= 0.05)


def _criterion_sheet(results: Records) -> Sheet:
    rows: list[list[Cell]] = []
    for (criterion, set_name), found in _judged(results).items():
        spread = np.mean([choices["candidates"] for choices in found], axis=0)
        is_area = criterion != "RPAU"
        counts = [sum(map(told, found)) for told in (is_saturated, is_near_chance, _is_level)]
        rows.append(
            [
                criterion,
                set_name,
                *(number(value, 3) for value in spread),
                *(str(n) if is_area else GAP for n in counts[:2]),
                str(counts[2]),
                number(fmean(fmean(choices["ties"]) for choices in found), 1),
            ]
        )
    header = ["criterion", "set", "lowest", "median", "highest", "saturated", "near chance"]
    header += ["norms level", "ties"]
    note = (
        "Lowest, median and highest value of the criterion among all candidates, means over the "
        "repetitions; higher is better. In how many repetitions an AUC is saturated (at least "
        "0.99 for all candidates), near chance (the median within 0.05 of 0.5), or the best the "
        "same for all norms p of the local fusion. Ties: how many candidates of its "
        "family are level with a chosen member, on average; of those the middle one is taken."
    )
    return Sheet("criteria", "What the criteria could tell", header, rows, note)


def _is_level(choices: dict[str, Any]) -> bool:
    return bool(choices["p_ties"] == len(PAPER_P) - 1)


def _criterion_lines(results: Records) -> list[str]:
    lines = []
    runs = [c for (name, _), found in _judged(results).items() if name == "RPAU" for c in found]
    if runs:
        ends = sum(choices["p"] in (PAPER_P[0], PAPER_P[-1]) for choices in runs)
        lines.append(
            f"RPAU is the same for all nine norms, at one percentile rho or another, in "
            f"{sum(map(_is_level, runs))} of {len(runs)} repetitions of the local fusion, which "
            f"then takes p = 2; an end of the grid is chosen in {ends}. The best value is 0, no "
            f"validation row being outside, in {sum(c['p_value'] == 0.0 for c in runs)}."
        )
    for criterion in list(JUDGED.values())[1:]:
        of = {s: found for (name, s), found in _judged(results).items() if name == criterion}
        if of:
            parts = [
                f"{words} in {_counted(told, of)}"
                for told, words in ((is_saturated, "saturated"), (is_near_chance, "near chance"))
            ]
            lines.append(
                f"The AUC that chooses by {criterion}, of {sum(map(len, of.values()))} "
                f"repetitions: {', '.join(parts)}."
            )
    return lines


def _counted(
    told: Callable[[dict[str, Any]], bool], of: Mapping[str, Sequence[dict[str, Any]]]
) -> str:
    counts = {s: sum(map(told, found)) for s, found in of.items()}
    where = ", ".join(f"{s} {n}" for s, n in counts.items() if n)
    return f"{sum(counts.values())} ({where})" if where else "none"


def _rows_of(results: Records) -> dict[str, dict[str, float]]:
    """Return, by set, means over the splits of the pure protocol."""
    pure = {(r["set"], r["seed"]): r for r in results if r["protocol"] == "pure"}
    names = set_order({set_name for set_name, _ in pure})
    found = {s: [r for (name, _), r in pure.items() if name == s] for s in names}
    return {
        s: {
            "n_validation": fmean(r["n_validation"] for r in of),
            "bound": 100.0 * fmean(bound(r["n_validation"]) for r in of),
            "normals": fmean(r["repeated"]["normals"] for r in of),
            "anomalies": fmean(r["repeated"]["anomalies"] for r in of),
        }
        for s, of in found.items()
    }


def bound(n_validation: int) -> float:
    """Return the rate of false alarms that n fresh validation normals can promise.

    It is at most 5 %, or 1 / (n + 1) if that is more.

    Examples
    --------
    >>> from ocfuse.lab.paper.account import bound
    >>> bound(99), round(bound(10), 3)
    (0.05, 0.091)
    """
    return conformal_threshold(np.arange(n_validation), RATE)[1]


def _row_sheet(results: Records) -> Sheet:
    rows: list[list[Cell]] = [
        [
            name,
            number(of["normals"], 1),
            number(of["anomalies"], 1),
            number(of["n_validation"], 0),
            number(of["bound"], 1),
        ]
        for name, of in _rows_of(results).items()
    ]
    header = ["set", "repeated normals, %", "repeated anomalies, %"]
    header += ["validation normals", "bound on false alarms, %"]
    note = (
        "Repeated: rows of the test that equal a training normal in all columns. Bound: what the "
        "threshold could promise if the validation normals were fresh."
    )
    return Sheet("rows", "Rows of the sets", header, rows, note)


def _repeated_line(results: Records) -> list[str]:
    rows = _rows_of(results)
    parts = []
    for kind in ("normals", "anomalies"):
        shares = sorted(((of[kind], s) for s, of in rows.items() if of[kind] >= 0.5), reverse=True)
        parts.append(", ".join(f"{s} {share:.0f} %" for share, s in shares) or "under 1 % anywhere")
    return [
        f"Rows of the test that equal a training normal in all columns: of the normals {parts[0]}; "
        f"of the anomalies {parts[1]}. Detectors that remember rows gain by the former."
    ]


def _bound_line(results: Records) -> list[str]:
    wide = {s: of for s, of in _rows_of(results).items() if of["bound"] > 100.0 * RATE + 1e-9}
    where = ", ".join(
        f"{of['bound']:.1f} % on {s} ({of['n_validation']:.0f} rows)" for s, of in wide.items()
    )
    few = f"; with few of them not even fresh ones could promise it, but {where}" if wide else ""
    return [
        "The validation normals choose members and p, and then set the threshold, so that "
        f"{100 * RATE:g} % false alarms is not strictly a conformal promise{few}."
    ]
