"""Reports of real mail programs: each is read as its kind, and hard bounces are recognized."""

import functools
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.inbound.reports import reading
from interfaces.inbound.reports.classification import classify_bounce
from interfaces.inbound.reports.dsn import reply_code, status_code
from interfaces.inbound.reports.mime import MAX_BYTES
from interfaces.inbound.reports.reading import read_report
from interfaces.inbound.reports.report import ReportKind
from tests.conftest import examples
from tests.interfaces.inbound.samples import FOLDER, samples
from tests.rows import each

SAMPLES = samples()
ANSWERS = [line.split("\t") for line in (FOLDER / "answers.tsv").read_text().splitlines()]


@pytest.fixture(autouse=True, scope="module")
def _raise_parser_errors():
    """Fail the test on a parser error, which read_report logs and returns as an unknown report."""

    def fail(*_):
        raise sys.exc_info()[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.log, "exception", fail)
        yield


@each("sample", SAMPLES)
def test_a_sample_is_read_as_expected(sample):
    report = read_report(sample.source)
    assert report.kind.value == sample.kind
    assert set(report.recipients) == set(sample.recipients)
    assert report.is_hard is sample.is_hard
    assert sample.reason in {"", report.reason}


@each(("language", "certain"), [
    ("czech", "Skupina, kterou se pokoušíte kontaktovat, neexistuje."),
    ("french", "Le groupe que vous avez essayé de contacter n'existe pas."),
    ("japanese", "連絡しようとしたグループが存在しない。"),
])  # fmt: skip
def test_the_doubt_in_a_notice_of_google_groups_is_read_without_the_link(language, certain):
    head, _, body = SAMPLES_BY_NAME[f"google groups in {language}"].source.decode().partition("\r\n\r\n")
    (doubtful,) = [line for line in body.splitlines() if "list" in line and "@" not in line]
    reports = [read_report(f"{head}\r\n\r\n{sentence}\r\n".encode()) for sentence in (certain, doubtful)]
    assert [(report.reason, report.is_hard) for report in reports] == [("unknown_user", True), ("policy", False)]


HEAD = "From: MAILER-DAEMON@mx.example.com\nSubject: failure notice\n\nYour message could not be delivered.\n\n"


@each(("notice", "expected"), [
    # Exim, GMX, qmail: each address with its own reason.
    ("<ada@x.example>:\n550 5.1.1 User unknown\n<bob@x.example>:\n552 5.2.2 Mailbox full\n",
     {"ada": True, "bob": False}),
    ("<ada@x.example>:\n552 5.2.2 Mailbox full\n<bob@x.example>:\n550 5.1.1 User unknown\n",
     {"ada": False, "bob": True}),
    ("ada@x.example: 550 5.2.2 <ada@x.example>... Mailbox Full\nbob@x.example: 550 5.1.1 User Unknown\n",
     {"ada": False, "bob": True}),
    # Addresses without a reason between them share the next one, or the one before all of them.
    ("<ada@x.example>\n<bob@x.example>\n\nReason: 550 5.1.1 User unknown\n", {"ada": True, "bob": True}),
    ("User unknown:\n<ada@x.example>\n<bob@x.example>\n", {"ada": True, "bob": True}),
    # Lines that name an address again belong to it.
    ("<ada@x.example>\n550 User unknown\n<bob@x.example>\n552 Mailbox full\nRCPT TO:<ada@x.example>\nUser unknown\n",
     {"ada": True, "bob": False}),
    # An address that a reason does not follow has none.
    ("<ada@x.example>: 550 5.1.1 User unknown\n\n<bob@x.example>:\n", {"ada": True, "bob": False}),
])  # fmt: skip
def test_each_address_of_a_notice_has_its_own_reason(notice, expected):
    report = read_report((HEAD + notice).encode())
    found = {address: status.is_hard for status in report.recipient_statuses for address in status.recipients}
    assert found == {f"{name}@x.example": is_hard for name, is_hard in expected.items()}


def test_addresses_of_the_header_without_a_line_have_no_reason():
    notice = "<ada@x.example>: 550 User unknown\n<bob@x.example>: 552 Mailbox full\n"
    report = read_report(f"X-Failed-Recipients: ada@x.example, eve@x.example\n{HEAD}{notice}".encode())
    statuses = {address: status for status in report.recipient_statuses for address in status.recipients}
    assert statuses["eve@x.example"].reason == "undetermined"
    assert statuses["ada@x.example"].is_hard


