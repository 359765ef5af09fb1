"""Staff pages that answer questions: emails of a person, activity of a workspace, the queue, the audit log."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import strip_tags

from console.system_mail.models import SystemMailKind
from console.system_mail.services import queue_system_mail
from core.counters import counters
from core.counters.slices import Dimension, slice_id
from core.lib.worker.stages import Stage
from core.workspaces.account_status import suspend_workspace
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import ApiKey, AuditEntry, User, Workspace
from domains.models import Domain
from emails.models import Email, QueueEntry, SendingPause
from emails.queue_stats import AXIS_HOURS, read_queue_overview
from emails.sending.sending_checks import pause_sending
from emails.sending.transport_status import drain_transport
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from streams.services import create_stream
from tests.conftest import mail, make_account, make_key
from tests.console.dashboard.conftest import csv_rows, make_email, shown_text
from tests.console.dashboard.scenario import failed_email

EMAILS, AUDIT, QUEUE = "/admin/emails/email/", "/admin/workspaces/auditentry/", "/admin/queue/"
SYSTEM_EMAILS = "/admin/system_mail/systemmail/"


def searchable(account, *, to: str, subject: str) -> Email:
    return make_email(account.workspace, to=[to], subject=subject, search_text=f"{to} {subject}".lower())


class TestSearchOfEmails:
    def found(self, staff, text: str) -> set[str]:
        return {email.subject for email in staff.get(EMAILS, {"q": text}).context["cl"].result_list}

    @pytest.fixture
    def sent(self, alice, bob) -> list[Email]:
        return [
            searchable(alice, to="ada@example.com", subject="Your receipt"),
            searchable(bob, to="ada@example.com", subject="Welcome aboard"),
            searchable(bob, to="grace@example.com", subject="Reset your password"),
        ]

    def test_recipients_subjects_and_ids_are_found_in_all_workspaces(self, staff, sent):
        assert self.found(staff, "Ada@Example.com") == {"Your receipt", "Welcome aboard"}
        assert self.found(staff, "password") == {"Reset your password"}
        assert self.found(staff, sent[0].id) == {"Your receipt"}
        assert self.found(staff, "nobody\0") == set()

    def test_a_search_is_recorded_once_and_a_list_is_not(self, staff, sent):
        staff.get(EMAILS)
        assert not AuditEntry.objects.filter(act="emails_searched").exists()
        staff.get(EMAILS, {"q": "Ada@Example.com"})
        entry = AuditEntry.objects.get(act="emails_searched")
        assert (entry.workspace, entry.about, entry.actor_kind) == (None, "Ada@Example.com", "staff")
        staff.get(EMAILS, {"q": "grace@example.com"})

        # Erasing a person erases the searches for them.
        call_command("erase_address", "ada@example.com")

        searches = AuditEntry.objects.filter(act="emails_searched").values_list("about", flat=True)
        assert set(searches) == {"erased@invalid", "grace@example.com"}


def test_an_email_shows_its_recipients_and_events_without_urls(staff, alice):
    email = make_email(alice.workspace, status="bounced")
    recipient = email.recipients.get()
    details = {"code": 550, "enhancedCode": "5.1.1", "message": "No such user", "reason": "unknown_recipient"}
    record_events(
        [
            NewEvent(EventKind.BOUNCED, email.id, recipient.id, recipient.address, details),
            NewEvent(EventKind.CLICKED, email.id, recipient.id, recipient.address, {"url": "https://x.example/?u=7"}),
        ]
    )

    response = staff.get(f"{EMAILS}{email.id}/change/")

    page = shown_text(response)
    assert "550 5.1.1 No such user unknown_recipient" in page
    assert "ada@example.com" in page
    assert "x.example" not in page
    assert '<span class="pr-badge pr-danger">Bounced</span>' in response.content.decode()


def test_the_details_of_an_email_are_those_that_have_a_value(staff, alice):
    email = make_email(alice.workspace, status="delivered")

    response = staff.get(f"{EMAILS}{email.id}/change/")

    details = response.content.decode().partition('<dl class="pr-facts">')[2].partition("</dl>")[0]
    assert f'<code id="id-1">{email.id}</code>' in details
    assert '<span class="pr-badge pr-success">Delivered</span>' in details
    names = [strip_tags(name) for name in re.findall("<dt>.*?</dt>", details)]
    assert names == ["ID", "Workspace", "Sender", "To", "Subject", "Status", "Created at", "Retries"]
    for text in ("Close", "Save", "Retry count"):
        assert text not in shown_text(response)


def test_cells_of_tables_are_labelled_for_phones(staff, alice):
    email = failed_email(alice.workspace)
    queue(alice, 1, stage=Stage.WAITING)
    User.objects.filter(is_staff=True).update(language="de")

    for page in (
        f"{EMAILS}{email.id}/change/",
        f"/admin/workspaces/workspace/{quote(alice.workspace.id)}/change/",
        QUEUE,
    ):
        tables = re.findall(
            '<table class="pr-headers pr-data">.*?</table>', staff.get(page).content.decode(), re.DOTALL
        )
        assert tables
        for table in tables:
            columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
            labels = re.findall('<td data-label="(.*?)"', table)
            assert labels == columns * (table.count("<tr>") - 1)
            assert table.count("<td") == len(labels)


class TestRates:
    """Volume and rates in the lists of workspaces, domains and streams."""

    WORKSPACES = "/admin/workspaces/workspace/"

    def rows(self, staff, path: str, **query: str) -> list[tuple]:
        rows = staff.get(path, query).context["cl"].result_list
        return [(str(row), row.sent, row.bounce_percent, row.complaint_percent) for row in rows]

    def count(self, workspace, *, days: int = 0, slice_=None, **numbers: int) -> None:
        at = timezone.now() - timedelta(days=days)
        key = {name: counters.CounterKey(workspace.id, at, f"rated.{name}", slice_) for name in numbers}
        counters.add([(key[name], number) for name, number in numbers.items()])

    def test_an_abuser_is_found_in_the_list(self, staff, alice, bob):
        self.count(alice.workspace, slice_=(), sent=1000, bounced=60, complained=2)
        self.count(bob.workspace, slice_=(), sent=200, bounced=1)
        self.count(bob.workspace, slice_=(), days=7, sent=5000, bounced=5000)
        expected = [("alice", 1000, 6.0, 0.2), ("bob", 200, 0.5, 0.0)]

        assert self.rows(staff, self.WORKSPACES) == expected
        # Sorted by the volume, and by the bounce rate.
        assert self.rows(staff, self.WORKSPACES, o="-4") == expected
        assert self.rows(staff, self.WORKSPACES, o="5") == expected[::-1]
        assert self.rows(staff, self.WORKSPACES, rates="above") == expected[:1]
        self.count(bob.workspace, slice_=(), bounced=5)
        assert [name for name, *_rest in self.rows(staff, self.WORKSPACES, rates="near")] == ["alice", "bob"]
        assert 'pr-danger">6%<' in staff.get(self.WORKSPACES).text
        # The same numbers when the deltas are folded.
        while counters.fold() == counters.FOLD_BATCH_SIZE:
            pass
        assert self.rows(staff, self.WORKSPACES)[0] == expected[0]

    def test_few_recipients_are_not_judged_and_come_last(self, staff, alice, bob):
        self.count(alice.workspace, slice_=(), sent=99, complained=50)
        self.count(bob.workspace, slice_=(), sent=100)
        assert self.rows(staff, self.WORKSPACES, o="-6") == [("bob", 100, 0.0, 0.0), ("alice", 99, None, None)]

    def test_the_list_takes_one_statement_for_any_number_of_rows(self, staff, alice, bob):
        def statements() -> int:
            with CaptureQueriesContext(connection) as queries:
                staff.get(self.WORKSPACES)
            return sum("analytics_tallyday" in query["sql"] for query in queries)

        assert statements() == 1
        for number in range(5):
            make_account(f"other-{number}")
        assert statements() == 1

    def test_domains_and_streams_have_their_own(self, staff, alice, bob):
        domain = Domain.objects.create(workspace=alice.workspace, name="shop.example")
        stream = create_stream(bob.workspace, slug="news", name="News", kind="bulk")
        of_domain = slice_id(alice.workspace.id, Dimension.DOMAIN, domain.name)
        of_stream = slice_id(bob.workspace.id, Dimension.STREAM, stream.slug)
        self.count(alice.workspace, slice_=(of_domain,), sent=100, bounced=6)
        self.count(bob.workspace, slice_=(of_stream,), sent=400, complained=1)

        domains = self.rows(staff, "/admin/domains/domain/", rates="above")
        streams = self.rows(staff, "/admin/streams/stream/", rates="above")

        assert [row[1:] for row in domains] == [(100, 6.0, 0.0)]
        assert [row[1:] for row in streams] == [(400, 0.0, 0.25)]

    def test_lists_are_filtered_by_state(self, staff, alice, bob):
        suspend_workspace(bob.workspace, reason="Spam")
        make_key(alice.workspace)
        make_key(bob.workspace)
        ApiKey.objects.filter(workspace=bob.workspace).update(revoked_at=timezone.now())
        for path, states in (
            (self.WORKSPACES, {"active": 1, "suspended": 1, "deleted": 0, "nonsense": 2}),
            ("/admin/workspaces/apikey/", {"active": 1, "revoked": 1, "expired": 0}),
            ("/admin/streams/stream/", {"active": 0, "paused": 0, "archived": 0}),
            ("/admin/webhooks/webhook/", {"working": 0, "failing": 0, "disabled": 0}),
        ):
            found = {state: len(staff.get(path, {"state": state}).context["cl"].result_list) for state in states}
            assert found == states, path
        # Other columns stay closed.
        assert staff.get("/admin/workspaces/apikey/?secret_hash__startswith=a").status_code in {302, 400}


class TestPalette:
    def found(self, client, text: str) -> dict[str, list[tuple[str, str]]]:
        groups = client.get("/admin/palette/", {"q": text}).context["groups"]
        return {group.title: [(entry.title, entry.note) for entry in group.entries] for group in groups}

    def test_it_finds_objects_by_name_and_id_and_pages(self, staff, alice, bob):
        email = make_email(bob.workspace, subject="Your receipt")
        assert self.found(staff, "ali")["Found by name"] == [
            ("alice", "Workspace"),
            (alice.owner.email, "User"),
        ]
        assert len(self.found(staff, bob.workspace.id)["Found by id"]) == 1
        assert len(self.found(staff, email.id)["Found by id"]) == 1
        assert self.found(staff, "que")["Pages"][0] == ("Queue", "")
        assert self.found(staff, "zzqqzz").keys() == {"Search"}
        assert "Documentation" in self.found(staff, "webhooks")
        assert list(self.found(staff, "\0")) == ["Pages", "Actions"]

    def test_it_finds_actions(self, staff):
        assert self.found(staff, "pause")["Actions"] == [("Pause sending", "")]
        assert self.found(staff, "drain")["Actions"] == [("Drain transport default", "")]
        assert self.found(staff, "create work")["Actions"] == [("New workspace", "")]
        drain_transport("default")
        pause_sending()
        assert self.found(staff, "resume")["Actions"] == [("Resume transport default", "")]
        assert self.found(staff, "continue")["Actions"] == [("Continue sending", "")]

    def test_it_has_no_actions_for_a_member_who_may_change_nothing(self, client, helper):
        client.force_login(helper)
        assert self.found(client, "")["Actions"] == [("Sign out", "")]

    def test_it_finds_only_what_the_member_may_view(self, client, helper, alice, owner):
        client.force_login(helper)
        assert self.found(client, "ali").keys() <= {"Pages", "Documentation"}
        assert "Found by id" not in self.found(client, alice.workspace.id)
        # No page of the staff for owners.
        assert owner.get("/admin/palette/").status_code == 302

    def test_each_page_of_the_staff_has_it(self, staff):
        for path in ("/admin/", QUEUE, "/admin/workspaces/workspace/", "/admin/workspaces/workspace/add/"):
            page = staff.get(path).text
            assert 'data-url="/admin/palette/"' in page, path
            assert "data-palette" in page, path


class TestWorkspace:
    def page(self, staff, workspace: Workspace):
        return staff.get(f"/admin/workspaces/workspace/{workspace.id.replace('_', '_5F')}/change/")

    def test_the_page_shows_volume_quota_and_newest_emails(self, staff, api, alice, bob):
        api.post("/emails/send", mail(subject="Your receipt"))

        activity = self.page(staff, alice.workspace).context["activity"]

        assert (activity.sums["total"], activity.quota.used) == (1, 1)
        assert [email.subject for email in activity.emails] == ["Your receipt"]
        assert [item.title for item in activity.rates] == ["Bounce rate", "Complaint rate"]
        assert len(activity.days) == 30
        other = self.page(staff, bob.workspace)
        assert ("Your receipt" in other.text, other.context["activity"].sums["total"]) == (False, 0)

    def test_the_reasons_of_bounces_are_shown(self, staff, alice, bob):
        failed_email(alice.workspace)

        page = self.page(staff, alice.workspace)
        (reason,) = page.context["activity"].reasons
        assert (reason.code, reason.recipients, reason.percent) == ("unknown_user", 1, 100)
        assert "550 5.1.1 No such user here" in shown_text(page)
        assert self.page(staff, bob.workspace).context["activity"].reasons == []

    def test_the_form_has_its_sections_and_one_button(self, staff, alice):
        page = self.page(staff, alice.workspace).content.decode()

        form = page.partition('id="workspace_form"')[2].partition("</form>")[0]
        headings = [strip_tags(heading).strip() for heading in re.findall("<h2.*?</h2>", form, re.DOTALL)]
        assert headings == ["Name and plan", "Suspension", "Recipient rules", "Limits of this workspace", "Members"]
        assert [strip_tags(name) for name in re.findall("<dt>.*?</dt>", form)] == [
            "ID",
            "Created at",
            "Recipient rules",
        ]
        assert re.findall(r'<button class="pr-button" type="submit" name="(.*?)">', form) == ["_save"]

    def test_staff_who_may_only_view_a_workspace_have_no_form(self, client, staff, helper, alice):
        assert staff.get("/admin/workspaces/workspace/nothing/change/").status_code == 302
        client.force_login(helper)
        assert self.page(client, alice.workspace).status_code == 403
        helper.user_permissions.add(Permission.objects.get(codename="view_workspace"))
        client.force_login(User.objects.get(pk=helper.pk))

        response = self.page(client, alice.workspace)

        assert "Name alice Plan" in shown_text(response)
        assert 'name="plan"' not in response.content.decode()
        assert 'name="_save"' not in response.content.decode()


def queue(account, count: int, *, stage: Stage = Stage.READY, hours: float = 0) -> None:
    for _ in range(count):
        email = make_email(account.workspace, status="queued")
        due_at = timezone.now() + timedelta(hours=hours)
        QueueEntry.objects.create(
            recipient=email.recipients.get(), workspace_id=account.workspace.id, domain="example.com", stage=stage,
            due_at=due_at, since=timezone.now(),
        )  # fmt: skip


class TestQueue:
    def test_it_has_the_share_of_each_workspace(self, staff, alice, bob):
        queue(alice, 3)
        queue(bob, 1, stage=Stage.LEASED)

        page = staff.get(QUEUE)

        shares = [(name, share.total, share.percent) for share, name in page.context["shares"]]
        assert shares == [("alice", 3, 75.0), ("bob", 1, 25.0)]
        stages = {"waiting": 0, "ready": 3, "leased": 1, "scheduled": 0, "held": 0, "unapproved": 0, "paced": 0}
        assert page.context["overview"].by_stage == stages

    def test_retries_and_schedules_are_on_an_axis_of_a_day(self, alice):
        queue(alice, 2, stage=Stage.WAITING, hours=-3)
        queue(alice, 1, stage=Stage.WAITING, hours=5)
        queue(alice, 4, stage=Stage.SCHEDULED, hours=72)

        overview = read_queue_overview()

        assert overview.retries == {0: 2, 5: 1}
        assert overview.scheduled == {AXIS_HOURS: 4}

    def test_sending_is_paused_and_continues(self, staff, alice):
        assert "The queue is empty" in shown_text(staff.get(QUEUE))
        queue(alice, 1)
        assert "No emails of any workspace are sent" in shown_text(staff.get(f"{QUEUE}pause/"))
        assert not SendingPause.objects.exists()

        staff.post(f"{QUEUE}pause/")
        assert SendingPause.objects.exists()
        assert "Sending has been paused since" in shown_text(staff.get(QUEUE))

        assert staff.get(f"{QUEUE}resume/").status_code == 405
        staff.post(f"{QUEUE}resume/")
        assert not SendingPause.objects.exists()
        entries = AuditEntry.objects.filter(act__startswith="sending_").order_by("id")
        assert [(entry.act, entry.actor_kind) for entry in entries] == [
            ("sending_paused", "staff"),
            ("sending_resumed", "staff"),
        ]

    def test_those_who_may_only_view_emails_see_it_and_pause_nothing(self, client, helper):
        helper.user_permissions.add(Permission.objects.get(codename="view_email"))
        client.force_login(User.objects.get(pk=helper.pk))
        assert client.get(QUEUE).status_code == 200
        assert "Pause sending" not in shown_text(client.get(QUEUE))
        assert client.post(f"{QUEUE}pause/").status_code == client.post(f"{QUEUE}resume/").status_code == 403
        assert not SendingPause.objects.exists()


class TestAuditLog:
    @pytest.fixture(autouse=True)
    def _entries(self, alice, bob):
        AuditEntry.objects.all().delete()
        for account, about in ((alice, "shop.example"), (bob, "=1+1")):
            record_action(account.workspace, AuditAction.DOMAIN_ADDED, about=about)
        AuditEntry.objects.create(
            workspace=bob.workspace, act="signed_in", actor_kind="person", actor="eve@bob.example", address="192.0.2.7"
        )

    def found(self, staff, text: str) -> list[str]:
        return [entry.about or entry.act for entry in staff.get(AUDIT, {"q": text}).context["cl"].result_list]

    def test_details_actors_addresses_and_workspaces_are_found(self, staff):
        assert self.found(staff, "Shop") == ["shop.example"]
        assert self.found(staff, "eve@") == self.found(staff, "192.0.2.7") == ["signed_in"]
        assert self.found(staff, "bob") == ["signed_in", "=1+1"]
        assert self.found(staff, "nothing\0") == []

    def test_the_export_has_the_filters_of_the_list(self, staff):
        def export(query: str) -> list[dict[str, str]]:
            return csv_rows(staff.get(f"{AUDIT}export/{query}"))

        assert [row["action"] for row in export("")] == ["signed_in", "domain_added", "domain_added"]
        (row,) = export("?act__exact=signed_in&q=eve")
        assert (row["actor"], row["ipAddress"], row["workspace"]) == ("eve@bob.example", "192.0.2.7", "bob")
        assert [row["about"] for row in export("?q=1%2B1")] == ["'=1+1"]

        assert 'href="/admin/workspaces/auditentry/export/?q=eve"' in staff.get(AUDIT, {"q": "eve"}).text


def test_columns_are_named_for_people(staff, alice):
    record_action(alice.workspace, AuditAction.DOMAIN_ADDED, about="shop.example")
    shown = shown_text(staff.get(AUDIT)) + shown_text(staff.get("/admin/webhooks/webhookdelivery/"))

    assert not re.search(r"Select \w+ to (change|view)", shown)
    assert "Kind of actor" in shown
    for name in ("Actor kind", "Attempt count", "yielded into"):
        assert name not in shown


def test_a_system_email_has_the_state_that_lists_of_emails_use(staff):
    queued = queue_system_mail(to="ada@example.com", kind=SystemMailKind.RESET, subject="Reset", text="Open the link.")
    listed, shown = staff.get(SYSTEM_EMAILS), staff.get(f"{SYSTEM_EMAILS}{quote(queued.id)}/change/")

    assert '<span class="pr-badge pr-neutral">Queued</span>' in listed.content.decode()
    assert "Queued" in shown_text(shown)
    assert "Waiting" not in shown_text(listed) + shown_text(shown)
    assert not staff.get(SYSTEM_EMAILS, {"state__exact": "sent"}).context["cl"].result_list


def test_the_path_of_a_page_names_the_model_once(staff, alice):
    email = make_email(alice.workspace, subject="Your receipt")

    def path_of(url: str) -> list[str]:
        heading = re.search(r"<h1.*?</h1>", staff.get(url).content.decode(), re.DOTALL)
        return re.findall(r"<a [^>]*>\s*(.*?)\s*</a>", heading[0], re.DOTALL)

    assert path_of("/admin/workspaces/workspace/") == ["Workspaces"]
    assert path_of(EMAILS) == ["Emails"]
    assert path_of(SYSTEM_EMAILS) == ["System emails"]
    assert path_of(f"{EMAILS}{email.id}/change/") == ["Emails", str(email)]


def test_an_empty_list_offers_to_clear_a_search(staff):
    assert "Nothing here yet" in shown_text(staff.get("/admin/receiving/inboundroute/"))
    assert "No rows match" in shown_text(staff.get(EMAILS, {"q": "nothing"}))
