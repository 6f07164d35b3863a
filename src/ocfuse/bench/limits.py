"""How far our own figures can be trusted: solvers, criteria, repeated rows, few rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ocfuse.bench.measures import RATE
from ocfuse.bench.sheet import GAP, Cell, Sheet, number
from ocfuse.bench.summary import set_order
from ocfuse.scores import conformal_threshold

Records = Sequence[dict[str, Any]]

#: A criterion by an AUC says nothing if all candidates have this, or if their median is
#: this near to one half.
SATURATED, NEAR_CHANCE = 0.99, 0.05
#: Fusions whose choices show what the criteria could tell.
JUDGED = {
    "Pure2 RPAU": "RPAU",
    "Pure2 pseudo-negative": "pseudo-negatives",
    "Non-pure2": "labels",
}


def limit_sheets(results: Records) -> list[Sheet]:
    """Return tables of what limits the figures.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.

    Returns
    -------
    list of Sheet
        How problems were solved, what criteria could tell, and rows of the sets.
    """
    found = [_solver_sheet(results), _criterion_sheet(results), _row_sheet(results)]
    return [sheet for sheet in found if sheet.rows]


def limit_lines(results: Records) -> list[str]:
    """Return what limits the figures, in sentences.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.

    Returns
    -------
    list of str
        Sentences.
    """
    return [*_criterion_lines(results), *_repeated_line(results), *_bound_line(results)]


def unsolved(results: Records) -> str:
    """Tell how many fits did not reach their tolerance, system by system.

    Parameters
    ----------
    results : sequence of dict
        Records as `run_paper` returns them.

    Returns
    -------
    str
        A sentence.
    """
    counts = {name: (len(fits), _short(fits)) for name, fits in _fits(results).items()}
    total, short = sum(n for n, _ in counts.values()), sum(k for _, k in counts.values())
    where = ", ".join(f"{name} {k} of {n}" for name, (n, k) in counts.items() if k)
    return (
        f"{short} of {total} fits of lp fusions have problems that did not reach the tolerance of "
        f"the solver{': ' + where if where else ''}."
    )


def once(results: Records) -> Iterator[dict[str, Any]]:
    """Give every result once, though its system may be in two tables; no failures."""
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
    """Tell whether an AUC is so high for all candidates that it cannot choose."""
    return bool(choices["candidates"][0] >= SATURATED)


def is_near_chance(choices: dict[str, Any]) -> bool:
    """Tell whether an AUC is so near to one half that its choice is mostly chance."""
    return bool(abs(choices["candidates"][1] - 0.5) <= NEAR_CHANCE)


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
        f"repetitions; higher is better. In how many repetitions an AUC is saturated (at least "
        f"{SATURATED:g} for all candidates), near chance (the median within {NEAR_CHANCE:g} of "
        "0.5), or the same for all norms p of the local fusion. Ties: how many candidates of its "
        "family are level with a chosen member, on average; of those the middle one is taken."
    )
    return Sheet("criteria", "What the criteria could tell", header, rows, note)


def _is_level(choices: dict[str, Any]) -> bool:
    return bool(choices["p_value"] == choices["p_lowest"])


def _criterion_lines(results: Records) -> list[str]:
    lines = []
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
    """Return the rate of false alarms that so many fresh validation normals can promise.

    Parameters
    ----------
    n_validation : int
        Number of normals.

    Returns
    -------
    float
        At most 5 %, or 1 / (n + 1) if that is more.

    Examples
    --------
    >>> from ocfuse.bench.limits import bound
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
