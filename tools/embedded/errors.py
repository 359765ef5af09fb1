"""Errors of the launcher."""


class CannotStart(Exception):
    """Raised when the launcher must give up; the message explains the problem and how to fix it."""