def test_there_are_enough_samples_of_each_kind():
    assert len(SAMPLES) >= 190
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES)
    assert {sample.kind for sample in SAMPLES} >= {"bounce", "delay", "delivered", "relayed", "complaint", "auto_reply"}


def test_no_ordinary_mail_is_a_report_of_delivery():
    """Newsletters, automatic replies, tickets, couriers, and people who quote or forward a bounce."""
    ordinary = [sample for sample in SAMPLES if sample.kind in {"unknown", "auto_reply"}]
    assert len(ordinary) >= 40
    delivery = {ReportKind.BOUNCE, ReportKind.DELAY, ReportKind.DELIVERED, ReportKind.RELAYED}
    assert [sample.name for sample in ordinary if read_report(sample.source).kind in delivery] == []


@each(("weight", "status", "answer"), ANSWERS)
def test_a_reply_quoted_in_a_report_is_classified(weight, status, answer):
    classification = classify_bounce(status=status_code(answer) or status, code=reply_code(answer), diagnostic=answer)
    assert ("hard" if classification.is_hard else "soft") == weight


@each("sample", SAMPLES)
def test_all_line_endings_are_read_alike(sample):
    plain = read_report(sample.source)
    unix = sample.source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert read_report(unix) == plain
    assert read_report(unix.replace(b"\n", b"\r")) == plain
    assert read_report(b"From MAILER-DAEMON Thu Apr 29 2010\n" + unix) == plain


def test_the_returned_message_does_not_affect_the_result():
    """The returned message can contain any text; none of it is the reason for the bounce."""
    head, _, _ = SAMPLES_BY_NAME["postfix"].source.partition(b"Subject: Over quota")
    for text in (
        b"550 5.2.2 mailbox full",
        b"Final-Recipient: rfc822; eve@example.com\r\nAction: failed\r\nStatus: 5.1.1",
    ):
        report = read_report(head + b"Subject: x\r\n\r\n" + text + b"\r\n")
        assert report.recipients == ("ada@example.com",)
        assert report.reason == "unknown_user"


def test_each_recipient_of_a_dsn_gets_the_lines_about_it():
    source = b"""From: MAILER-DAEMON@mx.example.com
Subject: Delivery status notification: error
Content-Type: multipart/mixed; boundary=b

--b

ada@example.com: 550 5.1.1 <ada@example.com>: User unknown
grace@example.com: 552 5.2.2 <grace@example.com>: Mailbox full
--b
Content-Type: message/delivery-status

Final-Recipient: rfc822; ada@example.com
Action: failed
Status: 5.0.0

Final-Recipient: rfc822; grace@example.com
Action: failed
Status: 5.0.0
--b--
"""
    ada, grace = read_report(source).recipient_statuses
    assert (ada.reason, ada.is_hard) == ("unknown_user", True)
    assert (grace.reason, grace.is_hard) == ("mailbox_full", False)


SAMPLES_BY_NAME = {sample.name: sample for sample in SAMPLES}

