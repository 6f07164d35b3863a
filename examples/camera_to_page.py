"""Send the frames of a camera or a recording to `ocfuse serve`: they appear on its live page.

    ocfuse serve part.ocf
    python examples/camera_to_page.py 0 "ws://127.0.0.1:8000/v1/stream?model=part&stream=camera"

The first argument is what `open_frames` takes: the number of a camera, an address, a file. If a
service wants a token, set OCFUSE_TOKEN.
"""

import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from PIL import Image
from websockets.sync.client import connect

from ocfuse.vision import FrameSource, open_frames
from ocfuse.vision.live import FrameQueue


def send(frames: FrameSource, address: str, token: str | None = None) -> Iterator[dict[str, Any]]:
    """Send frames as JPEG, and yield the answer to each: score, alarm, place."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers) as stream:
        stream.recv()  # "ready"
        for frame in FrameQueue(frames, timeout=5 if frames.is_live else None):
            content = io.BytesIO()
            Image.fromarray(frame.image).save(content, "JPEG", quality=90)
            stream.send(content.getvalue())
            yield json.loads(stream.recv())


if __name__ == "__main__":
    where, address = sys.argv[1:]
    source = open_frames(int(where) if where.isdecimal() else where)
    for answer in send(source, address, os.environ.get("OCFUSE_TOKEN")):
        if answer.get("alarm") or answer["type"] == "error":
            print(json.dumps(answer), flush=True)
