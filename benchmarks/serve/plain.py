"""The same model in a plain FastAPI handler: ``python -m benchmarks.serve.plain MODEL KIND``.

This is how a model is mostly served: a data frame of the rows of a request, and one call.
A handler may be a coroutine, or a function that FastAPI calls in one of its threads. The kind
"bare" has no framework and no model: it reads a request and answers always the same, so that what
is measured is HTTP, by the parser that our service has.
"""

import json
import socket
import sys
import warnings
from typing import Any

import pandas as pd
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from ocfuse import load

#: What "bare" answers.
ANSWER = (
    b'{"model":"default","version":"0123456789abcdef","threshold":0.0123456789012345,'
    b'"results":[{"score":0.1234567890123456,"p_value":0.1234567890123,"is_anomaly":false}],'
    b'"notes":[]}'
)


class Rows(BaseModel):
    rows: list[dict[str, float]]


def make(path: str, kind: str) -> FastAPI:
    app = FastAPI()
    model = load(path)

    def answer(body: Rows) -> dict[str, Any]:
        return {"results": model.score(pd.DataFrame(body.rows)).to_dict("records")}

    if kind == "threads":

        @app.post("/v1/score")
        def score(body: Rows) -> dict[str, Any]:
            return answer(body)

    else:

        @app.post("/v1/score")
        async def score_here(body: Rows) -> dict[str, Any]:
            return answer(body)

    return app


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request as ours would, without a look at it."""
    if scope["type"] != "http":
        return  # it has no start and no end
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", b"%d" % len(ANSWER)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


def main() -> None:
    warnings.simplefilter("ignore")
    app = bare if sys.argv[2] == "bare" else make(sys.argv[1], sys.argv[2])
    # its protocol is named, or asyncio would not switch off Nagle's delay of small answers
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    print(json.dumps({"address": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, http="h11")
    server = uvicorn.Server(config)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
