"""Bounces from before, and beside, RFC 3464: text that people were meant to read.

Exim, qmail, sendmail, Notes, Exchange, GroupWise, IMail and their kin say the same things in the same
places: whom the mail was for on a line of its own, what the other host answered beneath, then the mail itself.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import replace

from inbound.reports import patterns
from inbound.reports.classification import judge_notice, reason_of, reason_of_message
from inbound.reports.dsn import MAX_DIAGNOSTIC, failure, reply_code, status_code
from inbound.reports.facts import Fact, Kind
from inbound.reports.mime import Message

MAX_LINES = 200
MAX_ADDRESSES = 50


def facts_of(message: Message, notice: str) -> tuple[Fact, ...]:
    """Return what a notice in plain words reports, one fact for all that it names; nothing when it is no notice."""
    if not _is_notice(message, notice):
        return ()
    lines = _own_lines(notice)
    own = "\n".join(lines)
    diagnostic = _diagnostic(lines)
    fact = failure(
        kind=_kind(message, own),
        recipients=tuple(_recipients(message, lines)),
        status=status_code(diagnostic),
        code=reply_code(diagnostic),
        diagnostic=diagnostic,
        # Where no line tells anything, asking all of them again tells nothing either.
        told=functools.partial(judge_notice, own if diagnostic else ""),
    )
    return (fact,)


def with_origins(facts: tuple[Fact, ...], notice: str) -> tuple[Fact, ...]:
    """Return the facts with the addresses that were forwarded beside those that they were forwarded to."""
    if not patterns.ORIGIN.search(notice):
        return facts
    origins = _origins(_own_lines(notice))
    return tuple(
        replace(fact, recipients=tuple(dict.fromkeys([*fact.recipients, *_of(fact.recipients, origins)])))
        for fact in facts
    )


def own_words(notice: str) -> str:
    """Return a notice without the mail that it gives back."""
    return "\n".join(_own_lines(notice))


def _is_notice(message: Message, notice: str) -> bool:
    if message.header("x-failed-recipients"):
        return True
    senders = [message.header(name) for name in ("from", "return-path", "sender", "x-sender")]
    is_daemon = any(patterns.DAEMON.search(sender) for sender in senders)
    is_titled = bool(patterns.SUBJECT.search(message.header("subject")))
    is_worded = bool(patterns.BODY.search(notice[:3_000]))
    return [is_daemon, is_titled, is_worded].count(True) >= 2


def _own_lines(notice: str) -> list[str]:
    lines: list[str] = []
    for line in notice.split("\n", MAX_LINES)[:MAX_LINES]:
        if lines and patterns.ENCLOSED.match(line[:200]):
            break
        lines.append(line.rstrip()[:500])
    return lines


def _kind(message: Message, own: str) -> Kind:
    told = f"{message.header('subject')}\n{own}"
    return Kind.DELAY if patterns.WAITING.search(told) and not patterns.FINAL.search(own) else Kind.BOUNCE


def _recipients(message: Message, lines: list[str]) -> list[str]:
    named = [word.strip(" <>") for word in message.header("x-failed-recipients").split(",") if "@" in word]
    return list(dict.fromkeys([*named, *_named(lines)]))[:MAX_ADDRESSES]


def _named(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if "@" not in line or patterns.OF_THE_SENDER.match(line):
            continue
        found = _alone(line[:400]) or patterns.WITHIN.search(line[:400]) or _alone(line[:400].rpartition(": ")[2])
        if found and not patterns.OF_A_DESK.match(found[1]):
            yield found[1].rstrip(".")


def _origins(lines: list[str]) -> dict[str, list[str]]:
    """Return for each address, in lower case, what the lines up to the next address say that it was made from."""
    origins: dict[str, list[str]] = {}
    address = ""
    for line in lines:
        if "@" not in line:
            continue
        found = _alone(line[:400])
        address = found[1].rstrip(".").lower() if found else address
        origins.setdefault(address, []).extend(patterns.ORIGIN.findall(line[:400]))
    return origins


def _of(recipients: tuple[str, ...], origins: dict[str, list[str]]) -> list[str]:
    return [origin for address in recipients for origin in origins.get(address.lower(), ())][:MAX_ADDRESSES]


def _alone(line: str) -> re.Match[str] | None:
    """Return the address that a line is about, when it begins with it."""
    rest = line.strip(" \t>*•\"'-")
    for _ in range(2):
        label, colon, behind = rest.partition(":")
        if colon and label.strip(" <[(").lower() in patterns.LABELS:
            rest = behind.strip()
    rest = patterns.UNDELIVERABLE.sub("", rest).lstrip("<[(\"'")
    found = patterns.SPEC.match(rest)
    return found if found and patterns.BEHIND.match(rest[found.end() :]) else None


def _diagnostic(lines: list[str]) -> str:
    """Return the line that says why, by its code or by its words, with what belongs to it."""
    filled = [line.strip() for line in lines if line.strip()][:MAX_LINES]
    coded = [number for number, line in enumerate(filled) if _tells_code(line)]
    telling = [number for number in coded if reason_of(filled[number])] or coded
    found = telling[0] if telling else _first_telling(filled)
    return " ".join(filled[found : found + 3])[:MAX_DIAGNOSTIC] if found is not None else ""


def _first_telling(lines: list[str]) -> int | None:
    for tells in (reason_of, reason_of_message):
        for number, line in enumerate(lines):
            if tells(line):
                return number
    return None


def _tells_code(line: str) -> bool:
    return bool(reply_code(line) or status_code(line))
