"""Kinds of data that one command takes, and the options that belong to each.

The heading of an option in the help says what it is for, and the command holds to it: an option
of another kind is refused, and so is its key in the file of settings.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import typer
from typer.core import TyperCommand

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.bags import is_picture, is_recording, open_recording
from ocfuse.system.files import PICTURE_ENDINGS

#: Endings of videos.
VIDEO_ENDINGS = (
    *(".mp4", ".mkv", ".avi", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".mjpeg", ".wmv"),
)
#: Endings of recordings that are nothing else.
RECORDED = (*VIDEO_ENDINGS, ".bag", ".mcap")


class Kind(Enum):
    """What is learned from, or watched."""

    ROWS = "rows"
    STREAMS = "streams"
    PICTURES = "pictures"


#: Parameters that say the kind; without them it is rows, or what the model was fitted to.
FLAGS = {Kind.STREAMS: "stream", Kind.PICTURES: "video"}


class Heading:
    """Headings of options in the help."""

    TABLES = "Rows and streams"
    ROWS = "Rows"
    MACHINES = "On many machines"
    STREAMS = "Streams (--stream)"
    STREAM_MODELS = "Streams (models of ocfuse fit --stream)"
    EVENTS = "Streams and pictures"
    PICTURES = "Pictures (--video)"
    PICTURE_MODELS = "Pictures (models that learned from pictures)"
    VERDICTS = "Verdicts on events"
    ALL = "For every command"


#: What the options below them are for; those below others, or none, are for every kind.
KINDS = {
    Heading.TABLES: (Kind.ROWS, Kind.STREAMS),
    Heading.VERDICTS: (Kind.ROWS, Kind.STREAMS),
    Heading.ROWS: (Kind.ROWS,),
    Heading.MACHINES: (Kind.ROWS,),
    Heading.STREAMS: (Kind.STREAMS,),
    Heading.STREAM_MODELS: (Kind.STREAMS,),
    Heading.EVENTS: (Kind.STREAMS, Kind.PICTURES),
    Heading.PICTURES: (Kind.PICTURES,),
}
#: Parameters by the heading that they stand below.
Panels: TypeAlias = Mapping[str, Sequence[str]]
#: Where the context of a command holds the kinds that its data may be of.
CHOSEN = "ocfuse.kinds"


def holds_pictures(where: object, topic: str | None = None) -> bool:
    """Return whether a name is that of pictures or videos, or of a folder of nothing else.

    A folder in which there is a table, too, is one of tables. A recording by ROS is one of
    pictures if the topic has them, or, without a topic, any; of a folder the first one tells.
    """
    path = Path(str(where))
    if path.exists() and is_recording(path):
        return _records_pictures(path, topic)
    if not path.is_dir():
        return path.suffix.lower() in (*PICTURE_ENDINGS, *RECORDED)
    texts = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".gz", ".bz2", ".xz", ".zst")
    tables = (*texts, ".parquet", ".feather", ".npy", ".npz", ".xlsx", ".xls", ".xlsb", ".ods")
    inside = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    endings = {entry.suffix.lower() for entry in inside}
    if endings.intersection(tables):
        return False
    if endings.intersection((*PICTURE_ENDINGS, *VIDEO_ENDINGS)):
        return True
    recordings = list(filter(is_recording, inside))
    if recordings:
        return _records_pictures(min(recordings), topic)
    return any(map(_has_pictures, (entry for entry in inside if entry.is_dir())))


def holds_recordings(where: object) -> bool:
    """Return whether a name is that of a recording by ROS, or of a folder with some."""
    path = Path(str(where))
    return is_recording(path) or (path.is_dir() and any(map(is_recording, path.iterdir())))


def _records_pictures(path: Path, topic: str | None) -> bool:
    """Return whether a recording, or a topic of it, has pictures."""
    try:
        topics = open_recording(path).topics
    except InvalidInputError:
        return True  # who reads it says what is wrong
    chosen = topics.values() if topic is None else [topics.get(topic)]
    return any(map(is_picture, chosen))


def _has_pictures(folder: Path) -> bool:
    return any(entry.suffix.lower() in PICTURE_ENDINGS for entry in folder.iterdir())


class KindCommand(TyperCommand):
    """A command for several kinds of data.

    ``--stream`` and ``--video`` choose; pictures and recordings are known without, too.
    """

    #: Parameters below each heading of the help; others have their own, or none.
    panels: ClassVar[Panels] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        options: dict[str, Any] = {str(param.name): param for param in self.params}
        for panel, names in self.panels.items():
            for name in names:
                options[name].rich_help_panel = panel

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, and refuse options of other kinds."""
        # settings in the file depend on the kind, wherever on the line it stands
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        flags = [name for name in FLAGS.values() if name in given]
        known = {param.name for param in self.params}
        named = given.get("data")
        topic = given.get("topic")
        is_found = not flags and isinstance(named, str) and holds_pictures(named, topic)
        ctx.meta[CHOSEN] = (
            tuple(kind for kind, name in FLAGS.items() if name in flags)
            if flags
            else (Kind.PICTURES,)
            if is_found
            else tuple(kind for kind in KINDS[Heading.TABLES] if FLAGS.get(kind) not in known)
        )
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        if len(flags) > 1:
            raise typer.BadParameter(
                "--stream is for tables of sensors, --video for pictures. Give one of them."
            )
        for param in self.params:
            if param.param_type_name == "option" and param.name in given and not is_for(ctx, param):
                advice = self._advice(param, flags)
                if is_found:
                    advice = f"{self._words(param)}, and {named} holds pictures: leave it out"
                ctx.fail(f"{longest_flag(param)} is for {advice}.")
        data = ctx.params.get("data")
        if data is not None and flags and is_of(ctx, Kind.PICTURES):
            ctx.fail(f"Got unexpected extra argument(s) ({data}). Recordings are named by --video.")
        return rest

    def _advice(self, param: Any, flags: Sequence[str]) -> str:
        """Return what an option is for, and what to do."""
        kinds = KINDS[param.rich_help_panel]
        known = {param.name for param in self.params}
        missing = [f"--{FLAGS[kind]}" for kind in kinds if FLAGS.get(kind) in known]
        words = self._words(param)
        if flags and (Kind.ROWS in kinds or not missing):
            return f"{words}: leave --{flags[0]} out"
        if flags:
            return f"{words}: give {missing[0]} instead of --{flags[0]}"
        return f"{words}: add {missing[0]}"

    def _words(self, param: Any) -> str:
        return " and ".join(kind.value for kind in KINDS[param.rich_help_panel])


def is_of(ctx: typer.Context, kind: Kind) -> bool:
    """Return whether the data of a command are, or may be, of a kind."""
    return kind in ctx.meta.get(CHOSEN, ())


def is_for(ctx: typer.Context, param: Any) -> bool:
    """Return whether a parameter is for the kind of data that a command has."""
    kinds = KINDS.get(getattr(param, "rich_help_panel", None) or "")
    return CHOSEN not in ctx.meta or kinds is None or any(is_of(ctx, kind) for kind in kinds)


def table_name(ctx: typer.Context) -> str:
    """Return the name of the table with the settings of a command, such as "fit-video"."""
    chosen = ctx.meta.get(CHOSEN, ())
    flags = [FLAGS[kind] for kind in chosen if kind in FLAGS]
    return "-".join([str(ctx.command.name), *(flags if len(chosen) == 1 else ())])


def longest_flag(param: Any) -> str:
    """Return "--quiet" for the option ``-q``, ``--quiet``."""
    return str(max(param.opts, key=len))
