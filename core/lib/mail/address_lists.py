"""Address lists of received header fields (RFC 5322, section 3.4, and the obsolete forms of section 4.4).

One tokenizer knows quoted strings, quoted pairs, nested comments and domain literals, so that nothing within them is
taken for an address. Linear in the length, without recursion. Fields that the grammar does not allow are read as mail
programs read them, and are not exact (docs/decisions/0273).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import NamedTuple

from core.lib.email_addresses import quote_name
from core.lib.mail.encoded_words import decode_words

MAX_ADDRESSES = 200
MAX_FIELD_LENGTH = 64 * 1024
# An address is dropped above it, since a shorter one would be another address; a name is cut.
MAX_LENGTH = 320

SPECIALS = r'()<>@,;:".\x20\t\n'
# An encoded word may have blanks and specials that RFC 2047, section 5, does not allow there (docs/decisions/0307),
# except for those around addresses.
TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\n]+)
    | (?P<encoded>=\?[A-Za-z0-9_.:*-]{{1,60}}\?[bBqQ]\?(?>(?:[^?=<>@"\\\x00-\x1f]++|\?(?!=)|=(?!\?(?!=)))*)\?=)
      (?=[ \t\n(<"]|=\?|\Z)
    | (?P<word>[^{SPECIALS}]+)
    | "(?P<quoted>(?>(?:[^"\\]++|\\.)*))(?P<quote>"?)
    | (?P<special>,(?>(?:[ \t\n]*+,)*)|.)
    """,
    re.DOTALL | re.VERBOSE,
)
# Without an at sign, at which the domain would seem to begin.
LITERAL = re.compile(r"\[[!-?A-Z^-~ ]*\]")
PARENTHESIS = re.compile(r"\\.|[()]", re.DOTALL)
QUOTED_PAIR = re.compile(r"\\(.)", re.DOTALL)
ESCAPED_IN_QUOTES = re.compile(r'["\\]')
ESCAPED_IN_COMMENTS = re.compile(r"[()\\]")
PAIR = r"\\\g<0>"
IRREGULAR = re.compile(r"[\x00-\x1f\x7f\\(),;:]")
# Not allowed in quoted strings and comments, either.
NEVER = re.compile(r"[\x00\r]")
DOT_ATOM = re.compile(r'[^()<>\[\]:;@\\,."\s]+(?:\.[^()<>\[\]:;@\\,."\s]+)*')

# The grammar is a pattern over the kinds of tokens, one character each: w an atom, q a quoted string, l a domain
# literal, n and m a word and a quoted string that are regular in names only, x an irregular word, u a quoted string or
# comment without an end. Others are the specials themselves. Dots may be anywhere in a name and in a local part.
LOCAL = r"\.*[wq](?:\.+[wq])*\.*"
DOMAIN = r"(?:w(?:\.w)*|l)"
ADDRESS = rf"{LOCAL}@{DOMAIN}"
ROUTE = rf",*@{DOMAIN}(?:,(?:@{DOMAIN})?)*:"
PHRASE = re.compile(r"[wqmn.]+")
MAILBOX = re.compile(rf"(?:(?P<name>[wqmn.]*|{ADDRESS})<(?:{ROUTE})?(?P<angle>{ADDRESS})>|(?P<bare>{ADDRESS}))")
# The same over the members of a list: m a mailbox, p a phrase, x another text, nothing for an empty member.
MEMBER = r"(?:m|p:m?(?:,m?)*;)?"
LIST = re.compile(rf"{MEMBER}(?:,{MEMBER})*")

# In other texts: words joined by dots and at signs, the last of them an address.
BRACKETED = re.compile(r"<[^<>]*")
RUN = re.compile(r"[wqnxl](?:[.@]++[wqnxl])*\.*+")
READABLE = re.compile(r".+@\.*[wnxl](?:\.+[wnxl])*\.*")
TWO_DOMAINS = re.compile(r"@[^@]+@")
# Around an address, from programs that quote it in their way; no domain ends with them.
OPENING, CLOSING = "'`[{*|", "'`]}*|"


@dataclass(frozen=True)
class Mailbox:
    email: str
    name: str

    def to_json(self) -> dict[str, str]:
        return {"email": self.email, "name": self.name}


@dataclass(frozen=True)
class AddressList:
    """The mailboxes of a field.

    is_exact: whether it follows the grammar, so that all programs read the same ones.
    is_complete: whether no member was left out.
    """

    mailboxes: Sequence[Mailbox]
    is_exact: bool
    is_complete: bool = True


class Token(NamedTuple):
    """A word, special or comment. is_apart: whether white space or a comment is in front of it."""

    kind: str
    text: str
    is_apart: bool = False


@dataclass
class ListMember:
    """The text between two separators of a list. separator: the one behind it, empty at the end."""

    tokens: list[Token] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    separator: str = ""


