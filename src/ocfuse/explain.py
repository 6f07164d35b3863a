"""Explanations of scores: members, weights, neighbours, features, usual values."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.encoder import FeatureEncoder, read_columns
from ocfuse.system.packages import needed
from ocfuse.validation import check_choice

#: Share of normal rows whose values are called usual: of numbers the middle, of categories the
#: most common.
USUAL = 0.95
NEVER = "never seen in training"


@dataclass(frozen=True)
class Judgement:
    """A value of a row compared with normal training rows.

    Attributes
    ----------
    usual : str
        Usual values, such as "0.4 to 6.1" or "f (98.9 %)".
    remark : str
        A remark on this value, such as "never seen in training"; may be empty.
    is_unusual, is_new : bool
        Whether less than 5 % of normal rows have values as far out or as rare, and whether it is a
        category or a gap that no training row had.
    facts : dict
        The same as numbers: "low" and "high" for numbers, "of" for whom and when this range is, if
        it is not for all, and "level", "low" or "high", of a number out of it; for categories
        "share" of the normal rows with this category, and "values", the shares of the most common
        ones.
    """

    usual: str
    remark: str
    is_unusual: bool
    is_new: bool
    facts: dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """The value of one feature in a row, and how much it lowers the score.

    Attributes
    ----------
    name : str
        The feature.
    value : str
        Its value in the row, as text.
    cost : float
        Increase of the score if it had the value of the most similar normal rows.
    judgement : Judgement or None
        Comparison with its usual values; None if they are unknown.
    cell : float, str or None
        The value itself; None for a gap.
    """

    name: str
    value: str
    cost: float
    judgement: Judgement | None
    cell: Any

    @property
    def usual(self) -> str:
        """Its usual values as text; empty if unknown."""
        return "" if self.judgement is None else self.judgement.usual

    @property
    def is_unusual(self) -> bool:
        """Whether the value is unusual by itself; also True if its usual values are unknown."""
        return self.judgement is None or self.judgement.is_unusual

    @property
    def is_new(self) -> bool:
        """Whether no training row had this category, or a gap here."""
        return self.judgement is not None and self.judgement.is_new

    @property
    def is_named(self) -> bool:
        """Whether it is named as a reason: it lowers the score, or no training row had it."""
        return self.cost > 0 or (self.is_new and self.cell is not None)

    @property
    def words(self) -> str:
        """Value and usual values, such as "530, usually 0.4 to 6.1".

        A number that is unusual for its group or time is "high for machine 17, usually 4 to 6".
        """
        if self.judgement is None:
            return self.value
        words = [f"usually {self.usual}" if self.usual else "", self.judgement.remark]
        level, whose = (self.judgement.facts.get(name) for name in ("level", "of"))
        if level:
            usual = self.usual.removesuffix(f" {whose}")
            words = [f"{level} {whose}", f"usually {usual}", self.judgement.remark]
        if self.is_unusual and not isinstance(self.cell, float):
            words.reverse()
        return ", ".join(filter(None, [self.value, *words]))

    def as_dict(self) -> dict[str, Any]:
        """Return the reading as a dictionary for JSON."""
        known = self.judgement
        return {
            "name": self.name,
            "value": self.cell,
            "cost": self.cost,
            "is_unusual": None if known is None else known.is_unusual,
            "usual": None if known is None else known.facts,
            "words": self.words,
        }


@dataclass(frozen=True)
class OwnRange:
    """Usual range for the group of a row, or at its time, with words such as "for machine 17"."""

    low: float
    high: float
    whose: str


@dataclass(frozen=True)
class RowRanges:
    """Usual values for each of q rows in m columns of numbers; NaN for other columns.

    Attributes
    ----------
    low, high : ndarray of shape (q, m)
        Range of the middle 95 % of the numbers of rows like it.
    centre, unit : ndarray of shape (q, m)
        Origin and unit in which the numbers are measured.
    whose : list of str
        For each row, the group and time of these values, such as "for machine 17 at 06:00".
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    unit: FloatArray
    whose: list[str]

    def of(self, row: int, j: int) -> OwnRange | None:
        """Return what is usual for one row in one column; None if it is no number."""
        low, high = float(self.low[row, j]), float(self.high[row, j])
        return None if low != low else OwnRange(low, high, self.whose[row])


