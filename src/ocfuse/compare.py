"""Comparison of all members, rules and fusions on labelled rows of a user."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray, Int64Array, IntArray
from ocfuse.encoder import check_table, take_rows
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.ensemble.fit import Learned, Recipe, Table
from ocfuse.exceptions import (
    FewSamplesWarning,
    InconsistentMeasuresError,
    InvalidInputError,
    OcfuseWarning,
)
from ocfuse.explain import html_table
from ocfuse.fusion.crossfit import fit_fusion
from ocfuse.groups import Groups, check_groups
from ocfuse.metrics import auc, false_alarm_rate, gmean
from ocfuse.report.words import count
from ocfuse.scores import conformal_threshold
from ocfuse.scores.threshold import check_rate
from ocfuse.stats.ranks import mean_ranks, require_count
from ocfuse.system.progress import current_progress, show_progress, silent
from ocfuse.tables.dataframes import Frame, pandas
from ocfuse.validation import ANOMALY, NORMAL, check_training_labels

__all__ = [
    "Comparison",
    "System",
    "compare",
]

#: The row of the detector as it comes.
DEFAULT = "FusedDetector()"
RULES = ("sum", "product", "max", "min", "median", "vote", "trimmed-mean", "aom")
FUSIONS = ("trust", "competence", "local-lp", "lp", "cascade", "stacking", "single-best")
#: Shares of the normals to learn from and to set thresholds by; the others are tested.
TRAIN, VALIDATION = 0.6, 0.2
#: Normals below which a comparison says nothing.
FEWEST_NORMALS = 30
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Rows:
    """Row numbers of one split; no row is in two of them.

    Members learn from the normals of `train`, thresholds are set by those of `validation`;
    `is_normal` is the truth about the rows of `test`.
    """

    train: IntArray
    validation: IntArray
    test: IntArray
    is_normal: NDArray[np.bool_]


class Draws:
    """Splits of the rows; tested ones with gaps that training has not are counted.

    A split has at most `max_rows` normals, and as many anomalies. Normals of one group are all
    learned from, all for the thresholds, or all tested.
    """

    def __init__(
        self,
        X: Any,
        y: Int64Array,
        max_rows: int,
        seed: int,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        self.normals, self.anomalies = np.flatnonzero(y == NORMAL), np.flatnonzero(y == ANOMALY)
        n_normals, n_anomalies, fewest = len(self.normals), len(self.anomalies), 5
        if n_normals < FEWEST_NORMALS or n_anomalies < fewest:
            raise InvalidInputError(
                f"At least {FEWEST_NORMALS} rows labelled normal (+1) and {fewest} labelled "
                f"anomaly (-1) are needed to compare systems. Got {n_normals} and {n_anomalies}."
            )
        n_groups = fewest if groups is None else len(np.unique(groups[self.normals]))
        if n_groups < fewest:
            raise InvalidInputError(
                f"At least {fewest} groups with normal rows are needed to compare systems. "
                f"Got {n_groups}. Compare without groups, knowing that it is too optimistic."
            )
        self.groups = groups
        self.n_normals = min(len(self.normals), max_rows)
        self.n_anomalies = min(len(self.anomalies), max_rows)
        table = X.to_pandas() if hasattr(X, "to_pandas") else X  # of polars
        self.gaps = np.asarray(table.isna() if hasattr(table, "isna") else np.isnan(table))
        self.seed, self.n_judged = seed, 0
        #: Normals and anomalies that each split has tested.
        self.tested: list[tuple[int, int]] = []

    def warn(self, rate: float) -> None:
        """Warn if there are too few rows for the rate."""
        n = round(VALIDATION * self.n_normals)
        if n + 1 < 1 / rate:
            warnings.warn(
                f"{self.n_normals} normals leave {n} to set a threshold by, too few for "
                f"false_alarm_rate={rate:g}: it stands for {1 / (n + 1):.3g}. Use at least "
                f"{int(np.ceil((1 / rate - 1) / VALIDATION))} normals, or a higher rate.",
                FewSamplesWarning,
                stacklevel=3,
            )

    def warn_of_tests(self) -> None:
        """Warn if too few anomalies were tested for differences to mean much."""
        fewest = min(n_anomalies for _, n_anomalies in self.tested)
        if fewest < 20:  # an AUC is coarse
            warnings.warn(
                f"{count(fewest, 'tested anomaly is', 'tested anomalies are')} few: each is worth "
                f"{1 / fewest:.2f} of an AUC. Take smaller differences for nothing.",
                FewSamplesWarning,
                stacklevel=3,
            )

    def draw(self, split: int) -> Rows:
        """Return the rows of a split."""
        rng = np.random.default_rng([self.seed, split])
        normals = rng.permutation(self.normals)[: self.n_normals]
        anomalies = rng.permutation(self.anomalies)[: self.n_anomalies]
        train, validation, fresh = self._parts(normals)
        test = np.concatenate([fresh, anomalies])
        complete = ~self.gaps[train].any(axis=0)
        self.n_judged += int((self.gaps[test] & complete).any(axis=1).sum())
        self.tested.append((len(fresh), len(anomalies)))
        is_normal = np.repeat([True, False], [len(fresh), len(anomalies)])
        return Rows(train, validation, test, is_normal)

    def _parts(self, normals: IntArray) -> list[IntArray]:
        """Cut normals into three parts, between groups if there are some."""
        if self.groups is None:
            return np.split(normals, self._cuts(len(normals)))
        groups = self.groups[normals]
        _, first, code = np.unique(groups, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[code]  # groups in the order in which they were drawn
        part = np.searchsorted(self._cuts(len(first)), place, side="right")
        return [normals[part == i] for i in range(3)]

    @staticmethod
    def _cuts(n: int) -> list[int]:
        return [round(TRAIN * n), round((TRAIN + VALIDATION) * n)]


@dataclass(frozen=True)
class SplitScores:
    """Scores of the validation and of the test rows, and the CPU seconds that they took."""

    validation: FloatArray
    test: FloatArray
    seconds: float


class SharedFit:
    """The members of a detector, fitted once on the training rows of a split.

    Members, normaliser and pseudo-anomalies are those of the detector, which is not changed.
    """

    def __init__(
        self,
        X: Any,
        rows: Rows,
        detector: FusedDetector,
        groups: Groups | None = None,
    ) -> None:
        self.rows, self.detector = rows, detector
        self.groups = None if groups is None else groups.take(rows.train)
        self.train = take_rows(X, rows.train)
        self.asked = take_rows(X, np.concatenate([rows.validation, rows.test]))

    @cached_property
    def _members(self) -> tuple[Learned, FloatArray, FloatArray, float]:
        """Learned members, the encoded rows, what the members say of them, and seconds."""
        begin = time.process_time()
        detector = self.detector
        seed = int(check_random_state(detector.random_state).randint(np.iinfo(np.int32).max))
        recipe = Recipe(
            detector.members,
            "sum",  # costs least; `fuse` replaces it
            detector.normaliser,
            detector.negatives,
            seed,
            detector.n_jobs,
            silent,
        )
        y = np.zeros(len(self.rows.train), dtype=np.int64)
        learned = Learned(Table(self.train, y, self.groups), recipe)
        encoded = learned.encoder.transform(self.asked)
        S = learned.pool.score_samples(encoded)
        return learned, encoded, S, time.process_time() - begin

    def members(self) -> dict[str, SplitScores]:
        """Return what every member says; of the seconds each has an equal share."""
        learned, _, S, seconds = self._members
        names = learned.pool.names_
        share = seconds / len(names)
        return {name: self._parted(S[:, j], share) for j, name in enumerate(names)}

    def fuse(self, fusion: Any) -> SplitScores:
        """Return what a rule or a fusion makes of the members, their seconds included."""
        learned, encoded, S, seconds = self._members
        begin = time.process_time()
        parts = replace(learned.recipe, fusion=fusion).parts(learned.scored)
        normaliser, fitted = fit_fusion(learned.scored, *parts)
        fused = fitted.fuse(normaliser.transform(S), encoded)
        return self._parted(fused, seconds + time.process_time() - begin)

    def whole(self) -> tuple[SplitScores, float]:
        """Fit the detector as a user would; return its scores and its own threshold."""
        detector = clone(self.detector)
        begin = time.process_time()
        scores = detector.fit(self.train, groups=self.groups).score_samples(self.asked)
        return self._parted(scores, time.process_time() - begin), detector.offset_

    def _parted(self, scores: FloatArray, seconds: float) -> SplitScores:
        n = len(self.rows.validation)
        return SplitScores(scores[:n], scores[n:], seconds)


@dataclass(frozen=True)
class System:
    """What is run on a cell.

    Parameters
    ----------
    name : str
        Unique within the experiment.
    group : str
        What kind of system it is.
    key : str
        Changes whenever the results may.
    run : callable
        Takes the context of a cell and returns measures by name: one result, or
        several, as those of the members of a pool.
    """

    name: str
    group: str
    key: str
    run: Callable[[Any], Results]


def run_system(system: System, context: Any) -> Results:
    """Return the results; a failure is kept, not raised, if it is one of the system.

    Warnings are not kept: what they would say of a result belongs in it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return system.run(context)
        except Exception as error:
            cause: BaseException | None = error
            while cause is not None:  # a member that had no memory is a MemberError
                # the measuring is wrong, or the machine is at its end: not the system's fault
                if isinstance(cause, InconsistentMeasuresError | MemoryError | OSError):
                    raise
                cause = cause.__cause__
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            return {system.name: {"failure": reason}}


