"""`ocfuse inspect`: the card of a model."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from ocfuse.cli.early import import_early
from ocfuse.cli.options import Config, Json, Model, Quiet
from ocfuse.cli.output import print_fields, print_json, print_line

if TYPE_CHECKING:
    from ocfuse.persistence import Header
    from ocfuse.vision import PictureDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("inspect")
def inspect_command(
    model: Model, json: Json = False, quiet: Quiet = False, config: Config = None
) -> None:
    """Show the settings of a model and what it learned from."""
    import_early("ocfuse.cli.model_card", "ocfuse.tables")
    from ocfuse.cli.model_card import as_table, facts, print_columns, print_summary  # noqa: PLC0415
    from ocfuse.persistence import load, read_header  # noqa: PLC0415
    from ocfuse.tables import TableDetector  # noqa: PLC0415

    header = read_header(model)
    loaded = load(model)
    file = {"file": asdict(header) | {"name": str(model)}}
    if not isinstance(loaded, TableDetector):
        # models of pictures are few, and only they need what this imports
        from ocfuse.vision import PictureDetector  # noqa: PLC0415

        if isinstance(loaded, PictureDetector):
            known = _picture_facts(loaded)
            if json:
                print_json(known | file)
            else:
                print_fields([("model", model), *_file(header), *_picture_fields(known)])
            return
    table = as_table(loaded, model)
    if json:
        print_json(facts(table) | file)
        return
    print_fields([("model", model), *_origin(table.card_), *_file(header)])
    print_line()
    print_summary(table)
    print_line()
    print_columns(table)


def _picture_facts(detector: "PictureDetector") -> dict[str, Any]:
    """Return what is known of a model of pictures, for JSON."""
    weights = detector.fusion_.weights_.tolist()
    groups = detector.normal_groups_
    return {
        "backbones": {
            name: f"{_one_line(net)}, {net.size} x {net.size} pixels"
            for name, net in detector.backbones_.items()
        },
        "families": [
            {"name": family.name, "member": _one_line(family.member), "weight": weight}
            for family, weight in zip(detector.families_, weights, strict=True)
        ],
        "frames": len(detector.training_scores_),
        "runs": None if groups is None else len(set(groups.tolist())),
        "progress": detector.context_range_,
        "threshold": float(detector.offset_),
        "false_alarms": detector.false_alarm_rate,
        "false_alarms_promised": float(detector.threshold_rate_),
    }


def _picture_fields(known: dict[str, Any]) -> list[tuple[str, object]]:
    from ocfuse.report.words import count  # noqa: PLC0415

    frames, runs = count(known["frames"], "frame"), known["runs"]
    rates = known["false_alarms"], known["false_alarms_promised"]
    progress = known["progress"]
    return [
        *(("backbone", f"{name}: {net}") for name, net in known["backbones"].items()),
        ("learned from", frames),
        ("progress of the task", "" if progress is None else "from {:g} to {:g}".format(*progress)),
        *(
            ("family", f"{family['name']}, weight {family['weight']:.2f}: {family['member']}")
            for family in known["families"]
        ),
        ("threshold", f"{known['threshold']:.4g}; lower scores are anomalies"),
        ("rests on", "single pictures" if runs is None else count(runs, "run")),
        ("false alarms", "{:.2%} asked for, {:.2%} promised".format(*rates)),
    ]


def _one_line(estimator: object) -> str:
    return " ".join(str(estimator).split())


def _origin(card: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what it learned from, when and how."""
    versions = ", ".join(f"{name} {number}" for name, number in card["versions"].items())
    settings = ", ".join(f"{name}={value}" for name, value in card["settings"].items())
    return [
        ("learned", card["time"]),
        ("checksum of the data", f"{card['sha256']} (SHA-256 of the columns as they were read)"),
        ("versions", versions),
        ("settings", settings),
    ]


def _file(header: "Header") -> list[tuple[str, object]]:
    return [
        ("written by", f"ocfuse {header.ocfuse}, scikit-learn {header.sklearn}"),
        ("format", header.format),
        ("size", f"{header.size:,} bytes"),
        ("checksum of the model", f"{header.sha256} (SHA-256 of the content, kept in the file)"),
    ]
