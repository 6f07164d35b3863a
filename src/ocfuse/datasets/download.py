"""Download a file: resumed where it broke off, kept only if it is the right one."""

import http.client
import logging
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocfuse.datasets.optional import needed
from ocfuse.exceptions import DatasetError, DatasetUnavailableError

#: Seconds without a byte, and how often a broken connection is resumed.
TIMEOUT = 30.0
ATTEMPTS = 3
CHUNK = 1 << 16

logger = logging.getLogger(__name__)


class _BrokenOffError(OSError):
    """The connection ended before the file did."""


@dataclass(frozen=True)
class ResumingDownloader:
    """Fetch a URL into a `.part` file and go on from there after a break.

    Parameters
    ----------
    part : Path
        Holds what has arrived; it survives a break, for the next call.
    verify : callable
        Takes the path of the complete file and raises DatasetError if it is
        not the right one; it is removed then.
    timeout : float
        Seconds without a byte after which the connection counts as broken.
    attempts : int
        How often a broken connection is tried in one call.
    """

    part: Path
    verify: Callable[[Path], object]
    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Do what pooch asks of a downloader."""
        for attempt in range(1, self.attempts + 1):
            try:
                self._receive(url)
                break
            except (TimeoutError, ConnectionError, _BrokenOffError, http.client.HTTPException):
                if attempt == self.attempts:
                    raise
                logger.info("The connection to %s broke; going on (%d).", url, attempt)
        try:
            self.verify(self.part)
        except DatasetError as error:
            self.part.unlink()
            raise DatasetError(f"What {url} sent was removed. {error}") from error
        shutil.move(self.part, output_file)

    def _receive(self, url: str) -> None:
        """Append what is missing of the file, or all of it if the server resumes nothing."""
        have = self.part.stat().st_size if self.part.exists() else 0
        request = urllib.request.Request(url, headers={"User-Agent": "ocfuse"})
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                self._append(response, have)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            if _total(error.headers.get("Content-Range")) != have:
                self.part.unlink()  # a leftover of another file: start anew
                raise _BrokenOffError("the server has a shorter file than the part here") from None

    def _append(self, response: Any, have: int) -> None:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        length = response.headers.get("Content-Length")
        start = have if resumed else 0
        with open(self.part, "ab" if resumed else "wb") as file:
            shutil.copyfileobj(response, file, CHUNK)
        size = self.part.stat().st_size
        if length is not None and size < start + int(length):
            raise _BrokenOffError(f"only {size} of {start + int(length)} bytes arrived")


def download(
    url: str, target: Path, verify: Callable[[Path], object], timeout: float = TIMEOUT
) -> None:
    """Put the file of a URL at `target`, verified, or raise DatasetUnavailableError."""
    pooch = needed("pooch", "to download data")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    store = pooch.create(target.parent, "", registry={target.name: None}, urls={target.name: url})
    try:
        store.fetch(target.name, downloader=ResumingDownloader(part, verify, timeout))
    except (OSError, http.client.HTTPException) as error:
        raise DatasetUnavailableError(_reason(url, error)) from error


def _reason(url: str, error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{url} cannot be fetched: the server answers {error.code} {error.reason}."
    if isinstance(error, urllib.error.URLError):
        return f"{url} cannot be reached ({error.reason}). Is there a network?"
    if isinstance(error, TimeoutError):
        return f"{url} does not answer in time ({error}). A later call goes on from here."
    return f"{url} cannot be fetched: {error}. A later call goes on from here."


def _total(content_range: str | None) -> int | None:
    """Return N of "bytes */N"."""
    total = (content_range or "").rpartition("/")[2]
    return int(total) if total.isdigit() else None
