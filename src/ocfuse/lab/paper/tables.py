"""Every table of the paper, recomputed, as Markdown, CSV and LaTeX."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

from ocfuse.datasets.uci import UCI_SETS
from ocfuse.lab.paper.account import account_page, deviation_sheets, index, threshold_sheet
from ocfuse.lab.paper.beside import (
    Records,
    plain_sheet,
    sheet_beside,
    summarise,
    table_beside,
    table_names,
)
from ocfuse.lab.paper.deviations import FAR, FLOOR, MEASURES, Difference, differences
from ocfuse.lab.paper.published import PUBLISHED_SETS, published_table, worst_average_precision
from ocfuse.lab.paper.ranking import (
    Ranking,
    critical_difference_diagram,
    omnibus_sheet,
    pair_sheet,
    rank_sheet,
)
from ocfuse.lab.paper.sheet import GAP, Cell, Sheet, number
from ocfuse.system.files import write_atomically

TITLES = {
    "rpau": "Members and fusions tuned by RPAU",
    "pseudo-negative": "Members and fusions tuned by pseudo-negatives",
    "comparison": "Comparison with other work",
}
NOTE = (
    "Mean ± standard deviation over the repetitions, in %; the paper's as printed. Bold: the best "
    "of our figures on the set, our own rows included."
)
#: The same for figures that the paper does not have.
OWN_NOTE = (
    "Mean ± standard deviation over the repetitions, in %, ours: the paper has no such table of "
    "these sets. Bold: the best on the set."
)


@dataclass(frozen=True)
class Page:
    """A file of Markdown: text, then pictures (SVG by name of file), then sheets."""

    name: str
    title: str
    text: str
    sheets: list[Sheet]
    pictures: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write all files."""
        shown = [f"![{Path(name).stem}]({name})" for name in self.pictures]
        parts = [f"# {self.title}", self.text, *shown, *(s.markdown() for s in self.sheets)]
        text = "\n\n".join(part for part in parts if part) + "\n"
        write_atomically(folder / f"{self.name}.md", text.encode())
        for sheet in self.sheets:
            sheet.write(folder)
        for name, picture in self.pictures.items():
            write_atomically(folder / name, picture.encode())


def write(
    results: Records,
    out: Path,
    *,
    about: Mapping[str, str] | None = None,
    bounds: Mapping[tuple[str, str], float] | None = None,
    others: Path = Path("benchmarks/results"),
) -> list[Path]:
    """Write all tables, the deviations with their reasons, the account and an index.

    `about` are facts of the run, as `facts` returns them, `bounds` those in hindsight that
    `run_paper` returns (without them some reasons are not known), and `others` the folder of the
    results of other benchmarks, for the speed of the solvers and the simulated robot, if they are
    there. Return the Markdown files, the index first.
    """
    out.mkdir(parents=True, exist_ok=True)
    made = pages(results, bounds, others)
    for page in made:
        page.write(out)
    listed = [(page.name, page.title) for page in made]
    write_atomically(out / "README.md", index(results, listed, about or {}).encode())
    return [out / "README.md", *(out / f"{page.name}.md" for page in made)]


def pages(
    results: Records, bounds: Mapping[tuple[str, str], float] | None, others: Path
) -> list[Page]:
    """Return everything but the index."""
    names = table_names(results)
    cells = differences(results, bounds)
    text, sheets = account_page(results, cells)
    return [
        Page("account", "The account in numbers", text, sheets),
        _dataset_page(results),
        *(_main_page(results, name) for name in names),
        *(_rank_page(results, name) for name in names),
        _deviation_page(cells),
        _threshold_page(results, names, cells),
        _precision_page(results, names),
        _toyota_page(),
        _liranomaly_page(others / "robots" / "cell.json"),
        _solver_page(others / "solvers" / "ablation.json"),
    ]


def _dataset_page(results: Records) -> Page:
    """Return the paper's table of sets, ours beside it."""
    there = {record["set"] for record in results}
    rows: list[list[Cell]] = []
    for name, printed in PUBLISHED_SETS.items():
        uci = next((s for s in UCI_SETS.values() if s.paper_id == name), None)
        ours = [GAP] * 4
        if uci is not None:
            ours = [str(uci.n_rows), str(uci.n_normals), str(len(uci.feature_names))]
            ours.append(uci.normal_class)
        elif name == "D11":
            ours[3] = "not measurable here: the recordings are not at hand"
        else:
            ours[3] = "not public: a simulated cell stands for it, another set"
        features = GAP if printed.features is None else str(printed.features)
        figures = [str(printed.samples), str(printed.normals), features]
        rows.append([name, printed.name, *figures, *ours, "yes" if name in there else "no"])
    header = ["", "set", "samples, printed", "normal, printed", "features, printed"]
    header += ["samples", "normal", "features", "class that counts as normal", "in this run"]
    text = (
        "The printed counts are those of the sets that we load, all ten, in rows, normals and "
        "columns. The paper does not name the normal classes: ours are those that have the printed "
        "number of rows. Samples of D11 are videos, those of D12 frames."
    )
    sheet = Sheet("datasets", "Sets, printed and ours", header, rows)
    return Page("datasets", "The data sets", text, [sheet])


