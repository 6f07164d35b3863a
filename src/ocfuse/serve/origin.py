"""Whether a request of a browser comes from a page of ours."""

from collections.abc import Mapping
from urllib.parse import urlsplit


def is_own(headers: Mapping[str, str]) -> bool:
    """Tell whether a request may change something, by the page that it comes from.

    Browsers name the origin of every such request, and of every WebSocket; programs that are
    no browsers name none.

    Parameters
    ----------
    headers : mapping
        Headers of the request, by lower-case names.

    Returns
    -------
    bool
        The origin is this service, or there is none.

    Examples
    --------
    >>> from ocfuse.serve.origin import is_own
    >>> is_own({"host": "pump:8000", "origin": "http://pump:8000"})
    True
    >>> is_own({"host": "pump:8000", "origin": "https://evil.example"})
    False
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:  # no address at all
        return False
