"""Attachments as frameworks send them: named like paths, with file names as Content-IDs."""

import pytest

from emails.models import Attachment, Email
from tests.interfaces.compat.test_postmark import mail as postmark_mail
from tests.interfaces.compat.test_sendgrid import mail as sendgrid_mail
from tests.rows import each

pytestmark = pytest.mark.django_db

PNG = "iVBORw0KGgo="


def send(dialect, files: list[tuple[str, str | None]], *, html: str, **fields):
    """Send an email with files, given by name and Content-ID."""
    if dialect.name == "postmark":
        named = [{"Name": name, "Content": PNG, "ContentType": "image/png", "ContentID": cid} for name, cid in files]
        return dialect.post("/email", postmark_mail(HtmlBody=html, Attachments=named, **fields))
    if dialect.name == "resend":
        email = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "html": html, **fields}
        named = [{"filename": name, "content": PNG, "content_id": cid} for name, cid in files]
        return dialect.post("/emails", {**email, "attachments": named})
    named = [{"filename": name, "content": PNG, "type": "image/png", "content_id": cid} for name, cid in files]
    content = [{"type": "text/html", "value": html}]
    return dialect.post("/v3/mail/send", sendgrid_mail(content=content, attachments=named, **fields))


@pytest.fixture
def dialects(resend, postmark, sendgrid):
    return resend, postmark, sendgrid


@each(
    ("name", "stored"),
    [
        ("@assets/img/logo.png", "logo.png"), ("C:\\fakepath\\a.pdf", "a.pdf"), ("/etc/", "attachment"),
        ("../..", "attachment"), ("a\u202egpj.exe", "agpj.exe"), ("line\nbreak.txt", "linebreak.txt"),
        ("a" * 300 + ".png", "a" * 251 + ".png"),
    ],
)  # fmt: skip
def test_a_name_is_its_last_part(dialects, name, stored):
    for dialect in dialects:
        assert send(dialect, [(name, None)], html="Hi").status_code in (200, 202)
        assert Attachment.objects.get().filename == stored
        Email.objects.all().delete()
        Attachment.objects.all().delete()


@each(
    ("given", "reference", "stored"),
    [
        ("my logo.png", "my logo.png", "my_logo.png"), ("my logo.png", "my%20logo.png", "my_logo.png"),
        ("<logo@demo>", "logo@demo", "logo@demo"), ("cid:logo", "logo", "logo"), ("cid:<a b>", "a b", "a_b"),
        ("größe", "gr%C3%B6%C3%9Fe", "gr_e"), ('a"b', "a&quot;b", "a_b"),
        ("2cbd@symfony", "2cbd@symfony", "2cbd@symfony"),
    ],
)  # fmt: skip
def test_a_content_id_is_valid_and_its_references_follow(dialects, given, reference, stored):
    for dialect in dialects:
        html = f'<img src="cid:{reference}"><img src="cid:other">'
        assert send(dialect, [("a.png", given), ("b.png", "other")], html=html).status_code in (200, 202)
        assert [*Attachment.objects.order_by("filename").values_list("cid", flat=True)] == [stored, "other"]
        assert Email.objects.get().content.html == f'<img src="cid:{stored}"><img src="cid:other">'
        Email.objects.all().delete()
        Attachment.objects.all().delete()


def test_two_files_never_get_one_content_id(postmark):
    files = [("1.png", "a_b"), ("2.png", "a b"), ("3.png", "a b c"), ("4.png", "a\tb c")]
    html = '<img src="cid:a b"><img src="cid:a_b"><img src="cid:a b c"><img src="cid:a\tb c">'
    assert send(postmark, files, html=html).status_code == 200
    ids = [*Attachment.objects.order_by("filename").values_list("cid", flat=True)]
    assert ids == ["a_b", "2.a_b", "a_b_c", "4.a_b_c"]
    assert Email.objects.get().content.html == "".join(f'<img src="cid:{ids[index]}">' for index in (1, 0, 2, 3))


def test_a_content_id_that_a_template_would_have_to_follow_is_refused(resend, template):
    files = [{"filename": "a.png", "content": PNG, "content_id": "my logo.png"}]
    email = {"from": "hi@alice.example", "to": "ada@example.com", "template": {"id": "hello"}, "attachments": files}
    refused = resend.post("/emails", email)
    assert (refused.status_code, refused.json()["name"]) == (422, "invalid_attachment")
    assert "Change it there, too." in refused.json()["message"]
