"""Answers that no person wrote: vacation notes, receipts and challenges. They say nothing about delivery."""

from inbound.reports.mime import Message
from inbound.reports.patterns import AUTOMATIC_HEADERS, AUTOMATIC_SUBJECT


def is_automatic(message: Message) -> bool:
    """Say whether a program answered for a person; delivery reports carry the same marks and are asked for before."""
    is_marked = any(mark.search(message.header(name)) for name, mark in AUTOMATIC_HEADERS)
    return is_marked or bool(AUTOMATIC_SUBJECT.search(message.header("subject")[:300]))