@dataclass(frozen=True)
class UsualValues:
    """Usual values of training rows in each of m columns, in the units of the table.

    Rows labelled as anomalies are not counted. Rows too far outside to be learned are counted, so
    that "never seen in training" is true.

    Attributes
    ----------
    n_rows : int
        Number of these rows.
    low, high : ndarray of shape (m,)
        Range of the middle 95 % of the numbers; NaN for categories.
    least, most : ndarray of shape (m,)
        Smallest and largest number.
    gaps : ndarray of shape (m,)
        Number of rows without a value.
    levels : list of dict or None
        Number of rows with each category; None for numbers.
    learned : ndarray of shape (m,)
        Whether a detector learns from the column; nothing is known of the others.
    sides : list of str or None
        Side of each column on which values are bad, "high" or "low"; empty for both.
    """

    n_rows: int
    low: FloatArray
    high: FloatArray
    least: FloatArray
    most: FloatArray
    gaps: IntArray
    levels: list[dict[str, int] | None]
    learned: NDArray[np.bool_]
    sides: list[str] | None = None

    @classmethod
    def of(cls, X: Any, encoder: FeatureEncoder) -> "UsualValues":
        """Return the usual values of training rows, as `check_table` returned them.

        The encoder knows which columns are learned from, and which hold categories.
        """
        columns = read_columns(X, encoder.categorical_)
        n, m = len(columns[0]), len(columns)
        low, high, least, most = np.full((4, m), np.nan)
        gaps = np.zeros(m, dtype=np.intp)
        levels: list[dict[str, int] | None] = [None] * m
        learned = np.isin(np.arange(m), encoder.source_)
        for j in np.flatnonzero(learned).tolist():
            cells = columns[j]
            if cells.dtype == object:  # texts, be they categories or all blank
                counts = Counter(cells.tolist())
                gaps[j] = counts.pop(None, 0)
                levels[j] = dict(sorted(counts.items()))
                continue
            present = cells[~np.isnan(cells)]
            gaps[j] = n - len(present)
            if len(present):
                last, cut = len(present) - 1, int((1.0 - USUAL) / 2 * len(present))
                places = [0, cut, last - cut, last]
                ordered = np.partition(present, sorted(set(places)))
                least[j], low[j], high[j], most[j] = ordered[places]
        sides = list(encoder.direction_) if any(encoder.direction_) else None
        return cls(n, low, high, least, most, gaps, levels, learned, sides)

    def joined(self, others: "UsualValues") -> "UsualValues":
        """Return the usual values of these rows and others together.

        The middle 95 % of numbers lie between means of both limits, by the number of rows.
        """
        share = others.n_rows / max(self.n_rows + others.n_rows, 1)

        def between(mine: FloatArray, theirs: FloatArray) -> FloatArray:
            """Return means of limits; where only one is known, that."""
            found = (1.0 - share) * mine + share * theirs
            return np.where(np.isnan(found), np.fmin(mine, theirs), found)

        levels: list[dict[str, int] | None] = []
        for mine, theirs in zip(self.levels, others.levels, strict=True):
            if mine is None or theirs is None:
                levels.append(mine)
            else:
                levels.append(dict(sorted((Counter(mine) + Counter(theirs)).items())))
        return UsualValues(
            self.n_rows + others.n_rows,
            between(self.low, others.low),
            between(self.high, others.high),
            np.fmin(self.least, others.least),
            np.fmax(self.most, others.most),
            self.gaps + others.gaps,
            levels,
            self.learned,
        )

    def judge(self, j: int, cell: Any, own: "OwnRange | None" = None) -> Judgement | None:
        """Judge a value of column j, as `values_of` has it, by those of normal rows.

        The result is None for a column that is not learned from. With `own` a number is judged
        by what is usual for its row.
        """
        levels, n_gaps = self.levels[j], int(self.gaps[j])
        if not self.learned[j]:
            return None
        if levels is not None:
            return self._judge_category(levels, n_gaps, cell)
        if n_gaps == self.n_rows:
            is_new = cell is not None
            return Judgement("missing", NEVER if is_new else "", is_new, is_new, {})
        side = "" if self.sides is None else self.sides[j]
        of = OwnRange(float(self.low[j]), float(self.high[j]), "") if own is None else own
        low, high, _ = range_texts(of.low, of.high, of.low if cell is None else cell)
        between = low if low == high else f"{low} to {high}"
        between = {"high": f"up to {high}", "low": f"{low} or more"}.get(side, between)
        usual = " ".join(filter(None, [between, of.whose]))
        facts: dict[str, Any] = {
            "low": None if side == "high" else of.low,
            "high": None if side == "low" else of.high,
        }
        if of.whose:
            facts["of"] = of.whose
        if cell is None:
            share = n_gaps / self.n_rows
            remark = f"missing in {share_text(share)} of training rows" if n_gaps else NEVER
            is_rare = share < 1.0 - USUAL
            return Judgement(usual, remark, is_rare, not n_gaps, facts | {"share": share})
        remark = ""
        if cell > self.most[j] and side != "low":
            remark = "above all training rows"
        elif cell < self.least[j] and side != "high":
            remark = "below all training rows"
        is_high, is_low = side != "low" and cell > of.high, side != "high" and cell < of.low
        if of.whose and (is_high or is_low):
            facts["level"] = "high" if is_high else "low"
        return Judgement(usual, remark, bool(is_high or is_low), False, facts)

    def is_new(self, j: int, cell: Any) -> bool:
        """Return whether no training row had the category or the gap, or a value in its column."""
        if not self.learned[j]:
            return False
        if cell is None:
            return bool(self.gaps[j] == 0)
        levels = self.levels[j]
        return bool(self.gaps[j] == self.n_rows) if levels is None else cell not in levels

    def _judge_category(self, levels: dict[str, int], n_gaps: int, cell: Any) -> Judgement:
        count = n_gaps if cell is None else levels.get(cell, 0)
        shares: dict[str | None, float] = {text: n / self.n_rows for text, n in levels.items()}
        if n_gaps:
            shares[None] = n_gaps / self.n_rows
        # at most three are named, until they make up 90 %
        common = sorted(shares, key=lambda text: (-shares[text], text or ""))[:3]
        totals = np.cumsum([shares[text] for text in common])
        named = common[: int(np.searchsorted(totals, 0.9 - 1e-12)) + 1]
        texts = [f"{readable(text)} ({share_text(shares[text])})" for text in named]
        # a category is rare if all that are as rare as it make up little
        as_rare = sum(n for n in [*levels.values(), n_gaps] if n <= count) / self.n_rows
        share = count / self.n_rows
        return Judgement(
            usual=" or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]])),
            remark=f"{share_text(share)} of training rows" if count else NEVER,
            is_unusual=as_rare < 1.0 - USUAL,
            is_new=not count,
            facts={"share": share, "values": {readable(text): shares[text] for text in named}},
        )


