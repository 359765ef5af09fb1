"""Messages of other projects' tests: each is sent with equal text, HTML and files, or refused with a clear reply.

They are submitted over SMTP, stored, and composed as for delivery. Python's email parser reads both sides.
"""

import email
import re
from collections import Counter
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage

import pytest

from core.delivery.message.footer import html_footer, text_footer
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message
from tests.emails.builders import claim_entries
from tests.interfaces.submission.corpora import CORPORA

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]

MIN_MESSAGES = 500
MAX_REFUSED = 0.2
ENVELOPE_LINE = re.compile(rb"\A>?From [^\r]*\r\n")
SENDER = re.compile(rb"^From[ \t]*:[^\r\n]*(\r\n[ \t][^\r\n]*)*\r\n", re.IGNORECASE | re.MULTILINE)
# With these, the composed message differs from the submitted one only by its footer.
OWN_FIELDS = b"From: hi@alice.example\r\nX-Postrider-Track-Opens: false\r\nX-Postrider-Track-Clicks: false\r\n"
LINE_END = re.compile(r"\r\n?|\n")
REPLY = re.compile(r"55[0-9] 5\.[0-9]\.[0-9] .{10,}")
# Python's parser would change the bytes of an attached message; with another type, it returns them.
MESSAGE_TYPE = re.compile(rb"^(Content-Type:\s*)message/", re.IGNORECASE | re.MULTILINE)


def submitted(source: bytes) -> bytes:
    """Return a message as submitted: with CRLF and a sender of ours."""
    source = ENVELOPE_LINE.sub(b"", re.sub(rb"\r\n|\r|\n", b"\r\n", source))
    header, separator, body = source.partition(b"\r\n\r\n")
    return OWN_FIELDS + SENDER.sub(b"", header + b"\r\n").removesuffix(b"\r\n") + separator + body


@pytest.fixture(scope="module")
def messages() -> dict[str, bytes]:
    """Return the distinct messages of all corpora by name."""
    by_source = {submitted(source): name for corpus in CORPORA for name, source in corpus.messages()}
    return {name: source for source, name in by_source.items()}


def sent_contents() -> Counter[str | bytes]:
    """Return the contents of the message that is sent for the last accepted one, without its footer."""
    (job,) = load_jobs(claim_entries(10), memory_bytes=MEMORY_BYTES)
    message = build_message(job)
    footers = html_footer(message.unsubscribe_url), text_footer(message.unsubscribe_url)
    return contents(message.to_bytes(), *footers)


def contents(source: bytes, *footers: str) -> Counter[str | bytes]:
    """Return the contents of all parts that are not empty: texts without the footers, and the bytes of others."""
    message = email.message_from_bytes(_without_message_types(source), policy=policy.default)
    return Counter(filter(None, (_content(part, footers) for part in _leaves(message))))


def _without_message_types(source: bytes) -> bytes:
    return MESSAGE_TYPE.sub(rb"\1application/x-", source)


def _leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    if part.get_content_maintype() == "multipart":
        for inner in part.iter_parts():
            yield from _leaves(inner)
    else:
        yield part


def _content(part: EmailMessage, footers: tuple[str, ...]) -> str | bytes:
    data = _without_message_types(_decoded(part))
    if part.get_content_maintype() != "text":
        return data.rstrip(b"\r\n")
    try:
        text = data.decode(part.get_content_charset("utf-8"))
    except (LookupError, ValueError):
        text = data.decode("utf-8", "replace")
    text = LINE_END.sub("\n", text)
    for footer in footers:
        text = text.replace(footer.rstrip("\n"), "")
    return text.rstrip("\n")


def _decoded(part: EmailMessage) -> bytes:
    if part.is_multipart():
        # A message in a multipart/digest, whose type is implied.
        (message,) = part.get_payload()
        return message.as_bytes(policy=policy.compat32.clone(linesep="\r\n"))
    return part.get_payload(decode=True)


def is_within(content: str | bytes, sent: Counter[str | bytes]) -> bool:
    """Return whether a text is a part of one that is sent: the texts of several parts are one (docs/decisions/0310)."""
    return isinstance(content, str) and any(isinstance(other, str) and content in other for other in sent)


def test_every_message_is_sent_unchanged_or_refused(messages, port, settings):
    settings.RATE_LIMIT = None
    refusals, differences = {}, {}
    for name, source in messages.items():
        code, text = port.submit(source)
        if code != 250:
            refusals[name] = f"{code} {text}"
            continue
        given, sent = contents(source), sent_contents()
        missing = {content for content in given - sent if not is_within(content, sent)}
        # The joined texts, and the text of HTML without one.
        if missing or len(sent - given) > 2:
            differences[name] = missing, sent - given
    assert differences == {}
    assert [reply for reply in refusals.items() if not REPLY.fullmatch(reply[1])] == []
    assert len(messages) >= MIN_MESSAGES
    assert len(refusals) < len(messages) * MAX_REFUSED
