"""Emails to the owners of a workspace that is deleted or restored."""

import re

import pytest

from console.system_mail.html import render_html
from console.system_mail.models import SystemMail
from core.workspaces.deletion import delete_workspace, restore_workspace
from core.workspaces.models import Membership, User, Workspace
from tests.conftest import Account, make_account
from tests.console.provisioning.conftest import management_api

pytestmark = pytest.mark.django_db


@pytest.fixture
def owners(alice: Account, bob: Account) -> Account:
    """Alice's workspace with a second, German owner and a member."""
    User.objects.filter(pk=bob.owner.pk).update(language="de")
    Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")
    Membership.objects.create(workspace=alice.workspace, user=make_account("carol").owner, role="member")
    return alice


def mails_by_recipient() -> dict[str, SystemMail]:
    return {mail.recipient: mail for mail in SystemMail.objects.all()}


def html_of(mail: SystemMail) -> str:
    return render_html(kind=mail.kind, language=mail.language, subject=mail.subject, text=mail.text)


def test_each_owner_gets_an_email_about_a_deletion_in_their_language(owners: Account):
    assert management_api().delete(f"/admin/workspaces/{owners.workspace.id}").status_code == 200

    mails = mails_by_recipient()
    assert mails.keys() == {"alice@alice.example", "bob@bob.example"}
    english, german = mails["alice@alice.example"], mails["bob@bob.example"]
    assert (english.subject, german.subject) == ("alice was deleted", "alice wurde gelöscht")
    deletes_at = Workspace.objects.get(id=owners.workspace.id).deletes_at
    assert f"{deletes_at:%d.%m.%Y, %H:%M} UTC" in german.text
    assert re.search(r"erased on\n\d+ \w{3} \d{4}, \d\d:\d\d UTC", english.text)
    for mail, words in ((english, "restore it until then"), (german, "wiederherstellen")):
        assert words in mail.text
        assert words in html_of(mail)


def test_each_owner_gets_an_email_about_a_restoration(owners: Account):
    delete_workspace(owners.workspace)
    SystemMail.objects.all().delete()

    assert management_api().post(f"/admin/workspaces/{owners.workspace.id}/restore").status_code == 200

    subjects = {name: mail.subject for name, mail in mails_by_recipient().items()}
    assert subjects == {
        "alice@alice.example": "alice was restored",
        "bob@bob.example": "alice wurde wiederhergestellt",
    }


def test_a_repeated_call_changes_nothing_and_causes_no_email(owners: Account):
    restore_workspace(owners.workspace)
    assert not SystemMail.objects.exists()
    for _ in range(2):
        delete_workspace(owners.workspace)
    assert SystemMail.objects.count() == 2
