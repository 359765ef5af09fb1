"""Samples: messages in bare git repositories and folders, of other projects' tests and public corpora."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
# Names of files that may be messages, and of folders with files of any name.
NAMES = re.compile(
    r".*\.(?:eml|email|msg|txt|mbox|raw|mime|imf|in|mail|b64|1)$|.*/[^./]+$|(?:.*/)?\d[^/]*$", re.IGNORECASE
)
FOLDERS = re.compile(r"(?:test|spec|fixture|data|maildir|mbox|mail|eml|resource|corpus|corpora|message)", re.IGNORECASE)
NOT_MESSAGES = re.compile(r"\.(?:json|html?|xml|rb|py|js|md|php|cs|go|rs|java|out|expected|golden|yml|yaml|lock)$")
# The first lines of a message: of an mbox, blank, or a field.
START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:>?From [^\n]*\n)*\s*[!-9;-~]{2,60}[ \t]*:[ \t\r\n]")
HEADER = re.compile(
    rb"^(?:from|to|subject|received|message-id|content-type|mime-version|date)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
MBOX = re.compile(rb"(?:\A|\n\r?\n)(?=From [^\n]*\d\d:\d\d[^\n]*\n)")


@dataclass(frozen=True)
class PublicMessage:
    name: str
    source: bytes


def samples_of(folder: Path) -> Iterator[PublicMessage]:
    """Yield the messages of a folder, or of a bare git repository."""
    files = _git_files(folder) if (folder / "HEAD").exists() else _plain_files(folder)
    for name, data in files:
        if START.match(data[:4096]) and HEADER.search(data[:8192]):
            yield from _messages(name, data)


def _messages(name: str, data: bytes) -> Iterator[PublicMessage]:
    """Yield the message of a file, or those of an mbox."""
    places = [found.start() for found in MBOX.finditer(data)]
    if len(places) < 2:
        yield PublicMessage(name, data)
        return
    for number, (start, end) in enumerate(zip(places, [*places[1:], len(data)], strict=True)):
        yield PublicMessage(f"{name}#{number}", data[start:end].lstrip(b"\r\n"))


def _plain_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            yield str(path.relative_to(folder)), path.read_bytes()


def _git_files(repository: Path) -> Iterator[tuple[str, bytes]]:
    listed = _git(repository, "ls-tree", "-r", "-l", "-z", "HEAD").decode("utf-8", "replace")
    names: dict[str, str] = {}
    for entry in filter(None, listed.split("\0")):
        facts, _, name = entry.partition("\t")
        _, kind, digest, size = facts.split()
        is_message = FOLDERS.search(name) and NAMES.fullmatch(name) and not NOT_MESSAGES.search(name)
        # The size of a file that is absent is no number.
        if kind == "blob" and is_message and size.isdigit() and int(size) <= MAX_BYTES:
            names[digest] = name
    for digest, data in _blobs(repository, list(names)):
        yield names[digest], data


def _blobs(repository: Path, digests: list[str]) -> Iterator[tuple[str, bytes]]:
    output = _git(repository, "cat-file", "--batch", given="".join(f"{one}\n" for one in digests).encode())
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        digest, *rest = output[position:end].decode().split()
        size = int(rest[1]) if len(rest) == 2 else 0
        if size:
            yield digest, output[end + 1 : end + 1 + size]
        position = end + 1 + (size + 1 if len(rest) == 2 else 0)


def _git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout
