from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.dashboard.pages.emails.timeline import read_timeline
from emails.models import Attachment, Email, Recipient
from events.models import Event
from suppressions.services import suppress_address
from tests.console.dashboard.conftest import count_queries, make_email
from tests.console.dashboard.scenario import failed_email, make_template
from tests.emails.builders import deliver_all, send
from tests.events.feed import publish_committed
from tests.plans import plan_of, prefer_indexes
from webhooks.models import WebhookDelivery
from webhooks.services import create_webhook, delete_webhook


def make_events(email: Email, *rows: tuple[float, str, str]) -> None:
    """Replace the events of an email. rows: the seconds since its acceptance, the kind, and the recipient if any."""
    email.events.all().delete()
    for seconds, kind, to in rows:
        at = email.created_at + timedelta(seconds=seconds)
        Event.objects.create(email=email, kind=kind, payload={"to": to} if to else {}, created_at=at)


class TestMessage:
    @pytest.fixture
    def email(self, api):
        return Email.objects.get(id=send(api, to=["ada@example.com", "bo@example.com"], subject="Grüße"))

    def test_shows_the_headers_and_the_source_as_sent(self, owner, email):
        page = owner.get(f"/dashboard/emails/{email.id}/message/").content.decode()
        recipient = email.recipients.first()

        for text in (f"&lt;{recipient.id}@alice.example&gt;", "DKIM-Signature", "List-Unsubscribe", "Grüße"):
            assert text in page
        assert "=?utf-8?" in page

    def test_of_each_recipient_is_its_own(self, owner, email):
        sources = [
            owner.get(f"/dashboard/emails/{email.id}/source/?recipient={recipient.id}").content
            for recipient in email.recipients.all()
        ]

        for source, recipient in zip(sources, email.recipients.all(), strict=True):
            assert f"Message-ID: <{recipient.id}@alice.example>".encode() in source
        # The same on every request.
        assert owner.get(f"/dashboard/emails/{email.id}/source/").content == sources[0]

    def test_of_a_recipient_of_another_email_is_not_found(self, owner, email, bob):
        others = make_email(bob.workspace).recipients.get()

        for page in ("message", "source"):
            assert owner.get(f"/dashboard/emails/{email.id}/{page}/?recipient={others.id}").status_code == 404

    def test_of_a_deleted_domain_has_no_signature(self, owner, alice, email):
        alice.workspace.domains.all().delete()

        source = owner.get(f"/dashboard/emails/{email.id}/source/")

        assert source["Content-Disposition"].startswith("attachment; ")
        assert b"DKIM-Signature" not in source.content
        assert b"Subject: " in source.content

    def test_with_a_template_is_rendered(self, owner, alice, api):
        template = make_template(alice.workspace, "Receipt", "Order {{order}}", "<h1>Order {{order}}</h1>")
        sent = send(api, subject=None, html=None, templateId=template.id, templateData={"order": 4711})

        page = owner.get(f"/dashboard/emails/{sent}/").content.decode()

        assert b"Order 4711" in owner.get(f"/dashboard/emails/{sent}/source/").content
        assert f'<a href="/dashboard/templates/{template.id}/"><bdi>Receipt</bdi></a>' in page
        assert "version of " in page


class TestAttachments:
    @pytest.fixture
    def email(self, alice):
        email = make_email(alice.workspace)
        for position, name in enumerate(("bill.html", 'Rechnung "März".pdf')):
            Attachment.objects.create(
                content=email.content,
                position=position,
                filename=name,
                content_type="text/html",
                size=9,
                data=b"<script/>",
            )
        return email

    def test_are_downloaded_and_never_opened(self, owner, email):
        response = owner.get(f"/dashboard/emails/{email.id}/attachment/?position=0")

        assert response.content == b"<script/>"
        assert response["Content-Type"] == "application/octet-stream"
        assert response["Content-Disposition"] == 'attachment; filename="bill.html"'
        assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert response["X-Content-Type-Options"] == "nosniff"
        disposition = owner.get(f"/dashboard/emails/{email.id}/attachment/?position=1")["Content-Disposition"]
        assert disposition == "attachment; filename*=utf-8''Rechnung%20%22M%C3%A4rz%22.pdf"

    def test_that_do_not_exist_are_not_found(self, owner, email):
        for position in ("2", "-1", "x", "", "0" * 5000, "٠"):  # noqa: RUF001
            response = owner.get(f"/dashboard/emails/{email.id}/attachment/", {"position": position})
            assert response.status_code == 404, position


