"""The work of `ocfuse inspect`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ocfuse.cli.cards import facts, print_columns, print_summary
from ocfuse.cli.models import load_model
from ocfuse.cli.output import print_fields, print_json, print_line
from ocfuse.persistence import Header, read_header


def show_model(model: Path, *, json: bool) -> None:
    """Print where a model comes from, what it is, and its columns."""
    header = read_header(model)
    loaded = load_model(model)
    if json:
        print_json(facts(loaded) | {"file": asdict(header) | {"name": str(model)}})
        return
    print_fields([("model", model), *_origin(loaded.card_), *_file(header)])
    print_line()
    print_summary(loaded)
    print_line()
    print_columns(loaded)


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


def _file(header: Header) -> list[tuple[str, object]]:
    return [
        ("written by", f"ocfuse {header.ocfuse}, scikit-learn {header.sklearn}"),
        ("format", header.format),
        ("size", f"{header.size:,} bytes"),
        ("checksum of the model", f"{header.sha256} (SHA-256 of the content, kept in the file)"),
    ]
