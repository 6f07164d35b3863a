"""Tables of words: the three formats say the same, and nothing breaks them."""

import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.paper.sheet import GAP, SPECIAL, Bold, Sheet, escape, number, p_value

SHEET = Sheet(
    "name",
    "A & B",
    ["system", "D1_x", "D2"],
    [["one|two", Bold("97.00 ± 1.00"), GAP], ["50 %", "-1.50", "+2"]],
    note="A note.",
    rules={1: "ours_only"},
)


def test_markdown():
    assert SHEET.markdown() == (
        "## A & B\n\nA note.\n\n"
        "| system | D1_x | D2 |\n"
        "| --- | --- | --- |\n"
        "| one\\|two | **97.00 ± 1.00** | - |\n"
        "| *ours_only* |  |  |\n"
        "| 50 % | -1.50 | +2 |"
    )


def test_csv_has_no_figure_for_a_gap():
    rows = list(csv.reader(io.StringIO(SHEET.csv())))
    assert rows == [
        ["system", "D1_x", "D2"],
        ["one|two", "97.00 ± 1.00", ""],
        ["50 %", "-1.50", "+2"],
    ]
    raw = Sheet("n", "t", ["a"], [["1.00"]], raw=(["a", "b"], [[1.0, float("nan")], [None, 2]]))
    assert raw.csv() == "a,b\n1.0,\n,2\n"


def test_latex():
    lines = SHEET.latex().splitlines()
    assert lines[0] == r"% A \& B; needs \usepackage{booktabs}"
    assert lines[1:] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & D1\_x & D2 \\",
        r"\midrule",
        r"one\textbar{}two & \textbf{97.00 $\pm$ 1.00} & - \\",
        r"\midrule",
        r"\multicolumn{3}{l}{\emph{ours\_only}} \\",
        r"50 \% & $-$1.50 & +2 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_long_table_breaks_over_pages():
    text = Sheet("n", "t", ["a"], [["1"]] * 61).latex()
    assert r"\begin{longtable}{r}" in text
    assert "booktabs,longtable" in text


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="".join(SPECIAL) + "ab1- ", max_size=30))
def test_escaped_text_is_balanced_and_plain(text):
    escaped = escape(text)
    # what is left when all commands are taken away is no longer special
    bare = re.sub(r"\\text[a-z]+\{[2]?\}|\\[&%$#_{}]|\$\\pm\$|\$\^\\dagger\$|\$-\$", "", escaped)
    assert not set(bare) & set("\\&%$#_{}~^<>|\n")


def test_rows_must_fit():
    with pytest.raises(InvalidInputError, match="must have 2 cells"):
        Sheet("n", "t", ["a", "b"], [["1"]])


def test_numbers():
    assert number(float("nan")) == GAP
    assert (number(1.005, 1), number(2.0, sign="+"), number(-0.5, 1, "+")) == (
        "1.0",
        "+2.00",
        "-0.5",
    )
    assert (p_value(None), p_value(0.012345), p_value(1.0913e-7, 4)) == (GAP, "0.0123", "1.091e-07")