class TestSurroundings:
    def test_newer_and_older_emails_are_linked(self, owner, alice, bob):
        now = datetime.now(UTC)
        times = [now - timedelta(hours=hours) for hours in (2, 1, 1, 0)]
        emails = sorted(
            (make_email(alice.workspace, created_at=at) for at in times), key=lambda e: (e.created_at, e.id)
        )
        make_email(bob.workspace, created_at=now - timedelta(hours=1))

        found = [owner.get(f"/dashboard/emails/{email.id}/").context["neighbours"] for email in emails]

        ids = [None, *(email.id for email in emails), None]
        assert found == [{"older": older, "newer": newer} for older, newer in zip(ids, ids[2:], strict=False)]

    def test_a_suppressed_recipient_links_to_the_removal(self, owner, alice):
        email = failed_email(alice.workspace)
        page = f"/dashboard/emails/{email.id}/"
        shown = owner.get(page).text
        assert "This mailbox does not exist." in shown
        # A bounce claims no suppression: the simulator's addresses are never suppressed.
        assert "suppression list" not in shown.lower()
        suppression, _ = suppress_address(alice.workspace, address="ADA@example.com", reason="bounce")

        link = f"/dashboard/suppressions/{suppression.id}/delete/"
        shown = owner.get(page).content.decode()
        assert f'href="{link}"' in shown
        assert 'href="/dashboard/suppressions/?search=ada%40example.com"' in shown
        owner.post(link)

        assert "Remove from the suppression list" not in owner.get(page).content.decode()

    def test_a_message_in_the_inbox_is_linked(self, owner, alice, settings):
        email = make_email(alice.workspace)
        for address, transport, is_linked in (
            ("ada@example.com", "inbox", True),
            ("ada@example.com", "smtp", False),
            ("delivered@Simulator.test", "inbox", False),
        ):
            email.recipients.update(address=address, delivered_at=email.created_at)
            settings.DELIVERY_TRANSPORT = transport
            page = owner.get(f"/dashboard/emails/{email.id}/").text
            assert ("/dashboard/inbox/?search=ada%40example.com" in page) == is_linked, (address, transport)

    def test_each_event_shows_its_webhook_deliveries(self, owner, alice, api):
        webhook, _ = create_webhook(alice.workspace, url="https://shop.example/hook", events=["delivered"])
        sent = send(api)
        deliver_all()
        publish_committed()

        page = owner.get(f"/dashboard/emails/{sent}/")

        delivery = WebhookDelivery.objects.get()
        assert [entry.deliveries for entry in page.context["timeline"].entries] == [(), (), (delivery,)]
        assert f'href="/dashboard/deliveries/{delivery.id}/"' in page.content.decode()
        delete_webhook(webhook)
        assert "/dashboard/deliveries/" not in owner.get(f"/dashboard/emails/{sent}/").content.decode()

    def test_events_are_grouped_by_recipient_with_the_time_since_the_acceptance(self, owner, alice):
        email = make_email(alice.workspace)
        make_events(
            email,
            (0, "queued", ""), (0.4, "sent", "ada@example.com"), (1, "sent", "bo@example.com"),
            (3, "delivered", "ada@example.com"), (61, "deferred", "bo@example.com"),
            (7_300, "opened", "ada@example.com"),
            (200_000, "delivered", "bo@example.com"),
        )  # fmt: skip

        response = owner.get(f"/dashboard/emails/{email.id}/")

        groups = response.context["timeline"].groups
        assert [(group.address, [entry.after for entry in group.entries]) for group in groups] == [
            ("", [""]),
            ("ada@example.com", ["after less than 1 s", "after 3 s", "after 2 h"]),
            ("bo@example.com", ["after 1 s", "after 1 min", "after 2 days"]),
        ]
        page = response.content.decode()
        assert page.count('<h4 class="pr-of-recipient">') == 2
        assert f"&lt;{email.recipients.get().id}@alice.example&gt;" in page
        assert "</time><small> · after 3 s</small>" in page

    def test_a_single_recipient_has_one_list_in_order(self, owner, alice):
        email = make_email(alice.workspace)
        make_events(email, (0, "queued", ""), (2, "sent", "ada@example.com"), (5, "cancelled", ""))

        (group,) = read_timeline(email).groups

        assert [(entry.to, entry.after) for entry in group.entries] == [
            ("", ""), ("ada@example.com", "after 2 s"), ("", "after 5 s"),
        ]  # fmt: skip

    def test_the_wait_of_a_scheduled_email_is_not_counted(self, alice):
        now = datetime.now(UTC)
        email = make_email(alice.workspace, created_at=now - timedelta(days=3), scheduled_for=now)
        for at, kind in ((now - timedelta(days=2), "deferred"), (now + timedelta(seconds=4), "sent")):
            Event.objects.create(email=email, kind=kind, payload={}, created_at=at)

        assert [entry.after for entry in read_timeline(email).entries][-2:] == ["after 24 h", "after 4 s"]

    def test_the_number_of_queries_does_not_grow(self, owner, alice, api):
        create_webhook(alice.workspace, url="https://shop.example/hook", events=["delivered"])
        email = Email.objects.get(id=send(api))
        before = count_queries(lambda: owner.get(f"/dashboard/emails/{email.id}/"))
        Recipient.objects.bulk_create(
            Recipient(email=email, kind="to", position=place, address=f"{place}@example.com", state="sent")
            for place in range(1, 50)
        )
        Event.objects.bulk_create(
            Event(email=email, kind="opened", payload={}, created_at=email.created_at) for _ in range(300)
        )
        with CaptureQueriesContext(connection) as after:
            page = owner.get(f"/dashboard/emails/{email.id}/")

        assert page.context["timeline"].has_more
        assert len(after) <= before + 1

    def test_a_neighbour_is_read_along_the_index(self, owner, alice):
        emails = [make_email(alice.workspace) for _ in range(40)]
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE emails_email")
        prefer_indexes()
        with CaptureQueriesContext(connection) as queries:
            owner.get(f"/dashboard/emails/{emails[20].id}/")

        neighbours = [
            query["sql"]
            for query in queries
            if '"created_at" >= ' in query["sql"] or '"created_at" <= ' in query["sql"]
        ]
        assert len(neighbours) == 2
        for sql in neighbours:
            plan = plan_of(sql)
            assert "email_newest" in plan
            assert "Sort" not in plan


