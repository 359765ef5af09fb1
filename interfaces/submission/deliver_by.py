"""The parameter BY of MAIL (RFC 2852): the time within which a message is to be delivered."""

import re

from core.api.fields import MAX_DELIVER_WITHIN, MIN_DELIVER_WITHIN

EXTENSION = f"DELIVERBY {MIN_DELIVER_WITHIN}"
# Behind the address, whose quoted local part may contain anything.
PARAMETER = re.compile(r"(?<!\s)\s+BY(?:=(\S*))?(?=\s|\Z)", re.IGNORECASE)
# Section 4: by-time, by-mode and by-trace.
VALUE = re.compile(r"([+-]?\d{1,9});([NR])T?", re.IGNORECASE)
SYNTAX = "501 5.5.4 Syntax: BY=<seconds>;R"
NOT_POSITIVE = "501 5.5.4 BY with R needs a time greater than 0"
# No DSN about a delay is sent.
NOTIFY = "504 5.5.4 BY with N is not supported; use R"
TOO_SHORT = f"555 5.5.4 BY needs at least {MIN_DELIVER_WITHIN} seconds"


class DeliverByRefused(Exception):
    """Raised for a BY that cannot be granted. reply: to MAIL."""

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.reply = reply


def take_deliver_by(argument: str) -> tuple[str, int | None]:
    """Return the argument of MAIL without BY, and its seconds, None without it. Raises DeliverByRefused.

    A longer time than an email may have is that time.
    """
    address, bracket, parameters = argument.rpartition(">")
    found = PARAMETER.search(parameters)
    if not found:
        return argument, None
    rest = address + bracket + parameters[: found.start()] + parameters[found.end() :]
    return rest, _read(found[1] or "")


def _read(value: str) -> int:
    parts = VALUE.fullmatch(value)
    if not parts:
        raise DeliverByRefused(SYNTAX)
    if parts[2].upper() == "N":
        raise DeliverByRefused(NOTIFY)
    seconds = int(parts[1])
    if seconds <= 0:
        raise DeliverByRefused(NOT_POSITIVE)
    if seconds < MIN_DELIVER_WITHIN:
        raise DeliverByRefused(TOO_SHORT)
    return min(seconds, MAX_DELIVER_WITHIN)
