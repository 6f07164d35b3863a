"""Print the lowest versions that pyproject.toml promises, and what tests and builds need."""

from supply.pins import lowest, pins, project

#: What runs the tests and builds the package: of these the newest will do.
AROUND = (
    "hypothesis",
    "numpydoc",
    "pytest",
    "pytest-xdist",
    "setuptools",
)


def requirements() -> list[str]:
    """Return exact versions of the core, of two extras and of what is around them."""
    about, pinned = project(), pins()
    extras = about["optional-dependencies"]
    # frames of today are unknown to the scikit-learn of then
    frames = [line for line in extras["dev"] if line.startswith("polars")]
    own = [*about["dependencies"], *extras["tool"], *extras["distributed"]]
    promised = lowest([*dict.fromkeys(own), *frames])
    return [*promised, *(f"{name}=={pinned[name]}" for name in AROUND)]


if __name__ == "__main__":
    print(*requirements(), sep="\n")
