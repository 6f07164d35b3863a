"""Names for new columns of a table."""

from collections.abc import Collection

#: Column that names the file of every row where a folder is read as one table.
FILE = "file"


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return a column name that the table does not have yet.

    Parameters
    ----------
    wanted : str
        The name to give if it is free.
    taken : collection of str
        The names that the table has.

    Returns
    -------
    str
        The wanted name, or the first free one of `wanted_2`, `wanted_3`, ...
    """
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}_{n}"
    return name
