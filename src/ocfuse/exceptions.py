"""Errors and warnings that ocfuse raises.

The tree::

    OcfuseError
    └── InvalidInputError (also ValueError)    what was given cannot be used
        └── InvalidTypeError (also TypeError)  it is not even of a usable type

    OcfuseWarning (UserWarning)
    └── ConvergenceWarning                     a solver stopped before its tolerance
"""


class OcfuseError(Exception):
    """Base of every error that ocfuse raises on purpose."""


class InvalidInputError(OcfuseError, ValueError):
    """Say what was given, what is expected and what to do about it."""


class InvalidTypeError(InvalidInputError, TypeError):
    """Say that the type of what was given cannot be used."""


class OcfuseWarning(UserWarning):
    """Base of every warning that ocfuse gives."""


class ConvergenceWarning(OcfuseWarning):
    """Tell that a solver stopped before its tolerance, with status and gap."""
