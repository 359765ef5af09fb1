"""What the launcher raises when it must give up."""


class CannotStart(Exception):
    """Raised with one sentence that says what is wrong and what to do about it."""
