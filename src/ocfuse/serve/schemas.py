"""Request and response models, as the documentation of the service shows them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ocfuse.serve.event_store import EventStore
from ocfuse.streaming.status import State


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route for FastAPI's ``responses``; some are those of all routes."""
    meanings = {
        400: "The content cannot be read as what its type says.",
        401: "The token is missing or wrong.",
        403: "The request comes from a page of another site.",
        404: "There is no such model, or nothing at this address.",
        405: "The address knows other methods.",
        408: "The request took too long.",
        409: "Something else has to be done first.",
        413: "The body has too many bytes, or too many rows.",
        415: "The content is of a type that is not known.",
        421: "The service answers to names of this machine only.",
        422: "The rows do not fit the model, or an argument is wrong.",
        429: "Too many requests at a time. Try again after the seconds of Retry-After.",
        500: "The service failed. Its log says more.",
        503: "The service is not ready, or has too much to do. Try again after Retry-After.",
    }
    return {
        code: {"description": meanings[code], "model": Refusal}
        for code in sorted({401, 408, 421, 429, 500, *codes})
    }


def request_body() -> dict[str, Any]:
    """Return the documentation of rows in the body of a request."""
    cell = {"type": ["number", "string", "boolean", "null"]}
    row = {
        "anyOf": [
            {"type": "object", "additionalProperties": cell},
            {"type": "array", "items": cell},
        ]
    }
    rows = {"type": "array", "items": row}
    named = {"rows": [{"flow": 1.52, "current": 0.31}, {"flow": 9.9, "current": 0.28}]}
    table = "flow,current\n1.52,0.31\n9.9,0.28\n"
    return {
        "required": True,
        "description": "Rows by the names of the model's columns, or, in JSON, as lists of values "
        "in the order of these columns. For models of pictures: one file, or "
        '{"pictures": ["...", ...]} with files in base64.',
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"type": "object", "required": ["rows"], "properties": {"rows": rows}},
                        rows,
                    ]
                },
                "examples": {
                    "two rows": {"value": named},
                    "values in order": {"value": {"rows": [[1.52, 0.31]]}},
                },
            },
            "text/csv": {
                "schema": {"type": "string"},
                "examples": {"two rows": {"value": table}},
            },
            "application/vnd.apache.arrow.stream": {
                "schema": {"type": "string", "format": "binary"}
            },
            **{
                media: {"schema": {"type": "string", "format": "binary"}}
                for media in ("image/jpeg", "image/png", "image/webp")
            },
        },
    }


class ErrorWords(BaseModel):
    """What is wrong."""

    code: str = Field(description="For programs.")
    message: str = Field(description="For people.")


class Refusal(BaseModel):
    """Why a request is refused."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "code": "unusable_rows",
                    "message": "The columns of the table are not those of training. Missing: flow.",
                }
            }
        }
    )

    error: ErrorWords


class Place(BaseModel):
    """The most unusual place of a picture, in pixels from the top left."""

    x: int
    y: int
    box: list[int] | None = Field(
        description="Left, top, width and height of what is unusual around it; null if nothing is."
    )


class RowResult(BaseModel):
    """The score of a row, or of a picture."""

    score: float | None = Field(description="Higher is more normal; null if there is none.")
    p_value: float | None = Field(description="How rarely a normal row scores this low.")
    is_anomaly: bool | None = Field(
        description="Whether the row raises an alarm; null if there is no score."
    )
    rule: str | None = Field(
        default=None,
        description="The limits that the row breaks, such as 'temp above 90', which raise an alarm "
        "whatever the score is; only of models that have limits.",
    )
    place: Place | None = Field(default=None, description="Of pictures only.")


class MemberResult(BaseModel):
    """What a member says of a row."""

    name: str
    weight: float | None
    score: float | None
    contribution: float | None


class FeatureResult(BaseModel):
    """What a feature of a row costs."""

    name: str
    value: float | str | None = Field(description="As it was sent; null for a gap.")
    cost: float | None
    is_unusual: bool | None = Field(description="Whether the value is unusual by itself.")
    usual: dict[str, Any] | None = Field(
        description="Ends of the usual range (low, high), whether the number is high or low for it "
        "(level), and for whom and when it is (of); or the share of training rows with this value "
        "and the most common values with theirs."
    )
    words: str


class ExplainedResult(RowResult):
    """The score of a row, and what lies behind it."""

    members: list[MemberResult] = Field(description="What the members say, the most trusted first.")
    features: list[FeatureResult] = Field(
        description="What each feature costs, the most unusual first, and what training rows "
        "usually have there. The costs add up to reference_score minus score."
    )
    reference_score: float | None = Field(
        description="Score with values of the normal rows most like this one."
    )
    reason: str = Field(description="The same in one line.")
    local_p: float | None = Field(description="Norm of the fusion here.")
    words: str = Field(description="The same to read.")


class ModelVersion(BaseModel):
    """Which version of which model answers."""

    model: str
    version: str = Field(description="First letters of the checksum of its file.")
    threshold: float = Field(description="Threshold: lower scores are anomalies.")


class ScoreAnswer(ModelVersion):
    """Scores of rows."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "model": "pump",
                "version": "3f1c9a5be2a44d07",
                "threshold": -0.42,
                "results": [
                    {"score": 0.61, "p_value": 0.83, "is_anomaly": False},
                    {"score": -1.94, "p_value": 0.002, "is_anomaly": True},
                ],
                "notes": [],
            }
        }
    )

    results: list[RowResult]
    notes: list[str] = Field(description="What was odd about the rows.")


