"""Files of data sets: the user's folder, the cache, and downloads that resume."""

import contextlib
import http.client
import logging
import os
import shutil
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocfuse.exceptions import DatasetError, DatasetUnavailableError, MissingPackageError
from ocfuse.system.packages import needed

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredFile:
    """A file of a data set.

    `owner` is the data set, for messages; `folder` the place below the user's folder and the cache;
    `names` are those it may have, the preferred one first; `url` is the address of the last of
    them, if there is one, and `page` where a human finds it.
    """

    owner: str
    folder: str
    names: tuple[str, ...]
    url: str | None
    page: str

    def locate(self) -> Path | None:
        """Return the path of the file if it is here."""
        places = (base / self.folder / name for base in _bases() for name in self.names)
        return next((path for path in places if path.is_file()), None)

    def fetch(self, verify: Callable[[Path], object]) -> Path:
        """Return the path of the file, downloaded and verified if it is not here."""
        path = self.locate()
        if path is not None:
            return path
        if self.url is None:
            raise DatasetUnavailableError(f"{self.owner} is not here. {self._advice()}")
        try:
            target = cache_folder() / self.folder / self.names[-1]
            download(self.url, target, verify)
        except (DatasetUnavailableError, MissingPackageError) as error:
            kind = type(error)
            raise kind(f"{self.owner} is not here. {error} {self._advice()}") from error
        return target

    def _advice(self) -> str:
        folder = data_folder() or Path("$OCFUSE_DATA")
        return (
            f"To supply it by hand, take it from {self.page} and put it at "
            f"{folder / self.folder / self.names[-1]}"
            + (" (OCFUSE_DATA names a folder of your choice)." if not data_folder() else ".")
        )


def data_folder() -> Path | None:
    """Return the folder that the user named, if any."""
    folder = os.environ.get("OCFUSE_DATA")
    return Path(folder) if folder else None


def cache_folder() -> Path:
    """Return the folder of downloaded files."""
    folder = os.environ.get("OCFUSE_CACHE")
    if folder:
        return Path(folder)
    return Path(needed("pooch", "to download data").os_cache("ocfuse"))


def _bases() -> Iterator[Path]:
    folder = data_folder()
    if folder is not None:
        yield folder
    try:
        yield cache_folder()
    except MissingPackageError:
        return  # nothing was ever downloaded without it


class _BrokenOffError(OSError):
    """The connection ended before the file did."""


@dataclass(frozen=True)
class ResumingDownloader:
    """Fetch a URL, and go on from where a break left a `.part` file.

    While it works the file has a name of its own, so that other processes and
    threads are not disturbed: the first one takes the `.part` that a break
    left by renaming it, which cannot be done twice, and others start anew.

    `verify` raises DatasetError if the complete file is not the right one; it is removed then.
    After `timeout` seconds without a byte the connection counts as broken; it is tried `attempts`
    times.
    """

    part: Path
    verify: Callable[[Path], object]
    timeout: float
    attempts: int = 3

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Do what pooch asks of a downloader."""
        own = self.part.with_name(f"{self.part.stem}.{uuid.uuid4().hex}.part")
        _rename(self.part, own)
        try:
            self._receive(url, own)
            try:
                self.verify(own)
            except DatasetError as error:
                own.unlink()
                raise DatasetError(f"What {url} sent was removed. {error}") from error
            os.replace(own, output_file)
        finally:
            _rename(own, self.part)  # what has arrived before a break, if anything

    def _receive(self, url: str, own: Path) -> None:
        """Ask for the file until it is whole."""
        for attempt in range(1, self.attempts + 1):
            try:
                return self._ask_twice(url, own)
            except (TimeoutError, ConnectionError, _BrokenOffError, http.client.HTTPException):
                if attempt == self.attempts:
                    raise
                logger.info("The connection to %s broke; going on (%d).", url, attempt)

    def _ask_twice(self, url: str, own: Path) -> None:
        """Ask, and once more if the server has failed: it may be busy for a moment."""
        try:
            self._ask(url, own)
        except urllib.error.HTTPError as error:
            if error.code < http.HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            logger.info("%s answers %d; asking again.", url, error.code)
            time.sleep(1.0)
            self._ask(url, own)

    def _ask(self, url: str, own: Path) -> None:
        """Append what is missing of the file, or all of it if the server resumes nothing."""
        have = own.stat().st_size if own.exists() else 0
        request = urllib.request.Request(url, headers={"User-Agent": "ocfuse"})
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                _append(response, own, have)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            if _total(error.headers.get("Content-Range")) != have:
                own.unlink()  # a leftover of another file: start anew
                raise _BrokenOffError("the server has a shorter file than the part here") from None


def _append(response: Any, own: Path, have: int) -> None:
    resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
    length = response.headers.get("Content-Length")
    start = have if resumed else 0
    with open(own, "ab" if resumed else "wb") as file:
        shutil.copyfileobj(response, file)
    size = own.stat().st_size
    if length is not None and size < start + int(length):
        raise _BrokenOffError(f"only {size} of {start + int(length)} bytes arrived")


def _rename(path: Path, other: Path) -> None:
    """Rename a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, other)


def download(
    url: str, target: Path, verify: Callable[[Path], object], timeout: float = 30.0
) -> None:
    """Put the file of a URL at `target`, verified, or raise DatasetUnavailableError."""
    pooch = needed("pooch", "to download data")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetUnavailableError(
            f"The folder {target.parent} for downloads cannot be made: {error.strerror}. Let the "
            "environment variable OCFUSE_CACHE name a folder that can be written to."
        ) from error
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
