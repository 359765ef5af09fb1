"""SASL exchanges of AUTH (RFC 4954): the challenges, and the password in the client's responses.

aiosmtpd asks for "User Name" and a NUL, and refuses an empty initial response (docs/decisions/0113).
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable

from interfaces.submission.errors import ExchangeCancelled, InvalidResponse, ResponseTooLong

# The first challenge of each mechanism, in the order of EHLO: programs use the first mechanism that they know. Some
# compare the prompts of LOGIN with these, which draft-murchison-sasl-login-00 recommends for that reason.
FIRST_CHALLENGES = {"PLAIN": "", "LOGIN": "Username:"}
PASSWORD = "Password:"  # noqa: S105 - a prompt
OFFER = f"AUTH {' '.join(FIRST_CHALLENGES)}"

Ask = Callable[[str], Awaitable[bytes]]


async def read_password(ask: Ask, mechanism: str, initial: str | None = None) -> str:
    """Return the password that a client sends by a mechanism. Every user name and authorization identity is accepted.

    ask: sends a challenge and returns the line of the response (see `encode_challenge`).
    initial: the initial response in base64; "=" is an empty one (RFC 4954, section 4).
    Raises InvalidResponse, ExchangeCancelled, or an error of `ask`.
    """
    if initial is None:
        first = _decode(await ask(FIRST_CHALLENGES[mechanism]))
    else:
        first = b"" if initial == "=" else _decode(initial.encode("utf-8", "surrogateescape"))
    password = _password_of_plain(first) if mechanism == "PLAIN" else _decode(await ask(PASSWORD))
    return password.decode("utf-8", "replace")


def encode_challenge(challenge: str) -> str:
    """Return the reply with a challenge. The space stays if the challenge is empty (RFC 4954, section 4)."""
    return f"334 {b64encode(challenge.encode()).decode()}"


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line. Raises ResponseTooLong after one that exceeds the reader's limit."""
    is_too_long = False
    while True:
        try:
            line = await reader.readuntil(b"\r\n")
        except asyncio.LimitOverrunError as error:
            # The rest of the line must not be read as a command.
            await reader.readexactly(error.consumed)
            is_too_long = True
        else:
            break
    if is_too_long:
        raise ResponseTooLong("The response is too long")
    return line


def _decode(response: bytes) -> bytes:
    response = response.strip()
    if response == b"*":
        raise ExchangeCancelled("Authentication cancelled")
    try:
        return b64decode(response, validate=True)
    except ValueError:
        raise InvalidResponse("The response is not valid base64") from None


def _password_of_plain(message: bytes) -> bytes:
    """Return the password of an authorization identity, user name and password, between NUL (RFC 4616, section 2)."""
    try:
        _, _, password = message.split(b"\0")
    except ValueError:
        raise InvalidResponse("The response must have three parts, separated by NUL") from None
    return password
