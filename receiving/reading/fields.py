"""Header fields of received messages: addresses, times, ids of messages, and whether a program sent them.

All take linear time in their length, and return what they can.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lib.email_addresses import ITEM
from lib.mail.charsets import without_unencodable
from lib.mail.encoded_words import decode_words
from lib.mail.header_fields import MessageField
from receiving.models import Message

MAX_ADDRESSES = 200
MAX_REFERENCES = 100
MAX_ID_LENGTH = 998
MAX_NAME_LENGTH = 320
MAX_SUBJECT_LENGTH = 2_000
# Of a list of addresses.
MAX_FIELD_LENGTH = 64 * 1024
MESSAGE_ID = re.compile(rf"<[^<>\s]{{1,{MAX_ID_LENGTH}}}>")
IN_BRACKETS = re.compile(r"<([^<>]*)>")
COMMENT = re.compile(r"\([^()]*\)")
Automatic = Message.Automatic
# RFC 3834, section 5; other values than `no` come from programs, too.
AUTO_SUBMITTED = {"no": Automatic.NO, "auto-replied": Automatic.AUTO_REPLIED}
PRECEDENCES = {
    "list": Automatic.LIST,
    "bulk": Automatic.BULK,
    "junk": Automatic.BULK,
    "auto_reply": Automatic.AUTO_REPLIED,
}
# Fields of programs that do not know RFC 3834.
REPLY_FIELDS = ("x-autoreply", "x-autorespond", "x-autoresponder", "x-vacation")


@dataclass(frozen=True)
class Mailbox:
    email: str
    name: str

    def to_json(self) -> dict[str, str]:
        return {"email": self.email, "name": self.name}


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


def read_subject(value: str) -> str:
    return clean(decode_words(value))[:MAX_SUBJECT_LENGTH]


def read_mailboxes(value: str) -> list[Mailbox]:
    """Return the addresses of a field, at most MAX_ADDRESSES; groups are opened (RFC 5322, section 3.4)."""
    mailboxes: list[Mailbox] = []
    for item in _items(value[:MAX_FIELD_LENGTH]):
        if mailbox := _read_mailbox(item):
            mailboxes.append(mailbox)
            if len(mailboxes) == MAX_ADDRESSES:
                break
    return mailboxes


def _items(value: str) -> Iterator[str]:
    # A semicolon ends a group, and some programs separate addresses with it.
    for match in ITEM.finditer(value):
        yield from _split_groups(match[0]) if ";" in match[0] else (match[0],)


def _split_groups(text: str) -> list[str]:
    if '"' in text:
        return [text]
    return text.split(";")


def _read_mailbox(item: str) -> Mailbox | None:
    text = item.strip()
    if brackets := IN_BRACKETS.search(text):
        name, spec = text[: brackets.start()], brackets[1]
    else:
        # Only few and short comments are looked for: ada@example.com (Ada)
        name, spec = "", COMMENT.sub("", text[:2_000])
    spec = spec.strip()
    if "@" not in spec:
        return None
    group, colon, first = spec.partition(":")
    if colon and "@" not in group:
        spec = first.strip()
    if '"' not in name and ":" in name:
        name = name.rpartition(":")[2]
    return Mailbox(_plain(spec)[:MAX_NAME_LENGTH], _read_name(name))


def _read_name(text: str) -> str:
    name = text.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return _plain(decode_words(name)).strip()[:MAX_NAME_LENGTH]


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def read_date(value: str) -> datetime | None:
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        date = parsedate_to_datetime(value[:100])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    return None


def read_message_id(value: str) -> str:
    """Return the first id of a message in a field, with its brackets; a text without one as it is."""
    found = MESSAGE_ID.search(value[:MAX_FIELD_LENGTH])
    return _plain(found[0] if found else value.strip())[:MAX_ID_LENGTH]


def read_references(values: Iterable[str]) -> list[str]:
    """Return the last MAX_REFERENCES ids."""
    found = MESSAGE_ID.findall(" ".join(values)[-MAX_FIELD_LENGTH:])
    return [_plain(text) for text in found[-MAX_REFERENCES:]]


def classify_automatic(fields: HeaderFields, *, envelope_from: str) -> Message.Automatic:
    """Return whether a program sent a message: by RFC 3834, List-Id, Precedence, and an empty MAIL FROM."""
    submitted = fields.first("auto-submitted").partition(";")[0].partition(" ")[0].strip().lower()
    if submitted and submitted != "no":
        return AUTO_SUBMITTED.get(submitted, Automatic.AUTO_GENERATED)
    if any(fields.all(name) for name in REPLY_FIELDS):
        return Automatic.AUTO_REPLIED
    if fields.all("list-id"):
        return Automatic.LIST
    if precedence := PRECEDENCES.get(fields.first("precedence").strip().lower()):
        return precedence
    return Automatic.NO if envelope_from else Automatic.AUTO_GENERATED
