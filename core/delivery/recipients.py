"""The setting RECIPIENTS: who gets the messages of this installation (docs/decisions/0387)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from core.lib.email_addresses import InvalidAddress, parse_address
from core.lib.registry import Registry

REDIRECT = "redirect:"
# Names the recipient in a redirected message.
RECIPIENT_HEADER = "X-Postrider-Recipient"
# The built-in inbox: stores a message with its return path and its recipient; returns False if it could not.
INBOX: Registry[Callable[[bytes, str, str], bool]] = Registry()


class InvalidRecipients(ValueError):
    """Raised for a value of RECIPIENTS that is none of the permitted ones."""


class Diversion(StrEnum):
    """Where a message goes in place of its recipient: to the built-in inbox, or to another address."""

    CAPTURED = "captured"
    REDIRECTED = "redirected"


@dataclass(frozen=True)
class RecipientSetting:
    """The recipients of all messages: their own, unless there is a diversion.

    redirect_to: the address that gets redirected messages.
    """

    diversion: Diversion | None = None
    redirect_to: str = ""

    def __str__(self) -> str:
        """Return the value of the setting."""
        return f"{REDIRECT}{self.redirect_to}" if self.redirect_to else (self.diversion or "all")


def read_recipients(text: str) -> RecipientSetting:
    """Read `all`, `captured` or `redirect:qa@example.com`. Raises InvalidRecipients."""
    if text == "all":
        return RecipientSetting()
    if text == "captured":
        return RecipientSetting(Diversion.CAPTURED)
    if not text.startswith(REDIRECT):
        raise InvalidRecipients(f"must be all, captured, or redirect: with an address, not {text!r}.")
    try:
        address = parse_address(text.removeprefix(REDIRECT))
    except InvalidAddress as error:
        raise InvalidRecipients(f"must name an address, such as redirect:qa@example.com: {error}") from error
    return RecipientSetting(Diversion.REDIRECTED, address.spec)