class ExplainAnswer(ModelVersion):
    """Explanations of rows."""

    results: list[ExplainedResult]
    notes: list[str] = Field(description="What was odd about the rows.")


class ModelColumn(BaseModel):
    """A column that a model learned from."""

    name: str
    kind: str
    may_be_missing: bool
    categories: list[str]


class ModelAnswer(ModelVersion):
    """What a model is, and what it learned from."""

    kind: Literal["rows", "runs", "pictures"]
    false_alarm_rate: float
    loaded: float = Field(description="When, in seconds since 1970.")
    newer_file_failed: bool = Field(description="The file has changed, but cannot be loaded.")
    columns: list[ModelColumn]
    members: list[str]
    card: dict[str, Any] = Field(description="What it learned from.")


class ModelList(BaseModel):
    """All models."""

    models: list[ModelAnswer]


class StreamDifference(BaseModel):
    """What a model that is tried and the one that is served have found in the same rows."""

    rows: int = Field(description="Rows that both have judged.")
    only_served: int = Field(description="Rows below the threshold of the one that is served only.")
    only_shadow: int = Field(description="Rows below the threshold of the one that is tried only.")
    events_served: int = Field(description="Events that the one that is served began.")
    events_shadow: int = Field(description="Events that the one that is tried would have begun.")
    refused: int = Field(description="Rows that do not fit the one that is tried.")
    left_out: int = Field(description="Rows that came faster than they could be scored twice.")


class NamedDifference(StreamDifference):
    """The same of one stream."""

    stream: str


class Shadow(StreamDifference):
    """A model that is tried, with the sums over all streams since the start."""

    model: str = Field(description="The model beside which it is tried.")
    version: str
    file: str
    streams: list[NamedDifference]


class ShadowList(BaseModel):
    """All models that are tried."""

    shadows: list[Shadow]


class Status(BaseModel):
    """Whether the service lives."""

    model_config = ConfigDict(json_schema_extra={"example": {"status": "ok"}})

    status: str


class Readiness(BaseModel):
    """Whether the service takes requests."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"status": "ready", "events": "written"}}
    )

    status: str
    events: Literal["written", "waiting", "replaced"] = Field(
        description="Waiting, if the file of events cannot be written; replaced, if it was "
        "damaged and a new one was begun. Scoring goes on."
    )


class Acknowledgement(BaseModel):
    """Somebody knows of an event."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"who": "Ada"}]})

    who: str = Field(
        max_length=EventStore.most_name,
        description="Name of the person; an empty one is refused.",
        json_schema_extra={"minLength": 1},
    )


