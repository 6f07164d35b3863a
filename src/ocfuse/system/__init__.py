"""The process and its machine: memory, threads, files, locks, progress, optional packages.

It counts the memory that is left, limits BLAS threads and writes files whole or not at all. It
must not know rows, detectors or models, and imports only the exceptions of this library.
"""
