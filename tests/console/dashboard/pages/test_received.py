"""Pages of received emails, routes and blocked senders, and receiving on the other pages."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.utils import quote
from django.core.cache import cache
from django.utils import timezone

from console.dashboard.pages.receiving import search
from core.lib.ids import new_id
from core.workspaces.models import AuditEntry
from domains.models import ReceivingDomain
from domains.receiving.services import active_cache
from events.models import Event
from receiving.models import Forward, ForwardTarget, InboundRoute, Message, ReceivedEmail, SenderBlock
from receiving.services import create_route
from receiving.states import NOT_READ
from tests.conftest import make_domain
from tests.console.dashboard.conftest import make_email, make_received, shown_text, signed_in, verdicts
from tests.console.dashboard.scenario import answer_to
from tests.events.feed import publish_committed
from tests.receiving.builders import process_received, receive, receive_for
from webhooks.models import WebhookDelivery
from webhooks.services import create_webhook

HOME, RECEIVED, ROUTES, BLOCKS, DOMAINS = (
    f"/dashboard/{path}" for path in ("", "received/", "routes/", "blocks/", "domains/")
)
SHARED_DOMAIN = "in.demo.example"
ROUTE = {"name": "Support", "match": "support*", "domain": "alice.example", "action": "deliver", "priority": "100"}
SIGNED = """From: Ada <ada@example.com>\r
To: support@alice.example\r
Subject: Two files\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=b\r
\r
--b\r
Content-Type: text/html\r
\r
<h1>Hello</h1><img src="cid:logo">\r
--b\r
Content-Type: image/png\r
Content-ID: <logo>\r
Content-Disposition: inline; filename=logo.png\r
Content-Transfer-Encoding: base64\r
\r
iVBORw0KGgo=\r
--b\r
Content-Type: image/svg+xml\r
Content-Disposition: attachment; filename=evil.svg\r
\r
<svg onload="alert(1)"/>\r
--b--\r
"""


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "", ["mx.demo.example"]
    active_cache.clear()
    cache.clear()


@pytest.fixture
def domain(alice) -> ReceivingDomain:
    return receive_for(make_domain(alice.workspace, "alice.example"))


@pytest.fixture
def route(alice, domain) -> InboundRoute:
    return create_route(alice.workspace, values={"name": "Support", "match": "support*", "domain": "alice.example"})


def navigation(page) -> bool:
    return f'href="{RECEIVED}"' in page.text


class TestNavigation:
    def test_a_workspace_that_does_not_receive_sees_nothing_of_it(self, owner, alice):
        make_email(alice.workspace)
        for path in (HOME, "/dashboard/emails/", "/dashboard/usage/"):
            page = owner.get(path)
            assert not navigation(page), path
            assert "receiv" not in shown_text(page).replace("Accepted by the receiving server", "").lower(), path

    def test_it_appears_with_the_first_domain_route_or_email_and_with_the_shared_domain(self, owner, alice, settings):
        domain = make_domain(alice.workspace, "alice.example")
        causes = {
            "domain": lambda: receive_for(domain),
            "route": lambda: InboundRoute.objects.create(
                workspace=alice.workspace, name="All", match="*", literals=0, domain="shared"
            ),
            "email": lambda: make_received(alice.workspace),
            "shared": lambda: setattr(settings, "RECEIVING_DOMAIN", SHARED_DOMAIN),
        }
        for name, begin in causes.items():
            assert not navigation(owner.get(HOME)), name
            begin()
            assert navigation(owner.get(HOME)), name
            assert "Storage of received emails" in owner.get("/dashboard/usage/").text
            for model in (ReceivingDomain, InboundRoute, ReceivedEmail):
                model.objects.all().delete()
            active_cache.clear()

    def test_what_another_workspace_receives_does_not_count(self, owner, bob):
        receive_for(make_domain(bob.workspace, "bob.example"))
        make_received(bob.workspace)
        assert not navigation(owner.get(HOME))


class TestList:
    @pytest.fixture
    def emails(self, alice):
        now = datetime.now(UTC)
        values = [
            {"recipient": "support@alice.example", "sender": "ada@example.com", "subject": "Order", "tag": "4711"},
            {"recipient": "sales@alice.example", "sender": "bo@example.net", "subject": "Offer", "status": "blocked"},
            {"recipient": "x@alice.example", "sender": "cy@example.org", "subject": "50% off", "is_test": True},
        ]
        for age, one in enumerate(values):
            make_received(alice.workspace, received_at=now - timedelta(days=age), **one)

    def test_filters(self, owner, emails):
        yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
        expected = {
            "": ["Order", "Offer", "50% off"],
            "search=SUPPORT": ["Order"],
            "search=example.net": ["Offer"],
            "search=%25": ["50% off"],
            "tag=47": [],
            "test=true": ["50% off"],
            f"after={yesterday}": ["Order", "Offer"],
            f"before={yesterday}": ["Offer", "50% off"],
            "status=blocked&from=ada": [],
        }
        pages = {query: owner.get(f"{RECEIVED}?{query}") for query in expected}
        found = {query: [email.subject for email in page.context["listing"].rows] for query, page in pages.items()}
        assert found == expected
        for query, subjects in found.items():
            assert ("No received emails match these filters." in pages[query].text) == (not subjects), query
        invalid = owner.get(f"{RECEIVED}?status=lost")
        assert (invalid.status_code, bool(invalid.context["errors"])) == (200, True)

    def test_a_search_says_that_older_emails_were_not_searched(self, owner, emails, monkeypatch):
        monkeypatch.setattr(search, "NEWEST_EMAILS", 2)
        page = owner.get(f"{RECEIVED}?search=example")
        assert [email.subject for email in page.context["listing"].rows] == ["Order", "Offer"]
        assert "Searched the newest 2 emails only." in page.text
        assert "Searched the newest" not in owner.get(RECEIVED).text

    def test_it_reads_no_content_and_as_many_queries_for_any_number(
        self, owner, alice, emails, django_assert_max_num_queries
    ):
        owner.get(RECEIVED)
        with django_assert_max_num_queries(12) as few:
            owner.get(RECEIVED)
        for number in range(10):
            make_received(alice.workspace, subject=f"No. {number}")
        with django_assert_max_num_queries(len(few)) as many:
            page = owner.get(RECEIVED)
        assert len(page.context["listing"].rows) == 13
        assert not any('"html"' in query["sql"] for query in many.captured_queries)

    def test_the_page_is_not_sent_again_while_nothing_changes(self, owner, alice, emails):
        version = re.search(r'"X-Page-Version": "(\w+)"', owner.get(RECEIVED).text)[1]
        assert owner.get(RECEIVED, headers={"x-page-version": version}).status_code == 204
        make_received(alice.workspace)
        assert owner.get(RECEIVED, headers={"x-page-version": version}).status_code == 200

    def test_the_address_of_the_workspace_is_shown_with_a_shared_domain(self, owner, settings, alice):
        settings.RECEIVING_DOMAIN = SHARED_DOMAIN
        page = owner.get(RECEIVED).text
        address = alice.workspace.shared_address.local_part
        assert re.fullmatch("[a-z]{12}", address)
        assert f"{address}@{SHARED_DOMAIN}" in page


class TestMessage:
    def test_the_verdict_is_in_words(self, owner, alice):
        for authentication, title, explanation in (
            (verdicts("pass", policy="reject"), "Really from example.com", "The DMARC policy of example.com is met."),
            (verdicts("pass"), "Really from example.com", "A valid signature or the sending server belongs"),
            (verdicts("fail", policy="reject"), "Not proven to be from example.com", "It may be forged."),
            (verdicts("fail", policy="none"), "Not proven to be from example.com", "Neither a valid signature"),
            (verdicts("fail"), "Not proven to be from example.com", "Neither a signature nor"),
            (verdicts("none"), "Not proven to be from example.com", "names no servers that send for it"),
            (verdicts("temperror"), "Not proven to be from example.com", "The DNS did not answer"),
            (verdicts("permerror"), "Not proven to be from example.com", "are invalid"),
            (verdicts("permerror", domain=""), "Not proven", "no sender in From, or several"),
            (None, "Not checked", "when it is read"),
        ):
            email = make_received(alice.workspace, authentication=authentication)
            origin = owner.get(f"{RECEIVED}{email.id}/").context["origin"]
            assert (origin.title, explanation in origin.explanation) == (title, True), explanation
            assert (origin.tone == "success") is title.startswith("Really")

    def test_a_real_message_is_shown_with_its_files_headers_and_source(self, owner, route):
        email = receive(SIGNED.encode(), "support+4711@alice.example")
        url = f"{RECEIVED}{email.id}/"
        page = owner.get(url)
        assert (email.status, email.tag) == ("processed", "4711")
        for text in ("Two files", ">4711<", ">Support<", "evil.svg", "image/svg+xml", "Not proven"):
            assert text in page.text, text
        parts = owner.get(f"{url}message/").text
        assert "Authentication-Results" in parts
        assert "multipart/mixed; boundary=b" in parts
        source = b"".join(owner.get(f"{url}source/"))
        assert source.startswith(b"Received: ")
        assert source.endswith(SIGNED.encode())

    def test_the_preview_has_the_images_of_the_message_and_loads_nothing(self, owner, route):
        email = receive(SIGNED.encode(), "support@alice.example")
        response = owner.get(f"{RECEIVED}{email.id}/preview/")
        assert '<img src="data:image/png;base64,iVBORw0KGgo=">' in response.text
        policy = response["Content-Security-Policy"]
        assert policy.startswith("sandbox allow-same-origin; default-src 'none'")
        assert "allow-scripts" not in policy

    def test_images_are_left_out_if_they_would_make_the_page_large(self, owner, alice, monkeypatch):
        monkeypatch.setattr("receiving.source.INLINE_BYTES", 100)
        file = {"contentId": "logo", "contentType": "image/png", "data": b"x" * 60}
        svg = {"contentId": "evil", "contentType": "image/svg+xml", "data": b"<svg/>"}
        for html in ('<img src="cid:logo">' * 2, '<img src="cid:evil">'):
            email = make_received(alice.workspace, html=html, attachments=[file, svg])
            assert owner.get(f"{RECEIVED}{email.id}/preview/").text == html
        email = make_received(alice.workspace, html='<img src="cid:logo">', attachments=[file])
        assert "data:image/png" in owner.get(f"{RECEIVED}{email.id}/preview/").text

    def test_without_html_there_is_no_preview(self, owner, alice):
        email = make_received(alice.workspace, html="")
        assert owner.get(f"{RECEIVED}{email.id}/preview/").status_code == 404

    def test_a_file_that_a_browser_would_run_is_only_saved(self, owner, alice):
        file = {"filename": "a.html", "contentType": "text/html", "data": b"<script>alert(1)</script>"}
        url = f"{RECEIVED}{make_received(alice.workspace, attachments=[file]).id}/attachment/?position="
        response = owner.get(f"{url}0")
        assert b"".join(response) == file["data"]
        assert response["Content-Type"] == "application/octet-stream"
        assert response["Content-Disposition"].startswith("attachment;")
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"].startswith("sandbox")
        for position in ("1", "-1", "x", "", "00", "99999999999999999999"):
            assert owner.get(f"{url}{position}").status_code == 404, position

    def test_a_long_text_is_cut(self, owner, alice):
        email = make_received(alice.workspace, text="ä" * 300_000)
        page = owner.get(f"{RECEIVED}{email.id}/")
        assert page.context["is_text_cut"]
        assert page.text.count("ä") <= 131_072 + 10

    def test_it_takes_as_many_queries_for_any_number_of_replies(self, owner, alice, django_assert_max_num_queries):
        answered = answer_to(make_email(alice.workspace))
        email = make_received(alice.workspace, **answered)
        owner.get(f"{RECEIVED}{email.id}/")
        with django_assert_max_num_queries(17) as few:
            owner.get(f"{RECEIVED}{email.id}/")
        for _ in range(30):
            make_received(alice.workspace, **answered)
        with django_assert_max_num_queries(len(few)):
            page = owner.get(f"{RECEIVED}{email.id}/")
        assert [entry.is_sent for entry in page.context["conversation"].entries].count(False) == 20


class TestConversation:
    def test_an_answer_and_its_email_lead_to_each_other(self, owner, alice, route):
        sent = make_email(alice.workspace, subject="Your receipt")
        recipient = sent.recipients.get()
        fields = f"From: <ada@example.com>\r\nIn-Reply-To: <{recipient.id}@alice.example>\r\n"
        reply = f"{fields}Subject: Re: Your receipt\r\n\r\nHi"
        email = receive(reply.encode(), "support@alice.example")
        page = owner.get(f"{RECEIVED}{email.id}/")
        assert f'href="/dashboard/emails/{sent.id}/"' in page.text
        assert "It is not proven that ada@example.com wrote it." in shown_text(page)
        timeline = owner.get(f"/dashboard/emails/{sent.id}/")
        assert "Answered by the recipient" in timeline.text
        assert f'href="{RECEIVED}{email.id}/"' in timeline.text
        owner.post(f"{RECEIVED}{email.id}/delete/")
        timeline = owner.get(f"/dashboard/emails/{sent.id}/")
        assert "Answered by the recipient" in timeline.text
        assert email.id not in timeline.text

    def test_a_proven_answer_is_called_so(self, owner, alice):
        email = make_received(alice.workspace, **answer_to(make_email(alice.workspace)))
        assert "It is proven that ada@example.com wrote it." in shown_text(owner.get(f"{RECEIVED}{email.id}/"))

    def test_a_deleted_email_leaves_its_answers(self, owner, alice):
        sent = make_email(alice.workspace)
        email = make_received(alice.workspace, **answer_to(sent))
        sent.delete()
        assert "The sent email was deleted." in owner.get(f"{RECEIVED}{email.id}/").text

    def test_ids_of_another_workspace_lead_nowhere(self, owner, alice, bob):
        """Neither the answered email nor the answer of an event is shown to another workspace."""
        foreign = make_email(bob.workspace, subject="Bob's secret plan")
        email = make_received(alice.workspace, **answer_to(foreign))
        page = owner.get(f"{RECEIVED}{email.id}/")
        assert "secret plan" not in page.text
        assert "The sent email was deleted." in page.text
        answer = make_received(bob.workspace)
        sent = make_email(alice.workspace)
        Event.objects.create(
            email=sent,
            recipient=sent.recipients.get(),
            kind="replied",
            payload={"inboundId": answer.id},
            created_at=datetime.now(UTC),
        )
        assert answer.id not in owner.get(f"/dashboard/emails/{sent.id}/").text


class TestActions:
    @pytest.fixture
    def hook(self, alice):
        return create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["received"])[0]

    def test_a_blocked_email_is_released_once(self, owner, alice):
        email = make_received(alice.workspace, status="blocked", blocked_reason="spam")
        url = f"{RECEIVED}{email.id}/"
        page = owner.get(url)
        assert "Its spam score has reached the limit of its route." in page.text
        assert "as if no rule had blocked it" in owner.get(f"{url}release/").text
        assert ReceivedEmail.objects.get().status == "blocked"
        assert "The email was released." in owner.post(f"{url}release/", follow=True).text
        assert ReceivedEmail.objects.get().status == "processed"
        assert "not blocked" in owner.post(f"{url}release/", follow=True).text
        assert AuditEntry.objects.filter(act="inbound_bypassed").count() == 1
        assert Event.objects.filter(kind="received").count() == 1

    def test_an_unreadable_email_is_read_again_after_a_confirmation(self, owner, alice, route):
        email = receive(to="support@alice.example")
        url = f"{RECEIVED}{email.id}/"
        assert "Read again" not in owner.get(url).text
        Message.objects.update(parse_errors=[NOT_READ])
        ReceivedEmail.objects.update(status="unreadable")
        assert f'href="{url}reread/"' in owner.get(url).text
        assert "The message is read again." in owner.get(f"{url}reread/").text
        assert Message.objects.get().read_at
        page = owner.post(f"{url}reread/", follow=True).text
        assert "The message will be read again." in page
        assert "Its message is being read again." in page
        assert ("Read again" in page, 'hx-select-oob="#refresh,#received"' in page) == (False, True)
        process_received()
        assert "could not be read" not in owner.get(url).text
        assert "was read or will be read" in owner.post(f"{url}reread/", follow=True).text
        assert AuditEntry.objects.filter(act="inbound_reread").count() == 1
        # For an hour, the button is gone.
        Message.objects.update(parse_errors=[NOT_READ])
        assert "Read again" not in owner.get(url).text

    def test_deliveries_are_listed_and_made_again(self, owner, alice, route, hook):
        email = receive(to="support@alice.example")
        publish_committed()
        url = f"{RECEIVED}{email.id}/"
        delivery = WebhookDelivery.objects.get()
        page = owner.get(url)
        assert f'href="/dashboard/deliveries/{delivery.id}/"' in page.text
        assert f'href="{url}"' in owner.get(f"/dashboard/deliveries/{delivery.id}/").text
        assert "1 delivery was queued." in owner.post(f"{url}redeliver/", follow=True).text

    def test_forwards_are_listed_with_what_became_of_them(self, owner, alice, route):
        received = receive(to="support@alice.example")
        path = f"{RECEIVED}{received.id}/"
        assert 'id="forwards"' not in owner.get(path).text
        Forward.objects.create(email=received, address="grace@example.org", sent_email_id=new_id())
        Forward.objects.create(email=received, address="joan@example.org", error="recipient_suppressed")
        page = owner.get(path).text
        assert "grace@example.org" in page
        assert "Not sent: The address is on the suppression list." in page

    def test_without_a_webhook_nothing_is_delivered_again(self, owner, alice, route):
        email = receive(to="support@alice.example")
        page = owner.post(f"{RECEIVED}{email.id}/redeliver/", follow=True)
        assert "No webhook subscribes to received emails." in page.text
        email = make_received(alice.workspace, status="stored")
        assert "was not published yet" in owner.post(f"{RECEIVED}{email.id}/redeliver/", follow=True).text

    def test_one_is_deleted_after_a_confirmation(self, owner, alice, route):
        email = receive(to="support@alice.example")
        page = owner.get(f"{RECEIVED}{email.id}/delete/").text
        assert re.findall(r'class="pr-button pr-danger"[^>]*>(\w+)<', page) == ["Delete"]
        assert "Where is my order?" in page
        assert ReceivedEmail.objects.exists()
        assert "The received email was deleted." in owner.post(f"{RECEIVED}{email.id}/delete/", follow=True).text
        assert not ReceivedEmail.objects.exists()
        assert not Message.objects.exists()

    def test_the_whole_page_is_refreshed_until_the_message_is_read(self, owner, alice):
        email = make_received(alice.workspace, status="stored", read_at=None, authentication=None)
        url = f"{RECEIVED}{email.id}/"
        page = owner.get(url)
        assert 'hx-select-oob="#refresh,#received"' in page.text
        version = re.search(r'"X-Page-Version": "(\w+)"', page.text)[1]
        assert owner.get(url, headers={"x-page-version": version}).status_code == 204
        ReceivedEmail.objects.update(status="processed")
        Message.objects.update(read_at=email.received_at)
        page = owner.get(url, headers={"x-page-version": version})
        assert (page.status_code, 'hx-select-oob="#refresh,#state,#deliveries"' in page.text) == (200, True)


class TestRoutes:
    def test_one_is_created_changed_and_deleted(self, owner, alice, domain):
        page = owner.post(f"{ROUTES}add/", {**ROUTE, "active": "on", "match": "Support*"}, follow=True)
        route = InboundRoute.objects.get()
        assert (route.match, route.literals, route.active, route.workspace) == ("support*", 7, True, alice.workspace)
        assert "support*@alice.example" in page.text
        changed = {**ROUTE, "name": "Help", "action": "discard", "store_days": "0", "require_authenticated": "on"}
        owner.post(f"{ROUTES}{route.id}/", changed)
        route.refresh_from_db()
        shown = (route.name, route.action, route.store_days, route.require_authenticated, route.active)
        assert shown == ("Help", "discard", 0, True, False)
        assert "unless another route matches" in owner.get(f"{ROUTES}{route.id}/delete/").text
        owner.post(f"{ROUTES}{route.id}/delete/")
        assert not InboundRoute.objects.exists()
        acts = AuditEntry.objects.filter(act__startswith="route_").order_by("id").values_list("act", flat=True)
        assert list(acts) == ["route_created", "route_changed", "route_deleted"]

    def test_an_invalid_value_is_an_error_at_its_field(self, owner, bob, domain):
        receive_for(make_domain(bob.workspace, "bob.example"))
        for field, value in (
            ("name", ""),
            ("match", "a b"),
            ("domain", "bob.example"),
            ("action", "bounce"),
            ("priority", "1001"),
            ("store_days", "400"),
        ):
            form = owner.post(f"{ROUTES}add/", {**ROUTE, field: value}).context["form"]
            assert list(form.errors) == [field], value
        assert not InboundRoute.objects.exists()

    def test_only_webhooks_of_the_workspace_can_be_chosen(self, owner, alice, bob, domain):
        own = create_webhook(alice.workspace, url="https://alice.example/hook", events=["received"])[0]
        foreign = create_webhook(bob.workspace, url="https://bobs-secret.example/", events=["received"])[0]
        page = owner.get(f"{ROUTES}add/")
        assert "https://alice.example/hook" in page.text
        assert "bobs-secret" not in page.text
        form = owner.post(f"{ROUTES}add/", {**ROUTE, "webhook_ids": [foreign.id]}).context["form"]
        assert list(form.errors) == ["webhook_ids"]
        owner.post(f"{ROUTES}add/", {**ROUTE, "webhook_ids": [own.id]})
        assert InboundRoute.objects.get().webhook_ids == [own.id]

    def test_a_change_keeps_the_fields_that_only_the_api_has(self, owner, alice, domain):
        values = {"name": "A", "match": "a", "domain": "alice.example", "include_raw": True, "attachments": "inline"}
        route = create_route(alice.workspace, values=values)
        owner.post(f"{ROUTES}{route.id}/", {**ROUTE, "name": "B"})
        route.refresh_from_db()
        assert (route.name, route.include_raw, route.attachments) == ("B", True, "inline")

    def test_a_route_forwards_to_addresses_that_have_confirmed(self, owner, alice, domain):
        given = {**ROUTE, "forward_to": "grace@example.org\n ada@example.org"}
        page = owner.post(f"{ROUTES}add/", given)
        assert "grace@example.org has not confirmed the forwarding yet." in page.text
        assert not InboundRoute.objects.exists()
        assert ForwardTarget.objects.count() == 2
        ForwardTarget.objects.update(confirmed_at=timezone.now())
        owner.post(f"{ROUTES}add/", given)
        route = InboundRoute.objects.get()
        assert route.forward_to == ["grace@example.org", "ada@example.org"]
        assert "grace@example.org\nada@example.org" in owner.get(f"{ROUTES}{route.id}/").text
        owner.post(f"{ROUTES}{route.id}/", ROUTE)
        route.refresh_from_db()
        assert route.forward_to == []

    def test_without_a_domain_the_page_leads_to_the_domains(self, owner):
        page = owner.get(ROUTES)
        assert "Open a domain and let it receive first." in page.text
        assert f"{ROUTES}add/" not in page.text

    def test_the_spam_score_is_asked_for_with_a_spam_filter(self, owner, domain, settings):
        for settings.RSPAMD_URL, score in (("", None), ("http://rspamd.example", 7.5)):
            assert ('name="spam_above"' in owner.get(f"{ROUTES}add/").text) is bool(score)
            owner.post(f"{ROUTES}add/", {**ROUTE, "spam_above": "7.5"})
            assert InboundRoute.objects.get().spam_above == score
            InboundRoute.objects.all().delete()

    def test_the_question_says_what_happens_to_an_address(self, owner, alice, bob, route):
        receive_for(make_domain(bob.workspace, "bob.example"))
        create_route(bob.workspace, values={"name": "Bob's secret plan", "match": "*", "domain": "bob.example"})
        for match, action in (("spam", "reject"), ("void", "discard")):
            values = {"name": match, "match": match, "domain": "alice.example", "action": action}
            create_route(alice.workspace, values=values)
        for recipient, text, reply in (
            ("Support%2B4711@ALICE.example", "The email is delivered to webhooks.", "250 2.1.5"),
            ("sales@alice.example", "no route matches", "550 5.1.1"),
            ("spam@alice.example", "its sender gets an error", "550 5.1.1"),
            ("void@alice.example", "nothing is kept", "250 2.1.5"),
            ("support@bob.example", "no route matches", "550 5.1.1"),
            ("nonsense", "no route matches", "550 5.1.1"),
            ("%00<script>", "no route matches", "550 5.1.1"),
        ):
            page = owner.get(f"{ROUTES}?recipient={recipient}")
            answer = page.context["answer"]
            assert (text in answer["text"], answer["reply"].startswith(reply)) == (True, True), recipient
            assert "secret plan" not in page.text
            assert "<script>" not in page.text.partition('id="question"')[2]

    def test_the_shared_address_needs_no_route(self, owner, alice, settings):
        settings.RECEIVING_DOMAIN = SHARED_DOMAIN
        owner.get(ROUTES)
        address = f"{alice.workspace.shared_address.local_part}@{SHARED_DOMAIN}"
        answer = owner.get(f"{ROUTES}?recipient={address}").context["answer"]
        assert (answer["is_accepted"], answer["route"]) == (True, None)
        assert "all webhooks that subscribe" in answer["text"]


class TestBlocks:
    def test_a_sender_is_blocked_from_its_email_and_unblocked(self, owner, alice):
        email = make_received(alice.workspace, sender="ada+x@example.com")
        link = f"{BLOCKS}add/?sender=ada%2Bx%40example.com"
        assert link in owner.get(f"{RECEIVED}{email.id}/").text
        assert 'value="ada+x@example.com"' in owner.get(link).text
        page = owner.post(f"{BLOCKS}add/", {"sender": "Ada+x@Example.com"}, follow=True)
        block = SenderBlock.objects.get()
        assert (block.sender, block.workspace) == ("ada+x@example.com", alice.workspace)
        assert "ada+x@example.com is blocked." in page.text
        owner.get(f"{BLOCKS}{block.id}/delete/")
        assert SenderBlock.objects.exists()
        assert "no longer blocked" in owner.post(f"{BLOCKS}{block.id}/delete/", follow=True).text
        assert not SenderBlock.objects.exists()

    def test_an_invalid_sender_is_a_form_error(self, owner):
        for sender in ("", "a b", "a@", "@b.example", "no domain"):
            assert list(owner.post(f"{BLOCKS}add/", {"sender": sender}).context["form"].errors) == ["sender"], sender


class TestDomain:
    def test_receiving_is_switched_on_and_off_after_a_confirmation(self, owner, alice):
        domain = make_domain(alice.workspace, "alice.example")
        url = f"{DOMAINS}{domain.id}/"
        assert "is not received here" in owner.get(url).text
        assert "in.alice.example" in owner.get(f"{url}receiving/").text
        assert not ReceivingDomain.objects.exists()
        page = owner.post(f"{url}receiving/", {"receiving": "on"}, follow=True)
        assert "Publish the MX record below." in page.text
        assert ReceivingDomain.objects.get().status == "pending"
        assert "mx.demo.example" in page.text
        assert "alice.example. 3600 IN MX 10 mx.demo.example." in owner.get(f"{url}zone/").text
        owner.post(f"{url}receiving/", {"receiving": "on"})
        assert ReceivingDomain.objects.count() == 1
        assert "is refused from now on" in owner.get(f"{url}receiving/").text
        assert "is refused now" in owner.post(f"{url}receiving/", {"receiving": "off"}, follow=True).text
        assert not ReceivingDomain.objects.exists()

    def test_a_name_that_another_workspace_receives_is_refused_without_naming_it(self, owner, alice, bob):
        receive_for(make_domain(bob.workspace, "alice.example"))
        domain = make_domain(alice.workspace, "alice.example")
        page = owner.post(f"{DOMAINS}{domain.id}/receiving/", {"receiving": "on"}, follow=True)
        assert "is received by another workspace" in page.text
        assert not re.search(r"\bbob", page.text)

    def test_the_error_of_the_last_check_is_shown(self, owner, domain):
        check = {"verdict": "wrong", "found": "5 mx.other.example", "error": "mx.other.example is first", "note": None}
        right = {"verdict": "right", "found": None, "error": None, "note": None, "value": None}
        ReceivingDomain.objects.update(
            status="failed",
            findings={"receiving_id": domain.id, "mx": {**check, "value": None}, "owner": right, "advice": right},
        )
        assert "mx.other.example is first" in owner.get(f"{DOMAINS}{domain.domain_id}/").text


class TestStaff:
    def test_they_see_the_volume_of_each_workspace_but_no_content(self, staff, alice, domain, route):
        email = receive(to="support@alice.example")
        assert alice.workspace.name in staff.get("/admin/receiving/receivingusage/").text
        page = staff.get(f"/admin/receiving/receivedemail/{quote(email.id)}/change/").text
        assert "support@alice.example" in page
        assert "where is my order" not in page
        assert AuditEntry.objects.get(act="email_looked_at").about == email.id
        assert "Received emails" in staff.get("/admin/").text

    def test_they_give_a_name_to_another_workspace(self, staff, alice, bob):
        old = receive_for(make_domain(bob.workspace, "alice.example"))
        new = ReceivingDomain.objects.create(
            domain=make_domain(alice.workspace, "alice.example"), workspace=alice.workspace, name="alice.example"
        )
        url = "/admin/domains/receivingdomain/"
        both = staff.post(url, {"action": "move", "_selected_action": [old.id, new.id]}, follow=True)
        assert "Select only one workspace for each name." in both.text
        old.refresh_from_db()
        assert old.proven_at
        page = staff.post(url, {"action": "move", "_selected_action": [new.id]}, follow=True)
        assert "lets these workspaces receive" in page.text
        old.refresh_from_db()
        assert (old.status, old.proven_at) == ("failed", None)
        assert AuditEntry.objects.filter(workspace=alice.workspace, act="domain_changed").exists()

    def test_staff_without_permission_cannot_move_names(self, helper, bob):
        receiving = receive_for(make_domain(bob.workspace, "alice.example"))
        selected = {"action": "move", "_selected_action": [receiving.id]}
        assert signed_in(helper).post("/admin/domains/receivingdomain/", selected).status_code == 403
        receiving.refresh_from_db()
        assert receiving.status == "active"
