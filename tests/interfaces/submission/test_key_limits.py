"""Limits of API keys over SMTP."""

import smtplib

import pytest

from core.workspaces.key_limits import read_limits
from emails.approvals import approve_email
from emails.models import Email
from tests.conftest import make_domain, make_key
from tests.entrances import make_template
from tests.interfaces.submission.fixtures import MESSAGE
from tests.sending_process import relay_to_mail_host, send_everything

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = MESSAGE.replace(b"alice.example", b"blog.example")


def limited(port, workspace, **limits):
    """Return the port for clients with a limited key."""
    port.key = make_key(workspace, "sending_access", limits=read_limits(**limits))
    return port


def test_a_key_sends_from_its_domains_only(port, workspace):
    make_domain(workspace, "blog.example")
    limited(port, workspace, domains=["alice.example"])
    assert port.submit(MESSAGE)[0] == 250
    code, text = port.submit(OTHER)
    assert (code, "can send from alice.example only, not from blog.example" in text) == (550, True)
    assert Email.objects.get().from_domain == "alice.example"


def test_a_key_sends_with_its_templates_only(port, workspace):
    for alias in ("welcome", "receipt"):
        make_template(workspace, alias)
    limited(port, workspace, templates=["welcome"])
    assert port.submit(b"X-Postrider-Template: welcome\r\n" + MESSAGE)[0] == 250
    for refused in (MESSAGE, b"X-Postrider-Template: receipt\r\n" + MESSAGE):
        code, text = port.submit(refused)
        assert (code, "with these templates only: welcome" in text) == (550, True)


def test_a_network_limit_refuses_the_sign_in_and_a_later_message(port, workspace):
    limited(port, workspace, networks=["203.0.113.0/24"])
    with pytest.raises(smtplib.SMTPAuthenticationError, match=r"can be used from 203.0.113.0/24 only"):
        port.submit()
    limited(port, workspace, networks=["127.0.0.0/8"])
    assert port.submit()[0] == 250


def test_requests_per_second_limit_messages(port, workspace):
    limited(port, workspace, requests_per_second=1)
    with port.client() as client:
        replies = []
        while not replies or (replies[-1][0] == 250 and len(replies) < 500):
            replies.append(client.mail("a@alice.example"))
            client.rset()
    code, text = replies[-1]
    assert (code, b"This API key can make 1 requests per second" in text) == (451, True)


def test_messages_of_a_key_that_needs_approval_wait_for_it(port, workspace, settings):
    limited(port, workspace, needs_approval=True)
    assert port.submit(MESSAGE)[0] == 250
    email = Email.objects.get()
    assert email.held
    with relay_to_mail_host(settings) as host:
        assert send_everything() == 0
        approve_email(email)
        assert send_everything() == 1
    assert host.recipients == ["ada@example.com"]
