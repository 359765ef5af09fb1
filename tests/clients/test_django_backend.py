"""Messages sent with the Django backend arrive unchanged."""

import email
from email import policy
from email.message import EmailMessage as Parsed
from email.mime.image import MIMEImage
from email.mime.text import MIMEText

import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection, send_mail
from postrider_client import ApiError, ConnectionFailed, UnsupportedMessage

from tests.clients.messages import someone
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


@pytest.fixture
def backend(settings, service):
    """Configure Django as documented."""
    settings.EMAIL_BACKEND = "postrider_client.django.EmailBackend"
    settings.POSTRIDER_API_KEY = service.stack.key
    settings.POSTRIDER_URL = service.stack.url
    return settings


def received_message(service, recipient) -> Parsed:
    source = wait_for(lambda: service.received(recipient), seconds=20, what="the message")
    return email.message_from_bytes(source, policy=policy.default)


def html_of(message: Parsed) -> str:
    return message.get_body(["html"]).get_payload(decode=True).decode()


def text_of(message: Parsed) -> str:
    return message.get_body(["plain"]).get_payload(decode=True).decode()


def test_all_parts_of_a_message_arrive_unchanged(backend, service):
    to, other, cc, bcc = someone(), someone(), someone(), someone()
    message = EmailMultiAlternatives(
        subject="Grüße an Ada ✉",
        body="Hello Ada,\n\nyour order is in the post. Größe: 42",
        from_email="Démo Shop <hello@demo.example>",
        to=[f"Ada Løve <{to}>", f'"Hopper, Grace" <{other}>'],
        cc=[cc],
        bcc=[bcc],
        reply_to=["Support <support@demo.example>"],
        headers={"X-Order": "1042"},
    )
    message.attach_alternative('<p>Hello <b>Ada</b>, größer</p><img src="cid:logo@shop">', "text/html")
    message.attach("invoice ü.csv", "a;b\n1;ü\n", "text/csv")
    message.attach("data.bin", bytes(range(256)), "application/octet-stream")
    message.attach("guessed.pdf", b"%PDF-1.7\n")
    image = MIMEImage(PNG)
    image.add_header("Content-ID", "<logo@shop>")
    image.add_header("Content-Disposition", "inline", filename="logo.png")
    message.attach(image)
    assert message.send() == 1

    for recipient in (to, other, cc, bcc):
        arrived = received_message(service, recipient)
        assert arrived["Subject"] == "Grüße an Ada ✉"
        assert arrived["From"] == "Démo Shop <hello@demo.example>"
        addresses = [(one.display_name, one.addr_spec) for one in arrived["To"].addresses]
        assert addresses == [("Ada Løve", to), ("Hopper, Grace", other)]
        assert (arrived["Cc"], arrived["Bcc"]) == (cc, None)
        assert arrived["Reply-To"] == "Support <support@demo.example>"
        assert arrived["X-Order"] == "1042"
        assert bcc.encode() not in arrived.as_bytes()
    arrived = received_message(service, to)
    assert text_of(arrived).replace("\r\n", "\n").startswith(message.body)
    assert html_of(arrived).startswith(message.alternatives[0][0])
    files = {part.get_filename(): part for part in arrived.walk() if part.get_filename()}
    assert {name: part.get_content_type() for name, part in files.items()} == {
        "invoice ü.csv": "text/csv",
        "data.bin": "application/octet-stream",
        "guessed.pdf": "application/pdf",
        "logo.png": "image/png",
    }
    contents = {name: part.get_payload(decode=True) for name, part in files.items()}
    assert contents["invoice ü.csv"].decode() == "a;b\n1;ü\n"
    assert contents["data.bin"] == bytes(range(256))
    assert contents["guessed.pdf"] == b"%PDF-1.7\n"
    assert contents["logo.png"] == PNG
    assert files["logo.png"]["Content-ID"] == "<logo@shop>"
    assert files["logo.png"].get_content_disposition() == "inline"


def test_a_text_alone_and_an_html_alone_arrive(backend, service):
    plain, html = someone(), someone()
    assert send_mail("Plain", "Just text", "hello@demo.example", [plain]) == 1
    message = EmailMessage("Html", "<p>Just HTML</p>", "hello@demo.example", [html])
    message.content_subtype = "html"
    assert message.send() == 1
    assert text_of(received_message(service, plain)).startswith("Just text")
    assert html_of(received_message(service, html)).startswith("<p>Just HTML</p>")


