"""Precision and recall of the refusals that suppress an address, with replies of many hosts labelled by hand."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core.delivery.bounces.classification import SmtpStage, names_sender
from core.delivery.bounces.reasons import RECIPIENT_FAULTS
from core.delivery.bounces.replies import Reply, SuppressOn
from core.delivery.transports.smtp.errors import SmtpError
from interfaces.inbound.reports.classification import classify_bounce
from interfaces.inbound.reports.dsn import reply_code, status_code
from tests.core.delivery.bounces.test_classification import ROWS
from tests.interfaces.inbound.samples import FOLDER
from tests.rows import each

RECIPIENT = "ada@example.com"
SENDER_NAMES = ("alice.example", "bounces.alice.example", "mail.alice.example")
LINE = re.compile(r"(?P<label>hard|soft) (?:(?P<stage>[a-z]+): )?(?P<code>0|\d{3})[ -](?P<text>.+)")
LINE_END = re.compile(r"\|(?:\d{3}[ -])?")
LEAST_PRECISION, LEAST_RECALL = 0.99, 0.97


class LabelledReply(NamedTuple):
    """is_hard: whether the address is certainly wrong. code: 0 for a report without one."""

    server: str
    is_hard: bool
    stage: SmtpStage
    code: int
    text: str


def labelled_replies() -> Iterator[LabelledReply]:
    """Yield the replies of labelled_replies.txt."""
    server = ""
    for line in Path(__file__).with_name("labelled_replies.txt").read_text().splitlines():
        if line.startswith("["):
            server = line.strip("[]")
        elif line and not line.startswith("#"):
            found = LINE.fullmatch(line)
            assert found, line
            stage = SmtpStage(found["stage"] or "rcpt")
            text = LINE_END.sub("\n", found["text"])
            yield LabelledReply(server, found["label"] == "hard", stage, int(found["code"]), text)


def all_replies() -> Iterator[LabelledReply]:
    """Yield all labelled replies of the tests."""
    yield from labelled_replies()
    for stage, reply, reason in ROWS:
        is_hard = reason in RECIPIENT_FAULTS and (reply.code >= 500 or stage is SmtpStage.REPORT)
        yield LabelledReply("table of hosts", is_hard, stage, reply.code, reply.text)
    for line in (FOLDER / "answers.tsv").read_text().splitlines():
        weight, status, text = line.split("\t")
        yield LabelledReply(f"report {status}", weight == "hard", SmtpStage.REPORT, 0, text)


def suppresses(reply: LabelledReply) -> bool:
    """Return whether the reply suppresses the address."""
    if reply.stage is SmtpStage.REPORT:
        text = f"{reply.code} {reply.text}" if reply.code else reply.text
        status = status_code(text) or reply.server.removeprefix("report ")
        found = classify_bounce(status=status, code=reply_code(text), diagnostic=text)
        return found.is_hard and not names_sender(text, names=SENDER_NAMES, recipient=RECIPIENT)
    error = SmtpError(reply.stage, Reply(reply.code, reply.text))
    return error.outcome(sender_names=SENDER_NAMES, recipient=RECIPIENT).suppresses(SuppressOn.RECIPIENT_FAULT)


@dataclass(frozen=True)
class Confusion:
    """Each labelled reply with whether it suppresses the address."""

    results: tuple[tuple[LabelledReply, bool], ...]

    def count(self, *, is_hard: bool, suppresses: bool) -> int:
        return sum((reply.is_hard, found) == (is_hard, suppresses) for reply, found in self.results)

    @property
    def precision(self) -> float:
        right = self.count(is_hard=True, suppresses=True)
        return right / (right + self.count(is_hard=False, suppresses=True))

    @property
    def recall(self) -> float:
        right = self.count(is_hard=True, suppresses=True)
        return right / (right + self.count(is_hard=True, suppresses=False))

    def __str__(self) -> str:
        rows = [f"{'':8}{'suppresses':>12}{'does not':>12}"]
        for is_hard, label in ((True, "hard"), (False, "soft")):
            counts = (self.count(is_hard=is_hard, suppresses=suppresses) for suppresses in (True, False))
            rows.append(f"{label:8}{''.join(f'{count:12}' for count in counts)}")
        rows.append(f"precision {self.precision:.4f}, recall {self.recall:.4f}")
        wrong = ((reply, found) for reply, found in self.results if found is not reply.is_hard)
        rows += [f"{'wrongly suppressed' if found else 'not suppressed'}: {reply}" for reply, found in wrong]
        return "\n".join(["", *rows, ""])


def test_the_set_is_large_and_of_many_hosts():
    replies = list(labelled_replies())
    assert len(replies) >= 400
    assert len({reply.server for reply in replies}) >= 25
    assert len(set(replies)) == len(replies)


@each("replies", [labelled_replies, all_replies])
def test_suppressions_are_precise_and_complete(replies):
    confusion = Confusion(tuple((reply, suppresses(reply)) for reply in replies()))
    sys.stdout.write(str(confusion))
    assert confusion.precision >= LEAST_PRECISION
    assert confusion.recall >= LEAST_RECALL
