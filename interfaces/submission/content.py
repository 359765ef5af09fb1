"""The content of a submitted message: text, HTML and files, found by walking its parts in order."""

import mimetypes
import re
from dataclasses import dataclass, field

from core.delivery.message.compose import File, Placement
from core.lib.email_addresses import FORBIDDEN
from core.lib.mail.lines import has_long_line
from core.lib.mail.mime import MimePart
from emails.accept.rules.attachments import CONTENT_ID, CONTENT_TYPE, FALLBACK_TYPE, MAX_FILES, MAX_TOTAL_BYTES
from emails.accept.rules.fields import MAX_BODY_BYTES
from interfaces.submission.errors import ConversionNotAllowed, MessageTooLarge

SIGNED = ("multipart/signed", "multipart/encrypted")
SMIME = ("application/pkcs7-mime", "application/x-pkcs7-mime")
# The part of a multipart/alternative or multipart/related is HTML to be shown, not a file.
BODIES = ("", "multipart/alternative", "multipart/related")
MAX_LINE = 998
# A text needs at most 8 bytes for each of its bytes in UTF-8, with any charset and transfer encoding.
MAX_ENCODED_BODY_BYTES = 8 * MAX_BODY_BYTES
TEXT_TOO_LARGE = "The text and the HTML must not exceed 1 MiB each in UTF-8"
MAX_NAME = 255
NAMES = {"message/rfc822": "message.eml", "text/calendar": "invite.ics", "text/html": "text.html"}
# The composer writes the file name with the disposition.
DROPPED_PARAMETERS = ("name", "boundary")


@dataclass
class MessageContent:
    """The texts and files collected so far; text and html are None until found."""

    text: str | None = None
    html: str | None = None
    files: list[File] = field(default_factory=list)

    def add(self, part: MimePart) -> None:
        """Add a part. Raises Refused."""
        parent = part.parent.kind if part.parent else ""
        if part.kind in SIGNED:
            raise ConversionNotAllowed("A signed or encrypted part must be the whole message, or an attached message")
        if part.is_container:
            return
        if self._is_text(part, parent):
            self.text = _body(part)
        elif self._is_html(part, parent):
            self.html = _body(part)
        else:
            self._add_file(part, parent)

    def _is_text(self, part: MimePart, parent: str) -> bool:
        is_first = self.text is None and (self.html is None or parent == "multipart/alternative")
        return part.kind == "text/plain" and is_first and not _is_file(part)

    def _is_html(self, part: MimePart, parent: str) -> bool:
        is_first = self.html is None and (self.text is None or parent in BODIES)
        return part.kind == "text/html" and is_first and not _is_file(part)

    def _add_file(self, part: MimePart, parent: str) -> None:
        is_alternative = parent == "multipart/alternative" or (parent == "" and part.kind == "text/calendar")
        placement = Placement.ALTERNATIVE if is_alternative and not _is_file(part) else Placement.ATTACHED
        content_id = part.content_id if self._is_inline(part, parent) else None
        name = _file_name(part, number=len(self.files) + 1)
        self.files.append(File(name, _content_type(part, name), part.content, content_id, placement))
        if len(self.files) > MAX_FILES:
            raise MessageTooLarge(f"At most {MAX_FILES} attachments are allowed")
        if sum(len(file.data) for file in self.files) > MAX_TOTAL_BYTES:
            raise MessageTooLarge(f"Attachments must not exceed {MAX_TOTAL_BYTES:,} bytes in total after decoding")

    def _is_inline(self, part: MimePart, parent: str) -> bool:
        """Return whether the HTML shows the part: some programs give a Content-ID to every attachment."""
        if not CONTENT_ID.fullmatch(part.content_id):
            return False
        return parent == "multipart/related" or f"cid:{part.content_id}" in (self.html or "")


def read_content(message: MimePart) -> MessageContent:
    """Return the content of a message. Raises Refused."""
    content = MessageContent()
    if message.kind in (*SIGNED, *SMIME):
        content.files.append(_whole(message))
    else:
        for part in message.walk():
            content.add(part)
    return content


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
    if len(text) > MAX_BODY_BYTES or len(text.encode()) > MAX_BODY_BYTES:
        raise MessageTooLarge(TEXT_TOO_LARGE)
    return text


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
