"""Header values on the wire: encoded words (RFC 2047) and folding (RFC 5322, section 2.2.3)."""

import base64
import re
from collections.abc import Iterator, Sequence

from delivery.errors import UnsafeHeader

LINE_LENGTH = 76
# 39 bytes make an encoded word of 64 characters: with "Reply-To: " in front the line stays within 76.
WORD_BYTES = 39
ROOM_FOR_NAME = len("Reply-To: <>,")
PLAIN = re.compile(r"[\x20-\x7e]*")
# A plain text that looks like an encoded word would be decoded by the reader, so it is encoded itself.
LOOKS_ENCODED = re.compile(r"=\?")
SPECIALS = re.compile(r'[()<>\[\]:;@\\,."]')
LINE_ENDS = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
FOLD = "\r\n "


def encoded_text(text: str, *, used: int) -> str:
    """Return an unstructured value, folded; used is what the name in front of it takes of the first line.

    Raises UnsafeHeader for a text that could end its line.
    """
    _refuse_line_ends(text)
    if PLAIN.fullmatch(text) and not LOOKS_ENCODED.search(text) and _is_foldable(text):
        return _folded_words(text, used=used)
    return FOLD.join(_encoded_words(text))


def encoded_address(name: str, spec: str) -> str:
    """Return `name <spec>` with the name quoted or encoded where it must be. Raises UnsafeHeader."""
    _refuse_line_ends(name + spec)
    if not spec.isascii():
        raise UnsafeHeader("an address must be ASCII here")
    if not name:
        return spec
    phrase = _phrase(name)
    is_short = len(phrase) + len(spec) < LINE_LENGTH - ROOM_FOR_NAME
    return f"{phrase}{' ' if is_short else FOLD}<{spec}>"


def folded_list(name: str, values: Sequence[str]) -> str:
    """Return a whole header whose values stand in a comma list, one a line."""
    return f"{name}: {(',' + FOLD).join(values)}"


def _phrase(name: str) -> str:
    if not PLAIN.fullmatch(name) or LOOKS_ENCODED.search(name) or len(name) > WORD_BYTES:
        return FOLD.join(_encoded_words(name))
    # A reader folds doubled white space of an unquoted name into one.
    if not SPECIALS.search(name) and "  " not in name:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _encoded_words(text: str) -> Iterator[str]:
    """Split on character boundaries: a reader decodes each word by itself."""
    chunk = b""
    for character in text:
        data = character.encode()
        if len(chunk) + len(data) > WORD_BYTES:
            yield _word(chunk)
            chunk = b""
        chunk += data
    yield _word(chunk)


def _word(data: bytes) -> str:
    return f"=?utf-8?b?{base64.b64encode(data).decode()}?="


def _is_foldable(text: str) -> bool:
    # White space at the ends or doubled would be lost or moved by folding; a long word cannot be folded.
    return text == text.strip() and "  " not in text and all(len(word) < LINE_LENGTH for word in text.split(" "))


def _folded_words(text: str, *, used: int) -> str:
    lines: list[str] = []
    line = ""
    room = LINE_LENGTH - used
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if len(candidate) > room and line:
            lines.append(line)
            candidate, room = word, LINE_LENGTH - 1
        line = candidate
    return FOLD.join([*lines, line])


def _refuse_line_ends(text: str) -> None:
    """The last gate before the wire; requests were refused with a sentence long before."""
    if LINE_ENDS.search(text):
        raise UnsafeHeader("a header value may not contain line ends or control characters")