class AcknowledgementOfAll(Acknowledgement):
    """Somebody knows of all events of a stream up to one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"who": "Ada", "model": "pump", "stream": "line-1", "up_to": 7}]
        },
    )

    model: str = Field(max_length=EventStore.most_name)
    stream: str = Field(max_length=EventStore.most_name)
    up_to: int = Field(
        ge=1, le=2**53, description="The last event that the person has seen; later ones stay."
    )


class Verdict(Acknowledgement):
    """What somebody found an event to be."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"who": "Ada", "verdict": "false alarm", "comment": "tool was changed"}]
        },
    )

    verdict: Literal["real", "false alarm", "unknown"]
    comment: str = Field(default="", max_length=EventStore.most_text, description="Why.")


class Acknowledged(BaseModel):
    """How many events were acknowledged."""

    acknowledged: int


class Comment(BaseModel):
    """What somebody says about an event."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"who": "Ada", "text": "valve stuck; mended"}]},
    )

    text: str = Field(min_length=1, max_length=EventStore.most_text, description="What is said.")
    who: str = Field(default="", max_length=EventStore.most_name, description="Name of the person.")


class Said(BaseModel):
    """A comment that was made."""

    who: str
    time: float
    text: str


class FirstAcknowledgement(BaseModel):
    """Who acknowledged an event first, and when."""

    who: str
    time: float


class SaidVerdict(BaseModel):
    """A verdict that was given."""

    verdict: Literal["real", "false alarm", "unknown"]
    who: str
    time: float
    comment: str


class VerdictCount(BaseModel):
    """How many alarms of a model have each verdict."""

    model: str
    real: int
    false_alarm: int
    unknown: int
    usable: int = Field(description="Real ones and false alarms whose rows are kept.")
    command: str | None = Field(
        description="What makes a new model of the old data and these verdicts; null if the events "
        "are in memory only, or the model is not served now."
    )

    can_learn: bool = Field(
        description="Whether `POST /v1/learn` may run that, as the training data are known."
    )


class LearningOrder(BaseModel):
    """Who wants a new model of the old data and the verdicts."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"who": "Ada", "model": "pump"}]}
    )

    who: str = Field(max_length=EventStore.most_name, description="Name of the person.")
    model: str = Field(max_length=EventStore.most_name)


class LearningForm(BaseModel):
    """What has become of a new model that somebody asked for."""

    model: str
    state: Literal["running", "done", "failed"]
    who: str
    since: float
    text: str = Field(description="What has come out, in words.")


class LearningList(BaseModel):
    """What has been learned from verdicts."""

    models: list[LearningForm]


class VerdictCounts(BaseModel):
    """Verdicts by model."""

    models: list[VerdictCount]


class EventRow(BaseModel):
    """A row near an event."""

    seq: int = Field(description="Number of the row in its connection.")
    time: float | None
    score: float | None
    is_event: bool = Field(description="Whether the row is of the event, or before or after it.")
    values: dict[str, Any] | list[Any] = Field(description="As it came.")


class EventRowList(BaseModel):
    """Rows around an event."""

    event: int
    columns: list[str] = Field(description="Names of the columns.")
    rows: list[EventRow] = Field(
        description="In their order: some before the event, the first ones, those up to the lowest "
        "score, and some after. Where seq leaves numbers out, rows are not kept."
    )


class Channel(BaseModel):
    """What a channel reads where a score is low."""

    name: str
    kind: str = Field(
        default="level", description="What the value is: level, slope, spread, or change."
    )
    value: float | str | None = None
    usual: float | str | None = Field(default=None, description="What is usual here.")
    spread: float | None = Field(default=None, description="Robust standard deviation of it.")
    share: float | None = Field(default=None, description="Its share in what costs the score.")
    words: str = Field(description="The same to read.")