def _toyota_page() -> Page:
    """Return the printed figures of the Toyota HSR; ours are not measurable here."""
    area, precision = (published_table("hsr", measure) for measure in ("auc", "auc_pr"))
    rows: list[list[Cell]] = [
        [system, number(area.mean[0, j]), number(precision.mean[0, j]), "not measured", ""]
        for j, system in enumerate(area.systems)
    ]
    low = 100.0 * worst_average_precision(60, 7)
    rows += [
        ["worst order of 60 anomalous and 7 normal videos", GAP, GAP, "0.00", f"{low:.2f}"],
        ["a random order", GAP, GAP, "50.00", "about 90"],
    ]
    text = (
        "The recordings (121 videos of a Toyota HSR that handles books) are not at hand: nothing "
        "of ours is measured. `python -m benchmarks.robots toyota` measures it where they are. "
        "The AUC-PR of the earlier work is not of this task, as it is below that of the worst "
        "order, if anomalies are the positive class (`docs/errata.md`, point 27)."
    )
    header = ["system", "AUC, printed", "AUC-PR, printed", "AUC, ours", "AUC-PR, ours"]
    return Page("toyota", "Toyota HSR", text, [Sheet("toyota", "By video", header, rows)])


def _liranomaly_page(path: Path) -> Page:
    """Return the printed figures of LiRAnomaly, and ours of the simulated cell, another set."""
    printed = published_table("liranomaly", "auc")
    rows: list[list[Cell]] = [
        [system, "paper: LiRAnomaly", *map(number, printed.mean[:, j]), number(printed.ranks[j])]
        for j, system in enumerate(printed.systems)
    ]
    measured = json.loads(path.read_text(encoding="utf-8"))["data"] if path.is_file() else None
    if measured is None:
        rows.append(["all", "simulated cell", *["not measured"] * 4, GAP])
    else:
        words = tuple(f" {word}" for word in ("RPAU", "pseudo-negative"))
        rows += [
            [
                system["name"],
                "ours: simulated cell",
                *(number(system["types"][kind]["frame"]["auc"]) for kind in "1234"),
                GAP,
            ]
            for system in measured["systems"]
            if system["view"] == "camera"
            if system["name"].endswith(words) or system["name"].startswith(("Non-pure", "ours"))
        ]
    text = (
        "The set (37,076 frames of a Franka robot) is not public. **The lower rows are of another "
        "set**: a simulated cell with the same robot, task and four types of anomalies "
        "(`docs/robots.md`), of 10,200 frames with features of one network instead of four. "
        "The two can be read beside each other, not compared. AUC of frames in %; the printed "
        "table says video level, and has the same figures for both criteria. What is not "
        "measurable here: the set itself, and its mean ranks."
    )
    header = ["system", "set", "type 1", "type 2", "type 3", "type 4", "mean rank, printed"]
    rules = {0: "printed, on LiRAnomaly", len(printed.systems): "ours, on the simulated cell"}
    sheet = Sheet("liranomaly", "AUC by type of anomaly", header, rows, "", rules)
    return Page("liranomaly", "LiRAnomaly", text, [sheet])


def _main_page(results: Records, name: str) -> Page:
    sheets = [
        sheet_beside(
            table_beside(results, name, measure),
            f"{name}-{measure}",
            words,
            NOTE,
        )
        for measure, words in MEASURES.items()
    ]
    return Page(name, TITLES[name], "", sheets)


def _rank_page(results: Records, name: str) -> Page:
    sheets, pictures = [], {}
    for measure, words in MEASURES.items():
        ranking = Ranking(summarise(results, name, measure), published_table(name, measure))
        stem = f"{name}-{measure}"
        sheets += [
            rank_sheet(ranking, f"ranks-{stem}", f"Mean ranks, {words}"),
            omnibus_sheet(ranking, f"test-{stem}", f"Skillings and Mack's test, {words}"),
            pair_sheet(ranking, f"pairs-{stem}", f"Which systems differ, {words}"),
        ]
        highlight = [system for system in ranking.systems if system.startswith("Pure2")]
        pictures[f"ranks-{stem}.svg"] = critical_difference_diagram(
            ranking.table,
            ranking.systems,
            highlight=highlight,
            title=f"{TITLES[name]}: mean ranks in {words}, our results",
        )
    return Page(
        f"ranks-{name}", f"Ranks: {TITLES[name][0].lower()}{TITLES[name][1:]}", "", sheets, pictures
    )


