"""Markers: distinct words that a test hides in data, and looks for in a dump, Redis, logs and files."""

import base64
import os
import re
import secrets
import string
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import redis

from tests.stack.stack import Stack

HEX = re.compile(rb"\\\\x([0-9a-f]{2,})")
BASE64 = re.compile(rb"[A-Za-z0-9+/]{16,}={0,2}")
SPACE = re.compile(rb"=?[\r\n]+[ \t]?")
COPY = re.compile(r"^COPY public\.(\w+) ")


def new_markers(*names: str) -> dict[str, str]:
    """Return a random word for each name, 16 of a to z, so that no encoding of a message changes it."""
    return {name: "".join(secrets.choice(string.ascii_lowercase) for _ in range(16)) for name in names}


def find_markers(stack: Stack, markers: dict[str, str], *, folders: Sequence[Path] = ()) -> dict[str, set[str]]:
    """Return the places that have each marker: tables, keys of Redis and files."""
    found: dict[str, set[str]] = {}
    for place, data in (*dumped_tables(stack), *redis_values(stack), *files_of([stack.logs, *folders])):
        forms = b"\0".join(views(data))
        for name, word in markers.items():
            if word.encode() in forms:
                found.setdefault(name, set()).add(place)
    return found


def views(data: bytes) -> Iterator[bytes]:
    """Yield data in lower case: as it is, without folds of lines, and what is decoded from hexadecimal and base64."""
    yield data.lower()
    binary = b"\0".join(bytes.fromhex(digits.decode()[: len(digits) // 2 * 2]) for digits in HEX.findall(data))
    yield binary.lower()
    for text in (data, binary):
        joined = SPACE.sub(b"", text.replace(rb"\r", b"").replace(rb"\n", b""))
        yield joined.lower()
        for run in BASE64.findall(joined):
            # The run may begin before the encoded text.
            for start in range(4):
                yield _decoded(run.rstrip(b"=")[start:]).lower()


def _decoded(run: bytes) -> bytes:
    whole = run[:-1] if len(run) % 4 == 1 else run
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def dumped_tables(stack: Stack) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of each table, as pg_dump writes them."""
    program = Path(os.environ["POSTRIDER_TEST_PG_BIN"]) / "pg_dump"
    dump = subprocess.run(
        [program, "--data-only", "--no-owner", stack.database], capture_output=True, check=True, timeout=120
    ).stdout
    table, lines = "", list[bytes]()
    for line in dump.split(b"\n"):
        if begin := COPY.match(line.decode("utf-8", "replace")):
            table, lines = begin[1], []
        elif line == rb"\.":
            yield table, b"\n".join(lines)
            table = ""
        elif table:
            lines.append(line)


def redis_values(stack: Stack) -> Iterator[tuple[str, bytes]]:
    """Yield each key of Redis with its values."""
    readers = {
        b"string": lambda client, key: client.get(key),
        b"list": lambda client, key: client.lrange(key, 0, -1),
        b"set": lambda client, key: client.smembers(key),
        b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
        b"hash": lambda client, key: client.hgetall(key),
        b"stream": lambda client, key: client.xrange(key),
    }
    with redis.Redis.from_url(stack.environment["REDIS_URL"]) as client:
        for key in client.scan_iter():
            value = readers[client.type(key)](client, key)
            text = value if isinstance(value, bytes) else repr(value).encode()
            yield f"redis:{key!r}", key + b"\n" + text


def files_of(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                yield path.name, path.read_bytes()
