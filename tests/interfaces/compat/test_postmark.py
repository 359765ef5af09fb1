"""Postmark's API: requests, errors and sentences as its clients expect them."""

import itertools
import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from emails.models import Attachment, Email, Recipient
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from suppressions.services import suppress_addresses
from tests.conftest import Api
from tests.core.api.test_rate_limit import calls_until_refused, some_client
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each

pytestmark = pytest.mark.django_db


def mail(**fields) -> dict:
    body = {"From": "Alice <hi@alice.example>", "To": "ada@example.com", "Subject": "Hi", "HtmlBody": "<p>Hi</p>"}
    return body | fields


def error(response) -> tuple[int, int]:
    body = response.json()
    assert body.keys() == {"ErrorCode", "Message"}
    return response.status_code, body["ErrorCode"]


class TestSend:
    def test_an_email_with_everything_is_accepted_and_read_back(self, postmark):
        sent = mail(
            To='"L, Ada" <ada@example.com>, bob@example.com',
            Cc="carol@example.com",
            Bcc="dan@example.com",
            ReplyTo="a@alice.example,b@alice.example",
            TextBody="Hi",
            Tag="welcome",
            Metadata={"order": "7"},
            Headers=[{"Name": "X-A", "Value": "1"}, {"Name": "Message-ID", "Value": "<x@y.z>"}],
            TrackOpens=False,
            TrackLinks="None",
            Attachments=[
                {"Name": "a.txt", "Content": "QQ==", "ContentType": "text/plain", "ContentID": None},
                {"Name": "l.png", "Content": "iVBORw==", "ContentType": "image/png", "ContentID": "cid:logo"},
            ],
            MessageStream="outbound",
        )
        response = postmark.post("/email", sent)
        body = response.json()
        assert (response.status_code, body["ErrorCode"], body["Message"]) == (200, 0, "OK")
        assert (body["To"], body["Cc"], body["Bcc"]) == (sent["To"], sent["Cc"], sent["Bcc"])
        assert str(uuid.UUID(body["MessageID"])) == body["MessageID"]
        row = Email.objects.get()
        assert (row.headers, row.metadata, row.tags) == ({"X-A": "1"}, {"order": "7"}, ["welcome"])
        assert (row.track_opens, row.track_clicks) == (False, False)
        assert list(Attachment.objects.values_list("filename", "cid")) == [("a.txt", None), ("l.png", "logo")]
        details = postmark.get(f"/messages/outbound/{body['MessageID']}/details").json()
        assert (details["Subject"], details["HtmlBody"], details["TextBody"]) == ("Hi", "<p>Hi</p>", "Hi")
        assert details["To"] == [
            {"Email": "ada@example.com", "Name": "L, Ada"},
            {"Email": "bob@example.com", "Name": None},
        ]
        assert (details["Attachments"], details["Tag"], details["Status"]) == (["a.txt", "l.png"], "welcome", "Queued")

    def test_null_means_absent_in_every_optional_field(self, postmark):
        names = ("Cc", "Bcc", "ReplyTo", "TextBody", "Tag", "Metadata", "Headers", "TrackOpens", "TrackLinks",
                 "Attachments", "MessageStream")  # fmt: skip
        assert postmark.post("/email", mail(**dict.fromkeys(names))).json()["ErrorCode"] == 0

    def test_a_subject_is_optional(self, postmark):
        assert postmark.post("/email", mail(Subject=None)).json()["ErrorCode"] == 0
        assert Email.objects.get().subject == ""

    def test_paths_work_in_any_case_and_with_a_slash(self, postmark):
        assert postmark.post("/Email/", mail()).status_code == 200
        assert postmark.get("/deliveryStats").status_code == 200

    def test_an_account_token_is_a_key_too(self, key):
        account = Dialect("postmark", None)
        account.headers = {"x-postmark-account-token": key}
        assert account.post("/email", mail()).status_code == 200


