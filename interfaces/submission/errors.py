"""Refusals of a submitted message, each with its SMTP reply code."""


class Refused(Exception):
    """A refusal with its reply: a code, an enhanced status code (RFC 3463) and a text."""

    code = "550 5.6.0"

    def __str__(self) -> str:
        return f"{self.code} {self.args[0]}"


class MalformedMessage(Refused):
    """Raised for a message that cannot be read without guessing."""

    code = "554 5.6.0"


class ConversionNotAllowed(Refused):
    """Raised for signed or encrypted content that would have to be changed."""

    code = "554 5.6.1"


class InvalidHeader(Refused):
    """Raised with the name of a header whose value is not accepted."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")


class MessageTooLarge(Refused):
    """Raised for a part that is larger than the API accepts."""

    code = "552 5.3.4"


class InvalidResponse(Refused):
    """Raised for a response in AUTH that has no password (RFC 4954, section 4)."""

    code = "501 5.5.2"


class ExchangeCancelled(Refused):
    """Raised when a client ends AUTH with "*"."""

    code = "501 5.7.0"


class ResponseTooLong(Refused):
    """Raised for a response in AUTH that is longer than a line of a session may be (RFC 4954, section 6)."""

    code = "500 5.5.6"
