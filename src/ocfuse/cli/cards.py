"""What is to be told of a model."""

from typing import Any

from ocfuse.cli.output import print_fields, print_line, print_table
from ocfuse.report.words import count
from ocfuse.tables import TableDetector

#: Columns that are listed; those that are left out are always told.
MOST_COLUMNS = 40


def facts(model: TableDetector) -> dict[str, Any]:
    """Return what is known of a model, for JSON."""
    detector = model.detector_
    return {
        "card": model.card_,
        "columns": [
            {"name": column.name, "kind": column.kind, "reason": column.reason}
            for column in model.schema_.columns
        ],
        "members": list(detector.pool_.names_),
        "fusion": type(detector.fusion_).__name__,
        "threshold": detector.offset_,
        "false_alarms": detector.false_alarm_rate,
        "false_alarms_reachable": detector.threshold_rate_,
        "rows": len(detector.training_scores_),
        "rows_learned": len(detector.training_rows_),
        "groups": detector.n_groups_,
        "rows_trimmed": len(detector.trimmed_rows_),
    }


def print_columns(model: TableDetector) -> None:
    """Print what every column is, and why some are left out."""
    columns = model.schema_.columns
    features = [column for column in columns if column.kind in ("number", "category")]
    hidden = {column.name for column in features[MOST_COLUMNS:]}
    rows = [(c.name, c.kind, c.reason) for c in columns if c.name not in hidden]
    print_table(("column", "kind", "why"), rows)
    if hidden:
        print_line(f"... and {len(hidden)} more of {len(features)} columns that are learned from")


def print_summary(model: TableDetector) -> None:
    """Print rows, members, fusion and threshold."""
    known = facts(model)
    n_features = len(model.schema_.features)
    print_fields(
        [
            ("rows", _rows(known)),
            ("columns", f"{n_features} learned from, {len(known['columns']) - n_features} not"),
            ("members", f"{len(known['members'])}: {', '.join(known['members'])}"),
            ("fusion", known["fusion"]),
            ("threshold", f"{known['threshold']:.4g}; lower scores are anomalies"),
            ("false alarms", _rates(known["false_alarms"], known["false_alarms_reachable"])),
        ]
    )


def _rows(known: dict[str, Any]) -> str:
    """Return such as "200: 178 learned from, 2 too far out, 20 labelled anomalies"."""
    n_anomalies = known["rows"] - known["rows_learned"] - known["rows_trimmed"]
    text = f"{known['rows']:,}: {known['rows_learned']:,} learned from as normal"
    text += f", {known['rows_trimmed']:,} too far out to learn" if known["rows_trimmed"] else ""
    text += (
        f", {count(n_anomalies, 'labelled anomaly', 'labelled anomalies')}" if n_anomalies else ""
    )
    return text + (f"; {count(known['groups'], 'group')}" if known["groups"] else "")


def _rates(stated: float, reachable: float) -> str:
    return f"{stated:.2%} stated, {reachable:.2%} reachable with these rows"
