"""The content of a submitted message: text, HTML and files, found by walking its parts in order."""

import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from core.delivery.message.compose import File, Placement
from core.delivery.message.text import html_to_text
from core.lib.email_addresses import FORBIDDEN
from core.lib.mail.inline_texts import HTML, PLAIN, InlineTexts, join_texts, text_to_html
from core.lib.mail.mime import MimePart
from core.lib.mail.transfer_encodings import has_long_line
from emails.accept.rules.attachments import CONTENT_ID, CONTENT_TYPE, FALLBACK_TYPE, MAX_FILES, MAX_TOTAL_BYTES
from emails.accept.rules.fields import MAX_BODY_BYTES
from interfaces.submission.errors import ConversionNotAllowed, MessageTooLarge

SIGNED = ("multipart/signed", "multipart/encrypted")
SMIME = ("application/pkcs7-mime", "application/x-pkcs7-mime")
MAX_LINE = 998
# A text needs at most 8 bytes for each of its bytes in UTF-8, with any charset and transfer encoding.
MAX_ENCODED_BODY_BYTES = 8 * MAX_BODY_BYTES
TEXT_TOO_LARGE = "The text and the HTML must not exceed 1 MiB each in UTF-8"
MAX_NAME = 255
NAMES = {"message/rfc822": "message.eml", "text/calendar": "invite.ics", "text/html": "text.html"}
# The composer writes the file name with the disposition.
DROPPED_PARAMETERS = ("name", "boundary")


@dataclass(frozen=True)
class MessageContent:
    """The texts and files of a message. text, html: empty without one."""

    text: str = ""
    html: str = ""
    files: tuple[File, ...] = ()


def read_content(message: MimePart) -> MessageContent:
    """Return the content of a message. Raises Refused.

    A text beside HTML is in both, unless they are alternatives (docs/decisions/0310).
    """
    if message.kind in (*SIGNED, *SMIME):
        return MessageContent(files=(_whole(message),))
    texts, attached = InlineTexts(), []
    for part in message.walk():
        if part.kind in SIGNED:
            raise ConversionNotAllowed("A signed or encrypted part must be the whole message, or an attached message")
        if part.is_container:
            texts.add(part)
        elif texts.accepts(part):
            texts.add(part, _body(part))
        else:
            attached.append(part)
        if len(attached) > MAX_FILES:
            raise MessageTooLarge(f"At most {MAX_FILES} attachments are allowed")
    html = _joined(texts, HTML, text_to_html)
    return MessageContent(_joined(texts, PLAIN, html_to_text), html, tuple(_files(attached, html)))


def _joined(texts: InlineTexts, kind: str, convert: Callable[[str], str]) -> str:
    """Return the text of a kind. The composer makes a text from HTML alone."""
    if not texts.has(kind):
        return texts.blank(kind)
    joined = join_texts(texts.shown(kind), kind=kind, convert=convert, limit=MAX_BODY_BYTES)
    _check_size(joined)
    return joined


def _files(parts: Iterable[MimePart], html: str) -> Iterator[File]:
    size = 0
    for number, part in enumerate(parts, 1):
        parent = part.parent.kind if part.parent else ""
        is_alternative = parent == "multipart/alternative" or (parent == "" and part.kind == "text/calendar")
        placement = Placement.ALTERNATIVE if is_alternative and not _is_file(part) else Placement.ATTACHED
        name, data = _file_name(part, number=number), part.content
        size += len(data)
        if size > MAX_TOTAL_BYTES:
            raise MessageTooLarge(f"Attachments must not exceed {MAX_TOTAL_BYTES:,} bytes in total after decoding")
        content_id = part.content_id if _is_shown(part, parent, html) else None
        yield File(name, _content_type(part, name), data, content_id, placement)


def _is_shown(part: MimePart, parent: str, html: str) -> bool:
    """Return whether the HTML shows a part: some programs give a Content-ID to every attachment."""
    if not CONTENT_ID.fullmatch(part.content_id):
        return False
    return parent == "multipart/related" or f"cid:{part.content_id}" in html


def _whole(message: MimePart) -> File:
    """Return a signed or encrypted body, which is passed on unchanged and therefore must be fit for any server."""
    if message.kind in SMIME:
        return File("smime.p7m", _content_type(message, "smime.p7m"), message.content, placement=Placement.WHOLE)
    body = message.body.removesuffix(b"\r\n")
    content_type = " ".join(message.content_fields["content-type"].split())
    if not body.isascii() or b"\0" in body or has_long_line(body, MAX_LINE):
        raise ConversionNotAllowed(
            f"A signed or encrypted body must be 7-bit, without NUL, with lines of at most {MAX_LINE} characters"
        )
    if len(content_type) > MAX_NAME or not content_type.isascii() or not content_type.isprintable():
        raise ConversionNotAllowed(f"The Content-Type must be printable ASCII with at most {MAX_NAME} characters")
    return File("message.mime", content_type, body, placement=Placement.WHOLE)


def _body(part: MimePart) -> str:
    if part.end - part.start > MAX_ENCODED_BODY_BYTES:
        raise MessageTooLarge(TEXT_TOO_LARGE)
    text = part.text
    _check_size(text)
    return text


def _check_size(text: str) -> None:
    if len(text) > MAX_BODY_BYTES or len(text.encode()) > MAX_BODY_BYTES:
        raise MessageTooLarge(TEXT_TOO_LARGE)


def _is_file(part: MimePart) -> bool:
    return part.disposition == "attachment" or bool(part.filename)


def _file_name(part: MimePart, *, number: int) -> str:
    """Return the last component of the file name without control characters, or a name by the type."""
    name = FORBIDDEN.sub("", re.split(r"[/\\]", part.filename)[-1]).strip()[-MAX_NAME:]
    if name.strip(". "):
        return name
    return NAMES.get(part.kind) or f"file-{number}{mimetypes.guess_extension(part.kind) or '.bin'}"


def _content_type(part: MimePart, name: str) -> str:
    """Return the media type with its parameters, or one guessed from the file name if it is malformed."""
    parameters = [f'{key}="{value}"' for key, value in part.parameters.items() if key not in DROPPED_PARAMETERS]
    text = "; ".join([part.kind, *parameters])
    if len(text) <= MAX_NAME and CONTENT_TYPE.fullmatch(text):
        return text
    if CONTENT_TYPE.fullmatch(part.kind):
        return part.kind
    return mimetypes.guess_type(name)[0] or FALLBACK_TYPE
