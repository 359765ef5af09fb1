"""Header fields: encoded words (RFC 2047) and folding (RFC 5322, section 2.2.3)."""

import base64
import re
from collections.abc import Iterator, Sequence

from core.delivery.message.errors import UnsafeHeader

LINE_LENGTH = 76
# 39 bytes make an encoded word of 64 characters: with "Reply-To: " before it the line stays within 76.
WORD_BYTES = 39
CHARACTER_BYTES = 4
ROOM_FOR_NAME = len("Reply-To: <>,")
PLAIN = re.compile(r"[\x20-\x7e]*")
# Plain text that looks like an encoded word would be decoded by the reader, so it must be encoded.
LOOKS_ENCODED = re.compile(r"=\?")
SPECIALS = re.compile(r'[()<>\[\]:;@\\,."]')
LINE_ENDS = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
FOLD = "\r\n "
NAME = re.compile(r"[A-Za-z0-9-]{1,76}")
# RFC 2369: a URI in angle brackets. RFC 5322: lines of at most 998 characters.
URL = re.compile(r"https?://[\x21\x23-\x3b\x3d\x3f-\x7e]{1,900}")
# Up to three fields and a sender of 5 to 15 characters; Gmail groups complaint rates by them.
FEEDBACK_ID = re.compile(r"(?:[A-Za-z0-9._@+-]{1,63}:){0,3}[A-Za-z0-9._-]{5,15}")
# Lists of message ids, in which encoded words are not allowed (RFC 2047, section 5).
IDENTIFIERS = frozenset(("references", "in-reply-to"))
IDENTIFIER_LENGTH = 990
FILENAME_LENGTH = 50
# The text between semicolons, except for semicolons within quotes.
PARAMETER = re.compile(r'(?:[^";]|"[^"]*"?)+')
FILENAME_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
FILENAME_PLAIN = FILENAME_BARE | frozenset(" ()+,=@[]{}~!#$&^")


def text_header(name: str, text: str) -> str:
    """Return a header field with an unstructured value, folded.

    Raises UnsafeHeader for an invalid name and for a value that could end its line.
    """
    _refuse_line_ends(text)
    if not NAME.fullmatch(name):
        raise UnsafeHeader("a header name may contain only A-Z, a-z, 0-9 and -")
    if not text:
        return f"{name}:"
    if name.lower() in IDENTIFIERS and _are_identifiers(text):
        return f"{name}: {_folded_words(' '.join(text.split()), used=len(name) + 2)}"
    if _is_plain(text) and (_is_foldable(text) or _fits(name, text)):
        return f"{name}: {_folded_words(text, used=len(name) + 2)}"
    # The first word fills the rest of the line after the name. After a name of more than 50 characters it exceeds
    # the line a little: some readers keep the space of a value that begins with a fold.
    first_bytes = (LINE_LENGTH - len(name) - len(": ") - len("=?utf-8?b??=")) // 4 * 3
    return f"{name}: {FOLD.join(_encoded_words(text, first_bytes=max(first_bytes, CHARACTER_BYTES)))}"


def link_header(name: str, url: str) -> str:
    """Return a header field with a URI in angle brackets (RFC 2369), which is never folded.

    Raises UnsafeHeader unless the URL is an ASCII http or https URL.
    """
    if not URL.fullmatch(url):
        raise UnsafeHeader("a link in a header must be an ASCII http or https URL")
    return _folded_before(name, f"<{url}>")


def feedback_header(value: str) -> str:
    """Return the Feedback-ID header: `a:b:c:SenderId`, where a to c are optional. Raises UnsafeHeader.

    Folded before the value: readers would see a space within it.
    """
    if not FEEDBACK_ID.fullmatch(value):
        raise UnsafeHeader("a Feedback-ID must have at most three fields and a sender of 5 to 15 characters")
    return _folded_before("Feedback-ID", value)


def header_with_parameters(name: str, value: str) -> str:
    """Return a header field whose value has parameters, each on a separate line if they do not fit on one.

    Raises UnsafeHeader for a value that is not printable ASCII.
    """
    if not PLAIN.fullmatch(value):
        raise UnsafeHeader("a header with parameters must be printable ASCII")
    if len(name) + len(": ") + len(value) <= LINE_LENGTH:
        return f"{name}: {value}"
    return f"{name}: {(';' + FOLD).join(part.strip() for part in PARAMETER.findall(value))}"


