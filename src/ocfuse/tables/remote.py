"""Tables at addresses: https://, s3:// and others.

The files are copied to a folder for temporary files first, and deleted when nobody reads the
table any more: a table is read twice and more, and what has been checked must not change.

``http(s)://`` is read by Python, ``s3://``, ``gs://`` and ``hdfs://`` by pyarrow, with the
credentials that their environment has, and all other addresses by fsspec (extra ``remote``) and
the package that it has for them.
"""

import base64
import http.client
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ocfuse.exceptions import TableError
from ocfuse.system.log import logger
from ocfuse.system.packages import needed
from ocfuse.tables.source import Source

#: Addresses that pyarrow reads by itself.
OF_ARROW = ("s3", "gs", "gcs", "hdfs")
#: Seconds to wait for an answer of a server.
PATIENCE = 60

_log = logger(__name__)


def scheme(where: Any) -> str:
    """Return the scheme of an address, such as "s3", or nothing for other things."""
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+)://", where) if isinstance(where, str) else None
    return "" if found is None else found[1].lower()


def open_remote(
    url: str, is_known: Callable[[Path], bool], open_local: Callable[[Path], Source]
) -> Source:
    """Copy the file or folder at an address, and open the copy.

    Parameters
    ----------
    url : str
        The address.
    is_known : callable
        Whether a file of a folder, by its name, is a table.
    open_local : callable
        Opens the copy.

    Returns
    -------
    Source
        The table. The copy is deleted with it.
    """
    if scheme(url) == "file":
        return open_local(Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)))
    folder = Path(tempfile.mkdtemp(prefix="ocfuse-"))
    try:
        source = open_local(_copied(url, folder, is_known))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def _copied(url: str, folder: Path, is_known: Callable[[Path], bool]) -> Path:
    """Copy what is at an address into a folder, and return where it is."""
    if scheme(url) in ("http", "https"):
        target = folder / _name(url)
        with _answer(url) as answer:
            _copy(answer, target, shown(url), answer.headers.get("Content-Length"))
        return target
    with _refusals(url):
        files, path = _file_system(url)
        info = files.get_file_info(path)
        if info.type.name == "NotFound":
            raise TableError(f"There is no file {shown(url)}.")
        target = folder / _name(url)
        if info.is_file:
            with files.open_input_stream(path, compression=None) as stream:
                _copy(stream, target, shown(url), info.size)
            return target
        target.mkdir()
        fs = needed("pyarrow.fs", "to read tables at addresses")
        inside = [found for found in files.get_file_info(fs.FileSelector(path)) if found.is_file]
        known = [found for found in inside if is_known(Path(found.base_name))]
        for found in known:
            with files.open_input_stream(found.path, compression=None) as stream:
                _copy(stream, target / found.base_name, found.base_name, found.size)
        return target


def _file_system(url: str) -> tuple[Any, str]:
    """Return a file system of pyarrow, and the path of the address in it."""
    fs = needed("pyarrow.fs", "to read tables at addresses")
    if scheme(url) in OF_ARROW:
        files, path = fs.FileSystem.from_uri(url.replace("gcs://", "gs://", 1))
        return files, path
    fsspec = needed("fsspec", f"to read {scheme(url)}://", "remote")
    inner, path = fsspec.core.url_to_fs(url)
    return fs.PyFileSystem(fs.FSSpecHandler(inner)), path


@contextmanager
def _refusals(url: str) -> Iterator[None]:
    """Turn what file systems raise into an error of ours."""
    try:
        yield
    except TableError:
        raise
    except ImportError as error:
        if type(error) is not ImportError and type(error) is not ModuleNotFoundError:
            raise  # one of ours says what to install
        raise TableError(f"{shown(url)} cannot be read: {error}") from error
    except (OSError, ValueError, NotImplementedError) as error:
        raise TableError(
            f"{shown(url)} cannot be read. ({error}) Look at the address, and whether this machine "
            "may read it: credentials are taken from where the tools of the store keep them."
        ) from error


@contextmanager
def _answer(url: str) -> Iterator[Any]:
    """Ask a server for a file; refusals become errors of ours."""
    parts = urllib.parse.urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    plain = urllib.parse.urlunsplit(parts._replace(netloc=host, fragment=""))
    request = urllib.request.Request(plain, headers={"User-Agent": "ocfuse"})
    if user:  # not for whom the server may send us to
        token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        error.close()
        raise _unread(url, f"the server says {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unread(url, getattr(error, "reason", None) or error) from error


def _unread(url: str, reason: object) -> TableError:
    return TableError(
        f"{shown(url)} cannot be read: {reason}. Look at the address, or download the file and "
        "give its name."
    )


def _copy(stream: IO[bytes], target: Path, name: str, size: Any) -> None:
    """Copy a file to the disk, if it has room, and compare its size."""
    expected = None if size is None else int(size)
    free = shutil.disk_usage(target.parent).free
    if expected is not None and expected > free:
        raise TableError(
            f"{name} has {expected:,} bytes, but {target.parent} has room for {free:,}. Name "
            "another folder for temporary files in the variable TMPDIR."
        )
    with target.open("wb") as file:
        shutil.copyfileobj(stream, file, 2**20)
        n_bytes = file.tell()
    if expected is not None and n_bytes != expected:
        raise TableError(f"{name} was cut off after {n_bytes:,} of {expected:,} bytes. Try again.")
    _log.info("copied %s: %d bytes", name, n_bytes)


def _name(url: str) -> str:
    """Return the name of the file or folder at an address."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rstrip("/")
    return path.rsplit("/", 1)[-1].replace("\\", "_") or "table"


def shown(url: str) -> str:
    """Return an address without what may be secret in it: users, passwords, signatures."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))
