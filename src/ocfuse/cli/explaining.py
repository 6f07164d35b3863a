"""The work of `ocfuse explain`."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from ocfuse.cli.models import load_model
from ocfuse.cli.output import collected, print_json, print_line, warn_of
from ocfuse.cli.scored import scored, scored_chunks
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation
from ocfuse.tables import Source, TableDetector, open_source
from ocfuse.tables.detector import RESULTS

__all__ = ["explain_rows", "load_model", "open_source"]


def explain_rows(
    model: TableDetector,
    opened: Callable[[], Source],
    wanted: list[int],
    worst: int,
    *,
    json: bool,
) -> None:
    """Explain rows by their numbers, or if there are none those with the lowest scores."""
    with collected() as notes:
        source = opened()
        frame = _rows(source, wanted) if wanted else _worst(model, source, worst)
    with collected() as again:
        names = scored(model, frame).drop(columns=list(RESULTS)).to_dict("records")
    with collected():  # the same once more
        explanation = model.explain(frame)
    warn_of([*notes, *again] if wanted else notes)
    if json:
        print_json([names[i] | _as_dict(explanation, i) for i in range(len(frame))])
        return
    for i, name in enumerate(names):
        known = {key: value for key, value in name.items() if pd.notna(value)}
        print_line(", ".join(f"{key} {value}" for key, value in known.items()))
        print_line(explanation.describe(i) + "\n")


def _rows(source: Source, wanted: list[int]) -> pd.DataFrame:
    """Return rows by their numbers, in the order asked for."""
    found, n_rows = [], 0
    for chunk in source.chunks():
        found.append(chunk[chunk.index.isin(wanted)])
        n_rows += len(chunk)
        if sum(map(len, found)) == len(set(wanted)):
            return pd.concat(found).loc[wanted]
    missing = sorted(set(wanted) - {number for part in found for number in part.index})
    raise InvalidInputError(
        f"{source.name} has {n_rows} rows, numbered from 0. "
        f"Got --row {', '.join(map(str, missing))}."
    )


def _worst(model: TableDetector, source: Source, count: int) -> pd.DataFrame:
    """Return the rows with the lowest scores, the lowest first."""
    rows, lowest = pd.DataFrame(), pd.Series(dtype=float)
    for chunk, scores in scored_chunks(model, source):
        lowest = pd.concat([lowest, scores["score"]]) if len(lowest) else scores["score"]
        lowest = lowest.sort_values(kind="stable").head(count)
        rows = pd.concat([rows, chunk]) if len(rows) else chunk
        rows = rows.loc[lowest.index]
    return rows


def _as_dict(explanation: Explanation, i: int) -> dict[str, Any]:
    members = zip(
        explanation.member_names,
        explanation.weights[i].tolist(),
        explanation.normalised_scores[i].tolist(),
        explanation.contributions[i].tolist(),
        strict=True,
    )
    features = zip(explanation.feature_names, explanation.attributions[i].tolist(), strict=True)
    near = zip(explanation.nearest_rows[i], explanation.nearest_distances[i], strict=True)
    return {
        "score": explanation.score[i],
        "threshold": explanation.offset,
        "p_value": explanation.p_value[i],
        "is_anomaly": explanation.is_anomaly[i],
        "base": explanation.base[i],
        "local_p": explanation.local_p[i],
        "members": [
            dict(zip(("name", "weight", "score", "share"), member, strict=True))
            for member in members
        ],
        "nearest_normal": [{"row": row, "distance": distance} for row, distance in near],
        "features": [{"name": name, "cost": cost} for name, cost in features],
    }