class StreamState(BaseModel):
    """The state of a stream; times are seconds since 1970, or of a clock of the stream's own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "pump",
                    "stream": "line-1",
                    "state": "alarm",
                    "since": 1794812400.1,
                    "title": "ALARM since 2026-11-16T05:00:00Z",
                    "what": "speed_rpm 1,438 (usual 1,450 +- 3)",
                    "more": "Not acknowledged.",
                    "score": -2.31,
                    "threshold": -0.42,
                    "time": 1794812412.6,
                    "seen": 1794812412.7,
                    "is_connected": True,
                    "channel": None,
                    "event": 7,
                    "open": {"anomaly": 1},
                    "unacknowledged": 1,
                    "last_event": 7,
                }
            ]
        }
    )

    model: str
    stream: str
    state: State = Field(
        description="alarm: an anomaly is open. interrupted: one was open when its source went, "
        "and nobody has acknowledged it. silent: no samples come. degraded: a sensor is in "
        "trouble. starting: no score yet. unusual: below the threshold, but no alarm. "
        "unacknowledged: normal, but for events that nobody has acknowledged. normal: all is well."
    )
    since: float = Field(description="When the state began.")
    title: str = Field(description="The state in a few words; times in UTC.")
    what: str = Field(
        description="The channels that an alarm is about, or was, or the sensors in trouble."
    )
    more: str = Field(description="More on the state.")
    score: float | None = Field(description="Last score; null if the last sample has none.")
    threshold: float | None
    time: float | None = Field(description="Time of the last sample.")
    seen: float | None = Field(description="When it came, in seconds since 1970.")
    is_connected: bool = Field(description="Whether the source is there.")
    channel: Channel | None = Field(description="The most unusual channel, if known.")
    event: int | None = Field(description="The event that the state is about.")
    open: dict[str, int] = Field(description="Open events by kind.")
    unacknowledged: int = Field(description="Events that nobody has acknowledged.")
    last_event: int | None = Field(description="The latest event that is open or unacknowledged.")


class StreamList(BaseModel):
    """States of all streams."""

    streams: list[StreamState]


class EventForm(BaseModel):
    """An event; times are seconds since 1970, or of a clock of the stream's own."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 7,
                    "change": 1048583,
                    "kind": "anomaly",
                    "model": "pump",
                    "stream": "line-1",
                    "state": "ended",
                    "seen": 1794812400.5,
                    "begin": 1794812400.1,
                    "end": 1794812412.6,
                    "lowest": -2.31,
                    "threshold": -0.42,
                    "p_value": 0.0008,
                    "severity": 3.4,
                    "local_p": 1.5,
                    "n_samples": 125,
                    "text": "",
                    "channels": [
                        {
                            "name": "speed_rpm",
                            "kind": "level",
                            "value": 1437.8,
                            "usual": 1450.2,
                            "spread": 3.1,
                            "share": 0.7,
                            "words": "speed_rpm 1,438 (usual 1,450 +- 3)",
                        }
                    ],
                    "members": {"knn-5": -1.2, "gmm-3": -0.8},
                    "has_thumbnail": False,
                    "n_rows": 160,
                    "acknowledged": {"who": "Ada", "time": 1794812430.0},
                    "comments": [
                        {"who": "Ada", "time": 1794812445.0, "text": "valve stuck; mended"}
                    ],
                    "verdict": {
                        "verdict": "real",
                        "who": "Ada",
                        "time": 1794812450.0,
                        "comment": "",
                    },
                    "earlier_verdicts": [],
                }
            ]
        }
    )

    id: int
    change: int = Field(description="Number of its last change, counted over all events.")
    kind: str = Field(
        description="anomaly; silent: the stream sends nothing; changed: the source is not what "
        "it was; or the trouble of a sensor: missing, stuck, range or rate."
    )
    model: str
    stream: str
    state: str = Field(
        description="open, ended, or interrupted: open when its source or the service was gone."
    )
    seen: float = Field(description="When it was recorded, in seconds since 1970.")
    begin: float
    end: float = Field(description="Time of its last sample so far.")
    lowest: float | None = Field(description="Its lowest score; higher = more normal.")
    threshold: float | None = Field(description="Threshold.")
    p_value: float | None
    local_p: float | None
    n_samples: int
    text: str = Field(description="What it is about, in a line; empty for anomalies.")
    channels: list[Channel] = Field(
        description="The channels that are most unusual at the lowest score, or in trouble."
    )
    members: dict[str, float] = Field(
        description="Contributions to the lowest score; the lowest speak most for an anomaly."
    )
    has_thumbnail: bool
    n_rows: int = Field(description="Rows around it that are kept.")
    acknowledged: FirstAcknowledgement | None
    comments: list[Said]
    verdict: SaidVerdict | None = Field(description="The last verdict, which counts.")
    earlier_verdicts: list[SaidVerdict] = Field(description="Those before it, the first one first.")


class EventList(BaseModel):
    """Events, the latest first."""

    events: list[EventForm]
    trouble: str | None = Field(
        description="What keeps events from being written to their file; null if nothing does."
    )
