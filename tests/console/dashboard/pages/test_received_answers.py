"""Answering and forwarding a received email, its conversation, previews of its files, and long addresses in lists."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.template import Context, Template

from core.workspaces.account_status import suspend_workspace
from core.workspaces.models import AuditEntry
from domains.models import ReceivingDomain
from domains.receiving.services import active_cache
from emails.models import Email
from receiving.models import ForwardTarget, Message
from receiving.source import PREVIEW_TEXT_BYTES
from suppressions.services import suppress_address
from tests.conftest import Api, make_domain, make_key
from tests.console.dashboard.conftest import make_email, make_received, shown_text, signed_in
from tests.console.dashboard.scenario import answer_to
from tests.receiving.builders import receive, receive_for

RECEIVED = "/dashboard/received/"
LONG = f"r-{'x7k2p9dm' * 6}abcde@in.alice.example"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "", ["mx.demo.example"]
    active_cache.clear()
    cache.clear()


@pytest.fixture
def key(alice) -> Api:
    return Api(make_key(alice.workspace))


@pytest.fixture
def domain(alice) -> ReceivingDomain:
    return receive_for(make_domain(alice.workspace, "alice.example"))


@pytest.fixture
def email(alice, domain):
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    email = make_received(alice.workspace, recipient="support+4711@alice.example", received_at=hour_ago)
    Message.objects.update(subject=email.subject)
    return email


def form_of(page) -> dict[str, str]:
    """Return the values of the form of a page, as a browser sends them."""
    form = page.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    return {name: "on" if value is True else value for name, value in shown.items() if value not in (None, False)} | {
        "nonce": page.context["nonce"]
    }


class TestAnswer:
    def test_the_form_has_sender_and_subject(self, owner, alice, email):
        make_domain(alice.workspace, "second.example")
        page = owner.get(f"{RECEIVED}{email.id}/answer/")
        assert form_of(page)["sender"] == "support@alice.example"
        assert form_of(page)["subject"] == "Re: Where is it?"
        assert page.context["senders"] == [
            "support@alice.example",
            "support@second.example",
        ]
        assert "An answer to ada@example.com." in shown_text(page)
        assert "Where is my order?" in page.text

    def test_an_answer_is_sent_in_the_thread_and_shown_in_the_conversation(self, owner, alice, email):
        values = form_of(owner.get(f"{RECEIVED}{email.id}/answer/")) | {"text": "Hello Ada,\r\nit is on its way."}
        page = owner.post(f"{RECEIVED}{email.id}/answer/", values, follow=True)
        assert "The answer to ada@example.com was accepted." in page.text
        sent = Email.objects.get()
        assert (sent.to, sent.subject, sent.sender) == (
            ["ada@example.com"],
            "Re: Where is it?",
            "support@alice.example",
        )
        assert sent.headers["In-Reply-To"] == "<one@example.com>"
        assert sent.content.text == "Hello Ada,\nit is on its way."
        assert (sent.entrance, sent.track_opens, sent.track_clicks) == ("dashboard", False, False)
        assert sent.reply_domain == "alice.example"
        entries = page.context["conversation"].entries
        assert [(entry.is_sent, entry.is_shown) for entry in entries] == [(False, True), (True, False)]
        assert f'href="/dashboard/emails/{sent.id}/"' in page.text
        assert AuditEntry.objects.get(act="inbound_answered").about == email.id
        assert AuditEntry.objects.get(act="inbound_answered").actor == alice.owner.email

    def test_pressed_twice_it_is_sent_once_and_changed_it_is_sent_again(self, owner, email):
        url = f"{RECEIVED}{email.id}/answer/"
        values = form_of(owner.get(url)) | {"text": "Hello"}
        for _ in range(2):
            owner.post(url, values)
        assert Email.objects.count() == 1
        assert AuditEntry.objects.filter(act="inbound_answered").count() == 1
        owner.post(url, values | {"text": "And goodbye"})
        owner.post(url, {name: value for name, value in values.items() if name != "nonce"})
        assert Email.objects.count() == 3

    def test_reply_to_has_precedence_and_without_a_subject_it_is_that_of_the_email(self, owner, alice, domain):
        addresses = {"from": [{"email": "ada@example.com", "name": ""}], "to": [], "cc": []}
        addresses["replyTo"] = [{"email": "desk@example.org", "name": "Desk"}]
        email = make_received(alice.workspace, addresses=addresses)
        values = {"sender": "Alice <hi@alice.example>", "subject": "", "text": "Hello"}
        owner.post(f"{RECEIVED}{email.id}/answer/", values)
        sent = Email.objects.get()
        assert (sent.to, sent.subject) == (["desk@example.org"], "Re: Where is it?")
        assert (sent.sender, sent.reply_domain) == ("Alice <hi@alice.example>", None)

    def test_a_signed_address_is_no_sender(self, owner, alice, domain):
        sent = make_email(alice.workspace, sender="Shop <shop@alice.example>")
        email = make_received(alice.workspace, recipient=LONG, **answer_to(sent))
        assert owner.get(f"{RECEIVED}{email.id}/answer/").context["senders"][0] == "Shop <shop@alice.example>"

    def test_senders_are_of_domains_that_can_send(self, owner, alice, domain, settings):
        settings.SENDING_DOMAIN_POLICY = "verified"
        domain.domain.status = "verified"
        domain.domain.save(update_fields=["status"])
        make_domain(alice.workspace, "second.example")
        email = make_received(alice.workspace, recipient="hello@second.example")
        assert owner.get(f"{RECEIVED}{email.id}/answer/").context["senders"] == ["support@alice.example"]

    def test_refusals_are_shown_in_the_form_and_nothing_is_sent(self, owner, alice, email):
        url = f"{RECEIVED}{email.id}/answer/"
        valid = {"sender": "support@alice.example", "subject": "Hi", "text": "Hello"}
        for changes, error in (
            ({"text": ""}, "This field is required"),
            ({"sender": "support@bob.example"}, "bob.example is not registered"),
            ({"sender": "nobody"}, "@"),
            ({"subject": "a\x07b"}, "subject"),
        ):
            page = owner.post(url, valid | changes)
            assert page.status_code == 200, changes
            assert page.context["form"].errors, changes
            assert error in str(page.context["form"].errors), changes
        suppress_address(alice.workspace, address="ada@example.com", reason="bounce")
        page = owner.post(url, valid)
        assert "suppress" in str(page.context["form"].errors)
        assert form_of(page)["text"] == "Hello"
        suspend_workspace(alice.workspace, reason="A test")
        assert "suspended" in str(owner.post(url, valid).context["form"].errors).lower()
        assert not Email.objects.exists()
        assert not AuditEntry.objects.filter(act="inbound_answered").exists()

    def test_too_many_answers_are_refused(self, owner, email, settings):
        settings.RATE_LIMIT = (1, 1)
        url, values = f"{RECEIVED}{email.id}/answer/", {"sender": "support@alice.example", "text": "Hello"}
        pages = [owner.post(url, values | {"text": f"No. {number}"}) for number in range(4)]
        assert any(page.status_code == 200 and page.context["form"].errors for page in pages)

    def test_a_simulated_email_is_answered_with_a_test_email(self, owner, alice, domain):
        email = make_received(alice.workspace, is_test=True)
        owner.post(f"{RECEIVED}{email.id}/answer/", {"sender": "support@alice.example", "text": "Hello"})
        assert Email.objects.get().is_test
        assert owner.get(f"{RECEIVED}{email.id}/").context["conversation"]

    def test_an_email_without_an_address_has_no_answer(self, owner, alice, domain):
        nobody = {"from": [], "to": [], "cc": [], "replyTo": []}
        for fields in ({"addresses": nobody}, {"read_at": None, "status": "stored"}):
            email = make_received(alice.workspace, **fields)
            assert f"{RECEIVED}{email.id}/answer/" not in owner.get(f"{RECEIVED}{email.id}/").text
            assert owner.get(f"{RECEIVED}{email.id}/answer/").status_code == 404
            values = {"sender": "support@alice.example", "text": "Hello"}
            assert owner.post(f"{RECEIVED}{email.id}/answer/", values).status_code == 404

    def test_the_email_of_another_workspace_is_404(self, email, bob):
        browser = signed_in(bob.owner)
        for name in ("answer", "forward", "text"):
            assert browser.get(f"{RECEIVED}{email.id}/{name}/").status_code == 404, name
            assert browser.post(f"{RECEIVED}{email.id}/{name}/", {"to": "a@example.com"}).status_code == 404, name


class TestConversation:
    def test_answers_to_answers_are_one_conversation(self, owner, alice, domain):
        """Sent, answered, answered from the dashboard, and answered again: each page shows all four."""
        first = make_email(alice.workspace, subject="Your order", created_at=datetime.now(UTC) - timedelta(hours=2))
        email = make_received(alice.workspace, **answer_to(first), received_at=datetime.now(UTC) - timedelta(hours=1))
        url = f"{RECEIVED}{email.id}/"
        owner.post(f"{url}answer/", {"sender": "support@alice.example", "text": "Hello"})
        answer = Email.objects.exclude(id=first.id).get()
        source = f"From: ada@example.com\r\nIn-Reply-To: <{answer.recipients.get().id}@alice.example>\r\n"
        values = {"name": "All", "match": "*", "domain": "alice.example"}
        owner.post("/dashboard/routes/add/", values | {"action": "deliver", "priority": "100", "active": "on"})
        last = receive(f"{source}Subject: Re: Your order\r\n\r\nThank you!".encode(), "support@alice.example")
        for page in (owner.get(url), owner.get(f"{RECEIVED}{last.id}/")):
            entries = page.context["conversation"].entries
            assert [entry.is_sent for entry in entries] == [True, False, True, False]
            assert [entry.url for entry in entries] == [
                f"/dashboard/emails/{first.id}/",
                url,
                f"/dashboard/emails/{answer.id}/",
                f"{RECEIVED}{last.id}/",
            ]

    def test_an_answer_of_the_api_is_in_it(self, owner, key, alice, email):
        body = {"from": "support@alice.example", "inReplyToId": email.id, "text": "Hello"}
        sent = key.post("/emails/send", body).json()["id"]
        page = owner.get(f"{RECEIVED}{email.id}/")
        assert [entry.url for entry in page.context["conversation"].entries][1] == f"/dashboard/emails/{sent}/"

    def test_other_emails_to_the_same_address_and_of_others_are_not(self, owner, alice, bob, email):
        make_email(alice.workspace)
        make_email(bob.workspace, headers={"In-Reply-To": "<one@example.com>"}, metadata={"inboundId": email.id})
        assert owner.get(f"{RECEIVED}{email.id}/").context["conversation"] is None


class TestForward:
    def test_a_forward_needs_a_confirmed_target(self, owner, alice, email):
        url = f"{RECEIVED}{email.id}/forward/"
        page = owner.post(url, {"to": "grace@example.org"})
        assert "grace@example.org" in str(page.context["form"].errors["to"])
        ForwardTarget.objects.update(confirmed_at=datetime.now(UTC))
        assert owner.get(url).context["targets"] == ["grace@example.org"]
        page = owner.post(url, {"to": "grace@example.org"}, follow=True)
        assert "The forward to grace@example.org was accepted." in page.text
        sent = Email.objects.get()
        assert (sent.to, sent.subject) == (["grace@example.org"], "Fwd: Where is it?")
        assert f'href="/dashboard/emails/{sent.id}/"' in page.text
        assert AuditEntry.objects.filter(act="inbound_forwarded", actor=alice.owner.email).exists()
        suspend_workspace(alice.workspace, reason="A test")
        assert "suspended" in str(owner.post(url, {"to": "grace@example.org"}).context["form"].errors).lower()
        assert Email.objects.count() == 1

    def test_what_is_never_forwarded_has_no_button_and_an_error(self, owner, alice, domain):
        ForwardTarget.objects.create(
            workspace=alice.workspace, address="grace@example.org", confirmed_at=datetime.now(UTC)
        )
        email = make_received(alice.workspace, automatic=Message.Automatic.AUTO_REPLIED)
        url = f"{RECEIVED}{email.id}/forward/"
        assert url not in owner.get(f"{RECEIVED}{email.id}/").text
        assert owner.post(url, {"to": "grace@example.org"}).context["form"].errors
        assert not Email.objects.exists()

    def test_the_inbox_with_the_link_is_named_in_a_trial(self, owner, email, settings):
        url = f"{RECEIVED}{email.id}/forward/"
        settings.DELIVERY_TRANSPORT = "inbox"
        assert "/admin/inbox/caughtmail/" in owner.get(url).text
        settings.DELIVERY_TRANSPORT = "smtp"
        assert "/admin/inbox/caughtmail/" not in owner.get(url).text


class TestPreviews:
    def texts(self, owner, email, count):
        return [owner.get(f"{RECEIVED}{email.id}/text/?position={number}") for number in range(count)]

    def test_images_and_texts_have_a_preview_and_other_files_none(self, owner, alice):
        kinds = {
            "image/png": "image", "image/jpeg": "image", "image/gif": "image", "image/webp": "image",
            "image/svg+xml": "", "text/plain": "text", "text/csv": "text", "text/html": "", "application/pdf": "",
            "text/xml": "", "application/xhtml+xml": "", "image/bmp": "", "text/javascript": "",
        }  # fmt: skip
        files = [{"filename": kind, "contentType": kind, "data": b"<script>alert(1)</script>"} for kind in kinds]
        email = make_received(alice.workspace, attachments=files)
        page = owner.get(f"{RECEIVED}{email.id}/")
        assert [file["preview"] for file in page.context["files"]] == list(kinds.values())
        assert page.text.count("<img loading") == 4
        statuses = [response.status_code for response in self.texts(owner, email, len(kinds))]
        assert statuses == [200 if preview == "text" else 404 for preview in kinds.values()]

    def test_a_text_is_escaped_and_cut_at_a_character(self, owner, alice):
        long = "ä".encode() * PREVIEW_TEXT_BYTES
        contents = [
            b"<script>alert(1)</script>",
            b"a;b\r\n1;2\r\n",
            "Grüße".encode(),
            b"Gr\xfc\xdfe",
            b"x" + long,
        ]
        contents += [b"\0a", "\ufeffa".encode("utf-16-le")]
        files = [{"contentType": "text/plain", "data": data} for data in contents]
        email = make_received(alice.workspace, attachments=files)
        texts = [response.context["text"] for response in self.texts(owner, email, len(files))]
        assert texts[:4] == ["<script>alert(1)</script>", "a;b\n1;2\n", "Grüße", "Grüße"]
        assert texts[4] == "x" + "ä" * ((PREVIEW_TEXT_BYTES - 1) // 2)
        assert texts[5:] == ["a", "a"]
        page = self.texts(owner, email, 1)[0]
        assert "&lt;script&gt;" in page.text
        assert "<script>" not in page.text
        assert "truncated" in self.texts(owner, email, 5)[4].text

    def test_an_encoded_text_is_decoded(self, owner, alice, domain):
        owner.post("/dashboard/routes/add/", {"name": "All", "match": "*", "domain": "alice.example",
                                              "action": "deliver", "priority": "100", "active": "on"})  # fmt: skip
        csv = "".join(f"{number};Grüße\n" for number in range(20_000))
        part = base64.encodebytes(csv.encode()).replace(b"\n", b"\r\n")
        head = b"Content-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment\r\n"
        source = b"From: ada@example.com\r\n" + head + b"Content-Transfer-Encoding: base64\r\n\r\n" + part
        email = receive(source, "support@alice.example")
        (page,) = self.texts(owner, email, 1)
        assert page.context["is_cut"]
        assert csv.startswith(page.context["text"])
        assert len(page.context["text"].encode()) > PREVIEW_TEXT_BYTES - 4

    def test_a_large_image_and_an_empty_file_have_none(self, owner, alice, monkeypatch):
        monkeypatch.setattr("receiving.source.INLINE_BYTES", len(PNG) - 1)
        files = [{"contentType": "image/png", "data": PNG}, {"contentType": "text/plain", "data": b""}]
        email = make_received(alice.workspace, attachments=files)
        assert [file["preview"] for file in owner.get(f"{RECEIVED}{email.id}/").context["files"]] == ["", ""]

    def test_a_position_without_a_file_is_404(self, owner, alice):
        email = make_received(alice.workspace)
        for position in ("0", "-1", "x", "99999999999999999999"):
            assert owner.get(f"{RECEIVED}{email.id}/text/?position={position}").status_code == 404, position

    def test_the_image_is_the_download_with_its_headers(self, owner, alice):
        email = make_received(alice.workspace, attachments=[{"contentType": "image/png", "data": PNG}])
        response = owner.get(f"{RECEIVED}{email.id}/attachment/?position=0")
        assert response["Content-Disposition"].startswith("attachment;")
        assert response["X-Content-Type-Options"] == "nosniff"
        assert b"".join(response) == PNG


class TestLongAddresses:
    def render(self, text):
        return Template("{% load short_address %}{{ text|short_address }}").render(Context({"text": text}))

    def test_a_short_address_is_as_it_was(self):
        assert self.render("ada@example.com") == "<bdi>ada@example.com</bdi>"
        assert self.render("<b>@example.com") == "<bdi>&lt;b&gt;@example.com</bdi>"
        assert self.render(None) == self.render("") == "<bdi></bdi>"

    def test_a_long_one_is_whole_in_two_parts_and_its_title(self):
        html = self.render(LONG)
        assert f'title="{LONG}"' in html
        assert "<span>bcde@in.alice.example</span>" not in html
        assert html.replace("</span><span>", "").count(LONG) == 2
        hostile = self.render(f'"><script>alert(1)</script>{"x" * 60}@example.com')
        assert "<script>" not in hostile

    def test_lists_show_it(self, owner, alice, domain):
        make_received(alice.workspace, recipient=LONG, sender=LONG)
        make_email(alice.workspace, to=[LONG], sender=LONG)
        for path in ("received/", "emails/", ""):
            page = owner.get(f"/dashboard/{path}").text
            assert 'class="pr-shortened"' in page, path