@dataclass(frozen=True)
class Comparison:
    """Results of systems on repeated splits of one table.

    Parameters
    ----------
    records : list of dict
        One per split and system: "split", "system", "kind", and "auc", "gmean",
        "false_alarms" (shares) and CPU "seconds", or "failure".
    n_normals, n_anomalies : int
        Number of normal rows and of anomalies that were split.
    n_splits : int
        Number of splits.
    false_alarm_rate : float
        False-alarm rate for which thresholds were set.
    n_judged : int
        Number of tested rows, over all splits, with a gap in a column that had none in training.
        They were scored with their other columns.
    is_grouped : bool
        Whether normal rows of one group were held out together.
    tested : list of (int, int)
        Number of tested normal rows and anomalies, for each split.
    """

    records: list[dict[str, Any]]
    n_normals: int
    n_anomalies: int
    n_splits: int
    false_alarm_rate: float
    n_judged: int = 0
    is_grouped: bool = False
    tested: list[tuple[int, int]] = field(default_factory=list)

    @property
    def systems(self) -> list[str]:
        """Names of all systems: the whole detector, members, rules, fusions."""
        return list(dict.fromkeys(record["system"] for record in self.records))

    def values(self, measure: str) -> FloatArray:
        """Return a measure, shape (n_splits, n_systems); NaN for a system that failed."""
        place = {name: j for j, name in enumerate(self.systems)}
        table = np.full((self.n_splits, len(place)), np.nan)
        for record in self.records:
            table[record["split"], place[record["system"]]] = record.get(measure, np.nan)
        return table

    def summary(self) -> list[dict[str, Any]]:
        """Return a row per system, highest mean AUC first, failed systems last.

        "auc", "gmean", "false_alarms" and "seconds" are means over the splits, "auc_sd" the
        standard deviation of the AUC between splits, "rank" the mean rank by AUC and "failed" the
        number of splits without a result, with the last "failure".
        """
        areas = self.values("auc")
        ranks = mean_ranks(areas)
        kinds = {record["system"]: record["kind"] for record in self.records}
        reasons = {r["system"]: r["failure"] for r in self.records if "failure" in r}
        measures = ("auc", "gmean", "false_alarms", "seconds")
        means = {measure: _mean(self.values(measure)) for measure in measures}
        rows = [
            {
                "system": name,
                "kind": kinds[name],
                **{measure: means[measure][j] for measure in measures},
                "auc_sd": _deviation(areas[:, j]),
                "rank": float(ranks[j]),
                "failed": int(np.isnan(areas[:, j]).sum()),
                "failure": reasons.get(name),
            }
            for j, name in enumerate(self.systems)
        ]
        return sorted(rows, key=lambda row: 0.0 if row["auc"] is None else -row["auc"])

    def to_frame(self) -> Frame:
        """Return the summary as a pandas data frame."""
        return pandas().DataFrame(self.summary())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings, and a row of texts per system, highest mean AUC first."""
        shown = {  # by heading: a measure, and how it is written
            "AUC": ("auc", ".3f"),
            "sd": ("auc_sd", ".3f"),
            "rank": ("rank", ".1f"),
            "G-mean": ("gmean", ".3f"),
            "false alarms": ("false_alarms", ".3f"),
            "seconds": ("seconds", ".2f"),
        }
        rows = []
        for row in self.summary():
            cells = [(row[key], form) for key, form in shown.values()]
            texts = ["-" if value is None else format(value, form) for value, form in cells]
            rows.append([row["system"], row["kind"], *texts])
        return ["system", "kind", *shown], rows

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with what can be concluded from it."""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes())
        return f"{html_table(*self.table())}<ul>{notes}</ul>"

    def level(self) -> list[str]:
        """Return the systems that do not differ clearly from the one with the highest mean AUC.

        Their mean difference to it over the splits is smaller than the standard deviation of this
        difference.
        """
        areas = self.values("auc")
        complete = ~np.isnan(areas).any(axis=0)
        if not complete.any():
            return []
        best = int(np.argmax(np.where(complete, np.nan_to_num(areas).mean(axis=0), -np.inf)))
        gaps = areas[:, [best]] - areas
        close = complete & np.asarray(gaps.mean(axis=0) <= gaps.std(axis=0))
        return [name for name, is_close in zip(self.systems, close, strict=True) if is_close]

    def notes(self) -> list[str]:
        """Return sentences on what can be concluded, and what cannot."""
        tested = "the other normals and the anomalies are"
        if self.tested:
            normals, anomalies = (_range(numbers) for numbers in zip(*self.tested, strict=True))
            tested = f"{normals} other normals and {anomalies} of {self.n_anomalies} anomalies are"
        notes = [
            f"{count(self.n_splits, 'random split')} of the same rows: {TRAIN:.0%} of the "
            f"{'groups' if self.is_grouped else f'{self.n_normals} normals'} to learn from, "
            f"{VALIDATION:.0%} for the thresholds of members, rules and fusions; "
            f"{tested} tested. {DEFAULT} sets its own threshold. No label is learned from.",
            "The splits share rows, so they are no independent trials: no test of significance "
            "holds here. They say how much the split matters on this table, and nothing about "
            "other data or other kinds of anomalies.",
            "The figure of the best of many rows is too good: it was picked by these anomalies. "
            f"Not told from the best here: {', '.join(self.level()) or 'none'}.",
            "Normals of one group were never parted; anomalies were tested whatever their group."
            if self.is_grouped
            else "If rows come in runs or in time, random splits are too optimistic for all "
            "systems: name the groups.",
        ]
        if self.n_judged:
            notes.append(
                f"{count(self.n_judged, 'tested row', 'tested rows')}, over all splits, had a gap "
                "in a column that was complete in training, and were judged by the others."
            )
        return notes


