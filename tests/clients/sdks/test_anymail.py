"""django-anymail's backends, with another API URL, against the running service."""

import pytest

from tests.clients.sdks.conftest import RUN, received, run_python

pytestmark = pytest.mark.stack


def test_the_inbound_view_of_resend_fetches_the_message(python, stack, test_key):
    run_python(python, "anymail_inbound.py", stack, TEST_KEY=test_key)


def test_the_three_backends_send(python, stack):
    run_python(python, "anymail_backends.py", stack)
    for name in ("resend", "postmark", "sendgrid"):
        message = received(stack, f"any-{name}-{RUN}@example.com")
        assert (message["Subject"], message["X-A"], message["Cc"]) == ("Hello", "1", "carol@example.com")
        assert message["Reply-To"] == "one@demo.example, two@demo.example"
        assert [part.get_content().strip() for part in message.iter_attachments()] == ["Notes"]
