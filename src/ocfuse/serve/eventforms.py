"""What is said and answered about events, as the documentation of the service shows it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ocfuse.serve.events import MOST_NAME, MOST_TEXT

EXAMPLE: dict[str, Any] = {
    "id": 7,
    "change": 1048583,
    "model": "pump",
    "stream": "line-1",
    "state": "ended",
    "seen": 1794812400.5,
    "begin": 1794812400.1,
    "end": 1794812412.6,
    "lowest": -2.31,
    "offset": -0.42,
    "p_value": 0.0008,
    "local_p": 1.5,
    "n_samples": 125,
    "members": {"knn-5": -1.2, "gmm-3": -0.8},
    "has_thumbnail": False,
    "acknowledged": {"who": "Ada", "time": 1794812430.0},
    "comments": [{"who": "Ada", "time": 1794812445.0, "text": "valve stuck; mended"}],
}


class Acknowledgement(BaseModel):
    """Somebody knows of an event."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"who": "Ada"}, {"who": ""}]}
    )

    who: str = Field(default="", max_length=MOST_NAME, description="Name of the person.")


class Comment(BaseModel):
    """What somebody says about an event."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"who": "Ada", "text": "valve stuck; mended"}]},
    )

    text: str = Field(min_length=1, max_length=MOST_TEXT, description="What is said.")
    who: str = Field(default="", max_length=MOST_NAME, description="Name of the person.")


class Said(BaseModel):
    """A comment that was made."""

    who: str
    time: float
    text: str


class Known(BaseModel):
    """Who acknowledged an event first, and when."""

    who: str
    time: float


class EventForm(BaseModel):
    """An event; times are seconds since 1970, or of a clock of the stream's own."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    id: int
    change: int = Field(description="Number of its last change, counted over all events.")
    model: str
    stream: str
    state: str = Field(
        description="open, ended, or interrupted: open when the service was stopped."
    )
    seen: float = Field(description="When it was recorded, in seconds since 1970.")
    begin: float
    end: float = Field(description="Time of its last sample so far.")
    lowest: float | None = Field(description="Its lowest score; higher = more normal.")
    offset: float | None = Field(description="Threshold.")
    p_value: float | None
    local_p: float | None
    n_samples: int
    members: dict[str, float] = Field(
        description="Contributions to the lowest score; the lowest speak most for an anomaly."
    )
    has_thumbnail: bool
    acknowledged: Known | None
    comments: list[Said]


class EventList(BaseModel):
    """Events, the latest first."""

    events: list[EventForm]
    trouble: str | None = Field(
        description="What keeps events from being written to their file; null if nothing does."
    )
