"""What ordinary tables suffer from, put into a table at stated shares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.ordinary.sources import Frame, Rows, number_columns, text_columns

#: Share of blank cells in each of so many columns, and of gaps in a column without in training.
BLANK_SHARE, BLANK_COLUMNS = 0.05, 3
#: Rows with a planted value; for new categories, one fresh row in so many.
PLANTED, ONE_IN = 20, 10
SHIFT = 6.0
NEAR = 1e-9
LABELLED = 5
#: A logger repeats its last row so often on average.
RUN_LENGTH = 2.5
NEVER_SEEN = "never seen before"

Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A table with one trouble.

    `planted` are rows of `fresh` with one value changed, `unplanted` the same rows as they were,
    `planted_in` the names of the changed columns.
    """

    train: Frame
    fresh: Frame
    anomalies: Frame
    y: NDArray[np.int64] | None = None
    planted: Frame = None
    unplanted: Frame = None
    planted_in: tuple[str, ...] = ()


Trouble = Callable[[Rows, Generator], Case | None]


def none(rows: Rows, rng: Generator) -> Case:
    return _with_shifts(Case(rows.train, rows.fresh, rows.anomalies), rng)


# -- blanks ------------------------------------------------------------------------------------


def blanks(rows: Rows, rng: Generator) -> Case:
    """Blank cells in three columns, one of text if there is one, and gaps that training had not."""
    text = text_columns(rows.train)
    first = [str(rng.choice(text))] if text else []
    others = [name for name in rng.permutation(list(rows.train)) if name not in first]
    chosen = [*first, *others][:BLANK_COLUMNS]
    train, fresh, anomalies = (
        _blanked(frame, chosen, rng) for frame in (rows.train, rows.fresh, rows.anomalies)
    )
    complete = [name for name in others if train[name].notna().all()][:1]
    late = (_blanked(frame, complete, rng) for frame in (fresh, anomalies))
    return _with_shifts(Case(train, *late), rng)


def _blanked(frame: Frame, columns: list[str], rng: Generator) -> Frame:
    is_blank = {name: rng.random(len(frame)) < BLANK_SHARE for name in columns}
    return frame.assign(**{name: frame[name].mask(is_blank[name]) for name in columns})


# -- copies ------------------------------------------------------------------------------------


def twice(rows: Rows, rng: Generator) -> Case:
    return _copied(rows, np.full(len(rows.train), 2))


def three_times(rows: Rows, rng: Generator) -> Case:
    return _copied(rows, np.full(len(rows.train), 3))


def half_twice(rows: Rows, rng: Generator) -> Case:
    return _copied(rows, 1 + (np.arange(len(rows.train)) < len(rows.train) // 2))


def nearly_twice(rows: Rows, rng: Generator) -> Case:
    case = twice(rows, rng)
    noise = {
        name: case.train[name] + NEAR * rng.normal(size=len(case.train))
        for name in number_columns(case.train)
    }
    return replace(case, train=case.train.assign(**noise))


def runs_of_rows(rows: Rows, rng: Generator) -> Case:
    return _copied(rows, rng.geometric(1 / RUN_LENGTH, size=len(rows.train)))


def _copied(rows: Rows, times: NDArray[np.int64]) -> Case:
    places = np.repeat(np.arange(len(rows.train)), times)
    return Case(rows.train.iloc[places].reset_index(drop=True), rows.fresh, rows.anomalies)


# -- new categories, ids, labels ---------------------------------------------------------------


def new_categories(rows: Rows, rng: Generator) -> Case | None:
    """Give every tenth fresh row an unseen category; false alarms count the others."""
    text = [name for name in text_columns(rows.train) if 1 < rows.train[name].nunique() <= 50]
    if not text:
        return None
    name = str(rng.choice(text))
    places = np.arange(0, len(rows.fresh), ONE_IN)
    fresh = rows.fresh.copy()
    fresh.loc[places, name] = NEVER_SEEN
    others = fresh.drop(index=places).reset_index(drop=True)
    return Case(
        rows.train,
        others,
        rows.anomalies,
        planted=fresh.iloc[places],
        unplanted=rows.fresh.iloc[places],
        planted_in=(name,) * len(places),
    )


def ids(rows: Rows, rng: Generator) -> Case:
    """Add an id and free text, both different in every row."""
    named = [_with_ids(frame, rng) for frame in (rows.train, rows.fresh, rows.anomalies)]
    return _with_shifts(Case(*named), rng, apart=("record_id", "remark"))


def _with_ids(frame: Frame, rng: Generator) -> Frame:
    words = (
        "seen",
        "late",
        "again",
        "by",
        "the",
        "second",
        "shift",
        "no",
        "change",
        "left",
        "door",
    )
    numbers = rng.permutation(10**6)[: len(frame)]
    remarks = [f"{' '.join(rng.choice(words, size=4))} {number}" for number in numbers]
    return frame.assign(record_id=[f"R-{number:06d}" for number in numbers], remark=remarks)


def few_labels(rows: Rows, rng: Generator) -> Case | None:
    """Label a few anomalies of the training table; the other rows are unknown."""
    if len(rows.anomalies) < 2 * LABELLED:
        return None
    known, rest = rows.anomalies[:LABELLED], rows.anomalies[LABELLED:]
    # rows of one table: what is joined has its types
    train = _joined(rows.train, known)
    y = np.where(np.arange(len(train)) < len(rows.train), 0, -1)
    return Case(train, rows.fresh, rest, y=y)


def _joined(*frames: Frame) -> Any:
    places = [(frame, i) for frame in frames for i in range(len(frame))]
    first = frames[0]
    columns = {name: [frame[name].iloc[i] for frame, i in places] for name in first}
    return type(first)(columns).astype(first.dtypes.to_dict())


# -- planted values ----------------------------------------------------------------------------


def _with_shifts(case: Case, rng: Generator, apart: tuple[str, ...] = ()) -> Case:
    """Plant shifts by six standard deviations, away from the mean, one in each of some rows."""
    names = [name for name in number_columns(case.train) if name not in apart]
    if not names:
        return case
    planted = case.fresh.iloc[:PLANTED].copy()
    chosen = tuple(str(name) for name in rng.choice(names, size=len(planted)))
    for name in set(chosen):
        planted[name] = planted[name].astype(float)
    for i, name in enumerate(chosen):
        mean, spread = case.train[name].mean(), case.train[name].std()
        value = planted[name].iloc[i]
        value = mean if np.isnan(value) else value
        away = 1.0 if value >= mean else -1.0
        planted.iloc[i, planted.columns.get_loc(name)] = value + away * SHIFT * spread
    return replace(case, planted=planted, unplanted=case.fresh.iloc[:PLANTED], planted_in=chosen)


TROUBLES: dict[str, Trouble] = {
    "none": none,
    "blanks": blanks,
    "rows twice": twice,
    "rows three times": three_times,
    "half of the rows twice": half_twice,
    "copies with noise 1e-9": nearly_twice,
    "runs of repeated rows": runs_of_rows,
    "new categories": new_categories,
    "ids and free text": ids,
    "five labels": few_labels,
}
