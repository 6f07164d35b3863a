"""Request and response models, as the documentation of the service shows them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ocfuse.serve.decoding import ARROW, CSV, JSON
from ocfuse.serve.event_store import MOST_NAME, MOST_TEXT
from ocfuse.serve.settings import LONGEST_NAME

#: What each refusal means.
REFUSALS = {
    400: "The content cannot be read as what its type says.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site.",
    404: "There is no such model, or nothing at this address.",
    405: "The address knows other methods.",
    408: "The request took too long.",
    413: "The body has too many bytes, or too many rows.",
    415: "The content is of a type that is not known.",
    421: "The service answers to names of this machine only.",
    422: "The rows do not fit the model, or an argument is wrong.",
    429: "Too many requests at a time. Try again after the seconds of Retry-After.",
    500: "The service failed. Its log says more.",
    503: "The service is not ready.",
}

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "For programs."},
                "message": {"type": "string", "description": "For people."},
            },
        }
    },
    "example": {
        "error": {
            "code": "unusable_rows",
            "message": "The columns of the table are not those of training. Missing: flow.",
        }
    },
}

_CELL = {"type": ["number", "string", "boolean", "null"]}
_ROW = {
    "anyOf": [
        {"type": "object", "additionalProperties": _CELL},
        {"type": "array", "items": _CELL},
    ]
}
_ROWS = {"type": "array", "items": _ROW}
_NUMBER = {"type": ["number", "null"]}
_TEXTS = {"type": "array", "items": {"type": "string"}}

EXAMPLE_ROWS = {"rows": [{"flow": 1.52, "current": 0.31}, {"flow": 9.9, "current": 0.28}]}
EXAMPLE_CSV = "flow,current\n1.52,0.31\n9.9,0.28\n"

BODY: dict[str, Any] = {
    "required": True,
    "description": "Rows by the names of the model's columns, or, in JSON, as lists of values in "
    "the order of these columns.",
    "content": {
        JSON: {
            "schema": {
                "anyOf": [
                    {"type": "object", "required": ["rows"], "properties": {"rows": _ROWS}},
                    _ROWS,
                ]
            },
            "examples": {
                "two rows": {"value": EXAMPLE_ROWS},
                "values in order": {"value": {"rows": [[1.52, 0.31]]}},
            },
        },
        CSV: {"schema": {"type": "string"}, "examples": {"two rows": {"value": EXAMPLE_CSV}}},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    },
}

_RESULT = {
    "type": "object",
    "required": ["score", "p_value", "is_anomaly"],
    "properties": {
        "score": {**_NUMBER, "description": "Higher is more normal; null if there is none."},
        "p_value": {**_NUMBER, "description": "How rarely a normal row scores this low."},
        "is_anomaly": {
            "type": ["boolean", "null"],
            "description": "Whether the row raises an alarm; null if there is no score.",
        },
    },
}
_ABOUT = {
    "model": {"type": "string"},
    "version": {"type": "string", "description": "First letters of the checksum of its file."},
    "offset": {"type": "number", "description": "Threshold: lower scores are anomalies."},
    "notes": {**_TEXTS, "description": "What was odd about the rows."},
}

SCORES: dict[str, Any] = {
    "type": "object",
    "required": ["model", "version", "offset", "results", "notes"],
    "properties": {**_ABOUT, "results": {"type": "array", "items": _RESULT}},
    "example": {
        "model": "pump",
        "version": "3f1c9a5be2a44d07",
        "offset": -0.42,
        "results": [
            {"score": 0.61, "p_value": 0.83, "is_anomaly": False},
            {"score": -1.94, "p_value": 0.002, "is_anomaly": True},
        ],
        "notes": [],
    },
}

EXPLANATIONS: dict[str, Any] = {
    "type": "object",
    "required": ["model", "version", "offset", "results", "notes"],
    "properties": {
        **_ABOUT,
        "results": {
            "type": "array",
            "items": {
                **_RESULT,
                "required": [
                    *_RESULT["required"],
                    *("members", "features", "reference_score", "reason", "local_p", "words"),
                ],
                "properties": {
                    **_RESULT["properties"],  # type: ignore[dict-item]
                    "members": {
                        "type": "array",
                        "description": "What the members say, the most trusted first.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "weight": _NUMBER,
                                "score": _NUMBER,
                                "contribution": _NUMBER,
                            },
                        },
                    },
                    "features": {
                        "type": "array",
                        "description": "What each feature costs, the most unusual first, and "
                        "what training rows usually have there. The costs add up to "
                        "reference_score minus score.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "value": {
                                    "type": ["number", "string", "null"],
                                    "description": "As it was sent; null for a gap.",
                                },
                                "cost": _NUMBER,
                                "is_unusual": {
                                    "type": ["boolean", "null"],
                                    "description": "Whether the value is unusual by itself.",
                                },
                                "usual": {
                                    "type": ["object", "null"],
                                    "description": "Ends of the usual range (low, high), or the "
                                    "share of training rows with this value and the most common "
                                    "values with theirs.",
                                },
                                "words": {"type": "string"},
                            },
                        },
                    },
                    "reference_score": {
                        **_NUMBER,
                        "description": "Score with values of the normal rows most like this one.",
                    },
                    "reason": {"type": "string", "description": "The same in one line."},
                    "local_p": {**_NUMBER, "description": "Norm of the fusion here."},
                    "words": {"type": "string", "description": "The same to read."},
                },
            },
        },
    },
}

MODEL: dict[str, Any] = {
    "type": "object",
    "required": ["model", "version", "kind", "offset", "columns", "members", "card"],
    "properties": {
        **{name: _ABOUT[name] for name in ("model", "version", "offset")},
        "kind": {"type": "string", "enum": ["rows", "runs"]},
        "false_alarm_rate": {"type": "number"},
        "loaded": {"type": "number", "description": "When, in seconds since 1970."},
        "newer_file_failed": {
            "type": "boolean",
            "description": "The file has changed, but cannot be loaded.",
        },
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"type": "string"},
                    "may_be_missing": {"type": "boolean"},
                    "categories": _TEXTS,
                },
            },
        },
        "members": _TEXTS,
        "card": {"type": "object", "description": "What it learned from."},
    },
}

MODELS: dict[str, Any] = {
    "type": "object",
    "required": ["models"],
    "properties": {"models": {"type": "array", "items": MODEL}},
}

STATUS: dict[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
    "example": {"status": "ok"},
}

READY: dict[str, Any] = {
    "type": "object",
    "required": ["status", "events"],
    "properties": {
        "status": {"type": "string"},
        "events": {
            "enum": ["written", "waiting", "replaced"],
            "description": "Waiting, if the file of events cannot be written; replaced, if it was "
            "damaged and a new one was begun. Scoring goes on.",
        },
    },
    "example": {"status": "ready", "events": "written"},
}

#: The name of a model, as an argument.
NAME_PATTERN = rf"^[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}$"

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


def responses(schema: dict[str, Any], *codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route: what it returns, and how it refuses.

    Parameters
    ----------
    schema : dict
        Schema of what it returns, in JSON.
    *codes : int
        Statuses of its refusals, besides those of all routes.

    Returns
    -------
    dict
        What FastAPI takes for ``responses``.
    """
    refused: dict[int | str, dict[str, Any]] = {
        code: {"description": REFUSALS[code], "content": {JSON: {"schema": ERROR}}}
        for code in sorted({401, 408, 421, 429, 500, *codes})
    }
    return {200: {"description": "The answer.", "content": {JSON: {"schema": schema}}}, **refused}


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


class FirstAcknowledgement(BaseModel):
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
    acknowledged: FirstAcknowledgement | None
    comments: list[Said]


class EventList(BaseModel):
    """Events, the latest first."""

    events: list[EventForm]
    trouble: str | None = Field(
        description="What keeps events from being written to their file; null if nothing does."
    )
