"""Read what a fit is given: rows, labels, groups and context, checked."""

import warnings
from typing import Any

import numpy as np

from ocfuse.columns import EMPTY
from ocfuse.ensemble.labels import ANOMALY, check_labels
from ocfuse.ensemble.learning import Table
from ocfuse.ensemble.rows import check_groups
from ocfuse.exceptions import IgnoredColumnsWarning, InvalidInputError
from ocfuse.features import check_table
from ocfuse.fusion.inputs import check_context

#: Fewest normal rows that anything can be learned from.
FEWEST_ROWS = 5


def read_table(X: Any, y: Any, groups: Any, context: Any) -> Table:
    """Return the rows to learn from, or refuse them; see `FusedDetector.fit`."""
    rows = check_table(X)
    n = len(rows)
    labels = check_labels(y, n)
    situation = None if context is None else check_context(context, n)
    table = Table(rows, labels, check_groups(groups, n), situation)
    n_learned = int(np.sum(labels != ANOMALY))
    if n_learned < FEWEST_ROWS:
        raise InvalidInputError(
            f"At least {FEWEST_ROWS} rows that are not anomalies are needed to learn from. "
            f"Got n_samples = {n_learned}."
        )
    return table


def warn_of_ignored(columns: list[str]) -> None:
    """Tell which columns are not learned from."""
    if columns:
        are_empty = all(column.endswith(f"({EMPTY})") for column in columns)
        named = "What is a category all the same can be named: "
        advice = "" if are_empty else f" {named}encoder=FeatureEncoder(categories=[...])."
        warnings.warn(
            f"These columns are not learned from: {'; '.join(columns)}.{advice}",
            IgnoredColumnsWarning,
            stacklevel=4,
        )