class TestErrors:
    @each(
        ("change", "expected"),
        [
            ({"To": None}, (422, 300)),
            ({"To": "nobody"}, (422, 300)),
            ({"To": 7}, (422, 300)),
            ({"From": "nobody"}, (422, 300)),
            ({"From": "hi@elsewhere.example"}, (422, 400)),
            ({"HtmlBody": None}, (422, 300)),
            ({"To": ",".join(f"a{n}@example.com" for n in range(51))}, (422, 300)),
            ({"TrackLinks": "Some"}, (422, 300)),
            ({"Attachments": [{"Name": "a", "Content": "%"}]}, (422, 300)),
            ({"Headers": [{"Name": "X A", "Value": "1"}]}, (422, 300)),
            ({"Headers": [{"Name": "X-A", "Value": "1"}, {"Name": "X-A", "Value": "2"}]}, (422, 300)),
            ({"Headers": [{"Name": "X-A", "Value": "1"}, {"Name": "x-a", "Value": "1"}]}, (422, 300)),
            ({"Metadata": []}, (422, 300)),
        ],
    )
    def test_an_invalid_email_has_postmarks_code(self, postmark, change, expected):
        assert error(postmark.post("/email", mail(**change))) == expected
        assert not Email.objects.exists()

    def test_an_invalid_recipient_is_named_as_anymail_parses_it(self, postmark):
        message = postmark.post("/email", mail(Cc="no@body@example.com")).json()["Message"]
        assert re.match(r"^(Invalid|Error\s+parsing)\s+'(To|Cc|Bcc)'", message)
        assert re.search(r"address:?\s*'(.*)'", message)[1] == "no@body@example.com"

    @each(
        ("change", "sentence"),
        [
            ({"From": "nobody"}, "Invalid 'From' address: 'nobody'."),
            ({"From": "hi@elsewhere.example"}, "The 'From' address you supplied (@elsewhere.example) is not a Sender "),
            ({"To": "nobody"}, "Error parsing 'To': Illegal email address 'nobody'."),
        ],
    )
    def test_sentences_about_addresses_are_postmarks(self, postmark, change, sentence):
        assert postmark.post("/email", mail(**change)).json()["Message"].startswith(sentence)

    def test_sentences_about_tokens_are_postmarks(self, db):
        missing, invalid = (Dialect("postmark", key).post("/email", mail()) for key in (None, "x"))
        assert error(missing) == error(invalid) == (401, 10)
        sentence = "No Account or Server API tokens were supplied in the HTTP headers. "
        assert missing.json()["Message"].startswith(sentence)
        sentence = "The Server Token you provided in the X-Postmark-Server-Token request header was inva"
        assert invalid.json()["Message"].startswith(sentence)

    def test_malformed_json_and_absent_endpoints(self, postmark):
        raw = postmark.client.post("/compat/postmark/email", b"{", "application/json", headers=postmark.headers)
        assert error(raw) == (422, 402)
        absent = postmark.get("/messages/outbound/opens")
        assert error(absent) == (501, 501)
        assert "/docs/migrate/postmark." in absent.json()["Message"]

    @each(("method", "path"), [("DELETE", "/message-streams/outbound"), ("GET", "/message-streams/outbound/archive"),
                               ("PUT", "/email"), ("PATCH", "/server")])  # fmt: skip
    def test_a_method_that_a_path_does_not_have_is_absent(self, postmark, method, path):
        absent = postmark.call(method, path)
        assert error(absent) == (501, 501)
        assert "/docs/migrate/postmark." in absent.json()["Message"]

    def test_a_member_of_metadata_has_a_name(self, postmark):
        refused = postmark.post("/email", mail(Metadata={"": "x"}))
        assert error(refused) == (422, 300)
        assert refused.json()["Message"] == "metadata: The name of a member must not be empty."


