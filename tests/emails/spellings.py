"""Random emails with recipients in every spelling, for rules that allow some of them."""

import random
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

ALLOWED = ("Ada@Example.com", "ada+tag@example.com", "grüße@example.com", "@team.example", "@*.staging.example")
OTHERS = (
    "eve@example.com", "ada+x@example.com", "ada@team.example.net", "bob@staging.example", "eve@xteam.example",
    "ada@mail.team.example", "grusse@example.com", "eve@bücher.example",
)  # fmt: skip
PERMITTED = (
    "ada@example.com", "ada+tag@example.com", "grüße@example.com", "bob@team.example", "eve@a.staging.example",
    "eve@a.b.staging.example",
)  # fmt: skip
NAMES = (
    "", "Ada", "Lovelace, Ada", 'Ada "the first" L', "Grüße, Ada <eve@example.com>", "=?utf-8?q?eve=40x=2E?=",
    "a; b",
)  # fmt: skip


def is_allowed(address: str) -> bool:
    """Return whether ALLOWED has an address that left, written apart from the code under test."""
    local, _, domain = unicodedata.normalize("NFC", address.lower()).rpartition("@")
    exact = {"ada@example.com", "ada+tag@example.com", "grüße@example.com"}
    return f"{local}@{domain}" in exact or domain == "team.example" or domain.endswith(".staging.example")


@dataclass
class SpelledEmail:
    """The recipients of an email by field, each as a spelling; repeated ones are possible."""

    to: list[str] = field(default_factory=list)
    cc: list[str] = field(default_factory=list)
    bcc: list[str] = field(default_factory=list)
    has_others: bool = False


def spelled_emails(count: int, *, seed: int) -> Iterator[SpelledEmail]:
    """Yield random emails with one to six recipients."""
    chance = random.Random(seed)
    for _ in range(count):
        email = SpelledEmail()
        for number in range(chance.randint(1, 6)):
            is_other = chance.random() < 0.4
            email.has_others |= is_other
            name = "to" if number == 0 else chance.choice(("to", "cc", "bcc"))
            getattr(email, name).append(_spelling(chance, chance.choice(OTHERS if is_other else PERMITTED)))
        yield email


def _spelling(chance: random.Random, address: str) -> str:
    local, _, domain = address.rpartition("@")
    if chance.random() < 0.3:
        local = local.upper() if local.isascii() else local.title()
    if chance.random() < 0.3:
        domain = domain.upper() if chance.random() < 0.5 else domain.title()
    if not domain.isascii() and chance.random() < 0.5:
        domain = domain.encode("idna").decode()
    if not local.isascii() and chance.random() < 0.5:
        local = unicodedata.normalize("NFD", local)
    if chance.random() < 0.2 and local.isascii():
        local = f'"{local}"'
    name = chance.choice(NAMES)
    if not name:
        return f"{local}@{domain}"
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{local}@{domain}>'
