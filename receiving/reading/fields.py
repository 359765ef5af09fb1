"""Header fields of received messages: addresses, times and ids of messages.

All take linear time in their length, and return what they can.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from core.lib.mail.address_lists import AddressList, decode_address_list, printable, read_address_list
from core.lib.mail.charsets import without_unencodable
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_fields import MessageField

# In all fields of a name.
MAX_MAILBOXES = 250
MAX_REFERENCES = 100
MAX_ID_LENGTH = 998
MAX_SUBJECT_LENGTH = 2_000
ADDRESS_FIELDS = frozenset({"from", "sender", "reply-to", "to", "cc", "bcc"})
MAX_FIELD_LENGTH = 64 * 1024
MESSAGE_ID = re.compile(rf"<[^<>\s]{{1,{MAX_ID_LENGTH}}}>")
# Line ends among them. Bidi controls and joiners stay: texts of some languages need them.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class HeaderFields:
    """The fields of a header, by name in lower case."""

    def __init__(self, fields: Sequence[MessageField]) -> None:
        self._values: dict[str, list[str]] = {}
        for field in fields:
            self._values.setdefault(field.name.lower(), []).append(clean(field.value))

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def clean(text: str) -> str:
    """Return a text that PostgreSQL stores."""
    return without_unencodable(text)


def one_line(text: str) -> str:
    """Return a text that PostgreSQL stores, without line ends: an encoded word may contain them."""
    return CONTROLS.sub(" ", clean(text))


def read_subject(value: str) -> str:
    return one_line(decode_words(value))[:MAX_SUBJECT_LENGTH]


def decode_field(field: MessageField) -> str:
    """Return the text of a field with its encoded words decoded; one in a list of addresses yields no further ones."""
    is_list = field.name.lower().removeprefix("resent-") in ADDRESS_FIELDS
    return one_line(decode_address_list(field.value) if is_list else field.decoded)


def read_addresses(fields: Iterable[MessageField], *, name: str) -> AddressList:
    """Return the addresses in all fields of a name, in lower case.

    More than one field is not exact, since RFC 5322, section 3.6, allows one, and programs show different ones.
    """
    lists = [read_address_list(field.value) for field in fields if field.name.lower() == name]
    mailboxes = [mailbox for found in lists for mailbox in found.mailboxes]
    return AddressList(
        mailboxes[:MAX_MAILBOXES],
        is_exact=len(lists) < 2 and all(found.is_exact for found in lists),
        is_complete=len(mailboxes) <= MAX_MAILBOXES and all(found.is_complete for found in lists),
    )


def read_date(value: str) -> datetime | None:
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        date = parsedate_to_datetime(value[:100])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    return None


def read_message_id(value: str) -> str:
    """Return the first id of a message in a field, with its brackets; a text without one as it is."""
    found = MESSAGE_ID.search(value[:MAX_FIELD_LENGTH])
    return printable(found[0] if found else value.strip())[:MAX_ID_LENGTH]


def read_references(values: Iterable[str]) -> list[str]:
    """Return the last MAX_REFERENCES ids."""
    found = MESSAGE_ID.findall(" ".join(values)[-MAX_FIELD_LENGTH:])
    return [printable(text) for text in found[-MAX_REFERENCES:]]
