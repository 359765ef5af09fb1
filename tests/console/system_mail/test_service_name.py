"""The name of the service in system emails (docs/decisions/0269)."""

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from console.dashboard.auth.account_emails import send_confirmation, send_password_reset, send_security_notice
from console.dashboard.auth.password_reset import PASSWORD_CHANGED
from console.system_mail.approval_requests import request_approvals
from console.system_mail.canary.runs import start_due
from console.system_mail.invitations import send_invitation
from console.system_mail.models import SystemMail, SystemMailKind
from core.workspaces.key_limits import read_limits
from core.workspaces.models import Invitation
from tests.conftest import Account, Api, mail, make_domain, make_key

pytestmark = pytest.mark.django_db

NAME = "Larkspur {Mail} 100%"


@pytest.mark.parametrize("language", ["en", "de"])
def test_is_in_the_subjects_and_texts(alice: Account, settings, language):
    settings.SYSTEM_NAME = NAME
    settings.CANARY_MINUTES, settings.CANARY_ADDRESS = 15, "canary@in.demo.example"
    make_domain(alice.workspace, "alice.example")
    key = make_key(alice.workspace, "sending_access", limits=read_limits(needs_approval=True))
    to = {"email": "eve@example.com", "expires_at": timezone.now() + timedelta(days=7)}
    with translation.override(language):
        send_password_reset(alice.owner.email)
        send_confirmation(alice.owner)
        send_security_notice(alice.owner, change=PASSWORD_CHANGED)
        start_due()
        assert Api(key).post("/emails/send", mail()).status_code == 202
        request_approvals()
        send_invitation(Invitation.objects.create(workspace=alice.workspace, **to))

    mails = {mail.kind: mail for mail in SystemMail.objects.all()}
    # Programs read TLS reports: their form is that of RFC 8460.
    assert mails.keys() == set(SystemMailKind) - {SystemMailKind.TLS_REPORT}
    unnamed = ("proof", "canary", "approval")
    assert [kind for kind in mails if NAME in mails[kind].subject] == [kind for kind in mails if kind not in unnamed]
    assert [kind for kind in mails if NAME in mails[kind].text] == [
        kind for kind in mails if kind not in ("notice", "approval")
    ]
    assert not any("Postrider" in mail.subject + mail.text for mail in mails.values())
