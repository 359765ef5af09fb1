"""The submission server over real SMTP: one email for each 250, with the content of the message."""

import pytest

from emails.models import Email, Recipient

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_becomes_an_email(port):
    code, text = port.submit()
    email = Email.objects.get()
    assert (code, text) == (250, f"2.0.0 Accepted as {email.id}")
    assert (email.sender, email.to, email.subject) == ("Alice <hi@alice.example>", ["ada@example.com"], "Hello")
    assert (email.content.text, email.content.html) == ("Hello Ada\n", "")
    assert (email.entrance, email.status) == ("smtp", "queued")
    assert list(Recipient.objects.values_list("address", flat=True)) == ["ada@example.com"]