def _deviation_page(cells: Sequence[Difference]) -> Page:
    far = sum(cell.is_far for cell in cells)
    wide = sum(cell.is_far_out for cell in cells)
    text = (
        f"{far} of {len(cells)} cells differ by more than {FAR:g} standard errors of the "
        f"difference, {wide} by more than {FAR:g} standard deviations. Deviation: "
        "the root mean square of ours and of the printed one, each of a single repetition; ours "
        f"alone where none is printed; at least {FLOOR} points, because printed ones of 0.0 are "
        "implausible with so few normals in the test. The standard error is that of the difference "
        "of two means over repetitions; as the repetitions share rows, it is a little too small. "
        "The reason is the first that fits of the "
        "rules in `ocfuse.lab.paper.deviations`; it is the most likely one that we know of, not a "
        "proof. A system in two tables is listed once."
    )
    title = "Cells that differ by more than two standard errors"
    return Page("deviations", title, text, deviation_sheets(cells))


def _threshold_page(results: Records, names: Sequence[str], cells: Sequence[Difference]) -> Page:
    sheets = [threshold_sheet(cells)]
    for name in names:
        both = table_beside(results, name, "best_gmean", "gmean")
        sheets.append(sheet_beside(both, f"oracle-{name}", f"Hindsight: {TITLES[name]}", NOTE))
    text = (
        "The paper does not say how thresholds are set. First, how far its G-mean is from ours by "
        "seven rules. Then all cells at the threshold that is best on the test itself, which "
        "nobody has beforehand: it only shows what our scores could reach."
    )
    return Page("thresholds", "The threshold behind the G-mean", text, sheets)


def _precision_page(results: Records, names: Sequence[str]) -> Page:
    sheets = []
    for name in names:
        ap = summarise(results, name, "ap")
        sheets.append(plain_sheet(ap, f"auc-pr-{name}", TITLES[name], OWN_NOTE))
    for name in names[-1:]:
        share = summarise(results, name, "prevalence")
        sheets.append(plain_sheet(share, "prevalence", "Prevalence", "What a random order has."))
    text = (
        "Area under precision and recall of the anomalies (average precision). It depends on their "
        "share of the test, so it can only be read beside the prevalence, and not compared between "
        "the protocols: some anomalies are known in the non-pure one, and not in its test."
    )
    return Page("auc-pr", "AUC-PR and prevalence", text, sheets)


def _solver_page(ablation: Path) -> Page:
    sheets = ablation_sheets(ablation)
    text = (
        "From the benchmark of the solvers, `make bench-solvers`, explained in `docs/solvers.md`."
        if sheets
        else "Left out: there is no result of the benchmark of the solvers (`make bench-solvers`)."
    )
    return Page("solvers", "Speed of the solvers", text, sheets)


def ablation_sheets(path: Path) -> list[Sheet]:
    """Return the ratios of times, one sheet for each Frank-Wolfe; none without a file.

    They are by norm and tolerance.
    """
    if not path.is_file():
        return []
    data: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))["data"]
    settings = {
        name: cells
        for name, cells in data.items()
        if isinstance(cells, list) and cells and "printed" in cells[0]
    }
    # by their names in the benchmark
    methods = {"paper": "Frank-Wolfe as the paper has it", "strong": "Frank-Wolfe, strong"}
    return [_sheet(settings, method, words) for method, words in methods.items()]


def _sheet(settings: dict[str, list[dict[str, Any]]], method: str, words: str) -> Sheet:
    cells = {(name, c["p"], c["tol"]): c for name, found in settings.items() for c in found}
    first = next(iter(settings.values()))
    rows: list[list[Cell]] = [
        [
            str(Fraction(cell["p"]).limit_denominator(64)),
            f"{cell['tol']:g}",
            f"{cell['printed']:.2f}",
            *(_ratio(cells.get((name, cell["p"], cell["tol"])), method) for name in settings),
        ]
        for cell in first
    ]
    note = (
        "Time over that of the interior point: above 1 the interior point is faster. `>`: a run "
        "was stopped at the limit of iterations, so that it is a lower bound. The paper defines "
        "neither its precision nor its Frank-Wolfe; here it is the certified relative gap."
    )
    header = ["p", "gap", "paper", *settings]
    return Sheet(f"solvers-{method}", words, header, rows, note)


def geometric_ratio(cell: dict[str, Any], method: str) -> tuple[float, bool]:
    """Return a method's time over that of the interior point, and whether it is a lower bound.

    It is a geometric mean over the instances, and a lower bound if one of them was stopped.
    """
    logs = [math.log(run[method] / run["interior_point"]) for run in cell["runs"]]
    return math.exp(fmean(logs)), any(run[f"is_{method}_capped"] for run in cell["runs"])


def _ratio(cell: dict[str, Any] | None, method: str) -> str:
    if cell is None:
        return GAP
    ratio, is_bound = geometric_ratio(cell, method)
    return (">" if is_bound else "") + f"{ratio:.2g}"