class TestTestToken:
    """T43."""

    @pytest.fixture
    def tester(self, db):
        return Dialect("postmark", "POSTMARK_API_TEST")

    def test_emails_are_validated_and_not_sent(self, tester):
        body = tester.post("/email", mail()).json()
        assert (body["ErrorCode"], body["Message"], body["To"]) == (0, "Test job accepted", "ada@example.com")
        assert str(uuid.UUID(body["MessageID"])) == body["MessageID"]
        assert error(tester.post("/email", mail(To="nobody"))) == (422, 300)
        results = tester.post("/email/batch", [mail(), mail(To="nobody"), 7]).json()
        assert [result["ErrorCode"] for result in results] == [0, 300, 300]
        templated = {"From": "hi@alice.example", "To": "ada@example.com", "TemplateAlias": "a", "TemplateModel": {}}
        assert tester.post("/email/withTemplate", templated).json()["ErrorCode"] == 0
        assert tester.post("/email/batchWithTemplates", {"Messages": [templated]}).json()[0]["ErrorCode"] == 0
        assert not Email.objects.exists()

    def test_it_is_no_key_of_other_endpoints(self, tester):
        for path in ("/server", "/messages/outbound", "/templates"):
            assert error(tester.get(path)) == (401, 10)

    def test_a_body_is_smaller_than_with_a_key(self, tester, postmark):
        large = [mail(HtmlBody="x" * 70_000)]
        assert tester.post("/email/batch", large).status_code == 413
        assert postmark.post("/email/batch", large).status_code == 200

    def test_its_requests_are_limited(self, tester, settings):
        settings.RATE_LIMIT = (50, 100)
        # Not the address of other tests, whose requests share one limit.
        tester.client = Client(REMOTE_ADDR=some_client())
        passed, grown, refused = calls_until_refused(lambda: tester.post("/email", mail()))
        # The bucket refills five times a second.
        assert 100 <= passed <= 100 + 5 * (grown + 1)
        assert error(refused) == (429, 429)

    def test_a_request_that_computes_for_long_counts_several_times(self, tester, settings, monkeypatch):
        settings.RATE_LIMIT = (50, 100)
        tester.client = Client(REMOTE_ADDR=some_client())
        # Each reading of the clock is a second later.
        clock = itertools.count()
        monkeypatch.setattr("interfaces.compat.postmark.tokens.time.thread_time", lambda: next(clock))
        passed, _grown, _refused = calls_until_refused(lambda: tester.post("/email", mail()))
        assert passed <= 3


class TestInactive:
    @pytest.fixture(autouse=True)
    def _suppressed(self, alice, key):
        suppress_addresses(alice.workspace, addresses=["gone@example.com"], reason="bounce")

    def test_an_email_without_active_recipients_is_refused_with_the_sentence(self, postmark):
        response = postmark.post("/email", mail(To="Gone@example.com"))
        assert error(response) == (422, 406)
        message = response.json()["Message"]
        assert re.search(r"Found inactive addresses: (.+?)\.? Inactive", message)[1] == "gone@example.com"
        assert re.search(r"inactive addresses:\s*(.*)\.\s*Inactive recipients", message)[1] == "gone@example.com"

    def test_an_email_with_another_recipient_is_accepted_with_the_sentence(self, postmark):
        body = postmark.post("/email", mail(To="gone@example.com, ada@example.com")).json()
        assert body["ErrorCode"] == 0
        assert body["Message"].startswith(
            "Message OK, but will not deliver to these inactive addresses: gone@example.com. Inactive recipients are"
        )

    def test_a_batch_reports_each(self, postmark):
        results = postmark.post("/email/batch", [mail(), mail(To="gone@example.com"), mail(To="nobody"), 7]).json()
        assert [result["ErrorCode"] for result in results] == [0, 406, 300, 300]
        assert (results[0]["To"], Email.objects.count()) == ("ada@example.com", 1)


class TestBatch:
    def test_500_emails_pass_and_501_do_not(self, postmark):
        assert len(postmark.post("/email/batch", [mail()] * 500).json()) == 500
        assert error(postmark.post("/email/batch", [mail()] * 501)) == (422, 300)
        assert Email.objects.count() == 500


