"""Errors of message composition."""


class UnsafeHeader(ValueError):
    """Raised when a value could end its header line: input validation has failed to reject it."""


class UnsafeAddress(ValueError):
    """Raised when an envelope address could end its command: input validation has failed to reject it."""
