"""Pictures of requests and streams: decoded within limits, scored, with their unusual places.

Pictures come from somebody who is not trusted. A file of some kilobytes may say that it holds
gigapixels: its size is looked at before anything is decoded, and only formats that cameras write
are. Pictures are decoded one after another, so that memory holds one of them.
"""

import base64
import binascii
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np

from ocfuse.exceptions import InvalidInputError, ModelFileError
from ocfuse.serve.decoding import parse_json
from ocfuse.serve.errors import ServeError, finite
from ocfuse.serve.settings import Limits
from ocfuse.streaming import EventTracker
from ocfuse.streaming.events import leave_score
from ocfuse.streaming.slow import SlowChange, SlowSettings, stream_block
from ocfuse.system.packages import needed
from ocfuse.tables import Schema
from ocfuse.vision import Features, PictureDetector
from ocfuse.vision.explanation import PictureExplanation
from ocfuse.vision.frames import Picture, decode_picture

PICTURES: Final = "pictures"
#: Formats by the type of the content.
FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP"}


@dataclass(frozen=True)
class JudgedPicture:
    """What became of a picture: the explanation of it alone, and it itself, made small."""

    explanation: PictureExplanation
    shape: tuple[int, ...]
    small: Picture

    @property
    def score(self) -> float:
        """Higher is more normal."""
        return float(self.explanation.score[0])

    @property
    def p_value(self) -> float:
        """How rarely a normal picture scores this low."""
        return float(self.explanation.p_value[0])

    @property
    def is_anomaly(self) -> bool:
        """Whether it raises an alarm."""
        return bool(self.explanation.is_anomaly[0])

    @property
    def place(self) -> dict[str, Any] | None:
        """The most unusual place, in pixels of the picture."""
        spot = self.explanation.spot(0, self.shape)
        return None if spot is None else spot.as_dict()

    @property
    def contributions(self) -> dict[str, float]:
        """What each family of members adds to the score."""
        parts = self.explanation.contributions[0].tolist()
        return dict(zip(self.explanation.member_names, parts, strict=True))

    def thumbnail(self) -> bytes:
        """Return the content of a small JPEG file with the unusual places marked."""
        content = io.BytesIO()
        image = needed("PIL.Image", "to draw pictures", "video")
        image.fromarray(self.explanation.overlay(0, self.small)).save(content, "JPEG", quality=80)
        return content.getvalue()

    def as_json(self) -> dict[str, Any]:
        """Return the result, as the service sends it."""
        return {
            "score": finite(self.score),
            "p_value": finite(self.p_value),
            "is_anomaly": self.is_anomaly,
            "place": self.place,
        }

    def explained(self) -> dict[str, Any]:
        """Return the result, and what lies behind it."""
        found = self.explanation
        columns = (found.weights, found.normalised_scores[0], found.contributions[0])
        members = zip(found.member_names, *(each.tolist() for each in columns), strict=True)
        return self.as_json() | {
            "members": [
                {"name": name, "weight": weight, "score": score, "contribution": part}
                for name, weight, score, part in members
            ],
            "words": found.describe(0),
        }


class PictureScorer:
    """Score pictures that do not depend on each other, or frames one after another."""

    kind: Literal["pictures"] = PICTURES
    #: Pixels on the longer side of a thumbnail.
    small: ClassVar[int] = 320
    #: Pictures before one that its score depends on.
    n_reach: ClassVar[int] = 0

    def __init__(self, detector: PictureDetector) -> None:
        if detector.context_range_ is not None:
            raise ModelFileError(
                "A model that compares frames of the same progress of a task cannot be served, as "
                "pictures of a request have no place for it. Learn without: ocfuse fit ... "
                "--no-progress."
            )
        self.detector = detector
        #: It has no columns.
        self.names: list[str] = []
        self.schema = Schema([])
        self.threshold = float(detector.offset_)
        self.judge(np.zeros((8, 8, 3), dtype=np.uint8))  # networks that are missing are told now

    def channels(self, most: int) -> list[dict[str, Any]]:
        """Return no channels: pictures have none."""
        return []

    @property
    def members(self) -> list[str]:
        """Names of the families of members."""
        return [family.name for family in self.detector.families_]

    def slow_change(self, settings: SlowSettings) -> SlowChange:
        """Return what follows slow changes of one camera; frames of a video are alike."""
        is_video = self.detector.normal_groups_ is not None
        block = stream_block(self.detector.training_scores_, 1) if is_video else 1
        return SlowChange.of(self.detector, settings, block)

    def tracker(self, min_rows: int | None) -> EventTracker:
        """Return what makes events of scores: by default of 3 frames, or of each single picture."""
        usual = 1 if self.detector.normal_groups_ is None else 3
        end = leave_score(self.threshold, self.detector.normal_scores_)
        return EventTracker(self.threshold, end, usual if min_rows is None else min_rows)

    def judge(self, picture: Picture) -> JudgedPicture:
        """Score one picture."""
        backbones = self.detector.backbones_.items()
        features: dict[str, Features] = {name: net.extract([picture]) for name, net in backbones}
        return JudgedPicture(self.detector.explain(features), picture.shape, self._small(picture))

    def _small(self, picture: Picture) -> Picture:
        image = needed("PIL.Image", "to draw pictures", "video").fromarray(picture)
        image.thumbnail((self.small, self.small))
        return np.asarray(image)

    def judge_all(
        self, contents: list[bytes], media: str | None, limits: Limits, kept: Callable[[Any], Any]
    ) -> list[Any]:
        """Decode and score the files of a request, one by one; return what is kept of each."""
        found = []
        for i, content in enumerate(contents):
            try:
                found.append(kept(self.judge(decoded(content, limits, media))))
            except ServeError as error:
                if len(contents) == 1:
                    raise
                message = f"Picture {i}: {error.content['error']['message']}"
                raise ServeError(error.status, error.code, message) from None
        return found


def read_pictures(body: bytes, media: str, limits: Limits) -> list[bytes]:
    """Return the files of a request: one as it is, or several of JSON, in base64."""
    if media in FORMATS:
        return [body]
    if media != "application/json":
        raise ServeError(
            415,
            "unknown_content_type",
            f"This model judges pictures. The Content-Type must be one of {', '.join(FORMATS)}, or "
            'application/json with {"pictures": ["..."]} in base64.',
        )
    content = parse_json(body, limits)
    files = content.get("pictures") if isinstance(content, dict) else None
    if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
        raise ServeError(
            422, "not_pictures", 'Expected {"pictures": ["...", ...]}: files of pictures in base64.'
        )
    if len(files) > limits.pictures:
        raise ServeError(
            413, "too_many_pictures", f"At most {limits.pictures} pictures are allowed."
        )
    return [from_base64(each) for each in files]


def from_base64(text: Any) -> bytes:
    """Return the content of a file of a picture that JSON holds."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ServeError(422, "bad_picture", "A picture of JSON must be in base64.") from None


def decoded(content: bytes, limits: Limits, media: str | None = None) -> Picture:
    """Return the picture that a file holds, of the type that its sender says, if that is known."""
    formats = tuple(FORMATS.values()) if media not in FORMATS else (FORMATS[media],)
    try:
        return decode_picture(content, formats, limits.pixels)
    except InvalidInputError as error:
        raise ServeError(422, "bad_picture", f"{error}") from None
    except Exception:  # what a damaged file does to a decoder, nobody knows
        raise ServeError(422, "bad_picture", "The picture is damaged.") from None
