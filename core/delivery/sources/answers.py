"""Answers about a source: of a block list, and of the reverse zone of its address."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class ListingAnswer:
    """The answer of one list about one address.

    is_listed: None if the list could not be asked.
    codes: the addresses of the answer, such as 127.0.0.2.
    text: what the list publishes about the address; it is the word of a stranger.
    error: why the list could not be asked; empty otherwise.
    """

    is_listed: bool | None
    codes: tuple[str, ...] = ()
    text: str = ""
    error: str = ""


class ReverseStatus(StrEnum):
    """Whether the DNS name of an address leads back to it.

    confirmed: a name of the address has the address.
    unconfirmed: it has names, but none of them has the address.
    missing: it has no name.
    """

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    MISSING = "missing"


@dataclass(frozen=True)
class ReverseName:
    """status: None if a lookup failed; `error` then has the reason."""

    status: ReverseStatus | None
    names: tuple[str, ...] = ()
    error: str = ""