def compare(
    X: Any,
    y: ArrayLike,
    *,
    members: Any = "default",
    false_alarm_rate: float = 0.05,
    n_splits: int = 10,
    max_rows: int = 5000,
    random_state: int = 0,
    groups: Any = None,
) -> Comparison:
    """Compare the default detector, its members, all rules and all fusions on labelled rows.

    All systems have the same splits. Members are fitted once to the normal training rows of a
    split, and every rule and fusion gets their scores.

    Parameters
    ----------
    X : array-like or data frame of shape (n, m)
        Rows.
    y : array-like of shape (n,)
        +1 normal, -1 anomaly, 0 or NaN unknown. Unknown rows are left out.
    members : str, list or Pool, default="default"
        Members, as in `FusedDetector`.
    false_alarm_rate : float, default=0.05
        Share of fresh normal rows that may raise an alarm, for G-mean and false alarms.
    n_splits : int, default=10
        Number of random splits.
    max_rows : int, default=5000
        Most normal rows, and most anomalies, of a split; they are drawn again for each split.
    random_state : int, default=0
        Seed of splits and detectors.
    groups : array-like of shape (n,), default=None
        Group of each row, such as its run or part. Normal rows of one group are held out together;
        anomalies are tested whatever their group.

    Returns
    -------
    Comparison
        Measures of all systems in all splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse.compare import compare
    >>> X, species = load_iris(return_X_y=True)
    >>> found = compare(X, species == 1, members="light", false_alarm_rate=0.1, n_splits=2)
    >>> len(found.systems), len(found.records)
    (20, 40)
    >>> sorted(found.summary()[0])[:5]
    ['auc', 'auc_sd', 'failed', 'failure', 'false_alarms']
    """
    check_rate(false_alarm_rate)
    require_count("n_splits", n_splits, 1)
    require_count("max_rows", max_rows, FEWEST_NORMALS)
    require_count("random_state", random_state, 0)
    table = check_table(X)
    known = None if groups is None else check_groups(groups, len(table))
    label = None if known is None else known.label
    draws = Draws(table, check_training_labels(y, len(table)), max_rows, random_state, label)
    draws.warn(false_alarm_rate)
    progress = current_progress()
    records: list[dict[str, Any]] = []
    for split in range(n_splits):
        progress("compare", f"split {split + 1}", split, n_splits)
        detector = FusedDetector(
            members, false_alarm_rate=false_alarm_rate, random_state=random_state + split
        )
        with show_progress(silent):
            records += _run(split, SharedFit(table, draws.draw(split), detector, known))
    progress("compare", "done", n_splits, n_splits)
    draws.warn_of_tests()
    return Comparison(
        records,
        draws.n_normals,
        draws.n_anomalies,
        n_splits,
        false_alarm_rate,
        draws.n_judged,
        is_grouped=known is not None,
        tested=draws.tested,
    )


