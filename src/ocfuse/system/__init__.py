"""What the process has and shares: the memory it may still take, results computed once.

It knows nothing of rows, detectors or models, and imports nothing of this package.
"""