class TestTemplates:
    def body(self, **fields) -> dict:
        fields = {"TemplateModel": {"name": "Ada"}} | fields
        return {"From": "hi@alice.example", "To": "ada@example.com", **fields}

    def test_a_template_is_found_by_alias_and_by_number(self, postmark, template):
        from core.lib.ids import id_number

        number = id_number(template.id, prefix="tpl_")
        for fields in ({"TemplateAlias": "hello"}, {"TemplateId": number}):
            assert postmark.post("/email/withTemplate", self.body(**fields)).json()["ErrorCode"] == 0
        assert set(Email.objects.values_list("subject", "template_id")) == {("Hi Ada", template.id)}

    def test_templates_are_listed_and_read_as_active_ones(self, postmark, template):
        (listed,) = postmark.get("/templates?count=10&offset=0").json()["Templates"]
        read = postmark.get("/templates/hello").json()
        assert listed.items() <= read.items()
        assert (listed["Name"], listed["Alias"], listed["Active"], listed["TemplateType"]) == (
            "T",
            "hello",
            True,
            "Standard",
        )
        assert (read["Subject"], read["HtmlBody"], read["TextBody"]) == ("Hi {{name}}", "<p>{{name}}</p>", None)

    def test_an_unknown_template_is_1101(self, postmark):
        assert error(postmark.post("/email/withTemplate", self.body(TemplateAlias="none"))) == (422, 1101)
        assert error(postmark.post("/email/withTemplate", self.body())) == (422, 300)

    def test_a_batch_with_templates_reports_each(self, postmark, template):
        messages = [self.body(TemplateAlias="hello"), self.body(TemplateAlias="none")]
        results = postmark.post("/email/batchWithTemplates", {"Messages": messages}).json()
        assert [result["ErrorCode"] for result in results] == [0, 1101]