def filename_parameters(filename: str) -> list[str]:
    """Return the filename parameters of a part (RFC 2183), encoded by RFC 2231 where ASCII does not suffice."""
    _refuse_line_ends(filename)
    plain = "".join(character if character in FILENAME_PLAIN else "_" for character in filename)
    if plain == filename and len(filename) <= FILENAME_LENGTH:
        return [f'filename="{plain}"']
    octets = [character if character in FILENAME_BARE else _percent(character) for character in filename]
    # No additional plain filename: some readers prefer it and show its underscores.
    return _continued(octets)


def _folded_before(name: str, value: str) -> str:
    """Return a header field whose value is on a separate line if it does not fit after the name."""
    return f"{name}:{' ' if len(name) + len(': ') + len(value) <= LINE_LENGTH else FOLD}{value}"


def _percent(character: str) -> str:
    return "".join(f"%{octet:02X}" for octet in character.encode())


def _continued(octets: list[str]) -> list[str]:
    """Split a long value into numbered parameters (RFC 2231, section 3); a short one needs no number."""
    pieces = [""]
    for octet in octets:
        if len(pieces[-1]) + len(octet) > FILENAME_LENGTH:
            pieces.append("")
        pieces[-1] += octet
    if len(pieces) == 1:
        return [f"filename*=utf-8''{pieces[0]}"]
    first = f"filename*0*=utf-8''{pieces[0]}"
    return [first, *(f"filename*{number}*={piece}" for number, piece in enumerate(pieces[1:], start=1))]


def encoded_address(name: str, spec: str) -> str:
    """Return `name <spec>` with the name quoted or encoded if necessary. Raises UnsafeHeader."""
    if not spec.isascii():
        raise UnsafeHeader("an address must be ASCII here")
    return international_address(name, spec)


def downgraded_address(name: str, spec: str) -> str:
    """Return encoded_address, or for an internationalized address an empty group that shows it (RFC 6857)."""
    if spec.isascii():
        return encoded_address(name, spec)
    _refuse_line_ends(name + spec)
    return f"{FOLD.join(_encoded_words(f'{name} <{spec}>' if name else spec))} :;"


def international_address(name: str, spec: str) -> str:
    """Return encoded_address for an address that may be in UTF-8 (RFC 6532)."""
    _refuse_line_ends(name + spec)
    if not name:
        return spec
    phrase = _phrase(name)
    is_short = len(phrase) + len(spec) < LINE_LENGTH - ROOM_FOR_NAME
    return f"{phrase}{' ' if is_short else FOLD}<{spec}>"


def folded_list(name: str, values: Sequence[str]) -> str:
    """Return a header field with a comma-separated list, one value per line."""
    return f"{name}: {(',' + FOLD).join(values)}"


def _phrase(name: str) -> str:
    quoted = _quoted(name)
    # Spam filters penalise ASCII in encoded words (Rspamd: FROM_EXCESS_BASE64), so a long name is folded.
    if _is_plain(name) and len(quoted) <= WORD_BYTES:
        return quoted
    if _is_plain(name) and _is_foldable(name) and _is_foldable(quoted):
        return _folded_words(quoted, used=ROOM_FOR_NAME)
    return FOLD.join(_encoded_words(name))


def _quoted(name: str) -> str:
    # A reader collapses double spaces in an unquoted name.
    if not SPECIALS.search(name) and "  " not in name:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _encoded_words(text: str, *, first_bytes: int = WORD_BYTES) -> Iterator[str]:
    """Yield encoded words, split on character boundaries: a reader decodes each word separately."""
    chunk, room = b"", min(first_bytes, WORD_BYTES)
    for character in text:
        data = character.encode()
        if len(chunk) + len(data) > room:
            yield _word(chunk)
            chunk, room = b"", WORD_BYTES
        chunk += data
    yield _word(chunk)


def _word(data: bytes) -> str:
    return f"=?utf-8?b?{base64.b64encode(data).decode()}?="


def _is_plain(text: str) -> bool:
    return bool(PLAIN.fullmatch(text)) and not LOOKS_ENCODED.search(text)


def _fits(name: str, text: str) -> bool:
    """Return whether the value fits on one line, so that folding changes no spaces."""
    return text == text.strip() and len(name) + len(": ") + len(text) <= LINE_LENGTH


def _are_identifiers(text: str) -> bool:
    words = text.split()
    return bool(words) and bool(PLAIN.fullmatch(text)) and max(map(len, words)) < IDENTIFIER_LENGTH


def _is_foldable(text: str) -> bool:
    # Folding would lose or move leading, trailing and double spaces; a long word cannot be folded.
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
    """Refuse control characters. The API rejects them earlier; this is the last check."""
    if LINE_ENDS.search(text):
        raise UnsafeHeader("a header value must not contain line ends or control characters")
