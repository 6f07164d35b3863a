"""Ordinary tables, with the troubles that ordinary tables have."""