def test_a_forwarded_message_and_a_mime_text_are_attached(backend, service):
    to = someone()
    message = EmailMessage("Forward", "See below", "hello@demo.example", [to])
    message.attach(None, EmailMessage("Inner", "Inner text", "x@example.com", ["y@example.com"]), "message/rfc822")
    message.attach(MIMEText("größer", "x-log", "iso-8859-1"))
    message.send()
    parts = [part for part in received_message(service, to).walk() if part.get_content_disposition() == "attachment"]
    (forwarded,) = (part for part in parts if part.get_filename() == "attachment.eml")
    assert forwarded.get_content_type() == "message/rfc822"
    assert b"Inner text" in forwarded.get_payload(0).get_payload(decode=True)
    (log,) = (part for part in parts if part.get_content_type() == "text/x-log")
    assert (log.get_payload(decode=True), log.get_content_charset()) == ("größer".encode("latin-1"), "iso-8859-1")


def test_further_api_options_are_set_on_the_message(backend, client):
    template = client.templates.create(name="Hi", subject="Hi {{name}}", html_content="<p>{{name}}</p>")
    message = EmailMessage(from_email="hello@demo.example", to=[someone()])
    message.postrider = {
        "subject": None,
        "template_id": template.id,
        "template_data": {"name": "Ada"},
        "tags": ["welcome"],
    }
    message.send()
    email = client.emails.get(message.postrider_id)
    assert (email.subject, email.tags, email.template_id) == ("Hi Ada", ["welcome"], template.id)


def test_headers_that_override_fields_in_django_override_them_here(backend, client):
    headers = {"From": "Other <other@demo.example>", "Reply-To": "r@demo.example", "X-A": "1"}
    message = new_message(headers=headers)
    message.send()
    email = client.emails.get(message.postrider_id)
    assert (email.from_, email.reply_to, email.headers) == (headers["From"], headers["Reply-To"], {"X-A": "1"})
    # Replies may go to several addresses.
    message = new_message(reply_to=["a@demo.example", "b@demo.example"])
    message.send()
    assert client.emails.get(message.postrider_id).reply_to == "a@demo.example, b@demo.example"


def new_message(**fields):
    return EmailMessage(
        **{"subject": "Hi", "body": "Hi", "from_email": "hello@demo.example", "to": [someone()], **fields}
    )


def test_an_unsupported_message_is_rejected_before_it_is_sent(backend):
    message = EmailMultiAlternatives("Hi", "Hi", "hello@demo.example", [someone()])
    message.attach_alternative("{}", "application/json")
    with pytest.raises(UnsupportedMessage):
        message.send()


def test_an_invitation_arrives_beside_the_text(backend, service):
    message = EmailMultiAlternatives("Meeting", "Meet", "hello@demo.example", [someone()])
    message.attach_alternative("<p>Meet</p>", "text/html")
    message.attach_alternative("BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "text/calendar; method=REQUEST")
    message.send()
    arrived = received_message(service, message.to[0])
    kinds = [part.get_content_type() for part in arrived.walk()]
    assert kinds == ["multipart/alternative", "text/plain", "text/html", "text/calendar"]
    invitation = arrived.get_payload(2)
    assert invitation["Content-Type"].params["method"] == "REQUEST"
    assert invitation.get_payload(decode=True).startswith(b"BEGIN:VCALENDAR")


def test_hidden_recipients_and_a_shown_list_arrive_as_django_sends_them(backend, service):
    hidden, subscriber = someone(), someone()
    assert new_message(to=[], bcc=[hidden]).send() == 1
    headers = {"To": "Friends <list@demo.example>", "Message-ID": "<foo@app.example>"}
    assert new_message(to=[subscriber], headers=headers).send() == 1
    assert hidden.encode() not in received_message(service, hidden).as_bytes().partition(b"\n\n")[0]
    arrived = received_message(service, subscriber)
    assert (arrived["To"], arrived["X-Original-Message-ID"]) == (headers["To"], "<foo@app.example>")
    assert service.received("list@demo.example") is None


def test_an_api_error_is_raised_or_silent_depending_on_fail_silently(backend):
    unregistered = {"from_email": "hello@not-registered.example"}
    with pytest.raises(ApiError) as caught:
        new_message(**unregistered).send()
    assert caught.value.code == "domain_not_registered"
    assert new_message(**unregistered).send(fail_silently=True) == 0
    elsewhere = get_connection(base_url="http://127.0.0.1:1", api_key="pr_x")
    elsewhere.client._transport._max_retries = 0
    with pytest.raises(ConnectionFailed):
        new_message(connection=elsewhere).send()


def test_messages_without_recipients_are_not_sent_and_sent_ones_are_counted(backend):
    with get_connection() as connection:
        assert connection.send_messages([*(new_message() for _ in range(3)), new_message(to=[])]) == 3
