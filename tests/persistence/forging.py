"""Model files as a stranger would write them: any description, and a header that fits."""

from pathlib import Path

from benchmarks.hardening.parts import Parts, from_npy, seal, to_npy


def forged(path, change):
    """Change the parts of a model file in place, and seal it again."""
    parts = Parts.of(path.read_bytes(), Path(path))
    change(parts)
    path.write_bytes(seal(parts.archive()))
    return path


def node_of(parts, name):
    """Return the description of the first part whose class has a name."""
    return next(node for node in parts.nodes() if node["__class__"] == name)


def attribute(parts, name, key):
    """Return the description of an attribute of the first part of a class."""
    return node_of(parts, name)["content"]["content"][key]


def change_array(parts, node, change):
    """Replace the array that a node names by what a function makes of it."""
    parts.entries[node["file"]] = to_npy(change(from_npy(parts.entries[node["file"]])))
