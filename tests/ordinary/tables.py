"""Tables as people have them, one kind of trouble each, made from a seed.

A kind is a sentence, a source of rows and what happens to the training rows. All rows of a source
are alike, so that a detector that learned some of them should accept the others.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ocfuse.tables import open_source

TRAIN, FRESH = 200, 400


@dataclass(frozen=True)
class Kind:
    """One kind of table.

    `rows` makes so many rows, `copied` is what happens to those that are learned from, and
    `number` is a column of numbers that a fault may move, if there is one.
    """

    rows: Callable[[np.random.Generator, int], pd.DataFrame]
    copied: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame] | None = None
    number: str | None = "x"


def draw(kind, seed=0):
    """Return training rows and fresh rows of a kind."""
    rng = np.random.default_rng(seed)
    frame = kind.rows(rng, TRAIN + FRESH)
    train, fresh = frame[:TRAIN], frame[TRAIN:].reset_index(drop=True)
    return (kind.copied(train, rng) if kind.copied else train), fresh


def through_csv(frame, **options):
    """Return a table as it is read from the text of a CSV file."""
    text = frame.to_csv(index=False, **options)
    return open_source(io.BytesIO(text.encode())).read()


# -- numbers ------------------------------------------------------------------------------------


def numbers(rng, n):
    x, y, z = rng.normal(size=(3, n))
    return pd.DataFrame({"x": x, "y": x + 0.3 * y, "z": z})


def heavy_tails(rng, n):
    return pd.DataFrame(rng.standard_t(2, size=(n, 4)), columns=["x", "y", "z", "w"])


def skewed(rng, n):
    return pd.DataFrame(np.exp(1.5 * rng.normal(size=(n, 4))), columns=["x", "y", "z", "w"])


def counts(rng, n):
    rates = (0.4, 1, 3, 8)
    return pd.DataFrame(rng.poisson(rates, size=(n, 4)), columns=["a", "b", "c", "x"])


def modes(rng, n):
    centres = np.array([[0, 0, 0], [9, 0, 4], [0, 9, -4]])
    chosen = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(centres[chosen] + rng.normal(size=(n, 3)), columns=["x", "y", "z"])


def zeros_and_ones(rng, n):
    ones = rng.random((n, 10)) < np.linspace(0.1, 0.9, 10)
    return pd.DataFrame(ones.astype(int), columns=[f"q{j}" for j in range(10)])


def rounded(rng, n):
    return numbers(rng, n).round(1)


def large_and_small(rng, n):
    table = numbers(rng, n)
    return table.assign(y=1e12 + 1e6 * table["y"], z=1e-12 * table["z"])


def constants(rng, n):
    return numbers(rng, n).assign(always=7.5, site="north")


def nothing_in_a_column(rng, n):
    return numbers(rng, n).assign(empty=np.nan)


def number_with_gaps(rng, n):
    table = numbers(rng, n)
    return table.assign(z=table["z"].mask(rng.random(n) < 0.2))


def mostly_gaps(rng, n):
    table = numbers(rng, n)
    return table.assign(z=table["z"].mask(rng.random(n) < 0.9))


def wide(rng, n):
    hidden = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 60))
    table = pd.DataFrame(hidden + 0.3 * rng.normal(size=(n, 60)))
    return table.set_axis(["x", *(f"s{j}" for j in range(1, 60))], axis=1)


def percent_and_currency(rng, n):
    table = numbers(rng, n)
    share, price = 50 + 8 * table["y"], 1_000 * np.exp(table["z"])
    return pd.DataFrame(
        {
            "x": table["x"],
            "share": [f"{value:.1f}%" for value in share],
            "price": [f"${value:.2f}" for value in price],
            "total": [f"{value:,.2f}" for value in 10 * price],
        }
    )


# -- text ---------------------------------------------------------------------------------------


def chosen(rng, n, levels, shares=None):
    return rng.choice(np.array(levels, dtype=object), size=n, p=shares)


def categories(rng, n):
    colour = chosen(rng, n, ["red", "green", "blue"], [0.5, 0.3, 0.2])
    return numbers(rng, n).assign(colour=colour, size=chosen(rng, n, ["s", "m", "l"]))


def only_text(rng, n):
    columns = {f"c{j}": chosen(rng, n, list("abcdef")[: j + 2]) for j in range(5)}
    return pd.DataFrame(columns)


def text_with_blanks(rng, n):
    table = categories(rng, n)
    return table.assign(
        colour=table["colour"].mask(rng.random(n) < 0.1), x=table["x"].mask(rng.random(n) < 0.05)
    )


def one_blank(rng, n):
    """One cell, among the rows that are learned from."""
    table = categories(rng, n)
    inmost = int((table[["x", "y", "z"]][:TRAIN] ** 2).sum(axis=1).argmin())
    return table.assign(colour=table["colour"].mask(np.arange(n) == inmost))


def rare_levels(rng, n):
    shares = 1 / np.arange(1, 31) ** 1.5
    levels = [f"town {j}" for j in range(30)]
    return numbers(rng, n).assign(town=chosen(rng, n, levels, shares / shares.sum()))


def booleans(rng, n):
    return numbers(rng, n).assign(is_open=rng.random(n) < 0.3, is_new=rng.random(n) < 0.8)


def yes_and_no(rng, n):
    return numbers(rng, n).assign(paid=chosen(rng, n, ["Y", "N", None], [0.6, 0.3, 0.1]))


def unicode_text(rng, n):
    towns = ["Köln", "東京", "Łódź", "القاهرة", "e\u0301te\u0301", "\U0001f642"]
    table = numbers(rng, n).assign(Größe=rng.normal(size=n))
    return table.assign(**{"都市 \U0001f3d9": chosen(rng, n, towns)})


def quoted_text(rng, n):
    words = ['say "no"', "a, b", "c;d", "two  blanks"]
    return numbers(rng, n).assign(**{"what, where": chosen(rng, n, words)})


def digits_and_letters(rng, n):
    return numbers(rng, n).assign(code=chosen(rng, n, ["1", "2", "7b", "A3", "x"]))


def codes_of_digits(rng, n):
    return numbers(rng, n).assign(branch=chosen(rng, n, [10117, 20095, 80331]).astype(int))


# -- what is no measurement -----------------------------------------------------------------------


def ids(rng, n):
    table = numbers(rng, n)
    table.insert(0, "record_id", [f"R-{number:06d}" for number in rng.permutation(10**6)[:n]])
    return table


def counter(rng, n):
    table = numbers(rng, n)
    table.insert(0, "id", np.arange(1000, 1000 + n))
    return table


def free_text(rng, n):
    words = ("late", "again", "by", "the", "second", "shift", "no", "change", "left", "door")
    remarks = [" ".join(rng.choice(words, size=8)) for _ in range(n)]
    return numbers(rng, n).assign(remark=remarks)


def one_row_per_category(rng, n):
    return numbers(rng, n).assign(name=[f"name {j}" for j in rng.permutation(n)])


def dates(rng, n):
    when = pd.date_range("2024-01-31 22:00", periods=n, freq="h").strftime("%Y-%m-%d %H:%M:%S")
    return numbers(rng, n).assign(when=when.to_numpy(dtype=object))


# -- copies ---------------------------------------------------------------------------------------


def repeated(times):
    """Return what repeats every row so often, one after another."""

    def copied(train, rng):
        return train.iloc[np.repeat(np.arange(len(train)), times)].reset_index(drop=True)

    return copied


def half_twice(train, rng):
    return pd.concat([train, train[: len(train) // 2]], ignore_index=True)


def file_twice(train, rng):
    return pd.concat([train, train], ignore_index=True)


def nearly_twice(train, rng):
    table = file_twice(train, rng)
    return table.assign(x=table["x"] + 1e-9 * rng.normal(size=len(table)))


def runs_of_rows(train, rng):
    return repeated(rng.geometric(0.4, size=len(train)))(train, rng)


KINDS = {
    "numbers alone": Kind(numbers),
    "numbers with heavy tails": Kind(heavy_tails),
    "numbers skewed to one side": Kind(skewed),
    "counts": Kind(counts),
    "numbers in three modes": Kind(modes),
    "zeros and ones": Kind(zeros_and_ones, number=None),
    "rounded numbers": Kind(rounded),
    "very large and very small numbers": Kind(large_and_small),
    "constant columns": Kind(constants),
    "a column without a value": Kind(nothing_in_a_column),
    "a number with gaps": Kind(number_with_gaps),
    "a number that is mostly missing": Kind(mostly_gaps),
    "sixty columns": Kind(wide),
    "percent and currency": Kind(percent_and_currency),
    "numbers and categories": Kind(categories),
    "text alone": Kind(only_text, number=None),
    "text with blanks": Kind(text_with_blanks),
    "text with one blank": Kind(one_blank),
    "rare levels": Kind(rare_levels),
    "booleans": Kind(booleans),
    "yes, no and blank": Kind(yes_and_no),
    "text in many scripts": Kind(unicode_text),
    "text in quotes": Kind(quoted_text),
    "codes of digits and letters": Kind(digits_and_letters),
    "codes of digits": Kind(codes_of_digits),
    "an id in every row": Kind(ids),
    "a counter": Kind(counter),
    "free text": Kind(free_text),
    "one row per category": Kind(one_row_per_category),
    "dates": Kind(dates),
    "every row twice": Kind(numbers, repeated(2)),
    "every row five times": Kind(numbers, repeated(5)),
    "the file twice": Kind(categories, file_twice),
    "half of the rows twice": Kind(numbers, half_twice),
    "copies with noise of 1e-9": Kind(numbers, nearly_twice),
    "runs of repeated rows": Kind(numbers, runs_of_rows),
    "zeros and ones twice": Kind(zeros_and_ones, repeated(2), number=None),
    "counts twice": Kind(counts, repeated(2)),
}
