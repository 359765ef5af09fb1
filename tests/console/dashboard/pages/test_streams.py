"""Pages of streams, and streams on the other pages: none without streams, a switch with them."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from console.dashboard.pages.streams.purposes import PURPOSES
from core.workspaces.models import ApiKey, AuditEntry, Workspace
from streams.models import Stream
from streams.services import create_stream, pause_stream, update_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.alerts.builders import count
from tests.conftest import Account, make_domain
from tests.console.dashboard.conftest import make_email, shown_text
from tests.emails.builders import accept
from webhooks.models import Webhook

HOME, LIST, EMAILS, SUPPRESSIONS = (f"/dashboard/{path}" for path in ("", "streams/", "emails/", "suppressions/"))
SWITCH = 'aria-label="Stream"'
ADA = "ada@example.com"
ADVANCED = {"unsubscribe": "link", "scope": "stream", "priority": "low", "tracking_detail": "counts"}


@pytest.fixture
def newsletter(alice: Account) -> Stream:
    create_stream(alice.workspace, slug="receipts", name="Receipts")
    return create_stream(alice.workspace, slug="newsletter", name="Newsletter", kind="bulk")


def switch(page: str) -> dict[str, bool]:
    """Return the names of the switch, and whether each is selected."""
    found = re.search(rf"<nav[^>]*{SWITCH}[^>]*>(.*?)</nav>", page, re.DOTALL)
    if not found:
        return {}
    links = re.findall(r"<a ([^>]*)>(?:<bdi>)?([^<]*)", found[1])
    return {name: "aria-current" in attributes for attributes, name in links}


class TestWithoutStreams:
    def test_no_page_mentions_them_except_for_a_link_to_the_first(self, owner, alice):
        email = make_email(alice.workspace)
        suppress_address(alice.workspace, address="gone@example.com", reason="manual")
        update_stream(alice.workspace, "main", changes={"name": "All my email"})
        for path in ("", "emails/", f"emails/{email.id}/", "suppressions/add/", "suppressions/import/", "keys/add/"):
            assert "stream" not in shown_text(owner.get(f"/dashboard/{path}")).lower(), path
        page = owner.get(SUPPRESSIONS)
        assert shown_text(page).lower().count("stream") == 1
        assert "Create a stream" in page.text
        assert f'href="{LIST}add/"' in page.text

    def test_the_export_has_the_columns_that_it_had(self, owner):
        header = b"".join(owner.get(f"{SUPPRESSIONS}export/")).decode().splitlines()[0]
        assert header == '"email","reason","createdAt"'

    def test_the_list_shows_main(self, owner, alice):
        make_domain(alice.workspace, "alice.example")
        accept(alice.workspace, count=2)
        page = owner.get(LIST).text
        assert '<td class="pr-end" data-label="Emails in 30 days">2</td>' in page
        assert f'href="{LIST}main/"' in page
        assert owner.get(f"{LIST}main/").status_code == 200


class TestStreams:
    def test_one_is_created_with_the_defaults_of_its_kind(self, owner, alice):
        fields = {"name": "News", "slug": "news", "kind": "bulk", "description": "Once a month"}
        page = owner.post(f"{LIST}add/", fields, follow=True)
        stream = Stream.objects.get(workspace=alice.workspace)
        assert (stream.slug, stream.public, stream.priority) == ("news", True, "low")
        assert page.redirect_chain[0][0] == f"{LIST}{stream.id}/"
        assert AuditEntry.objects.get(act="stream_created").about == "news"
        assert f'href="{LIST}"' in owner.get(HOME).text

    def test_each_purpose_shows_its_properties_before_they_are_saved(self, owner, alice):
        for key, purpose in PURPOSES.items():
            form = owner.get(f"{LIST}add/?purpose={key}").context["form"]
            shown = {bound.name: bound.initial for bound in form}
            assert purpose.values.items() <= shown.items(), key
            fields = {name: value for name, value in shown.items() if value not in {None, False}}
            page = owner.post(f"{LIST}add/?purpose={key}", fields, follow=True)
            stream = Stream.objects.get(slug=purpose.slug)
            assert page.redirect_chain[0][0] == f"{LIST}{stream.id}/", key
            assert {name: getattr(stream, name) for name in purpose.values} == purpose.values, key
        codes, receipts, _notifications, newsletter = Stream.objects.order_by("created_at")
        assert (codes.rank, codes.ignores_unsubscribes) == (0, True)
        assert (receipts.public, newsletter.public, newsletter.rank) == (False, True, 2)

    def test_properties_of_a_purpose_can_be_changed_before_they_are_saved(self, owner):
        fields = {"name": "Codes", "slug": "codes", "kind": "transactional", "unsubscribe": "headers"}
        fields |= {"priority": "normal", "track_opens": "on", "deliver_within": "", "content_retention": "0"}
        owner.post(f"{LIST}add/?purpose=codes", fields)
        stream = Stream.objects.get(slug="codes")
        assert (stream.unsubscribe, stream.priority, stream.track_opens) == ("headers", "normal", True)
        assert (stream.deliver_within, stream.content_retention) == (None, 0)

    def test_a_refused_property_of_a_purpose_is_a_form_error(self, owner):
        fields = {"name": "Codes", "slug": "codes", "kind": "bulk", "unsubscribe": "link", "priority": "normal"}
        refused = {"unsubscribe": "none", "deliver_within": "-1", "content_retention": "99999", "priority": "x"}
        for field, value in refused.items():
            form = owner.post(f"{LIST}add/?purpose=codes", fields | {field: value}).context["form"]
            assert field in form.errors, field
        assert not Stream.objects.exists()

    def test_purposes_are_within_the_limits_of_the_plan_and_the_installation(self, owner, alice, settings):
        settings.STREAMS_WITHOUT_LINK = "deny"
        Workspace.objects.filter(id=alice.workspace.id).update(plan="free")
        codes, notifications = (
            owner.get(f"{LIST}add/?purpose={key}").context["form"].initial for key in ("codes", "notifications")
        )
        assert codes["unsubscribe"] == "link"
        assert notifications["content_retention"] == 7 * 24
        assert PURPOSES["notifications"].values["content_retention"] == 30 * 24

    def test_an_unknown_purpose_has_the_usual_form(self, owner):
        page = owner.get(f"{LIST}add/?purpose=x")
        assert [bound.name for bound in page.context["form"]] == ["name", "slug", "kind", "description"]
        assert page.text.count('aria-current="true"') == owner.get(f"{LIST}add/").text.count('aria-current="true"')

    def test_an_invalid_or_taken_id_is_a_form_error(self, owner, newsletter):
        for slug in ("", "News", "n" * 41, "a b", "main", "newsletter"):
            form = owner.post(f"{LIST}add/", {"name": "News", "slug": slug, "kind": "bulk"}).context["form"]
            assert form.errors, slug
        assert Stream.objects.count() == 2

    def test_the_properties_are_changed(self, owner, newsletter):
        fields = {"name": "Monthly", "description": "d", **ADVANCED, "own_bounces": "on", "track_opens": "on"}
        fields["deliver_within"] = "600"
        assert owner.post(f"{LIST}{newsletter.id}/edit/", fields).status_code == 302
        newsletter.refresh_from_db()
        shown = (newsletter.name, newsletter.own_bounces, newsletter.public, newsletter.track_opens)
        assert shown == ("Monthly", True, False, True)
        assert (newsletter.track_clicks, newsletter.tracking_detail) == (False, "counts")
        assert newsletter.deliver_within == 600
        assert "Only that a recipient opened or clicked" in owner.get(f"{LIST}{newsletter.id}/").text

    def test_main_is_changed_but_neither_archived_nor_limited(self, owner, alice, newsletter):
        page = owner.get(f"{LIST}main/edit/").text
        assert 'name="scope"' not in page
        owner.post(f"{LIST}main/edit/", {"name": "Everything else", "priority": "high", "tracking_detail": "full"})
        main = Stream.objects.get(workspace=alice.workspace, slug="main")
        assert (main.name, main.priority, main.scope, main.public) == ("Everything else", "high", "workspace", False)
        response = owner.post(f"{LIST}main/archive/", follow=True)
        assert "cannot be archived" in response.text
        assert owner.get(f"{LIST}{main.id}/").status_code == 200

    def test_one_is_archived_after_a_confirmation_and_unarchived(self, owner, newsletter):
        url = f"{LIST}{newsletter.id}/"
        assert "will be refused" in owner.get(f"{url}archive/").text
        owner.post(f"{url}archive/")
        newsletter.refresh_from_db()
        assert newsletter.archived_at
        assert "This stream is archived." in owner.get(url).text
        owner.post(f"{url}unarchive/")
        newsletter.refresh_from_db()
        assert newsletter.archived_at is None

    def test_a_paused_one_shows_the_reason(self, owner, alice, newsletter):
        pause_stream(alice.workspace, "newsletter", reason="0.6 % complaints <b>in 7 days</b>")
        page = owner.get(f"{LIST}{newsletter.id}/").text
        assert "0.6 % complaints &lt;b&gt;in 7 days&lt;/b&gt;" in page

    def test_the_page_has_the_counts_and_rates_of_the_stream(self, owner, alice, newsletter):
        count(alice.workspace, status_delivered=100, rated_sent=100)
        count(alice.workspace, "receipts", status_delivered=30, rated_sent=30)
        count(alice.workspace, "newsletter", status_delivered=18, status_bounced=2, rated_sent=20, rated_bounced=2)
        expected = {newsletter.id: (20, "10% (limit 5%)"), "main": (100, "0% (limit 5%)")}
        for stream, (total, bounces) in expected.items():
            context = owner.get(f"{LIST}{stream}/").context
            assert (context["metrics"][0].count, context["health"][0].value) == (total, bounces), stream

    def test_the_rates_of_the_last_days_do_not_depend_on_the_period(self, owner, alice, newsletter):
        count(alice.workspace, "newsletter", rated_sent=20, rated_bounced=2)
        past = datetime.now(UTC).date() - timedelta(days=60)
        page = owner.get(f"{LIST}{newsletter.id}/?from={past}&to={past}")
        assert page.context["health"][0].value == "10% (limit 5%)"
        assert page.context["metrics"][0].count == 0


class TestSwitch:
    def test_it_selects_a_stream_and_keeps_the_other_parameters(self, owner, alice, newsletter):
        make_email(alice.workspace)
        for path in (HOME, EMAILS, SUPPRESSIONS):
            assert switch(owner.get(path).text) == {
                "All streams": True, "Main": False, "Receipts": False, "Newsletter": False,
            }  # fmt: skip
            page = owner.get(f"{path}?stream=newsletter&days=30&status=delivered&p=2").text
            assert switch(page)["Newsletter"]
            assert '?stream=receipts&amp;days=30&amp;status=delivered"' in page
            assert switch(owner.get(f"{path}?stream=unknown").text)["All streams"]

    def test_the_overview_counts_the_stream(self, owner, alice, newsletter):
        make_email(alice.workspace, subject="Of main")
        make_email(alice.workspace, subject="Of the newsletter", stream="newsletter")
        count(alice.workspace, status_delivered=7)
        count(alice.workspace, "newsletter", status_delivered=5)
        totals = {}
        for stream in ("", "main", "newsletter", "receipts"):
            context = owner.get(f"{HOME}?stream={stream}").context
            totals[stream] = (context["metrics"][0].count, sorted(email.subject for email in context["recent"]))
        assert totals == {
            "": (12, ["Of main", "Of the newsletter"]),
            "main": (7, ["Of main"]),
            "newsletter": (5, ["Of the newsletter"]),
            "receipts": (0, []),
        }

    def test_the_list_of_emails_shows_those_of_the_stream(self, owner, alice, newsletter, compare_newest):
        make_email(alice.workspace, subject="Of main")
        make_email(alice.workspace, subject="Of the newsletter", stream="newsletter")
        for stream, subject in (("main", "Of main"), ("newsletter", "Of the newsletter")):
            listing = owner.get(f"{EMAILS}?stream={stream}").context["listing"]
            assert [email.subject for email in listing.rows] == [subject]
            lines = b"".join(owner.get(f"{EMAILS}export/?stream={stream}")).decode()
            assert len(lines.splitlines()) == 2
            assert ">1 email " in owner.get(f"{EMAILS}?stream={stream}").text
        compare_newest(1)
        listing = owner.get(f"{EMAILS}?stream=main").context["listing"]
        assert (listing.rows, listing.note) == ([], "Searched the newest 1 emails only.")

    def test_the_list_of_suppressions_shows_those_of_the_stream(self, owner, alice, newsletter):
        suppress_address(alice.workspace, address=ADA, reason="unsubscribe", stream="newsletter")
        suppress_address(alice.workspace, address="gone@example.com", reason="bounce")
        for stream, address, name in (("newsletter", ADA, "Newsletter"), ("main", "gone@example.com", "All streams")):
            page = owner.get(f"{SUPPRESSIONS}?stream={stream}")
            assert [row.email for row in page.context["listing"].rows] == [address]
            assert f'data-label="Stream"><bdi>{name}</bdi>' in page.text
        assert len(owner.get(SUPPRESSIONS).context["listing"].rows) == 2
        assert owner.get(f"{SUPPRESSIONS}?stream=receipts").context["listing"].rows == []


class TestSuppressions:
    def rows(self) -> set[tuple[str, str]]:
        return set(Suppression.objects.values_list("email", "stream"))

    def test_addresses_are_added_and_imported_into_a_stream(self, owner, newsletter, bob):
        create_stream(bob.workspace, slug="bobs-own", name="Bob's")
        for chosen in ("main", "unknown", "bobs-own"):
            for path, fields in (
                ("add", {"addresses": ADA}),
                ("import", {"file": SimpleUploadedFile("l.csv", b"a@b.com")}),
            ):
                page = owner.post(f"{SUPPRESSIONS}{path}/", {**fields, "stream": chosen})
                assert list(page.context["form"].errors) == ["stream"], (chosen, path)
        assert self.rows() == set()
        for stream in ("", "newsletter"):
            file = SimpleUploadedFile("l.csv", b"bo@example.com")
            owner.post(f"{SUPPRESSIONS}add/", {"addresses": ADA, "stream": stream})
            owner.post(f"{SUPPRESSIONS}import/", {"file": file, "stream": stream})
        assert self.rows() == {(email, stream) for email in (ADA, "bo@example.com") for stream in ("", "newsletter")}

    def test_only_the_selected_row_of_an_address_is_removed(self, owner, alice, newsletter):
        whole, _ = suppress_address(alice.workspace, address=ADA, reason="unsubscribe")
        one, _ = suppress_address(alice.workspace, address=ADA, reason="unsubscribe", stream="newsletter")
        page = owner.post(f"{SUPPRESSIONS}remove/", {"selected": [one.id]})
        assert f"{ADA} (Newsletter)" in page.text
        owner.post(f"{SUPPRESSIONS}remove/", {"selected": [one.id], "confirmed": "1"})
        assert self.rows() == {(ADA, "")}
        owner.post(f"{SUPPRESSIONS}{whole.id}/delete/")
        assert self.rows() == set()

    def test_the_export_names_the_stream_in_the_last_column(self, owner, alice, newsletter):
        suppress_address(alice.workspace, address=ADA, reason="unsubscribe", stream="newsletter")
        suppress_address(alice.workspace, address="gone@example.com", reason="bounce")
        lines = list(csv.reader(io.StringIO(b"".join(owner.get(f"{SUPPRESSIONS}export/")).decode())))
        assert lines[0] == ["email", "reason", "createdAt", "stream"]
        assert {(line[0], line[3]) for line in lines[1:]} == {(ADA, "newsletter"), ("gone@example.com", "")}
        chosen = b"".join(owner.get(f"{SUPPRESSIONS}export/?stream=newsletter")).decode()
        assert len(chosen.splitlines()) == 2


class TestEmailPage:
    def page(self, owner, alice, stream: str) -> str:
        return shown_text(owner.get(f"{EMAILS}{make_email(alice.workspace, stream=stream).id}/"))

    def test_it_warns_that_an_address_unsubscribed_from_another_stream(self, owner, alice, newsletter):
        suppress_address(alice.workspace, address="Ada@Example.com", reason="unsubscribe", stream="newsletter")
        for stream, name in (("main", "Main"), ("receipts", "Receipts")):
            text = f"This address unsubscribed from Newsletter; emails of {name} still reach it."
            assert text in self.page(owner, alice, stream)
        shown = self.page(owner, alice, "newsletter")
        assert "still reach it" not in shown
        assert "On the suppression list" in shown

    def test_it_names_the_other_reasons_of_the_workspace(self, owner, alice, bob, newsletter):
        create_stream(bob.workspace, slug="newsletter", name="Bob's")
        suppress_address(bob.workspace, address=ADA, reason="unsubscribe", stream="newsletter")
        assert "still reach it" not in self.page(owner, alice, "main")
        for reason, text in {
            "complaint": "complained about Newsletter; emails of Main still reach it.",
            "bounce": "bounced in Newsletter; emails of Main are still sent to it.",
            "manual": "is suppressed in Newsletter; emails of Main still reach it.",
        }.items():
            suppression, _ = suppress_address(alice.workspace, address=ADA, reason=reason, stream="newsletter")
            assert text in self.page(owner, alice, "main")
            suppression.delete()

    def test_it_names_unsubscribes_that_the_stream_ignores(self, owner, alice, newsletter):
        create_stream(alice.workspace, slug="alerts", name="Alerts", unsubscribe="none")
        suppress_address(alice.workspace, address=ADA, reason="unsubscribe")
        text = "This address unsubscribed from all emails; emails of Alerts still reach it."
        assert text in self.page(owner, alice, "alerts")
        assert "still reach it" not in self.page(owner, alice, "receipts")


class TestKeys:
    FIELDS = {"name": "Shop", "scope": "sending_access"}

    def test_a_key_is_limited_to_the_chosen_streams(self, owner, newsletter):
        for scope, stream in (("full_access", "newsletter"), ("sending_access", "unknown")):
            page = owner.post("/dashboard/keys/add/", {"name": "x", "scope": scope, "streams": [stream]})
            assert list(page.context["form"].errors) == ["streams"], scope
        assert not ApiKey.objects.exists()
        owner.post("/dashboard/keys/add/", {**self.FIELDS, "streams": ["newsletter", "main"]})
        key = ApiKey.objects.get()
        assert key.limits.streams == ("newsletter", "main")
        shown = "<dt>Streams</dt><dd><code>newsletter</code>, <code>main</code></dd>"
        assert shown in owner.get(f"/dashboard/keys/{key.id}/").text
        key.delete()
        owner.post("/dashboard/keys/add/", self.FIELDS)
        assert ApiKey.objects.get().limits.streams == ()


class TestWebhooks:
    FIELDS = {"url": "https://shop.example/hook", "events": ["bounced"], "format": "standard"}

    def test_a_webhook_is_limited_to_streams_and_widened_again(self, owner, newsletter):
        owner.post("/dashboard/webhooks/add/", {**self.FIELDS, "streams": ["newsletter"]})
        webhook = Webhook.objects.get()
        assert webhook.streams == ["newsletter"]
        url = f"/dashboard/webhooks/{webhook.id}/"
        assert "Streams Newsletter" in shown_text(owner.get(url))
        assert re.search(r'value="newsletter"[^>]* checked', owner.get(f"{url}edit/").text)
        owner.post(f"{url}edit/", self.FIELDS)
        webhook.refresh_from_db()
        assert webhook.streams == []

    def test_without_streams_there_is_no_field_and_nothing_changes(self, owner, alice):
        owner.post("/dashboard/webhooks/add/", self.FIELDS)
        url = f"/dashboard/webhooks/{Webhook.objects.get().id}/"
        for path in (url, f"{url}edit/", "/dashboard/webhooks/add/"):
            assert "stream" not in shown_text(owner.get(path)).lower()
        assert owner.post(f"{url}edit/", self.FIELDS).status_code == 302