def _run(split: int, fit: SharedFit) -> list[dict[str, Any]]:
    """Return the records of one split; without members there is nothing to compare."""
    with warnings.catch_warnings():  # about each of many fits: the detector itself will say it
        warnings.simplefilter("ignore", OcfuseWarning)
        results: Results = {DEFAULT: {"kind": "detector", **_measured(fit, *fit.whole())}}
        for name, scored in fit.members().items():
            results[name] = {"kind": "member", **_measured(fit, scored)}
    for kind, names in (("rule", RULES), ("fusion", FUSIONS)):
        for name in names:
            system = System(name, kind, "", partial(_run_fusion, name))
            results[name] = {"kind": kind, **run_system(system, fit)[name]}
    return [{"split": split, "system": name, **found} for name, found in results.items()]


def _run_fusion(name: str, fit: SharedFit) -> Results:
    return {name: _measured(fit, fit.fuse(name))}


def _measured(fit: SharedFit, scored: SplitScores, offset: float | None = None) -> dict[str, float]:
    """Return the measures; without a threshold of its own, it comes from validation normals."""
    if offset is None:
        offset, _ = conformal_threshold(scored.validation, fit.detector.false_alarm_rate)
    y = np.where(fit.rows.is_normal, NORMAL, ANOMALY)
    predicted = np.where(scored.test >= offset, NORMAL, ANOMALY)
    return {
        "auc": auc(y, scored.test),
        "gmean": gmean(y, predicted),
        "false_alarms": false_alarm_rate(y, predicted),
        "seconds": scored.seconds,
    }


def _range(numbers: Sequence[int]) -> str:
    """Return such as "40" or "36 to 40"."""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _mean(values: FloatArray) -> list[float | None]:
    """Return the mean of every column over what there is of it."""
    kept = [column[~np.isnan(column)] for column in values.T]
    return [float(column.mean()) if len(column) else None for column in kept]


def _deviation(values: FloatArray) -> float | None:
    """Return the standard deviation of a sample, if it has one."""
    kept = values[~np.isnan(values)]
    return float(kept.std(ddof=1)) if len(kept) > 1 else None
