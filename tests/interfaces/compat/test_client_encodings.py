"""Requests as client libraries of the providers encode them: base64 in lines, names in any case, empty strings."""

import base64
import textwrap

import pytest

from emails.models import Attachment, Email
from tests.core.api.test_rate_limit import some_client
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_postmark import error, mail
from tests.interfaces.compat.test_sendgrid import mail as sendgrid_mail
from tests.rows import each

pytestmark = pytest.mark.django_db

PDF = bytes(range(256)) * 3
# Ruby's `pack('m')` and Python's encodebytes break lines after 60 and 76 characters, Symfony with CRLF.
RUBY = textwrap.fill(base64.b64encode(PDF).decode(), 60) + "\n"
PYTHON = base64.encodebytes(PDF).decode()
SYMFONY = "\r\n".join(textwrap.wrap(base64.b64encode(PDF).decode(), 76))
FOLDED = {"ruby": RUBY, "python": PYTHON, "symfony": SYMFONY, "blanks": RUBY.replace("\n", " \t ")}


def stored_file() -> tuple[str, str, bytes]:
    file = Attachment.objects.get()
    return file.filename, file.content_type, bytes(file.data)


class TestBase64InLines:
    EXPECTED = ("a.pdf", "application/pdf", PDF)

    @each("content", FOLDED.values())
    def test_postmark(self, postmark, content):
        file = {"Name": "a.pdf", "Content": content, "ContentType": "application/pdf"}
        assert postmark.post("/email", mail(Attachments=[file])).status_code == 200
        assert stored_file() == self.EXPECTED

    @each("content", FOLDED.values())
    def test_resend(self, resend, content):
        file = {"filename": "a.pdf", "content": content, "content_type": "application/pdf"}
        body = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
        assert resend.post("/emails", body | {"attachments": [file]}).status_code == 200
        assert stored_file() == self.EXPECTED

    @each("content", FOLDED.values())
    def test_sendgrid(self, sendgrid, content):
        file = {"filename": "a.pdf", "content": content, "type": "application/pdf"}
        assert sendgrid.post("/v3/mail/send", sendgrid_mail(attachments=[file])).status_code == 202
        assert stored_file() == self.EXPECTED

    @each("content", FOLDED.values())
    def test_v1_stays_strict(self, api, content):
        file = {"filename": "a.pdf", "content": content}
        body = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
        assert api.post("/emails/send", body | {"attachments": [file]}).status_code == 422


class TestPostmarkNames:
    """Postmark ignores the case of names; its PHP library writes some in camelCase."""

    def test_an_email_with_an_attachment(self, postmark):
        body = {
            "from": "hi@alice.example",
            "TO": "ada@example.com",
            "subject": "Hi",
            "htmlBody": "<p>Hi</p>",
            "trackLinks": "",
            "metadata": {"orderId": "7"},
            "headers": [{"name": "X-A", "value": "1"}],
            "attachments": [{"name": "a.pdf", "content": RUBY, "contentType": "application/pdf", "contentId": ""}],
        }
        sent = postmark.post("/email", body).json()
        assert (sent["ErrorCode"], sent["To"]) == (0, "ada@example.com")
        email = Email.objects.get()
        assert (email.metadata, email.headers, email.track_clicks) == ({"orderId": "7"}, {"X-A": "1"}, True)
        assert stored_file() == ("a.pdf", "application/pdf", PDF)

    def test_batches_and_templates(self, postmark):
        assert postmark.post("/templates", {"name": "A", "alias": "a", "subject": "{{Name}}", "htmlBody": "Hi"})
        message = {"from": "hi@alice.example", "to": "ada@example.com", "templateAlias": "a"}
        messages = [message | {"templateModel": {"Name": "Ada", "name": "Bob"}}]
        (result,) = postmark.post("/email/batchWithTemplates", {"messages": messages}).json()
        assert (result["ErrorCode"], Email.objects.get().subject) == (0, "Ada")
        results = postmark.post("/email/batch", [mail(), {name.lower(): value for name, value in mail().items()}])
        assert [result["ErrorCode"] for result in results.json()] == [0, 0]

    def test_a_template_is_validated_whatever_the_case(self, postmark):
        template = {"subject": "{{#if}}", "htmlBody": "Hi {{Name}}", "testRenderModel": {"Name": "Ada"}}
        body = postmark.post("/templates/validate", template).json()
        assert not body["AllContentIsValid"]
        assert not body["Subject"]["ContentIsValid"]
        assert body["HtmlBody"]["RenderedContent"] == "Hi Ada"

    def test_the_test_token_reads_them(self, db):
        tester = Dialect("postmark", "POSTMARK_API_TEST")
        tester.client.defaults["REMOTE_ADDR"] = some_client()
        body = {name.lower(): value for name, value in mail().items()}
        assert tester.post("/email", body).json()["Message"] == "Test job accepted"
        assert error(tester.post("/email", body | {"to": "nobody"})) == (422, 300)


def test_an_empty_choice_of_postmark_is_absent(postmark):
    assert postmark.post("/email", mail(TrackLinks="")).json()["ErrorCode"] == 0
    assert Email.objects.get().track_clicks
