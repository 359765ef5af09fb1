"""A reader of address lists by recursive descent, from the grammar of RFC 5322 with its obsolete forms and RFC 6532.

Independent of the product. It allows what docs/decisions/0273 allows beyond the grammar: dots anywhere in a name and a
local part, brackets and invisible characters in a name, and the address itself as a name without quotes. It has neither
quoted pairs nor at signs in domain literals, and no invisible characters in addresses.
"""

import string
from collections.abc import Callable
from typing import Any

ATEXT = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-/=?^_`{|}~")
SPACE = " \t\n"


class Mismatch(Exception):
    """Raised where the grammar does not allow what stands there."""


def read_strictly(text: str) -> list[tuple[str, str]]:
    """Return local part, without quotes, and domain of each address; nothing for a text that is not a list."""
    reader = StrictReader(text)
    try:
        found = reader.address_list()
        reader.expect_end()
    except Mismatch:
        return []
    return found


class StrictReader:
    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    @property
    def next(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self, character: str) -> None:
        if self.next != character:
            raise Mismatch
        self.position += 1

    def expect_end(self) -> None:
        self.cfws()
        if self.next:
            raise Mismatch

    def any_of(self, *choices: Callable[[], Any]) -> Any:
        start = self.position
        for choice in choices:
            try:
                return choice()
            except Mismatch:
                self.position = start
        raise Mismatch

    def cfws(self) -> None:
        while self.next and self.next in f"{SPACE}(":
            if self.next == "(":
                self.comment()
            else:
                self.position += 1

    def comment(self) -> None:
        self.take("(")
        while self.next != ")":
            if self.next == "(":
                self.comment()
            else:
                self.text_or_pair()
        self.take(")")

    def text_or_pair(self) -> str:
        if self.next == "\\":
            self.position += 1
        if not self.next or self.next in "\x00\r":
            raise Mismatch
        self.position += 1
        return self.text[self.position - 1]

    def quoted(self) -> str:
        self.cfws()
        self.take('"')
        content = []
        while self.next != '"':
            content.append(self.text_or_pair())
        self.take('"')
        self.cfws()
        return "".join(content)

    def atom(self, more: Callable[[str], bool] = lambda _: False) -> str:
        self.cfws()
        start = self.position
        while self.next and (self.next in ATEXT or more(self.next) or (self.next > "\x7f" and self.next.isprintable())):
            self.position += 1
        if start == self.position:
            raise Mismatch
        end = self.position
        self.cfws()
        return self.text[start:end]

    def word(self) -> str:
        word: str = self.any_of(self.atom, self.quoted)
        if not word.isprintable() and "\t" not in word:
            raise Mismatch
        return word

    def phrase(self) -> None:
        def piece() -> None:
            self.any_of(lambda: self.atom(lambda one: one in "[]." or one > "\x7f"), self.quoted)

        piece()
        while self.next and self.next not in "<>@,;:)\\":
            piece()

    def local_part(self) -> str:
        content = self.dots()
        content += self.word()
        while dots := self.dots():
            if self.next == "@":
                return content + dots
            content += dots + self.word()
        return content

    def dots(self) -> str:
        count = 0
        self.cfws()
        while self.next == ".":
            self.take(".")
            self.cfws()
            count += 1
        return "." * count

    def domain(self) -> str:
        self.cfws()
        if self.next == "[":
            return self.literal()
        labels = [self.atom()]
        while self.next == ".":
            self.take(".")
            labels.append(self.atom())
        return ".".join(labels)

    def literal(self) -> str:
        self.take("[")
        start = self.position
        while " " <= self.next <= "~" and self.next not in "[]\\@":
            self.position += 1
        content = self.text[start : self.position].replace(" ", "")
        self.take("]")
        self.cfws()
        return f"[{content}]"

    def addr_spec(self) -> tuple[str, str]:
        local = self.local_part()
        self.take("@")
        return local, self.domain()

    def route(self) -> None:
        self.cfws()
        if self.next not in {"@", ","}:
            return
        while self.next == ",":
            self.take(",")
            self.cfws()
        self.hop()
        while self.next == ",":
            self.take(",")
            self.cfws()
            if self.next == "@":
                self.hop()
        self.take(":")

    def hop(self) -> None:
        self.take("@")
        self.domain()

    def angle_addr(self) -> tuple[str, str]:
        self.cfws()
        self.take("<")
        self.route()
        found = self.addr_spec()
        self.take(">")
        self.cfws()
        return found

    def named(self) -> tuple[str, str]:
        self.phrase()
        return self.angle_addr()

    def named_by_itself(self) -> tuple[str, str]:
        name, found = self.addr_spec(), self.angle_addr()
        if "@".join(name).lower() != "@".join(found).lower():
            raise Mismatch
        return found

    def mailbox(self) -> tuple[str, str]:
        found: tuple[str, str] = self.any_of(self.named, self.angle_addr, self.named_by_itself, self.addr_spec)
        return found

    def group(self) -> list[tuple[str, str]]:
        self.phrase()
        self.take(":")
        found = self.members(lambda: [self.mailbox()])
        self.take(";")
        self.cfws()
        return found

    def members(self, member: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        while True:
            self.cfws()
            if self.next and self.next not in ",;":
                found += member()
            if self.next != ",":
                return found
            self.take(",")

    def address_list(self) -> list[tuple[str, str]]:
        return self.members(lambda: self.any_of(self.group, lambda: [self.mailbox()]))
