"""The files of the page: a fixed list, read once, sent with strict headers."""

import hashlib
from collections.abc import Mapping
from importlib.resources import files

from starlette.responses import Response

SCRIPT, STYLE, PICTURE = "text/javascript", "text/css", "image/svg+xml"
#: Everything that a browser may ask for, with its type.
FILES = {
    "page.html": "text/html",
    "page.css": STYLE,
    "icon.svg": PICTURE,
    **{
        f"{name}.js": SCRIPT
        for name in ("page", "chart", "connection", "events", "panels", "samples", "words")
    },
}
#: Nothing from elsewhere, nothing inline, shown in no page of others. Pictures of events are
#: fetched with the token, and shown from memory.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageFiles:
    """The files of the page, by name."""

    def __init__(self) -> None:
        folder = files("ocfuse.serve") / "static"
        self._contents = {name: (folder / name).read_bytes() for name in FILES}
        self._tags = {
            name: f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            for name, content in self._contents.items()
        }

    def answer(self, name: str, headers: Mapping[str, str]) -> Response | None:
        """Return a file, or that it has not changed; None if there is none of this name.

        Parameters
        ----------
        name : str
            Its name.
        headers : mapping
            Headers of the request.
        """
        if name not in FILES:
            return None
        tag = self._tags[name]
        sent = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
        known = [part.strip().removeprefix("W/") for part in _known(headers).split(",")]
        if tag in known or "*" in known:
            return Response(status_code=304, headers=sent)
        return Response(self._contents[name], headers=sent, media_type=FILES[name])


def _known(headers: Mapping[str, str]) -> str:
    return headers.get("if-none-match", "")
