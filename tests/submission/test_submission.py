"""The submission server over real SMTP: one email for each 250, with the content of the message."""

import pytest

from emails.models import Email, Recipient
from submission.metrics import registry
from tests.submission.fixtures import MESSAGE

pytestmark = pytest.mark.django_db(transaction=True)


def test_replies_are_counted(port):
    def count(command: str, code: str) -> float:
        return registry.get_sample_value("postrider_submission_replies_total", {"command": command, "code": code}) or 0

    before = count("DATA", "250"), count("RCPT", "553")
    port.submit()
    port.submit(MESSAGE, "root")
    assert (count("DATA", "250"), count("RCPT", "553")) == (before[0] + 1, before[1] + 1)


def test_a_message_becomes_an_email(port):
    code, text = port.submit()
    email = Email.objects.get()
    assert (code, text) == (250, f"2.0.0 Accepted as {email.id}")
    assert (email.sender, email.to, email.subject) == ("Alice <hi@alice.example>", ["ada@example.com"], "Hello")
    assert (email.content.text, email.content.html) == ("Hello Ada\n", "")
    assert (email.entrance, email.status) == ("smtp", "queued")
    assert list(Recipient.objects.values_list("address", flat=True)) == ["ada@example.com"]
