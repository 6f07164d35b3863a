"""The nearest of some rows: exact where it can be afforded."""
