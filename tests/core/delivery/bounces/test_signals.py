"""Signals: what a refusal says about the pace of one source address at one receiver (docs/decisions/0346)."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.delivery.bounces.classification import SmtpStage, normalized_text
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, Reply
from core.delivery.bounces.signals import Signal, SignalKind, is_about_recipients_pace, signal_of, signal_rows
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.smtp.errors import SmtpError
from tests.core.delivery.bounces.test_labelled_replies import LINE_END, labelled_replies
from tests.rows import each
from tests.stack.stack import REPOSITORY

NONE, SLOW, NARROW, SUSPEND, LISTED = SignalKind
LINE = re.compile(r"(?P<cause>[a-z]+) (?P<stage>[a-z]+) (?P<code>\d{3})[ -](?P<text>.+)")
LEAST_RIGHT = 0.97
# The page of the replies whose date is not known.
UNDATED = "labelled_replies.txt"
# The signals that a cause may have. A domain that is distrusted has none, but for a 421, which asks for less always.
PERMITTED = {
    "rate": {SLOW, NARROW, SUSPEND},
    "reputation": {SLOW, SUSPEND, NONE},
    "listed": {LISTED, SLOW},
    "greylisting": {NONE},
    "recipient": {NONE},
    "other": {NONE},
}
AT_421 = {SLOW, NARROW}
RATE_WORDS = ("rate limit", "unusual rate")


class CausedReply(NamedTuple):
    """receiver: its key; empty if it is not known."""

    cause: str
    receiver: str
    page: str
    stage: SmtpStage
    reply: Reply


def caused_replies() -> Iterator[CausedReply]:
    """Yield the replies of signal_replies.txt, and those of labelled_replies.txt whose address is wrong."""
    receiver, page = "", ""
    for line in Path(__file__).with_name("signal_replies.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            receiver, page = line[1:].split("] ")
            receiver = receiver.strip("-")
        elif line and not line.startswith("#"):
            found = LINE.fullmatch(line)
            assert found, line
            reply = Reply(int(found["code"]), LINE_END.sub("\n", found["text"]))
            yield CausedReply(found["cause"], receiver, page, SmtpStage(found["stage"]), reply)
    for one in labelled_replies():
        if one.is_hard and one.stage is not SmtpStage.REPORT:
            yield CausedReply("recipient", "", UNDATED, one.stage, Reply(one.code, one.text))


def outcome_of(reply: Reply, stage: SmtpStage) -> DeliveryOutcome:
    names = ("alice.example", "bounces.alice.example", "mail.alice.example")
    return SmtpError(stage, reply).outcome(sender_names=names, recipient="ada@example.com")


def cause_of(one: CausedReply) -> str:
    """Return the cause that is found: that of the signal, or that of the reason."""
    outcome = outcome_of(one.reply, one.stage)
    kind = signal_of(outcome, stage=one.stage, receiver=one.receiver).kind
    text = normalized_text(one.reply.text)
    if outcome.reason in {*RECIPIENT_FAULTS, FailureReason.MAILBOX_FULL} or is_about_recipients_pace(text):
        return "recipient"
    if outcome.reason == FailureReason.GREYLISTED:
        return "greylisting"
    if outcome.listed_by:
        return "listed"
    if outcome.reason == FailureReason.RATE_LIMITED or (kind is SUSPEND and outcome.reason != FailureReason.REPUTATION):
        return "rate"
    if outcome.reason == FailureReason.REPUTATION:
        return "rate" if any(words in text for words in RATE_WORDS) else "reputation"
    return "rate" if kind in {SLOW, NARROW} and one.reply.code != 421 else "other"


def test_causes_of_real_replies_are_told_apart():
    replies = list(caused_replies())
    found = [(one, cause_of(one)) for one in replies]
    wrong = [(one, cause) for one, cause in found if cause != one.cause]
    right = 1 - len(wrong) / len(found)
    sys.stdout.write(f"\n{len(found)} replies, {right:.4f} right; {dict(Counter(one.cause for one in replies))}\n")
    sys.stdout.write("".join(f"{cause} found: {one}\n" for one, cause in wrong))
    dated = {(one.stage, one.reply) for one in replies if one.page != UNDATED}
    assert len(dated) >= 399
    assert right >= LEAST_RIGHT


def test_signals_of_real_replies_fit_their_causes():
    replies = list(caused_replies())
    wrong = []
    for one in replies:
        kind = signal_of(outcome_of(one.reply, one.stage), stage=one.stage, receiver=one.receiver).kind
        permitted = PERMITTED[one.cause] | (AT_421 if one.reply.code == 421 else set())
        if kind not in permitted:
            wrong.append((kind, one))
    sys.stdout.write("".join(f"{kind}: {one}\n" for kind, one in wrong))
    assert 1 - len(wrong) / len(replies) >= LEAST_RIGHT


class Automation(NamedTuple):
    """An automation of KumoMTA: what it does, what Postrider does, and a reply with its mark."""

    receiver: str
    mark: str
    theirs: str
    ours: str
    stage: str
    reply: str


def automations() -> Iterator[Automation]:
    """Yield the rows of kumomta_automations.txt."""
    for line in Path(__file__).with_name("kumomta_automations.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield Automation(*line.replace("\\n", "\n").split(" | "))


AUTOMATIONS = list(automations())


def signal_at(reply: str, *, stage: str, receiver: str = "", is_relay: bool = False) -> Signal:
    outcome = outcome_of(Reply(int(reply[:3]), reply[4:]), SmtpStage(stage))
    return signal_of(outcome, stage=SmtpStage(stage), receiver=receiver, is_relay=is_relay)


@each("one", AUTOMATIONS)
def test_an_automation_of_kumomta_has_its_signal(one):
    receiver = one.receiver if one.receiver != "all" else ""
    assert shown(signal_at(one.reply, stage=one.stage, receiver=receiver)) == one.ours


def test_the_decision_names_each_automation_and_each_difference():
    page = (REPOSITORY / "docs/decisions/0346-signals.md").read_text("utf-8")
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines()]
    reasons = {tuple(row[:4]): row[4] for row in cells if len(row) == 5}
    assert len(AUTOMATIONS) == 51
    assert {one[:4] for one in AUTOMATIONS} <= reasons.keys()
    different = [one for one in AUTOMATIONS if one.theirs != one.ours.partition(",")[0]]
    assert [one for one in different if not reasons[one[:4]]] == []


def shown(signal: Signal) -> str:
    if signal.kind is LISTED:
        return "suspend 2 h"
    if signal.kind is not SUSPEND:
        return signal.kind.value
    minutes = int(signal.seconds) // 60
    time = f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"
    return f"suspend {time}, from the {signal.after}th" if signal.after > 1 else f"suspend {time}"


@each(("stage", "reply", "receiver", "signal"), [
    # A 421 before MAIL closes one connection's worth; other refusals there are failures of the connection.
    ("banner", "421 4.7.0 Try again later, closing connection. gsmtp", "google", Signal(NARROW)),
    ("banner", "450 4.3.2 Busy", "", Signal(NONE)),
    ("ehlo", "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred", "yahoo", Signal(SUSPEND, 7200, 2)),
    ("data", "421 4.3.2 Service not available", "", Signal(SLOW)),
    # The words of a receiver count at that receiver only.
    ("rcpt", "451 4.7.1 Service unavailable - try again later", "apple", Signal(SUSPEND, 900, 5)),
    ("rcpt", "451 4.7.1 Service unavailable - try again later", "", Signal(NONE)),
    ("rcpt", "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77714)", "", Signal(SLOW)),
    # The recipient's mailbox, greylisting and too many recipients, with any code.
    ("rcpt", "421 4.7.0 Greylisted, please try again later", "", Signal(NONE)),
    ("rcpt", "421 4.2.1 The user you are trying to contact is receiving mail too quickly", "google", Signal(NONE)),
    ("rcpt", "450 4.2.1 Mailbox received too much email in a short period of time", "", Signal(NONE)),
    ("rcpt", "552 5.2.2 Mailbox full: too many messages", "", Signal(NONE)),
    ("rcpt", "452 4.5.3 Too many recipients", "", Signal(NONE)),
    ("rcpt", "550 5.1.1 No such user (too many connections)", "", Signal(NONE)),
    ("rcpt", "550 5.4.6 <ada@example.com>: Recipient address rejected: Recipient Quota Exceeded", "", Signal(NONE)),
    # In its greeting, a host knows nothing but the address.
    ("banner", "554 RBL Reject.", "", Signal(SLOW)),
    ("dot", "554 RBL Reject.", "", Signal(NONE)),
    # A host that may not ask Spamhaus has listed nothing.
    ("rcpt", ("554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; Error: open "
     "resolver; https://check.spamhaus.org/returnc/pub/192.0.2.2/"), "", Signal(SLOW)),
    ("dot", "550 5.7.1 The message contains a link that is on a block list, rate limit", "", Signal(NONE)),
    ("dot", "250 OK", "", Signal(NONE)),
])  # fmt: skip
def test_a_reply_has_its_signal(stage, reply, receiver, signal):
    assert signal_at(reply, stage=stage, receiver=receiver) == signal


def test_a_relay_is_slowed_at_most_after_mail():
    tss04 = "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred"
    assert signal_at(tss04, stage="dot", is_relay=True) == Signal(SLOW)
    assert signal_at(tss04, stage="mail", is_relay=True) == Signal(SUSPEND, 7200, 2)
    assert signal_at("450 4.7.1 Rate limit exceeded", stage="rcpt", is_relay=True) == Signal(NONE)
    assert signal_at("451 4.7.1 host x said: 451 4.7.1 Too many", stage="dot", is_relay=True) == Signal(NONE)


def test_each_row_has_a_known_receiver_and_a_time_if_it_suspends():
    keys = {one.key for one in built_in_receivers().receivers}
    for row in signal_rows():
        assert row.receivers <= keys
        assert row.reasons <= {reason.value for reason in FailureReason}
        assert (row.signal.kind is SUSPEND) == (row.signal.seconds > 0)
        assert row.signal.seconds <= 14_400
        assert row.texts or row.reasons


def test_each_phrase_has_the_form_of_a_normalized_text():
    phrases = [phrase for row in signal_rows() if row.texts for _, ones in row.texts.rows for phrase in ones]
    wrong = [one for one in phrases if one.strip() not in normalized_text(one) and not re.search(r"[*~^]", one)]
    assert wrong == []


@each("unit", ["a", " ", "too many ", "messages they ", "sender has exceeded the limit ", "é", "(", "1.1.1.1 "])
def test_a_hostile_reply_is_read_in_bounded_time(unit):
    text = unit * (1_000_000 // len(unit))
    assert signal_at(f"421 {text}", stage="dot").kind in {SLOW, NARROW}
