"""`ocfuse explain`: why rows or pictures have their scores."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from ocfuse.cli.options import (
    Columns,
    Config,
    Decimal,
    Delimiter,
    FalseAlarms,
    Gaps,
    Json,
    Model,
    Overlays,
    Quiet,
    Threads,
    Threshold,
    Topic,
    check_flags,
    split_names,
)
from ocfuse.cli.output import collected, oddities, print_json, print_line, warn_of
from ocfuse.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from ocfuse.explain import Explanation
    from ocfuse.streaming import ChannelReading, StreamTable
    from ocfuse.tables import Source, TableDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: What rows are called, what lies behind their scores, and of streams what channels read.
Explained: TypeAlias = "tuple[list[dict[str, Any]], Explanation, list[list[ChannelReading]]]"


@app.command("explain")
def explain_command(
    model: Model,
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table: a CSV, TSV, Parquet, Feather, NPY or NPZ file, a folder of such files, "
            "or - for CSV on stdin; or pictures, or a folder of pictures.",
            show_default=False,
        ),
    ],
    row: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Number of a row to explain, as in the output of `ocfuse score`; may be repeated.",
        ),
    ] = None,
    worst: Annotated[
        int | None, typer.Option(min=1, help="Explain so many rows, those with the lowest scores.")
    ] = None,
    overlays: Overlays = None,
    gaps: Gaps = None,
    threshold: Threshold = None,
    false_alarms: FalseAlarms = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    topic: Topic = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Show why rows or pictures have their scores: which columns or places are unusual."""
    import pandas as pd  # noqa: PLC0415

    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli import model_card  # noqa: PLC0415
    from ocfuse.tables.detector import RUNS  # noqa: PLC0415

    detector = model_card.load_either(model, data[0], threshold, false_alarms, gaps)
    of_tables = {"--row": row, "--gaps": gaps, "--delimiter": delimiter, "--decimal": decimal}
    of_tables |= {"--columns": columns, "--topic": topic}
    is_table = isinstance(detector, tables.TableDetector)
    check_flags("a model of pictures", not is_table, {"--overlays": overlays}, of_tables)
    if not isinstance(detector, tables.TableDetector):
        from ocfuse.cli import pictures  # noqa: PLC0415

        pictures.explain_pictures(detector, data, worst, overlays, threads=threads, json=json)
        return
    if bool(row) == (worst is not None):
        raise typer.BadParameter("give either --row or --worst")
    if len(data) > 1:
        raise typer.BadParameter(f"rows are of one table. Got {', '.join(data)}")
    opened = partial(
        tables.open_source,
        data[0],
        delimiter,
        decimal=decimal,
        columns=split_names(columns),
        topic=topic,
    )
    find = _of_stream if detector.kind == RUNS else _of_table
    names, explanation, readings = find(detector, opened, row or [], worst or 1)
    channels = _channels(detector, explanation, readings)
    if json:
        print_json(
            [names[i] | _as_dict(explanation, i) | channels[i] for i in range(len(explanation))]
        )
        return
    for i, name in enumerate(names):
        print_line(", ".join(f"{key} {value}" for key, value in name.items() if pd.notna(value)))
        read = "; ".join(map(str, readings[i])) if readings else ""
        unusual = f"\nmost unusual channels: {read}" if read else ""
        print_line(explanation.describe(i) + unusual + "\n")


def _of_table(
    model: "TableDetector", opened: "Callable[[], Source]", wanted: list[int], worst: int
) -> Explained:
    """Explain rows by their numbers, or if there are none those with the lowest scores."""
    from ocfuse.cli.score_files import scored  # noqa: PLC0415

    with collected() as notes:
        source = opened()
        frame = _rows(source, wanted) if wanted else _worst(model, source, worst)
    with collected() as again:
        names = scored(model, frame).drop(columns=list(model.result_names)).to_dict("records")
    with collected():  # the same once more
        explanation = model.explain(frame)
    warn_of([*notes, *again] if wanted else notes)
    return names, explanation, []


