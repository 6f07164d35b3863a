"""Nearest neighbours among many rows, exact where that can be afforded.

It holds the searches that detectors and fusions share. It must not know what the neighbours
are used for, nor scores or labels.
"""
