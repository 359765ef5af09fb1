"""What keeps a message from being made."""


class UnsafeHeader(ValueError):
    """Raised when a value could end its header line: a fault of ours, caught before the wire."""


class UnsafeAddress(ValueError):
    """Raised when an envelope address could end its command: a fault of ours, caught before the wire."""
