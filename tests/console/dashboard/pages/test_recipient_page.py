from datetime import UTC, datetime

from console.dashboard.pages.emails import recipient_history
from emails.feedback.opens_and_clicks import Hit, record_hits
from emails.models import Recipient
from streams.models import Stream
from streams.services import create_stream
from suppressions.services import suppress_address
from tests.console.dashboard.conftest import count_queries, make_email, make_received, shown_text
from tests.console.dashboard.scenario import answer_to
from tests.plans import prefer_indexes

PAGE = "/dashboard/emails/recipient/"


def read(owner, address: str = "ada@example.com", **query):
    return owner.get(PAGE, {"address": address, **query})


class TestEmails:
    def test_are_those_of_the_workspace_in_any_field(self, owner, alice, bob):
        make_email(alice.workspace, subject="To Ada")
        copy = make_email(alice.workspace, subject="Copy", to=["bo@example.com"], bcc=["Ada@example.com"])
        copy.recipients.update(address="Ada@example.com", kind="bcc")
        make_email(alice.workspace, subject="To Bo").recipients.update(address="bo@example.com")
        make_email(bob.workspace, subject="Foreign")

        page = read(owner)

        assert {email.subject for _recipient, email in page.context["listing"].rows} == {"To Ada", "Copy"}
        assert "bcc" in shown_text(page)

    def test_are_counted_with_their_events(self, owner, alice):
        now = datetime.now(UTC)
        for times in ({"delivered_at": now, "opened_at": now}, {"delivered_at": now}, {"bounced_at": now}, {}):
            make_email(alice.workspace).recipients.update(**times)

        counts = {one.tone: (one.count, one.share) for one in read(owner).context["counts"]}

        assert counts == {
            "all": (4, None), "delivered": (2, 50.0), "opened": (1, 25.0), "clicked": (0, 0.0), "bounced": (1, 25.0)
        }  # fmt: skip

    def test_are_counted_as_opened_and_clicked_without_their_times(self, owner, alice):
        Stream.objects.create(workspace=alice.workspace, slug="main", name="Main", tracking_detail="counts")
        opened, clicked, _ = (make_email(alice.workspace).recipients.get() for _ in range(3))
        record_hits([Hit(opened.id), Hit(clicked.id, url="https://shop.example/")])

        counts = {one.tone: one.count for one in read(owner).context["counts"]}

        assert counts == {"all": 3, "delivered": 2, "opened": 2, "clicked": 1, "bounced": 0}

    def test_are_in_pages_of_the_newest(self, owner, alice, monkeypatch):
        for number in range(28):
            make_email(alice.workspace, subject=f"Number {number}")
        monkeypatch.setattr(recipient_history, "MAX_EMAILS", 27)

        first, second = read(owner), read(owner, p=2)

        assert (len(first.context["listing"].rows), first.context["listing"].has_next) == (25, True)
        assert (len(second.context["listing"].rows), second.context["listing"].has_next) == (2, False)
        assert "The newest 27 emails." in shown_text(first)

    def test_take_the_same_queries_for_any_number(self, owner, alice):
        make_email(alice.workspace)
        before = count_queries(lambda: read(owner))
        for _ in range(10):
            make_email(alice.workspace)

        assert count_queries(lambda: read(owner)) == before

    def test_are_found_by_the_index(self, owner, alice):
        make_email(alice.workspace)
        rows = recipient_history.recipients_of(alice.workspace, "ada@example.com")
        prefer_indexes()

        assert "recipient_by_address" in rows.explain()


class TestSuppressions:
    def test_are_shown_by_stream(self, owner, alice, bob):
        create_stream(alice.workspace, slug="news", name="Newsletter", kind="bulk")
        suppress_address(alice.workspace, address="Ada@example.com", reason="unsubscribe", stream="news")
        suppress_address(bob.workspace, address="ada@example.com", reason="complaint")

        page = read(owner)

        assert [(row.reason, row.stream) for row in page.context["suppressions"]] == [("unsubscribe", "news")]
        assert "<strong><bdi>Newsletter</bdi></strong><small>since " in page.content.decode()

    def test_of_an_address_without_emails_are_shown(self, owner, alice):
        suppression, _ = suppress_address(alice.workspace, address="gone@example.com", reason="bounce")

        page = read(owner, "gone@example.com")

        assert f"/dashboard/suppressions/{suppression.id}/delete/" in page.content.decode()
        assert "No emails to this address" in shown_text(page)

    def test_are_added_with_the_address_filled_in(self, owner, alice):
        page = owner.get("/dashboard/suppressions/add/?address=ada%2Bshop@example.com")

        assert "ada+shop@example.com</textarea>" in page.content.decode()


class TestReplies:
    def test_are_those_of_its_emails(self, owner, alice, bob):
        make_received(alice.workspace, subject="My answer", **answer_to(make_email(alice.workspace)))
        other = make_email(alice.workspace)
        other.recipients.update(address="bo@example.com")
        make_received(alice.workspace, subject="Of Bo", **answer_to(other))

        assert [reply.subject for reply in read(owner).context["replies"]] == ["My answer"]


class TestAddress:
    def test_is_asked_for(self, owner, alice):
        assert 'type="email" name="address"' in owner.get(PAGE).content.decode()

    def test_that_is_invalid_is_refused(self, owner):
        for text in ("ada", "ada@", "a@example.com, b@example.com", "<b>@example.com"):
            page = read(owner, text)
            assert page.status_code == 200, text
            assert "This is not an email address." in shown_text(page), text


class TestSearch:
    def hits(self, owner, text: str) -> list[str]:
        return [hit.address for hit in owner.get("/dashboard/emails/", {"search": text}).context["recipients"]]

    def test_finds_an_address_first(self, owner, alice):
        make_email(alice.workspace)

        page = owner.get("/dashboard/emails/", {"search": "Ada@Example.com"})

        assert page.context["recipients"][0].url == "/dashboard/emails/recipient/?address=Ada%40example.com"
        text = page.content.decode()
        assert text.index("/dashboard/emails/recipient/?address=") < text.index('id="rows"')

    def test_finds_an_address_that_only_a_copy_went_to(self, owner, alice):
        email = make_email(alice.workspace)
        Recipient.objects.create(email=email, kind="bcc", position=1, address="bo@example.com", state="delivered")

        assert self.hits(owner, "bo@example.com") == ["bo@example.com"]
        assert len(read(owner, "bo@example.com").context["listing"].rows) == 1

    def test_finds_addresses_by_a_part(self, owner, alice):
        to = ["Ada L <ada@example.com>"]
        make_email(alice.workspace, to=to, search_text="ada l <ada@example.com> hello", subject="Hello")
        make_email(alice.workspace, to=to, search_text="ada l <ada@example.com> hello", subject="Hello")

        assert self.hits(owner, "ada@") == ["ada@example.com"]
        assert self.hits(owner, "hello") == []
        assert self.hits(owner, "") == []

    def test_shows_no_long_list_of_addresses(self, owner, alice):
        for number in range(recipient_history.MAX_HITS + 1):
            make_email(alice.workspace, to=[f"{number}@example.com"], search_text=f"{number}@example.com")

        assert self.hits(owner, "@example.com") == []


def test_the_address_of_an_email_leads_to_its_page(owner, alice):
    email = make_email(alice.workspace)

    page = owner.get(f"/dashboard/emails/{email.id}/").content.decode()

    assert 'href="/dashboard/emails/recipient/?address=ada%40example.com"' in page