def values_of(X: Any, encoder: FeatureEncoder) -> list[list[Any]]:
    """Return the cells of a table row by row: numbers and texts of categories, None for gaps."""
    columns = [
        [None if cell is None or cell != cell else cell for cell in column.tolist()]
        for column in read_columns(X, encoder.categorical_)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def range_texts(low: float, high: float, value: float) -> list[str]:
    """Return a range and a value with few digits, but so many that they lie as they do."""
    places = [np.sign(value - low), np.sign(value - high)]
    texts: list[str] = []
    for digits in (3, 4, 6, 9, 17):
        texts = [number_text(end, digits) for end in (low, high)]
        texts.append(number_text(value, max(digits, 4)))
        ends, shown = np.array(texts[:2], dtype=float), float(texts[2])
        if np.array_equal(np.sign(shown - ends), places):
            break
    return texts


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with so many digits, whole ones in full."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e15 else text


def share_text(share: float) -> str:
    """Return a share in per cent with three digits; less than all is never 100 %."""
    text = f"{100 * share:.3g}"
    return f"{'99.9' if text == '100' and share < 1 else text} %"


def readable(cell: Any) -> str:
    """Return a value as a text of at most 60 characters."""
    is_number = isinstance(cell, float | np.floating)
    if cell is None or (is_number and np.isnan(cell)):
        return "missing"
    text = number_text(float(cell)) if is_number else str(cell)
    return text if len(text) <= 60 else f"{text[:59]}…"


def rounded_parts(parts: list[float], total: float, decimals: int) -> list[float]:
    """Round the parts of a sum so that they still add up to the sum as it is rounded.

    Each is less than one unit of the last digit from what it was.
    """
    units = np.array(parts) * 10.0**decimals
    if not np.isfinite(units).all():
        return parts
    whole = np.floor(units)
    left = round(round(total, decimals) * 10.0**decimals) - whole.sum()
    up = np.argsort(whole - units, kind="stable")[: int(np.clip(left, 0, len(parts)))]
    whole[up] += 1
    return [round(float(value) / 10.0**decimals, decimals) for value in whole]


@dataclass(frozen=True)
class Explanation:
    """Explanation of the scores of q rows, with d members and m features.

    Attributes
    ----------
    score : ndarray of shape (q,)
        Fused score; higher is more normal.
    offset : float
        Threshold: a lower score raises an alarm.
    p_value : ndarray of shape (q,)
        Conformal p-value: how rarely a normal row scores this low.
    member_names : list of str
        Names of the members, in the order of the columns below.
    member_scores : ndarray of shape (q, d)
        Scores of the members, in their own units.
    normalised_scores : ndarray of shape (q, d)
        Scores of the members, normalised to one scale.
    weights : ndarray of shape (q, d)
        Weight of each member for each row.
    base : ndarray of shape (q,)
        Score before the contributions of members are added; 0 for linear fusions.
    contributions : ndarray of shape (q, d)
        Contribution of each member to the score: ``base + contributions.sum(1) == score``.
    local_p : ndarray of shape (q,)
        Norm p of the weights of each row; NaN if the fusion has none.
    nearest_rows : ndarray of shape (q, k)
        Nearest normal training rows, as positions in the X of `fit`.
    nearest_distances : ndarray of shape (q, k)
        Their distances in standardised features.
    feature_names : list of str
        Names of the features, in the order of the column below.
    attributions : ndarray of shape (q, m)
        How much each feature lowers the score: the change of the score when the feature is
        replaced by the value of the most similar normal rows. A large number means that this
        feature makes the row unusual; 0 that one of those rows has such a value. ``reference_score
        - attributions.sum(1) == score``.
    values : list of list or None
        Cells of the rows as given: numbers, texts of categories, None for gaps.
    usual : UsualValues or None
        Usual values of normal training rows in each column.
    trust_reasons : list of str
        Why each member is trusted more or less than others, as text; empty if the fusion gives no
        reasons. The same for all rows.
    rules : list of str
        Limits that each row breaks, such as "temp above 90", or an empty text; an empty list if
        there are no limits.
    ranges : RowRanges or None
        Usual values for each row, if they depend on its group or time.
    is_learned : ndarray of shape (m,) or None
        Which columns are features: those of groups and times are not. None is all.
    """

    score: FloatArray
    offset: float
    p_value: FloatArray
    member_names: list[str]
    member_scores: FloatArray
    normalised_scores: FloatArray
    weights: FloatArray
    base: FloatArray
    contributions: FloatArray
    local_p: FloatArray
    nearest_rows: IntArray
    nearest_distances: FloatArray
    feature_names: list[str]
    attributions: FloatArray
    values: list[list[Any]] | None = None
    usual: UsualValues | None = None
    trust_reasons: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    ranges: RowRanges | None = None
    is_learned: BoolArray | None = None

    @property
    def is_anomaly(self) -> NDArray[np.bool_]:
        """Whether each row raises an alarm, by its score or by a limit."""
        is_broken = np.array([bool(self.rule(i)) for i in range(len(self))], dtype=bool)
        return np.asarray((self.score < self.offset) | is_broken)

    def rule(self, row: int = 0) -> str:
        """Return which limits a row breaks; empty for none."""
        return self.rules[row] if self.rules else ""

    @property
    def reference_score(self) -> FloatArray:
        """Score that each row would have with the feature values of the most similar rows."""
        return np.asarray(self.score + self.attributions.sum(axis=1))

    def __len__(self) -> int:
        return len(self.score)

    def readings(self, row: int = 0, count: int | None = None) -> list[Reading]:
        """Return the features of one row: values, usual values, and how much they lower the score.

        Parameters
        ----------
        row : int, default=0
            Position among the explained rows.
        count : int, default=None
            Most features to return. None returns all.

        Returns
        -------
        list of Reading
            First categories and gaps that training did not have, then those that lower the score
            most. Columns that are no features, such as those of groups and times, are left out.
        """
        costs = self.attributions[row]
        order = np.argsort(-costs, kind="stable")
        if self.is_learned is not None:
            order = order[self.is_learned[order]]
        new = self._new(row)
        order = np.concatenate([order[new[order]], order[~new[order]]])
        return [self._reading(row, j) for j in order[:count].tolist()]

    def reason(self, row: int = 0) -> str:
        """Return in one line what makes a row unusual.

        Parameters
        ----------
        row : int, default=0
            Position among the explained rows.

        Returns
        -------
        str
            Text such as "TSH 530, usually 0.4 to 6.1". Values that are usual by themselves are
            named as unusual together. A broken limit is named first, and alone if the score would
            raise no alarm.
        """
        rule = self.rule(row)
        if rule:
            others = f"; {self._reason(row)}" if self.score[row] < self.offset else ""
            return f"limit broken: {rule}{others}"
        return self._reason(row)

    def _reason(self, row: int) -> str:
        """Say in one line what is behind the score."""
        found = self._named(row, 3, 0.9)
        alone = [f"{one.name} {one.words}" for one in found if one.is_unusual]
        together = ", ".join(f"{one.name} {one.value}" for one in found if not one.is_unusual)
        if not found:
            return "no single column"
        if alone:
            return "; ".join([*alone, f"together with {together}"] if together else alone)
        return f"no value is unusual alone, but together: {together}"

    def describe(self, row: int = 0, *, n_members: int = 5, n_features: int = 5) -> str:
        """Explain the score of one row as text.

        Parameters
        ----------
        row : int, default=0
            Position among the explained rows.
        n_members : int, default=5
            Most members to list, the most trusted first.
        n_features : int, default=5
            Most features to list, the most unusual first.

        Returns
        -------
        str
            Several lines. The numbers at the ends of the lines of features add up to the score; so
            do those of members.
        """
        state = "anomaly" if self.is_anomaly[row] else "normal"
        near = ", ".join(map(str, self.nearest_rows[row]))
        decimals = self._decimals(row)
        lines = [
            f"{state}: score {self.score[row]:.{decimals}f}, threshold {self.offset:.{decimals}f}, "
            f"p-value {self.p_value[row]:.3g}",
            *([f"limit broken, whatever the score: {self.rule(row)}"] if self.rule(row) else []),
            *self._feature_lines(row, n_features),
            *self._member_lines(row, n_members),
            f"nearest normal training rows: {near}",
        ]
        return "\n".join(lines)

    def to_shap(self, of: str = "features") -> Any:
        """Return the explanation as an object of the package shap, for its plots.

        ``base_values + values.sum(axis=1)`` is the score. Higher scores are more normal, so what
        makes a row unusual has a negative value. Values of features are minus `attributions`. They
        are not Shapley values: features are replaced by usual values one after another.

        Parameters
        ----------
        of : {"features", "members"}, default="features"
            Whether to return the effect of features, or the contributions of members.

        Returns
        -------
        shap.Explanation
            One row per explained row. Needs the extra `shap`.
        """
        shap = needed("shap", "to make its explanations", "shap")
        if of == "members":
            return shap.Explanation(
                values=self.contributions,
                base_values=self.base,
                data=self.normalised_scores,
                feature_names=list(self.member_names),
            )
        check_choice(of, "of", ("features", "members"))
        return shap.Explanation(
            values=0.0 - self.attributions,  # no -0.0
            base_values=self.reference_score,
            data=None if self.values is None else _cells(self.values),
            feature_names=list(self.feature_names),
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks: one line per row, its reasons in short."""
        heads = (
            "row",
            "verdict",
            "score",
            "p-value",
            "what makes it unusual",
            "most trusted members",
        )
        lines = [self._html_cells(i) for i in range(min(len(self), 20))]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines)
        left = len(self) - len(lines)
        more = f"<p>and {left} more rows</p>" if left else ""
        head = "".join(f"<th>{text}</th>" for text in heads)
        return (
            f"<p>Explanation of {len(self)} rows, threshold {self.offset:.3f}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        )

    def _html_cells(self, row: int) -> list[str]:
        members = np.argsort(-np.abs(self.weights[row]), kind="stable")[:3].tolist()
        trusted = [f"{self.member_names[j]} ({self.weights[row, j]:+.3g})" for j in members]
        features = [f"{one.name} {_in_words(one)} ({one.cost:+.3g})" for one in self._named(row, 3)]
        return [
            str(row),
            "<b>anomaly</b>" if self.is_anomaly[row] else "normal",
            f"{self.score[row]:.3f}",
            f"{self.p_value[row]:.3g}",
            escape("; ".join([*filter(None, [self.rule(row)]), *features])),
            escape(", ".join(trusted)),
        ]

    def _decimals(self, row: int) -> int:
        """Return how many decimals scores are shown with: 3, and up to 9 where they are small."""
        most = max(abs(self.score[row]), abs(self.offset))
        small = -int(np.floor(np.log10(most))) - 1 if 0 < most < np.inf else 0
        return min(3 + max(small, 0), 9)

    def _reading(self, row: int, j: int) -> Reading:
        cell = None if self.values is None else self.values[row][j]
        judgement = None
        value = "" if self.values is None else readable(cell)
        if self.usual is not None and self.values is not None:
            own = None if self.ranges is None else self.ranges.of(row, j)
            judgement = self.usual.judge(j, cell, own)
            if isinstance(cell, float):
                low, high = self.usual.low[j], self.usual.high[j]
                if own is not None:
                    low, high = own.low, own.high
                value = range_texts(low, high, cell)[2]
        return Reading(
            self.feature_names[j], value, float(self.attributions[row, j]), judgement, cell
        )

    def _new(self, row: int) -> NDArray[np.bool_]:
        """Return which features have a category, or a gap, that training never had."""
        new = np.zeros(self.attributions.shape[1], dtype=bool)
        if self.usual is not None and self.values is not None:
            for j, cell in enumerate(self.values[row]):
                # a row with a gap may be judged by its other columns
                counts = cell is not None or self.attributions[row, j] > 0
                new[j] = counts and self.usual.is_new(j, cell)
        return new

    def _named(self, row: int, count: int, share: float = 1.0) -> list[Reading]:
        """Return the features to name: those that cost something, and what training never had."""
        found = [one for one in self.readings(row, count) if one.is_named]
        most = share * np.maximum(self.attributions[row], 0).sum()
        before = np.cumsum([0.0, *(max(one.cost, 0.0) for one in found[:-1])])
        return [
            one
            for one, sum_ in zip(found, before, strict=False)
            if (one.is_new and one.cell is not None) or sum_ < most
        ]

    def _feature_lines(self, row: int, n_features: int) -> list[str]:
        """Return a sum: a row like it, what each feature costs, the score."""
        found = self._named(row, n_features)
        if not found:
            return ["no single column makes it unusual"]
        is_learned = self.is_learned
        n_learned = self.attributions.shape[1] if is_learned is None else int(is_learned.sum())
        rest = n_learned - len(found)
        names = [f"{one.name} {_in_words(one)}".rstrip() for one in found]
        shares = [-one.cost for one in found]
        names = ["with values of the normal rows most like it", *names]
        shares = [float(self.reference_score[row]), *shares]
        if rest > 0:
            names.append(_others(rest, "column"))
            shares.append(float(self.score[row] - sum(shares)))
        return self._sum_lines(row, names, shares)

    def _member_lines(self, row: int, n_members: int) -> list[str]:
        """Return a table of members whose shares add up to the score."""
        order = np.argsort(-np.abs(self.weights[row]), kind="stable")
        top = order[:n_members].tolist()
        shares = [float(self.contributions[row, j]) for j in top]
        scores = [f"{self.normalised_scores[row, j]:.3f}" for j in top]
        wide = max([10, *(len(text) + 2 for text in scores)])
        names = [
            f"{self.weights[row, j]:>8.3f}{text:>{wide}}"
            for j, text in zip(top, scores, strict=True)
        ]
        width = max([16, *(len(self.member_names[j]) + 2 for j in top)])
        names = [
            f"{self.member_names[j]:<{width}}{text}" for j, text in zip(top, names, strict=True)
        ]
        if len(order) > len(top):
            names.append(_others(len(order) - len(top), "member"))
            shares.append(float(self.contributions[row, order[n_members:]].sum()))
        if self.base[row]:
            names.append("before any member has spoken")
            shares.append(float(self.base[row]))
        heads = f"{'member':<{width}}{'weight':>8}{'score':>{wide}}"
        return self._sum_lines(row, names, shares, heads)

    def _sum_lines(
        self, row: int, names: list[str], parts: list[float], heads: str = ""
    ) -> list[str]:
        """Return lines with the parts of a score at their ends, and the score below."""
        decimals = self._decimals(row)
        score = float(self.score[row])
        numbers = [
            f"{part:.{decimals}f}" for part in [*rounded_parts(parts, score, decimals), score]
        ]
        names = [*names, "score"]
        width = max(map(len, [heads, *names]))
        wide = max(map(len, numbers)) + 2
        top = [f"{heads:<{width}}{'share':>{wide}}"] if heads else []
        return top + [
            f"{name:<{width}}{text:>{wide}}" for name, text in zip(names, numbers, strict=True)
        ]


def _in_words(reading: Reading) -> str:
    """Return a value and what is usual, or that it is usual by itself."""
    if reading.is_unusual:
        return reading.words
    return f"{reading.value}, usual alone, unusual together with the others"


def _others(count: int, noun: str) -> str:
    return f"{count} other {noun}{'' if count == 1 else 's'}"


def attribute_features(
    score: Callable[[FloatArray], FloatArray],
    X: FloatArray,
    reference: FloatArray,
    source: IntArray,
    n_features: int | None = None,
    chunk_rows: int = 2048,
) -> FloatArray:
    """Split the difference ``score(reference) - score(X)`` into shares of the features.

    The features of a row are replaced by those of the reference one after another, those that
    differ most first, and once more in the opposite order. The share of a feature is the mean of
    its two changes of the score. It is 0 for a feature that does not differ, and exact for a score
    that is a sum over features. A row takes two scored rows per feature that differs; those of all
    rows are scored together, `chunk_rows` at a time.

    Parameters
    ----------
    score : callable
        Maps encoded rows (r, e) to scores (r,).
    X : ndarray of shape (q, e)
        Encoded rows.
    reference : ndarray of shape (q, e)
        Encoded normal row for each row of X.
    source : ndarray of shape (e,)
        Feature of each encoded column, 0 to m - 1; -1 for columns that are not replaced.
    n_features : int, default=None
        Number of features; None is one more than the largest in `source`.
    chunk_rows : int, default=2048
        Number of rows to score in one call.

    Returns
    -------
    ndarray of shape (q, m)
        One share per feature.
    """
    m = int(source.max()) + 1 if n_features is None else n_features
    paths = [_path(x, r, source, m) for x, r in zip(X, reference, strict=True)]
    lengths = np.array([len(path) for path in paths], dtype=np.intp)
    # When a feature goes over: on the way there, and on the way in the opposite order.
    # Columns of no feature read the last entry, which is never.
    when = np.repeat(lengths[:, np.newaxis], m + 1, axis=1)
    for i, path in enumerate(paths):
        when[i, path] = np.arange(len(path))
    back = np.where(when < lengths[:, np.newaxis], lengths[:, np.newaxis] - 1 - when, when)
    # Both ways have the same ends: of the way back only what lies between is scored.
    counts = np.where(lengths > 0, 2 * lengths, 0)
    row = np.repeat(np.arange(len(X)), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_back = place > lengths[row]
    step = np.where(is_back, place - lengths[row], place)
    scores = np.empty(len(row))
    for start in range(0, len(row), chunk_rows):
        some = slice(start, start + chunk_rows)
        which = row[some]
        times = np.where(is_back[some, np.newaxis], back[which], when[which])[:, source]
        moved = times < step[some, np.newaxis]
        scores[some] = score(np.where(moved, reference[which], X[which]))
    shares = np.zeros((len(X), m))
    for path, share, theirs in zip(
        paths, shares, np.split(scores, np.cumsum(counts)), strict=False
    ):
        if len(path):
            there, between = theirs[: len(path) + 1], theirs[len(path) + 1 :]
            back = np.concatenate([there[:1], between, there[-1:]]) if len(path) > 1 else there
            share[path] = 0.5 * (np.diff(there) + np.diff(back)[::-1])
    return shares


def _path(x: FloatArray, reference: FloatArray, source: IntArray, m: int) -> IntArray:
    """Return the features that differ, those that differ most first."""
    difference = np.zeros(m)
    known = source >= 0
    np.maximum.at(difference, source[known], np.abs(x - reference)[known])
    order = np.argsort(-difference, kind="stable")
    return order[difference[order] > 0]


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return texts as a table for notebooks; none of them is taken for HTML."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    above = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def _cells(values: list[list[Any]]) -> NDArray[Any]:
    """Return rows as an array of numbers, NaN for gaps, or of objects if there is text."""
    cells = np.array(values, dtype=object).reshape(len(values), -1)
    if any(isinstance(cell, str) for cell in cells.ravel()):
        return cells
    return np.array([[np.nan if c is None else c for c in row] for row in cells], dtype=np.float64)
