"""The pages on which owners decide about emails that wait for approval, and the link of the request by email."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from console.system_mail.approval_requests import MOST_LISTED, approval_url, request_approvals
from console.system_mail.html import render_html
from console.system_mail.models import SystemMail
from core.workspaces.key_limits import read_limits
from core.workspaces.models import ApiKey, AuditEntry, Membership, User
from emails.approvals import approve_email
from emails.models import ApprovalNotice, Email, QueueEntry
from events.models import Event
from streams.models import Stream
from streams.services import create_stream
from tests.conftest import Account, Api, make_account, make_key
from tests.console.dashboard.conftest import signed_in
from tests.emails.builders import send
from tests.rows import each

PREVIEW_POLICY = "sandbox allow-same-origin; default-src 'none'"


@pytest.fixture
def sender(api: Api, alice: Account) -> Api:
    """Return a client with a key whose emails wait."""
    return Api(make_key(alice.workspace, "sending_access", limits=read_limits(needs_approval=True)))


@pytest.fixture
def member(alice: Account) -> Client:
    carol = make_account("carol").owner
    carol.memberships.all().delete()
    Membership.objects.create(workspace=alice.workspace, user=carol, role="member")
    return signed_in(carol)


def path_of(email: Email, approver: User) -> str:
    return approval_url(email, approver).partition("/dashboard")[2]


def follow(client: Client, email: Email, approver: User, **posted: str):
    url = f"/dashboard{path_of(email, approver)}"
    return client.post(url, posted) if posted else client.get(url)


class TestPages:
    def test_the_list_has_those_that_wait_and_actions_for_them(self, owner, sender, api):
        send(sender, subject="A waiting one")
        send(api, subject="Another one")
        page = owner.get("/dashboard/emails/?held=approval").text
        assert ("A waiting one" in page, "Another one" in page) == (True, False)
        assert "Waits for approval" in page
        assert "Waiting for approval" in page.partition("<title>")[2].partition("</title>")[0]
        # The status of those that wait says nothing more.
        assert ">Queued<" not in page
        assert 'value="approve"' in page
        assert "/dashboard/emails/?held=approval" in owner.get("/dashboard/").text

    def test_a_workspace_without_them_does_not_mention_them(self, owner, api):
        send(api)
        for path in ("/dashboard/", "/dashboard/emails/", f"/dashboard/emails/{Email.objects.get().id}/"):
            page = owner.get(path).text
            assert "approv" not in page.lower(), path

    def test_the_page_and_the_panel_show_the_message_in_the_sandbox(self, owner, sender):
        email_id = send(sender, html="<p>Dear Ada</p><script>alert(1)</script>")
        for path in (f"/dashboard/emails/{email_id}/decide/", f"/dashboard/emails/{email_id}/panel/"):
            page = owner.get(path).text
            frame = re.search(r"<iframe[^>]*>", page)[0]
            assert 'sandbox="allow-same-origin"' in frame
            assert f'src="/dashboard/emails/{email_id}/preview/"' in frame
        preview = owner.get(f"/dashboard/emails/{email_id}/preview/")
        assert "<p>Dear Ada</p>" in preview.text
        assert preview["Content-Security-Policy"].startswith(PREVIEW_POLICY)

    @each(("decision", "status"), [("approve", "queued"), ("reject", "cancelled")])
    def test_an_owner_decides_with_a_form(self, owner, sender, alice, decision, status):
        email_id = send(sender)
        assert owner.get(f"/dashboard/emails/{email_id}/decide/").status_code == 200
        assert Email.objects.get().held
        owner.post(f"/dashboard/emails/{email_id}/decide/", {"decision": decision, "reason": "Why not"})
        assert Email.objects.get().status == status
        assert Email.objects.get().held is None
        event = Event.objects.get(kind__in=["approved", "rejected"])
        assert event.payload["by"] == {"kind": "person", "name": alice.owner.email}
        assert AuditEntry.objects.get(act__startswith="email_").actor == alice.owner.email
        page = owner.get(f"/dashboard/emails/{email_id}/").text
        assert alice.owner.email in page

    def test_a_second_decision_shows_the_first(self, owner, sender, alice):
        email_id = send(sender)
        approve_email(Email.objects.get(), person=alice.owner)
        page = owner.post(f"/dashboard/emails/{email_id}/decide/", {"decision": "reject"}, follow=True).text
        assert f"{alice.owner.email} approved this email" in page or "approved this email" in page
        assert Email.objects.get().status == "queued"

    def test_a_member_reads_but_does_not_decide(self, member, sender):
        email_id = send(sender)
        page = member.get(f"/dashboard/emails/{email_id}/").text
        assert "Waits for approval" in page
        assert "/decide/" not in page
        assert member.get(f"/dashboard/emails/{email_id}/decide/").status_code == 404
        assert member.post(f"/dashboard/emails/{email_id}/decide/", {"decision": "approve"}).status_code == 404
        member.post("/dashboard/emails/bulk/", {"action": "approve", "selected": [email_id], "confirmed": "1"})
        assert Email.objects.get().held

    def test_an_email_of_another_workspace_is_not_found(self, sender, bob):
        email_id = send(sender)
        stranger = signed_in(bob.owner)
        assert stranger.post(f"/dashboard/emails/{email_id}/decide/", {"decision": "approve"}).status_code == 404
        assert Email.objects.get().held

    @each(("action", "word"), [("approve", "approved"), ("reject", "rejected")])
    def test_many_are_decided_after_a_confirmation(self, owner, sender, api, action, word):
        ids = [send(sender), send(sender), send(api)]
        asked = owner.post("/dashboard/emails/bulk/", {"action": action, "selected": ids})
        assert "3 emails" in asked.text
        assert Email.objects.held().count() == 2
        page = owner.post("/dashboard/emails/bulk/", {"action": action, "selected": ids, "confirmed": "1"}, follow=True)
        assert f"2 emails were {word}." in page.text
        assert "never waited for approval" in page.text
        assert not Email.objects.held().exists()

    def test_a_key_and_a_stream_are_created_with_it(self, owner, alice):
        owner.post("/dashboard/keys/add/", {"name": "Assistant", "scope": "sending_only", "needs_approval": "on"})
        key = ApiKey.objects.get()
        assert key.limits.needs_approval
        assert "Required: emails wait until somebody approves them" in owner.get(f"/dashboard/keys/{key.id}/").text
        owner.post("/dashboard/keys/add/", {"name": "Approver", "scope": "approvals"})
        assert ApiKey.objects.get(name="Approver").scope == "approvals"
        refused = owner.post("/dashboard/keys/add/", {"name": "X", "scope": "read_only", "needs_approval": "on"})
        assert "requires the scope sending_access or sending_only" in refused.text
        stream = create_stream(alice.workspace, slug="risky", name="Risky")
        form = owner.get(f"/dashboard/streams/{stream.id}/edit/").context["form"].initial
        values = {name: value for name, value in form.items() if value not in (None, False)}
        owner.post(f"/dashboard/streams/{stream.id}/edit/", {**values, "approval": "required"})
        assert Stream.objects.get().approval == "required"
        assert "Required: emails wait" in owner.get(f"/dashboard/streams/{stream.id}/").text


class TestLink:
    def test_reading_it_changes_nothing(self, sender, alice):
        send(sender, subject="The price list")
        email = Email.objects.get()
        before = (email.status, email.approval_expires_at, Event.objects.count(), QueueEntry.objects.get().stage)
        for _ in range(3):
            page = follow(Client(), email, alice.owner)
            assert page.status_code == 200
            assert "The price list" in page.text
            assert 'value="approve"' in page.text
        email.refresh_from_db()
        assert before == (
            email.status, email.approval_expires_at, Event.objects.count(), QueueEntry.objects.get().stage
        )  # fmt: skip
        assert not AuditEntry.objects.filter(act__startswith="email_").exists()

    def test_its_preview_is_sandboxed(self, sender, alice):
        send(sender, html="<p>Dear Ada</p>")
        page = follow(Client(), Email.objects.get(), alice.owner).text
        url = re.search(r'src="(/dashboard/approval/preview/\?token=[^"]+)"', page)[1]
        preview = Client().get(url)
        assert preview.text == "<p>Dear Ada</p>"
        assert preview["Content-Security-Policy"].startswith(PREVIEW_POLICY)
        assert Client().get("/dashboard/approval/preview/?token=x").status_code == 404

    @each(("decision", "kind"), [("approve", "approved"), ("reject", "rejected")])
    def test_its_button_decides_in_the_name_of_the_approver(self, sender, alice, decision, kind):
        send(sender)
        email = Email.objects.get()
        page = follow(Client(), email, alice.owner, decision=decision, reason="No")
        assert page.status_code == 302
        assert Event.objects.get(kind=kind).payload["by"] == {"kind": "person", "name": alice.owner.email}
        assert f"{alice.owner.email} {kind} this email." in follow(Client(), email, alice.owner).text
        follow(Client(), email, alice.owner, decision="approve")
        assert Event.objects.filter(kind__in=["approved", "rejected"]).count() == 1

    def test_it_works_for_owners_only_and_for_nobody_else_who_is_signed_in(self, sender, alice, bob):
        send(sender)
        email = Email.objects.get()
        assert follow(Client(), email, bob.owner).status_code == 410
        other = signed_in(bob.owner)
        assert "You are signed in as" in follow(other, email, alice.owner).text
        follow(other, email, alice.owner, decision="approve")
        assert Email.objects.get().held
        alice.workspace.memberships.update(role="member")
        assert follow(Client(), email, alice.owner, decision="approve").status_code == 410
        assert Email.objects.get().held

    @each("token", ["", "x", "A" * 60])
    def test_another_token_is_refused(self, db, token):
        assert Client().get(f"/dashboard/approval/?token={token}").status_code == 410


class TestRequests:
    def test_each_owner_gets_one_email_about_all_that_wait(self, sender, alice, bob, member):
        User.objects.filter(pk=bob.owner.pk).update(language="de")
        Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")
        for number in range(MOST_LISTED + 2):
            send(sender, subject=f"https://evil.example/{number}")
        request_approvals()
        request_approvals()
        mails = {mail.recipient: mail for mail in SystemMail.objects.filter(kind="approval")}
        assert mails.keys() == {"alice@alice.example", "bob@bob.example"}
        english, german = mails["alice@alice.example"], mails["bob@bob.example"]
        assert english.subject == "Emails of alice wait for your approval"
        assert german.subject == "E-Mails von alice warten auf Ihre Freigabe"
        links = re.findall(r"^https?://.*/dashboard/approval/\?token=.*$", english.text, re.MULTILINE)
        assert len(links) == MOST_LISTED
        html = render_html(kind=english.kind, language="en", subject=english.subject, text=english.text)
        assert "Read and decide" in html
        assert 'href="https://evil.example' not in html
        assert Client().get(links[0][links[0].index("/dashboard") :]).status_code == 200

    def test_new_ones_are_announced_after_a_while(self, sender):
        send(sender)
        request_approvals()
        send(sender)
        request_approvals()
        assert SystemMail.objects.filter(kind="approval").count() == 1
        notice = ApprovalNotice.objects.get()
        ApprovalNotice.objects.update(sent_at=notice.sent_at - timedelta(minutes=16))
        request_approvals()
        assert SystemMail.objects.filter(kind="approval").count() == 2

    def test_nothing_is_sent_without_emails_that_wait(self, sender, api, alice):
        send(api)
        send(sender)
        approve_email(Email.objects.held().get(), person=alice.owner)
        request_approvals()
        assert not SystemMail.objects.exists()
