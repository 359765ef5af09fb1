import time
from email.message import EmailMessage
from email.policy import SMTP

from hypothesis import given
from hypothesis import strategies as st

from interfaces.inbound.inbox.reading import MAX_PARTS, read_mail


def test_reads_a_genuine_message():
    message = EmailMessage(policy=SMTP)
    message["Subject"] = "Grüße 📮"
    message["From"] = "Zoë <zoe@example.com>"
    message.set_content("Grüße als Text", charset="iso-8859-1")
    message.add_alternative("<p>Grüße</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Rechnung März.pdf")

    read = read_mail(message.as_bytes())

    assert dict(read.headers)["Subject"] == "Grüße 📮"
    assert read.text.strip() == "Grüße als Text"
    assert read.html.strip() == "<p>Grüße</p>"
    assert [(file.filename, file.size_bytes) for file in read.attachments] == [("Rechnung März.pdf", 4)]
    assert not read.error


def test_explains_that_a_message_has_too_many_parts():
    source = b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n' + b"--x\r\n\r\na\r\n" * (MAX_PARTS + 1)

    assert "more than 100 parts" in read_mail(source).error


def test_removes_characters_that_html_cannot_represent():
    read = read_mail(b"Subject: a\x00b\xff\r\n\r\nc\x00d")

    assert "\0" not in read.text + dict(read.headers)["Subject"]
    (read.text + str(read.headers)).encode()


def test_reads_the_largest_message_in_bounded_time():
    started = time.process_time()

    read_mail(b"Content-Type: text/plain\r\n\r\n" + b"\n" * 30_000_000)

    assert time.process_time() - started < 10


PIECES = st.sampled_from(
    [b"Content-Type: multipart/mixed; boundary=x\r\n", b"--x\r\n", b"--x--", b"\r\n\r\n", b"Subject: =?utf-8?b?", b"\0"]
)


@given(st.lists(PIECES | st.binary(max_size=20), max_size=30).map(b"".join))
def test_never_raises(source):
    read = read_mail(source)

    (read.html + read.text + str(read.headers) + str(read.attachments)).encode()
