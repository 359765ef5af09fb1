"""Bodies of the type multipart/form-data (RFC 7578): the same bytes whenever the same event is rendered."""

import hashlib
from collections.abc import Mapping, Sequence

from receiving.inlining import InlinedFile
from webhooks.formats import RequestBody

TYPE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+/")
BINARY = "application/octet-stream"
# The WHATWG's escapes in names, which browsers use.
ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


def form_body(
    fields: Mapping[str, str | bytes], *, files: Sequence[tuple[str, InlinedFile]] = (), seed: str
) -> RequestBody:
    """Return a form.

    files: files with the names of their fields.
    seed: the seed of the boundary, such as the id of the event.
    """
    # Nobody who writes a message knows the id of its event, so that no text can contain the boundary.
    boundary = f"postrider-{hashlib.sha256(seed.encode()).hexdigest()[:40]}"
    parts = [_part(name, value if isinstance(value, bytes) else value.encode()) for name, value in fields.items()]
    parts += [
        _part(name, file.data, f'; filename="{_escape(file.filename)}"', content_type(file)) for name, file in files
    ]
    opening = f"--{boundary}\r\n".encode()
    data = b"".join(opening + part for part in parts) + f"--{boundary}--\r\n".encode()
    return RequestBody(data, f"multipart/form-data; boundary={boundary}")


def content_type(file: InlinedFile) -> str:
    """Return the media type of a file; of a malformed one, that of any bytes."""
    given = str(file.entry["contentType"]).lower()
    return given if given.count("/") == 1 and set(given) <= TYPE_CHARACTERS else BINARY


def _part(name: str, data: bytes, filename: str = "", type_: str = "") -> bytes:
    header = f'Content-Disposition: form-data; name="{_escape(name)}"{filename}\r\n'
    header += f"Content-Type: {type_}\r\n" if type_ else ""
    return header.encode() + b"\r\n" + data + b"\r\n"


def _escape(text: str) -> str:
    """Return a name for a quoted parameter; without the characters that end a line in some parsers."""
    printable = (letter if letter.isprintable() or letter in "\r\n" else "_" for letter in text)
    return "".join(printable).translate(ESCAPES)