class TestReading:
    def test_messages_are_listed_by_recipient_and_tag(self, postmark):
        postmark.post("/email/batch", [mail(Tag="a"), mail(To="bob@example.com", Tag="b"), mail()])
        body = postmark.get("/messages/outbound?count=2&offset=0").json()
        assert (body["TotalCount"], len(body["Messages"])) == (3, 2)
        body = postmark.get("/messages/outbound?count=10&offset=0&recipient=bob@example.com").json()
        assert [message["Recipients"] for message in body["Messages"]] == [["bob@example.com"]]
        assert postmark.get("/messages/outbound?count=10&offset=0&tag=a").json()["TotalCount"] == 1
        for query in ("count=501&offset=0", "count=1&offset=10000", "count=1&fromdate=soon"):
            assert error(postmark.get(f"/messages/outbound?{query}")) == (422, 700)

    @each(
        ("query", "total"),
        [
            ("tag=a&fromDate=2020-01-01", 2),
            ("toDate=2020-01-01", 0),
            ("status=queued", 3),
            ("status=sent", 0),
            ("status=none", 0),
            ("fromemail=hi@alice", 3),
            ("fromemail=bob", 0),
            ("subject=HI", 3),
            ("messageid=x", 0),
            ("metadata_Order=7", 1),
            ("metadata_Order=7&metadata_shop=b", 0),
            ("metadata_shop=a", 1),
        ],
    )
    def test_messages_are_filtered(self, postmark, query, total):
        first, second = {"Order": "7", "shop": "a"}, {"Order": "8"}
        postmark.post("/email/batch", [mail(Tag="a", Metadata=first), mail(Tag="b", Metadata=second), mail(Tag="a")])
        assert postmark.get(f"/messages/outbound?count=10&offset=0&{query}").json()["TotalCount"] == total

    def test_a_filter_that_does_not_exist_is_refused_by_name(self, postmark):
        refused = postmark.get("/messages/outbound?count=10&offset=0&emailFilter=a")
        assert error(refused) == (422, 700)
        assert "emailFilter" in refused.json()["Message"]
        assert postmark.get("/messages/outbound?count=10&offset=0&messagestream=outbound&tag=").status_code == 200

    def test_a_tag_is_searched_among_the_newest_and_counted_to_a_limit(self, postmark, monkeypatch):
        postmark.post("/email/batch", [mail(Tag="old")])
        Email.objects.update(created_at=datetime.now(UTC) - timedelta(hours=1))
        postmark.post("/email/batch", [mail(Tag="a")] * 4)
        monkeypatch.setattr("interfaces.compat.postmark.filters.MAX_SEARCHED", 4)
        monkeypatch.setattr("interfaces.compat.views.MAX_COUNTED", 3)
        assert postmark.get("/messages/outbound?count=10&offset=0&tag=old").json()["TotalCount"] == 0
        body = postmark.get("/messages/outbound?count=10&offset=0&tag=a").json()
        assert (body["TotalCount"], len(body["Messages"])) == (3, 4)
        assert postmark.get("/messages/outbound?count=1&offset=0").json()["TotalCount"] == 5

    def test_opens_and_clicks_of_a_message_are_listed(self, postmark):
        sent = postmark.post("/email", mail(Tag="a")).json()
        recipient = Recipient.objects.get()
        details = {"url": "https://alice.example/"}
        for kind in (EventKind.OPENED, EventKind.CLICKED):
            record_events([NewEvent(kind, recipient.email_id, recipient.id, recipient.address, details)])
        page = "?count=10&offset=0"
        opens = postmark.get(f"/messages/outbound/opens/{sent['MessageID']}{page}").json()
        assert (opens["TotalCount"], opens["Opens"][0]["Recipient"]) == (1, "ada@example.com")
        (click,) = postmark.get(f"/messages/outbound/clicks/{sent['MessageID']}{page}").json()["Clicks"]
        assert (click["OriginalLink"], click["Tag"], click["RecordType"]) == (details["url"], "a", "Click")

    @each(
        ("query", "found"),
        [
            ("", {"bounced", "left", "manual"}),
            ("SuppressionReason=HardBounce", {"bounced"}),
            ("SuppressionReason=ManualSuppression", {"left", "manual"}),
            ("suppressionReason=ManualSuppression&origin=Customer", {"manual"}),
            ("Origin=Recipient", {"bounced", "left"}),
            ("Origin=Admin", set()),
            ("FromDate=2020-01-01&ToDate=2020-01-02", set()),
            ("FromDate=2020-01-01", {"bounced", "left", "manual"}),
            ("EmailAddress=Left@example.com", {"left"}),
        ],
    )
    def test_suppressions_are_filtered(self, postmark, alice, query, found):
        for name, reason in (("bounced", "bounce"), ("left", "unsubscribe"), ("manual", "manual")):
            suppress_addresses(alice.workspace, addresses=[f"{name}@example.com"], reason=reason)
        body = postmark.get(f"/message-streams/outbound/suppressions/dump?{query}").json()
        assert {one["EmailAddress"].partition("@")[0] for one in body["Suppressions"]} == found

    @each("query", ["SuppressionReason=Bounce", "Origin=Me", "FromDate=soon", "Reason=HardBounce"])
    def test_a_filter_of_suppressions_that_does_not_exist_is_refused(self, postmark, query):
        assert error(postmark.get(f"/message-streams/outbound/suppressions/dump?{query}")) == (422, 300)

    def test_each_address_of_suppressions_has_a_result(self, postmark, alice):
        entries = [{"EmailAddress": address} for address in ("Ada@example.com", "nobody", "bob@example.com", None)]
        for path, status in (("", "Suppressed"), ("/delete", "Deleted")):
            body = postmark.post(f"/message-streams/outbound/suppressions{path}", {"Suppressions": entries}).json()
            assert [one["Status"] for one in body["Suppressions"]] == [status, "Failed", status, "Failed"]
            assert [one["EmailAddress"] for one in body["Suppressions"]] == [one["EmailAddress"] for one in entries]
            assert [bool(one["Message"]) for one in body["Suppressions"]] == [False, True, False, True]
            assert alice.workspace.suppressions.count() == (2 if status == "Suppressed" else 0)


def test_a_dialect_at_the_root_is_chosen_by_path_and_header(key, settings):
    settings.COMPAT_AT_ROOT = ["resend", "postmark"]
    api = Api(key).client
    resend = {"authorization": f"Bearer {key}"}
    postmark = {"x-postmark-server-token": key}
    assert "ErrorCode" in api.post("/email", mail(), "application/json", headers=postmark).json()
    assert api.get("/emails", headers=resend).json()["object"] == "list"
    settings.COMPAT_AT_ROOT = []
    assert api.get("/emails", headers=resend).status_code == 404