class TestSchedule:
    @pytest.fixture
    def later(self, api):
        return Email.objects.get(id=send(api, scheduledFor=(datetime.now(UTC) + timedelta(days=1)).isoformat()))

    def post(self, owner, email, **values):
        return owner.post(f"/dashboard/emails/{email.id}/schedule/", values, follow=True).content.decode()

    def test_moves_the_email(self, owner, later):
        form = owner.get(f"/dashboard/emails/{later.id}/schedule/").text
        assert f'value="{later.scheduled_for:%Y-%m-%dT%H:%M}"' in form
        page = self.post(owner, later, scheduled_for=(datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M"))

        moved = Email.objects.get()
        assert "was rescheduled" in page
        assert moved.status == "scheduled"
        assert timedelta(hours=23) < moved.scheduled_for - later.scheduled_for < timedelta(hours=25)
        accepted, rescheduled = read_timeline(moved).entries
        assert (accepted.title, accepted.scheduled_for) == ("Accepted and scheduled", None)
        assert (rescheduled.title, rescheduled.scheduled_for) == ("Rescheduled", moved.scheduled_for)

    def test_refuses_another_time_and_sends_the_email_now(self, owner, later):
        for days in (-1, 31):
            at = (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")
            assert "Choose a time within the next 30 days." in self.post(owner, later, scheduled_for=at), days
        for values in ({}, {"scheduled_for": ""}, {"scheduled_for": "nonsense"}):
            self.post(owner, later, **values)
        assert Email.objects.get().scheduled_for == later.scheduled_for

        assert "is queued" in self.post(owner, later, now="1", scheduled_for="2026-01-01T00:00")
        assert Email.objects.get().status == "queued"

    def test_an_email_that_is_no_longer_scheduled_is_a_message(self, owner, api):
        sent = Email.objects.get(id=send(api))

        assert "no longer scheduled" in self.post(owner, sent, now="1")
        assert 'href="/dashboard/emails/' in owner.get(f"/dashboard/emails/{sent.id}/").content.decode()