@dataclass(frozen=True)
class Position:
    """The place of an address among the tokens of a member, and the end of the name in front of it."""

    name_end: int
    start: int
    end: int


def read_address_list(value: str) -> AddressList:
    """Return the mailboxes of an unfolded field, at most MAX_ADDRESSES; groups are opened (RFC 5322, section 3.4).

    Encoded words are decoded in names, after the structure was read. A comment is the name of an address without one.
    """
    mailboxes: list[Mailbox] = []
    shape: list[str] = []
    is_complete = len(value) <= MAX_FIELD_LENGTH
    for member in _members(_tokens(value[:MAX_FIELD_LENGTH])):
        kind, mailbox = _read_member(member)
        shape += kind, member.separator
        if mailbox:
            mailboxes.append(mailbox)
        elif kind == "x" or (kind == "p" and member.separator != ":"):
            is_complete = False
        if len(mailboxes) > MAX_ADDRESSES:
            return AddressList(mailboxes[:MAX_ADDRESSES], is_exact=False, is_complete=False)
    is_exact = LIST.fullmatch("".join(shape)) is not None and len(value) <= MAX_FIELD_LENGTH
    return AddressList(mailboxes, is_exact, is_complete)


def decode_address_list(value: str) -> str:
    """Return an unfolded field with its encoded words decoded, quoted where their text would have structure.

    A word beside a dot or an at sign may be part of an address, where it is no encoded word.
    """
    if "=?" not in value:
        return value
    tokens = list(_tokens(value))
    before = _kinds_before(tokens)
    after = _kinds_before(tokens[::-1])[::-1]
    pieces: list[str] = []
    for is_text, group in groupby(range(len(tokens)), key=lambda index: tokens[index].kind in "wnx"):
        indexes = list(group)
        found = [tokens[index] for index in indexes]
        if not is_text:
            pieces += map(_decoded_token, found)
        elif {before[indexes[0]], after[indexes[-1]]} & {"@", "."}:
            pieces.append(_joined(found))
        else:
            pieces.append(_decoded_words(found))
    return "".join(pieces).strip()


def _kinds_before(tokens: Sequence[Token]) -> list[str]:
    """Return the kind of the token in front of each one, comments aside."""
    kinds = accumulate(tokens, lambda kind, token: kind if token.kind == "(" else token.kind, initial="")
    return list(kinds)[:-1]


def _decoded_words(tokens: Sequence[Token]) -> str:
    space, text = " " * tokens[0].is_apart, _joined(tokens).strip()
    decoded = decode_words(text)
    return space + (text if decoded == text else quote_name(decoded))


def _decoded_token(token: Token) -> str:
    space = " " * token.is_apart
    if token.kind == "(":
        return f"{space}({ESCAPED_IN_COMMENTS.sub(PAIR, decode_words(token.text))})"
    return space + (f'"{ESCAPED_IN_QUOTES.sub(PAIR, decode_words(token.text))}"' if token.kind in "qm" else token.text)


def _members(tokens: Iterable[Token]) -> Iterator[ListMember]:
    """Split a list at commas, and at the colon and semicolon of a group; some programs separate with semicolons."""
    member, bracket = ListMember(), -1
    for token in tokens:
        if token.kind == "(":
            member.comments.append(token.text)
        elif token.kind in ",;:" and not _is_in_brackets(token, member.tokens, bracket):
            member.separator = token.kind
            yield member
            member, bracket = ListMember(), -1
        else:
            bracket = {"<": len(member.tokens), ">": -1}.get(token.kind, bracket)
            member.tokens.append(token)
    yield member


def _is_in_brackets(token: Token, tokens: Sequence[Token], bracket: int) -> bool:
    """Return whether a separator belongs to a route (RFC 5322, section 4.4). bracket: the open one, -1 without one."""
    if bracket < 0 or token.kind == ";":
        return False
    # A bracket without an end does not take the members behind it.
    return token.kind == ":" or len(tokens) == bracket + 1 or tokens[bracket + 1].kind in "@,"


def _read_member(member: ListMember) -> tuple[str, Mailbox | None]:
    """Return the kind of a member for LIST, and its mailbox if it has one."""
    tokens, kinds = member.tokens, "".join(token.kind for token in member.tokens)
    found = _find_exactly(tokens, kinds)
    position = found or _find_readable(kinds)
    email, is_cleaned = _address(tokens[position.start : position.end]) if position else ("", False)
    if not position or not email or len(email) > MAX_LENGTH:
        return "p" if PHRASE.fullmatch(kinds) else "x" if kinds else "", None
    name = _name(tokens[: position.name_end], member.comments)
    return "m" if found and not is_cleaned else "x", Mailbox(email, name)