def _of_stream(
    model: "TableDetector", opened: "Callable[[], Source]", wanted: list[int], worst: int
) -> Explained:
    """Do the same for a stream, in which rows have their scores by those before them."""
    from ocfuse.cli.score_files import scored  # noqa: PLC0415
    from ocfuse.tables.dataframes import listed  # noqa: PLC0415

    with collected() as notes:
        source = opened()
        (frame,) = model.in_order([source.read()])
        scores = scored(model.restart(), frame)
    known = scores["score"].dropna()
    chosen = wanted or known.sort_values(kind="stable").index[:worst].tolist()
    if not chosen:
        odd = ", ".join(oddities(model.counts or {})) or "none were odd"
        raise InvalidInputError(
            f"No row of {source.name} has a score. {model.needed} Of {len(frame):,} rows {odd}."
        )
    if max(chosen) >= len(frame):
        raise _missing(source, wanted, len(frame))
    without = [row for row in chosen if row not in known.index]
    if without:
        raise InvalidInputError(
            f"These rows have no score: {listed(without)}. The first rows of a run have none, nor "
            "those after a gap in time, until the longest window is full; those with most "
            "channels missing neither."
        )
    with collected():  # the same once more
        explanation, readings = cast("StreamTable", model).explained(frame, chosen)
    warn_of(notes)
    return (
        scores.loc[chosen].drop(columns=list(model.result_names)).to_dict("records"),
        explanation,
        readings,
    )


def _channels(
    model: "TableDetector",
    explanation: "Explanation",
    readings: "list[list[ChannelReading]]",
) -> list[dict[str, Any]]:
    """Return what each channel of a stream costs the rows, the dearest first, and reads."""
    import numpy as np  # noqa: PLC0415

    names, costs = model.channels, model.channel_costs(explanation)
    if not names:
        return [{} for _ in range(len(explanation))]
    found = []
    for row, known in zip(costs, readings, strict=True):
        read = {reading.name: reading.as_dict() for reading in known}
        order = np.argsort(-row, kind="stable").tolist()
        found.append(
            {
                "channels": [
                    {**read.get(names[j], {"name": names[j]}), "cost": row[j]} for j in order
                ]
            }
        )
    return found


def _rows(source: "Source", wanted: list[int]) -> "pd.DataFrame":
    """Return rows by their numbers, in the order asked for."""
    import pandas as pd  # noqa: PLC0415

    found, n_rows = [], 0
    for chunk in source.chunks():
        found.append(chunk[chunk.index.isin(wanted)])
        n_rows += len(chunk)
        if sum(map(len, found)) == len(set(wanted)):
            return pd.concat(found).loc[wanted]
    raise _missing(source, wanted, n_rows)


def _missing(source: "Source", wanted: list[int], n_rows: int) -> InvalidInputError:
    """Return the error for rows that are not there."""
    missing = sorted(row for row in set(wanted) if row >= n_rows)
    return InvalidInputError(
        f"{source.name} has {n_rows} rows, numbered from 0. "
        f"Got --row {', '.join(map(str, missing))}."
    )


def _worst(model: "TableDetector", source: "Source", count: int) -> "pd.DataFrame":
    """Return the rows with the lowest scores, the lowest first."""
    import pandas as pd  # noqa: PLC0415

    from ocfuse.cli.score_files import scored_chunks  # noqa: PLC0415

    rows, lowest = pd.DataFrame(), pd.Series(dtype=float)
    for chunk, scores in scored_chunks(model, source):
        lowest = pd.concat([lowest, scores["score"]]) if len(lowest) else scores["score"]
        lowest = lowest.sort_values(kind="stable").head(count)
        rows = pd.concat([rows, chunk]) if len(rows) else chunk
        rows = rows.loc[lowest.index]
    return rows


def _as_dict(explanation: "Explanation", i: int) -> dict[str, Any]:
    near = zip(explanation.nearest_rows[i], explanation.nearest_distances[i], strict=True)
    return {
        "score": explanation.score[i],
        "threshold": explanation.offset,
        "p_value": explanation.p_value[i],
        "is_anomaly": explanation.is_anomaly[i],
        **({"rule": explanation.rule(i) or None} if explanation.rules else {}),
        "base": explanation.base[i],
        "local_p": explanation.local_p[i],
        "members": [
            {"name": name, "weight": weight, "score": score, "share": share, "why": why}
            for name, weight, score, share, why in zip(
                explanation.member_names,
                explanation.weights[i].tolist(),
                explanation.normalised_scores[i].tolist(),
                explanation.contributions[i].tolist(),
                explanation.trust_reasons,
                strict=True,
            )
        ],
        "nearest_normal": [{"row": row, "distance": distance} for row, distance in near],
        "reason": explanation.reason(i),
        "reference_score": explanation.reference_score[i],
        "features": [one.as_dict() for one in explanation.readings(i)],
    }
