"""Reply classification, tested with a table of replies from real hosts."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from core.delivery.bounces.classification import (
    DEMAND_CODE,
    HOST_STAGES,
    RELIABLE_ONLY_WHEN_BARE,
    Classification,
    SmtpStage,
    classify,
    names_sender,
)
from core.delivery.bounces.codes import BASIC, ENHANCED
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryStatus, Reply
from tests.rows import each

TABLE = Path(__file__).with_name("replies_of_hosts.txt")


class Row(NamedTuple):
    stage: SmtpStage
    reply: Reply
    reason: FailureReason


def rows() -> Iterator[Row]:
    reason = FailureReason.UNDETERMINED
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            reason = FailureReason(line.strip("[]"))
        elif line and not line.startswith("#"):
            stage, colon, rest = line.partition(": ")
            where, said = (
                (SmtpStage(stage), rest) if colon and stage.islower() and stage.isalpha() else (SmtpStage.RCPT, line)
            )
            code, _, text = said.partition(" ")
            code, dash, first = code.partition("-")
            text = f"{first} {text}".strip() if dash else text
            yield Row(where, Reply(int(code), text.replace("|", "\n")), reason)


ROWS = list(rows())


def test_the_table_is_large():
    assert len(ROWS) >= 250
    assert {row.reason for row in ROWS} >= RECIPIENT_FAULTS


@each("row", ROWS)
def test_a_reply_has_its_reason(row):
    found = classify(row.reply, stage=row.stage)
    assert found.reason == row.reason


@each("row", ROWS)
def test_a_4xx_is_tried_again_and_a_5xx_bounces(row):
    found = classify(row.reply, stage=row.stage)
    passes = row.reply.code == DEMAND_CODE or row.reason in (
        FailureReason.GREYLISTED,
        FailureReason.RATE_LIMITED,
        FailureReason.TOO_MANY_RECIPIENTS,
        FailureReason.LOGIN_REFUSED,
    )
    # A block list names the sending address: the recipient waits (docs/decisions/0278).
    passes = passes or bool(found.listed_by)
    if row.stage is SmtpStage.REPORT:
        assert found.status in (DeliveryStatus.BOUNCED, DeliveryStatus.FAILED)
    else:
        assert found.status is (DeliveryStatus.DEFERRED if row.reply.code < 500 or passes else DeliveryStatus.BOUNCED)
    assert found.is_recipient_fault is (found.status is DeliveryStatus.BOUNCED and row.reason in RECIPIENT_FAULTS)


@each("stage", sorted(HOST_STAGES, key=lambda stage: stage.value))
@each("row", ROWS[::7])
def test_a_refusal_before_mail_is_deferred(stage, row):
    found = classify(row.reply, stage=stage)
    assert (found.status, found.is_recipient_fault) == (DeliveryStatus.DEFERRED, False)


@each("row", [row for row in ROWS if row.reason in RECIPIENT_FAULTS])
def test_a_refusal_at_mail_is_never_a_recipient_fault(row):
    assert not classify(row.reply, stage=SmtpStage.MAIL).is_recipient_fault


@each("code", [550, 553, 554])
def test_a_bare_refusal_is_a_recipient_fault_only_at_rcpt(code):
    faults = {stage: classify(Reply(code, ""), stage=stage).is_recipient_fault for stage in SmtpStage}
    assert [stage for stage, is_fault in faults.items() if is_fault] == [SmtpStage.RCPT]


@each("stage", SmtpStage)
@each("text", ["5.7.0 Authentication required", "5.7.0 Must issue a STARTTLS command first", ""])
def test_a_demand_for_a_login_or_tls_is_never_a_bounce(stage, text):
    found = classify(Reply(DEMAND_CODE, text), stage=stage)
    given_up = DeliveryStatus.FAILED if stage is SmtpStage.REPORT else DeliveryStatus.DEFERRED
    assert (found.status, found.is_recipient_fault) == (given_up, False)


@each(("code", "status"), [(0, DeliveryStatus.FAILED), (550, DeliveryStatus.BOUNCED)])
def test_a_report_without_a_code_about_the_network_is_not_the_answer_of_a_host(code, status):
    assert classify(Reply(code, "Connection refused"), stage=SmtpStage.REPORT).status is status


SENDER_NAMES = ("alice.example", "bounces.shop.example", "mail.host.example", "localhost")


@each(("text", "is_named"), [
    ("5.1.1 <hi@alice.example>: user unknown", True), ("bounces.shop.example: host unknown", True),
    ("<x+1@bounces.shop.example> does not exist", True), ("Host mail.host.example[192.0.2.1] not found", True),
    ("MAIL.HOST.EXAMPLE unknown", True), ("5.1.1 <ada@example.com>: user unknown", False),
    ("malice.example unknown", False), ("alice.example.org unknown", False),
    ("user unknown, see https://alice.example/550", False), ("user unknown at localhost", False),
])  # fmt: skip
def test_a_text_that_names_the_return_path_from_or_the_ehlo_name_is_about_the_sender(text, is_named):
    assert names_sender(text, names=SENDER_NAMES, recipient="ada@example.com") is is_named
    assert not names_sender(text, names=SENDER_NAMES[:1], recipient="ada@alice.example")


class TestCodes:
    def test_an_enhanced_code_counts_only_if_it_agrees_with_the_basic_one(self):
        assert classify(Reply(550, "4.1.1 xyzzy"), stage=SmtpStage.RCPT).reason == FailureReason.UNDETERMINED
        found = classify(Reply(450, "5.1.1 User unknown"), stage=SmtpStage.RCPT)
        assert (found.status, found.is_recipient_fault) == (DeliveryStatus.DEFERRED, False)

    def test_an_ip_address_is_not_an_enhanced_code(self):
        assert classify(Reply(550, "5.1.1.2 xyzzy"), stage=SmtpStage.RCPT).reason == FailureReason.UNDETERMINED
        assert classify(Reply(550, "[192.5.1.1] xyzzy"), stage=SmtpStage.RCPT).reason == FailureReason.UNDETERMINED

    @each("code", ["5.3.1", "5.3.2", "5.3.5", "5.6.0", "5.6.1", "5.6.7"])
    def test_a_code_of_the_system_or_the_content_outweighs_a_recipient_phrase(self, code):
        found = classify(Reply(550, f"{code} <ada@example.com> No such user"), stage=SmtpStage.RCPT)
        assert (found.reason, found.is_recipient_fault) == (ENHANCED[code[2:]], False)

    def test_a_specific_enhanced_code_outweighs_an_unspecific_one(self):
        reply = Reply(550, "5.0.0 host mx.example.com said: 550 5.1.1 (in reply to RCPT TO)")
        assert classify(reply, stage=SmtpStage.REPORT).reason == FailureReason.UNKNOWN_USER

    @each("detail", sorted(ENHANCED))
    def test_every_code_of_the_table_is_found(self, detail):
        assert classify(Reply(550, f"5.{detail} xyzzy"), stage=SmtpStage.RCPT).reason == ENHANCED[detail]
        assert classify(Reply(0, f"5.{detail} xyzzy"), stage=SmtpStage.REPORT).reason == ENHANCED[detail]

    @each("code", sorted(BASIC))
    def test_a_basic_code_is_the_last_resort(self, code):
        with_words = FailureReason.UNDETERMINED if code in RELIABLE_ONLY_WHEN_BARE else BASIC[code]
        assert classify(Reply(code, "xyzzy"), stage=SmtpStage.RCPT).reason == with_words
        assert classify(Reply(code, ""), stage=SmtpStage.RCPT).reason == BASIC[code]

    def test_a_bare_552_depends_on_the_stage(self):
        """RFC 5321, section 4.5.3.1.10; RFC 1870, section 6."""
        at_rcpt = classify(Reply(552, ""), stage=SmtpStage.RCPT)
        assert at_rcpt == Classification(DeliveryStatus.DEFERRED, FailureReason.TOO_MANY_RECIPIENTS)
        for stage in (SmtpStage.MAIL, SmtpStage.DATA, SmtpStage.DOT):
            assert classify(Reply(552, ""), stage=stage) == Classification(
                DeliveryStatus.BOUNCED, FailureReason.TOO_LARGE
            )


class TestReports:
    @each(("reply", "status"), [
        (Reply(0, "4.4.7 Message expired"), DeliveryStatus.FAILED),
        (Reply(550, "4.4.7 Message expired: unable to deliver in 840 minutes."), DeliveryStatus.FAILED),
        (Reply(0, "5.4.7 Delivery expired"), DeliveryStatus.FAILED),
        (Reply(0, "4.2.2 Mailbox full"), DeliveryStatus.FAILED),
        (Reply(451, "4.3.0 Try again later"), DeliveryStatus.FAILED),
        (Reply(0, "5.1.1 User unknown"), DeliveryStatus.BOUNCED),
        (Reply(550, "5.7.1 Rejected"), DeliveryStatus.BOUNCED),
        (Reply(550, "Connection refused by policy"), DeliveryStatus.BOUNCED),
        (Reply(0, "5.0.0 xyzzy"), DeliveryStatus.BOUNCED),
        (Reply(0, ""), DeliveryStatus.BOUNCED),
    ])  # fmt: skip
    def test_a_report_of_giving_up_is_a_failure_and_a_refusal_a_bounce(self, reply, status):
        assert classify(reply, stage=SmtpStage.REPORT).status is status


WORDS = st.sampled_from(["user", "unknown", "mailbox", "sender", "rejected", "5.1.1", "#5.7.1", "@", ".", "(#4.2.2)"])


class TestHostileText:
    @given(st.integers(0, 999), st.text() | st.lists(WORDS).map(" ".join), st.sampled_from(SmtpStage))
    def test_nothing_raises(self, code, text, stage):
        found = classify(Reply(code, text), stage=stage)
        assert isinstance(found.reason, FailureReason)
        assert not found.is_recipient_fault or found.status is DeliveryStatus.BOUNCED

    @each("text", [
        "5.1." * 250_000, "user " * 200_000, "mailbox " * 100_000 + "unavailable", "@" * 1_000_000, " " * 1_000_000,
        "\x00\x1b\ud800" * 300_000, "5" * 1_000_000, "#5.7.1." * 100_000,
        "account sender recipient user address host ip from mailbox " * 20_000, "'" * 1_000_000, "ß" * 1_000_000,
    ])  # fmt: skip
    def test_long_text_takes_constant_time(self, text):
        fastest = 1.0
        for _ in range(3):
            began = time.perf_counter()
            classify(Reply(550, text), stage=SmtpStage.RCPT)
            fastest = min(fastest, time.perf_counter() - began)
        assert fastest < 0.05
