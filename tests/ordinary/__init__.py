"""Ordinary tables, with the trouble that real ones have."""
