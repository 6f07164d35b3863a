"""Loops over rows that NumPy would be slow at, compiled where that was possible."""