NOTICE = b"From: mailer-daemon\nSubject: failure\n\ncould not be delivered\n"
STATUS = b"Content-Type: message/delivery-status\n\n"
GROUP = b"Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; "
HOSTILE = [
    b"", b"\0" * 1_000_000, b"\n" * 1_000_000, b"\r" * 1_000_000, b"a" * 1_000_000, b"a: b\n" * 200_000,
    b"a:\n" + b" b\n" * 200_000, b"@" * 300_000, b"From: mailer-daemon\nSubject: failure\n\n" + b"a@b " * 60_000,
    b"From: mailer-daemon\nSubject: failure\n\n" + b"to: " * 60_000,
    b"From: mailer-daemon\nSubject: failure\n\n" + b"<a@b.example>:\n" * 20_000,
    b"From: mailer-daemon\nSubject: failure\n\n" + b"user " * 60_000,
    b"From: mailer-daemon\nSubject: failure\n\n" + b"unable to deliver the following address " * 8_000,
    b"From: mailer-daemon\nSubject: failure\n\n" + (b"user not mailbox account exceeded " * 30 + b"\n") * 300,
    b"Content-Type: multipart/report; boundary=b\n\n" + b"--b\n\n" * 50_000,
    b"Content-Type: multipart/report; boundary=b\n\n" + b"--b\nContent-Type: multipart/mixed; boundary=b\n\n" * 5_000,
    b"Content-Type: text/html\nSubject: failure\n\n" + b"<style" * 50_000,
    b"Content-Type: text/html\nSubject: failure\n\n" + b"<" * 300_000,
    b"Content-Type: text/html\nSubject: failure\n\n&#" + b"9" * 300_000,
    b"Content-Type: text/html\nSubject: failure\n\n" + b"&" * 300_000, b"Subject: " + b"=?utf-8?q?a?= " * 20_000,
    b"Subject: " + b"=?" * 20_000, b"Content-Type: " + b"boundary=" * 20_000 + b"\n\n",
    b"Content-Type: message/delivery-status\n\n" + b"Final-Recipient: rfc822; a@b.example\n" * 20_000,
    b"Content-Type: message/delivery-status\n\n" + b"Status: 5.1.1\n\n" * 20_000,
    b"Content-Type: message/delivery-status\n\nDiagnostic-Code: " + b"5.1.1." * 20_000,
    b"Content-Type: message/delivery-status\n\nFinal-Recipient: utf-8; " + b"\\x{" * 20_000,
    b"Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n" + b"Original-Mail-From: <a@b>\n" * 20_000,
    b"Content-Type: text/plain; charset=utf-7\nSubject: failure\n\n" + b"+A" * 100_000,
    b"Content-Type: text/plain; charset=undefined\n\nx", b"Content-Transfer-Encoding: base64\n\n" + b"=" * 300_000,
    b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=\n" * 100_000,
    NOTICE + (b"lorem ipsum dolor " * 55 + b"\n") * 300,
    NOTICE + (b"domain host account mailbox ip exceeds " * 25 + b"\n") * 300, NOTICE + b"a@b.example lorem\n" * 20_000,
    NOTICE + b"550 lorem\n" * 20_000, STATUS + (GROUP + b"domain host account mailbox " * 40 + b"\n\n") * 60,
    STATUS + (GROUP + b"\n\n") * 3_000,
]  # fmt: skip


# More lines than are read, none of which has a phrase.
LONG_NOTICE = NOTICE + b"".join(b"%d We keep your message, and shall hand it over later.\n" % n for n in range(400))


@functools.cache
def most_seconds() -> float:
    """Return three times the CPU time for an ordinary long notice: as long as needed on any machine."""
    return 3 * min(seconds(LONG_NOTICE) for _ in range(3))


def seconds(raw: bytes) -> float:
    started = time.thread_time()
    read_report(raw)
    return time.thread_time() - started


def is_read_in_time(raw: bytes) -> bool:
    """Return whether one of three readings is fast enough: other processes, or a collection of garbage, slow one."""
    return any(seconds(raw) < most_seconds() for _ in range(3))


@each("raw", HOSTILE)
def test_hostile_input_is_read_in_bounded_time(raw):
    assert is_read_in_time(raw)


@pytest.mark.parametrize("step", [60, pytest.param(10, marks=pytest.mark.long)])
def test_a_message_of_a_megabyte_is_read_in_bounded_time(step):
    for sample in [*SAMPLES[::step], SAMPLES_BY_NAME["gmail"]]:
        head, separator, body = sample.source.partition(b"\r\n\r\n")
        assert is_read_in_time(head + separator + body * (MAX_BYTES // max(len(body), 1) + 2)), sample.name


@st.composite
def mutated(draw) -> bytes:
    """Return a sample that was cut, overwritten, nested, repeated or spliced."""
    source = draw(st.sampled_from(SAMPLES)).source
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(source) - 1, 0)))
        source = draw(st.sampled_from([_cut, _flip, _repeat, _nest, _graft]))(
            source, place, draw(st.binary(max_size=20))
        )
    return source


def _cut(source, place, piece):
    return source[:place]


def _flip(source, place, piece):
    return source[:place] + piece + source[place + len(piece) :]


def _repeat(source, place, piece):
    return source[:place] + source[place : place + 200] * 50 + source[place:]


def _nest(source, place, piece):
    head = b'Content-Type: multipart/mixed; boundary="nest%d"\r\n\r\n--nest%d\r\n' % (place, place)
    return head + source + b"\r\n--nest%d--\r\n" % place


def _graft(source, place, piece):
    other = SAMPLES[place % len(SAMPLES)].source
    return source[:place] + other[place // 2 :]


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_no_input_raises_or_takes_long(source):
    report = read_report(source)
    assert is_read_in_time(source)
    assert len(report.diagnostic) <= 1_000
    assert all("@" in address for address in report.recipients)


@settings(max_examples=examples(200))
@given(st.binary(max_size=2_000))
def test_random_bytes_are_no_hard_bounce(source):
    assert not read_report(source).is_hard
