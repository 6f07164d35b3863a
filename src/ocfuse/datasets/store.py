"""Where the files of data sets are: the user's folder, the cache, the network."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ocfuse.datasets.download import download
from ocfuse.exceptions import DatasetUnavailableError, MissingPackageError
from ocfuse.optional import needed

#: Folder that is looked at first, and folder of what was downloaded.
DATA_VARIABLE = "OCFUSE_DATA"
CACHE_VARIABLE = "OCFUSE_CACHE"


@dataclass(frozen=True)
class StoredFile:
    """A file of a data set: its place in a folder, its names and its address.

    Parameters
    ----------
    owner : str
        Name of the data set, for messages.
    folder : str
        Place below the user's folder and the cache.
    names : tuple of str
        Names it may have, the preferred one first.
    url : str or None
        Address to download the last of the names from.
    page : str
        Where a human finds it.
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
        folder = data_folder() or Path(f"${DATA_VARIABLE}")
        return (
            f"To supply it by hand, take it from {self.page} and put it at "
            f"{folder / self.folder / self.names[-1]}"
            + (f" ({DATA_VARIABLE} names a folder of your choice)." if not data_folder() else ".")
        )


def data_folder() -> Path | None:
    """Return the folder that the user named, if any."""
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder) if folder else None


def cache_folder() -> Path:
    """Return the folder of downloaded files."""
    folder = os.environ.get(CACHE_VARIABLE)
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
