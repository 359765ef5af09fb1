"""Mutations of messages: changes of bytes, lines and structure, as broken programs and hostile senders make them."""

import random
from collections.abc import Callable, Iterator, Sequence

TOKENS = (
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"\t", b'"', b"(", b")", b"<", b">",
    b"@",
    b";", b",", b":", b"=", b"==", b"--", b"\\", b"*", b"'", b"%", b"=?utf-8?q?", b"?=", b"boundary=", b"; charset=x",
    b"Content-Type: multipart/mixed\r\n", b"Content-Type: message/rfc822\r\n", b"Content-Transfer-Encoding: base64\r\n",
    b"Content-Transfer-Encoding: quoted-printable\r\n", b"; filename*0*=utf-8''%", b"From ", b"\x1b$B", b"&#x0;",
    b"<!--",
)  # fmt: skip


def mutated(sources: Sequence[bytes], *, count: int, seed: int) -> Iterator[bytes]:
    """Yield mutations of messages, each with one to four changes. The same seed yields the same ones."""
    chance = random.Random(seed)
    for _ in range(count):
        source = chance.choice(sources)
        for _ in range(chance.randint(1, 4)):
            source = chance.choice(CHANGES)(source, chance, sources)
        yield source


def _place(source: bytes, chance: random.Random) -> int:
    """Return a place, half of the time in the first 2,000 bytes, where the header is."""
    return chance.randrange(min(len(source), chance.choice((2_000, len(source)))) + 1)


def _insert(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    place = _place(source, chance)
    return source[:place] + chance.choice(TOKENS) * chance.choice((1, 1, 1, 50)) + source[place:]


def _flip(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    place = _place(source, chance)
    return source[:place] + bytes([chance.randrange(256)]) + source[place + 1 :]


def _remove(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    place = _place(source, chance)
    return source[:place] + source[place + chance.choice((1, 2, 10, 100, 1_000)) :]


def _cut(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    return source[: _place(source, chance)]


def _repeat(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    place = _place(source, chance)
    piece = source[place : place + chance.choice((1, 10, 100, 1_000))]
    return source[:place] + piece * chance.choice((2, 3, 20)) + source[place:]


def _swap_lines(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    lines = source.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _remove_line(source: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    lines = source.split(b"\n")
    del lines[chance.randrange(min(len(lines), 60))]
    return b"\n".join(lines)


def _join(source: bytes, chance: random.Random, sources: Sequence[bytes]) -> bytes:
    other = chance.choice(sources)
    return source[: _place(source, chance)] + other[_place(other, chance) :]


CHANGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    _insert, _insert, _insert, _flip, _flip, _remove, _remove, _cut, _repeat, _swap_lines, _remove_line, _join,
)  # fmt: skip
