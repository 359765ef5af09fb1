"""The setting RECIPIENTS: who gets the messages of this installation (docs/decisions/0387)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

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


class FileRules(Protocol):
    """The rules of a file: core.workspaces.recipients.rules.RecipientRules.

    redirect_to: the address that gets the messages to others; empty if nobody does.
    """

    @property
    def redirect_to(self) -> str: ...

    def permits(self, address: str) -> bool: ...


Rules = TypeVar("Rules", bound=FileRules)


@dataclass(frozen=True)
class RecipientSetting(Generic[Rules]):
    """The recipients of all messages: their own, unless there is a diversion or the rules of a file.

    redirect_to: the address that gets redirected messages.
    """

    diversion: Diversion | None = None
    redirect_to: str = ""
    rules: Rules | None = None

    def __str__(self) -> str:
        """Return the value of the setting, without the path of a file."""
        if self.rules is not None:
            return "rules"
        return f"{REDIRECT}{self.redirect_to}" if self.redirect_to else (self.diversion or "all")

    @property
    def is_all(self) -> bool:
        return self.diversion is None and self.rules is None

    def lets_pass(self, address: str, *, is_redirected: bool = False) -> bool:
        """Return whether a message to an address may leave. is_redirected: it was built for another recipient."""
        if self.diversion:
            return is_redirected and address == self.redirect_to
        if self.rules is None or self.rules.permits(address):
            return True
        return is_redirected and address == self.rules.redirect_to


def is_path(text: str) -> bool:
    """Return whether a value is the path of a file with rules."""
    return "/" in text and not text.startswith(REDIRECT)


def read_recipients(text: str) -> RecipientSetting[Any]:
    """Read `all`, `captured` or `redirect:qa@example.com`. Raises InvalidRecipients."""
    if text == "all":
        return RecipientSetting()
    if text == "captured":
        return RecipientSetting(Diversion.CAPTURED)
    if not text.startswith(REDIRECT):
        raise InvalidRecipients(
            f"must be all, captured, redirect: with an address, or the path of a file, not {text!r}."
        )
    try:
        address = parse_address(text.removeprefix(REDIRECT))
    except InvalidAddress as error:
        raise InvalidRecipients(f"must name an address, such as redirect:qa@example.com: {error}") from error
    return RecipientSetting(Diversion.REDIRECTED, address.spec)