def _find_exactly(tokens: Sequence[Token], kinds: str) -> Position | None:
    """Return the address of a mailbox that follows the grammar. An address as a name must be the same one."""
    found = MAILBOX.fullmatch(kinds)
    if not found:
        return None
    start, end = found.span("angle" if found["angle"] else "bare")
    name_end = max(found.end("name"), 0)
    if "@" in kinds[:name_end] and _address(tokens[:name_end])[0].lower() != _address(tokens[start:end])[0].lower():
        return None
    return Position(name_end, start, end)


def _find_readable(kinds: str) -> Position | None:
    """Return the last address in brackets, else the last one.

    None for one with white space within, and for one with two domains: no program knows the right one.
    """
    for region in reversed(list(BRACKETED.finditer(kinds))):
        if span := _last_run(kinds, *region.span()):
            around = {kinds[span[0] - 1], *kinds[span[1] : region.end()][:1]}
            is_split = bool(around & set("wqnx")) or TWO_DOMAINS.search(kinds, *span)
            name_end = region.start() if kinds[: region.start()].strip("<>") else 0
            return None if is_split else Position(name_end, *span)
    span = _last_run(kinds, 0, len(kinds))
    return Position(span[0], *span) if span and not TWO_DOMAINS.search(kinds, *span) else None


def _last_run(kinds: str, start: int, end: int) -> tuple[int, int] | None:
    spans = [found.span() for found in RUN.finditer(kinds, start, end) if READABLE.fullmatch(found[0])]
    return spans[-1] if spans else None


def _address(tokens: Sequence[Token]) -> tuple[str, bool]:
    """Return an address without comments and white space, and whether other characters were removed.

    Without quotes that it does not need. Empty without a domain.
    """
    at = max(index for index, token in enumerate(tokens) if token.kind == "@")
    local, domain = ("".join(token.text for token in part) for part in (tokens[:at], tokens[at + 1 :]))
    if any(token.kind == "q" for token in tokens[:at]) and not DOT_ATOM.fullmatch(local):
        local = f'"{ESCAPED_IN_QUOTES.sub(PAIR, local)}"'
    # The query of a mailto: URL.
    plain = domain.partition("?")[0] if domain.startswith("[") else domain.partition("?")[0].rstrip(CLOSING)
    is_cleaned = plain != domain or local.endswith("@")
    if is_cleaned:
        local = local.rstrip("@").lstrip(OPENING) or local
    return (printable(f"{local}@{plain.strip('.')}").strip() if plain else ""), is_cleaned


def _name(tokens: Sequence[Token], comments: Sequence[str]) -> str:
    return printable(decode_words(_joined(tokens).strip() or " ".join(comments))).strip()[:MAX_LENGTH]


def _joined(tokens: Sequence[Token]) -> str:
    return "".join(f" {token.text}" if token.is_apart else token.text for token in tokens)


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _tokens(value: str) -> Iterator[Token]:
    """Yield words, specials and comments; a domain literal is recognized behind an at sign."""
    position, before, is_apart = 0, "", False
    while position < len(value):
        kind, text, position = _read_token(value, position, before)
        if kind:
            yield Token(kind, text, is_apart)
        is_apart = kind in {"", "("}
        before = before if is_apart else kind


def _read_token(value: str, position: int, before: str) -> tuple[str, str, int]:
    """Return kind, text and end of the token at a position; the kind of white space is empty."""
    if value[position] == "(":
        return _read_comment(value, position)
    literal = LITERAL.match(value, position) if before == "@" else None
    if literal:
        return "l", literal[0].replace(" ", ""), literal.end()
    found = TOKEN.match(value, position)
    assert found
    if found.lastgroup == "quote":
        return *_read_quoted(found), found.end()
    kind = {"space": "", "special": found[0][0]}.get(found.lastgroup or "", _kind_of_word(found[0]))
    return kind, found[0], found.end()


def _read_quoted(found: re.Match[str]) -> tuple[str, str]:
    if not found["quote"] or NEVER.search(found[0]):
        return "u", found[0]
    text = QUOTED_PAIR.sub(r"\1", found["quoted"])
    return "q" if text.isprintable() else "m", text


def _kind_of_word(text: str) -> str:
    if IRREGULAR.search(text):
        return "x"
    return "n" if "[" in text or "]" in text or not text.isprintable() else "w"


def _read_comment(value: str, position: int) -> tuple[str, str, int]:
    """Return a comment with those within it, without its own parentheses; the rest of a value without its end."""
    depth, end = 0, len(value)
    for found in PARENTHESIS.finditer(value, position):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            end = found.end()
            break
    raw = value[position:end]
    return ("u", raw, end) if depth or NEVER.search(raw) else ("(", QUOTED_PAIR.sub(r"\1", raw[1:-1]), end)
