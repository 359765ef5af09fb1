"""Message streams in Postmark's API, and the suppressions of each."""

from datetime import datetime, timedelta

import pytest

from core.workspaces.key_limits import read_limits
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Email, Recipient
from events.kinds import EventKind
from streams.models import Stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Account, Api, make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_postmark import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db
NEWS = {"ID": "news", "Name": "News", "MessageStreamType": "Broadcasts"}
UNKNOWN, UNKNOWN_OF_EMAIL = (422, 1226), (422, 1235)


def ids(postmark: Dialect, query: str = "") -> list[str]:
    body = postmark.get(f"/message-streams{query}").json()
    assert body["TotalCount"] == len(body["MessageStreams"])
    return [stream["ID"] for stream in body["MessageStreams"]]


def handling(name: str) -> dict:
    return {"SubscriptionManagementConfiguration": {"UnsubscribeHandlingType": name}}


def suppress(postmark: Dialect, stream: str, address: str = "ada@example.com", action: str = "") -> dict:
    entries = {"Suppressions": [{"EmailAddress": address}]}
    (status,) = postmark.post(f"/message-streams/{stream}/suppressions{action}", entries).json()["Suppressions"]
    return status


def dumped(postmark: Dialect, stream: str, query: str = "") -> list[tuple[str, str, str]]:
    rows = postmark.get(f"/message-streams/{stream}/suppressions/dump{query}").json()["Suppressions"]
    return [(row["EmailAddress"], row["SuppressionReason"], row["Origin"]) for row in rows]


def code(response) -> int:
    return response.json()["ErrorCode"]


@pytest.fixture
def news(postmark: Dialect) -> dict:
    response = postmark.post("/message-streams", NEWS)
    assert response.status_code == 200, response.content
    return response.json()


class TestStreams:
    def test_every_workspace_has_outbound_and_inbound(self, postmark):
        assert ids(postmark) == ["outbound", "inbound"]
        outbound, inbound = postmark.get("/message-streams").json()["MessageStreams"]
        assert (outbound["MessageStreamType"], inbound["MessageStreamType"]) == ("Transactional", "Inbound")
        assert outbound["SubscriptionManagementConfiguration"] == {"UnsubscribeHandlingType": "Postmark"}
        assert postmark.get("/message-streams/outbound").json() == outbound
        assert postmark.get("/message-streams/inbound").json() == inbound
        assert not Stream.objects.exists()

    def test_a_stream_of_postmark_is_a_stream_of_v1(self, postmark, news, key):
        stream = Api(key).get("/streams/news").json()
        assert (stream["kind"], stream["unsubscribe"], stream["public"]) == ("bulk", "link", True)
        assert postmark.get("/message-streams/news").json() == news
        assert ids(postmark, "?MessageStreamType=Broadcasts") == ["news"]
        assert ids(postmark, "?messageStreamType=transactional") == ["outbound"]
        assert ids(postmark, "?MessageStreamType=Inbound") == ["inbound"]
        assert error(postmark.get("/message-streams?MessageStreamType=Some")) == (422, 300)

    @each(("theirs", "ours"), [("None", "none"), ("Postmark", "link"), ("Custom", "headers")])
    def test_the_handling_of_unsubscribes(self, postmark, key, theirs, ours):
        body = {"ID": "a", "Name": "A", "MessageStreamType": "Transactional"} | handling(theirs)
        created = postmark.post("/message-streams", body).json()
        assert created["SubscriptionManagementConfiguration"] == {"UnsubscribeHandlingType": theirs}
        stream = Api(key).get("/streams/a").json()
        assert (stream["unsubscribe"], stream["ignoresUnsubscribes"]) == (ours, ours == "none")

    @each(
        ("change", "expected"),
        [
            ({}, (422, 1230)),
            ({"ID": "outbound"}, (422, 1230)),
            ({"ID": "inbound"}, (422, 1230)),
            ({"ID": "A b"}, (422, 300)),
            ({"ID": None}, (422, 300)),
            ({"ID": "b", "Name": None}, (422, 300)),
            ({"ID": "b", "MessageStreamType": None}, (422, 300)),
            ({"ID": "b", "MessageStreamType": "Inbound"}, (422, 300)),
            ({"ID": "b", **handling("Some")}, (422, 300)),
            ({"ID": "b", **handling("None")}, (422, 300)),
        ],
    )
    def test_an_invalid_stream_is_refused(self, postmark, news, change, expected):
        assert error(postmark.post("/message-streams", NEWS | change)) == expected
        assert Stream.objects.count() == 1

    def test_a_stream_is_changed(self, postmark, news):
        changes = {"Name": "Monthly", "Description": "Once a month"} | handling("Custom")
        changed = postmark.call("PATCH", "/message-streams/news", changes).json()
        assert (changed["Name"], changed["Description"]) == ("Monthly", "Once a month")
        assert changed["SubscriptionManagementConfiguration"] == {"UnsubscribeHandlingType": "Custom"}
        assert postmark.call("PATCH", "/message-streams/news", {}).json() == changed
        assert postmark.call("PATCH", "/message-streams/outbound", {"Name": "Shop"}).json()["Name"] == "Shop"

    def test_an_archived_stream_accepts_nothing_and_is_not_purged(self, postmark, news):
        archived = postmark.post("/message-streams/news/archive", {}).json()
        assert archived.keys() == {"ID", "ServerID", "ExpectedPurgeDate"}
        row = Stream.objects.get()
        assert row.archived_at
        assert datetime.fromisoformat(archived["ExpectedPurgeDate"]) - row.archived_at < timedelta(days=45, seconds=1)
        assert ids(postmark) == ["outbound", "inbound"]
        assert ids(postmark, "?IncludeArchivedStreams=true") == ["outbound", "news", "inbound"]
        shown = postmark.get("/message-streams/news").json()
        assert (shown["ExpectedPurgeDate"], bool(shown["ArchivedAt"])) == (archived["ExpectedPurgeDate"], True)
        assert postmark.post("/email", mail(MessageStream="news")).status_code == 422
        restored = postmark.post("/message-streams/news/unarchive", {}).json()
        assert (restored["ArchivedAt"], restored["ExpectedPurgeDate"]) == (None, None)
        assert code(postmark.post("/email", mail(MessageStream="news"))) == 0

    @each("stream", ["outbound", "inbound"])
    def test_the_default_streams_cannot_be_archived(self, postmark, stream):
        assert error(postmark.post(f"/message-streams/{stream}/archive", {})) == (422, 1229)

    def test_an_unknown_stream_has_postmarks_code(self, postmark, bob: Account):
        Stream.objects.create(workspace=bob.workspace, slug="secret", name="Secret")
        for stream in ("secret", "nothing"):
            assert error(postmark.get(f"/message-streams/{stream}")) == UNKNOWN
            assert error(postmark.call("PATCH", f"/message-streams/{stream}", {"Name": "A"})) == UNKNOWN
            assert error(postmark.post(f"/message-streams/{stream}/archive", {})) == UNKNOWN
            assert error(postmark.post(f"/message-streams/{stream}/unarchive", {})) == UNKNOWN
            assert error(postmark.get(f"/message-streams/{stream}/suppressions/dump")) == UNKNOWN
            assert error(postmark.post("/email", mail(MessageStream=stream))) == UNKNOWN_OF_EMAIL
            refused = postmark.post(f"/message-streams/{stream}/suppressions", {"Suppressions": []})
            assert refused.json()["Message"] == "The message stream for the provided 'ID' was not found."


class TestEmails:
    def test_an_email_is_in_its_stream(self, postmark, news):
        for stream in ("news", "outbound", None, ""):
            assert code(postmark.post("/email", mail(MessageStream=stream))) == 0
        assert sorted(Email.objects.values_list("stream", flat=True)) == ["main", "main", "main", "news"]
        for stream, count in (("news", 1), ("outbound", 3), ("nothing", 0)):
            listed = postmark.get(f"/messages/outbound?messagestream={stream}").json()
            assert listed["TotalCount"] == count
            assert {message["MessageStream"] for message in listed["Messages"]} <= {stream}

    def test_every_way_to_send_has_the_stream(self, postmark, news, alice):
        api = Api(make_key(alice.workspace))
        api.post("/templates", {"name": "T", "alias": "hello", "subject": "Hi", "htmlContent": "<p>Hi</p>"})
        templated = {"From": "hi@alice.example", "To": "ada@example.com", "TemplateAlias": "hello", "TemplateModel": {}}
        shared = {"From": "hi@alice.example", "Subject": "Hi", "TextBody": "Hi", "Messages": [{"To": "a@example.com"}]}
        calls = {
            "/email/batch": [mail(MessageStream="news")],
            "/email/withTemplate": templated | {"MessageStream": "news"},
            "/email/batchWithTemplates": {"Messages": [templated | {"MessageStream": "news"}]},
            "/email/bulk": shared | {"MessageStream": "news"},
        }
        for path, body in calls.items():
            assert postmark.post(path, body).status_code == 200
        assert [*Email.objects.values_list("stream", flat=True)] == ["news"] * len(calls)

    def test_a_batch_names_the_email_whose_stream_is_unknown(self, postmark):
        results = postmark.post("/email/batch", [mail(), mail(MessageStream="nothing")]).json()
        assert [result["ErrorCode"] for result in results] == [0, 1235]
        assert results[1]["Message"] == "The stream provided: 'nothing' does not exist on this server."

    @each("stream", ["inbound", 7, ["news"]])
    def test_other_values_are_refused(self, postmark, stream):
        assert error(postmark.post("/email", mail(MessageStream=stream))) == (422, 1236 if stream == "inbound" else 300)
        assert not Email.objects.exists()

    def test_a_key_with_one_stream_needs_no_name(self, postmark, news, alice):
        limited = make_key(alice.workspace, "sending_access", limits=read_limits(streams=["news"]))
        sender = Dialect("postmark", limited)
        assert code(sender.post("/email", mail())) == 0
        assert Email.objects.get().stream == "news"
        assert sender.post("/email", mail(MessageStream="outbound")).status_code == 403


class TestSuppressions:
    def test_a_suppression_blocks_its_stream_only(self, postmark, news):
        assert suppress(postmark, "news") == {
            "EmailAddress": "ada@example.com",
            "Status": "Suppressed",
            "Message": None,
        }
        assert dumped(postmark, "news") == [("ada@example.com", "ManualSuppression", "Customer")]
        assert dumped(postmark, "outbound") == []
        assert error(postmark.post("/email", mail(MessageStream="news"))) == (422, 406)
        assert code(postmark.post("/email", mail())) == 0
        assert suppress(postmark, "outbound", action="/delete")["Status"] == "Deleted"
        assert code(postmark.post("/email", mail(MessageStream="news"))) == 406
        assert suppress(postmark, "news", action="/delete")["Status"] == "Deleted"
        assert code(postmark.post("/email", mail(MessageStream="news"))) == 0

    def test_a_suppression_of_outbound_blocks_all_streams(self, postmark, news):
        suppress(postmark, "outbound")
        assert Suppression.objects.get().stream == ""
        assert dumped(postmark, "news") == dumped(postmark, "outbound") != []
        assert code(postmark.post("/email", mail(MessageStream="news"))) == 406
        failed = suppress(postmark, "news", action="/delete")
        assert (failed["Status"], "outbound" in failed["Message"]) == ("Failed", True)
        assert suppress(postmark, "outbound", action="/delete")["Status"] == "Deleted"
        assert dumped(postmark, "news") == []

    def test_the_dump_has_reason_and_origin_of_each(self, postmark, news, alice):
        reasons = {
            "bounce": ("HardBounce", "Recipient"),
            "complaint": ("SpamComplaint", "Recipient"),
            "unsubscribe": ("ManualSuppression", "Recipient"),
            "manual": ("ManualSuppression", "Customer"),
        }
        for reason in reasons:
            suppress_address(alice.workspace, address=f"{reason}@example.com", reason=reason, stream="news")
        found = {address.partition("@")[0]: rest for address, *rest in dumped(postmark, "news")}
        assert {name: tuple(rest) for name, rest in found.items()} == reasons
        assert [row[0] for row in dumped(postmark, "news", "?EmailAddress=BOUNCE@example.com")] == [
            "bounce@example.com"
        ]

    def test_a_stream_that_ignores_unsubscribes_does_not_list_those_of_the_workspace(self, postmark, alice):
        body = {"ID": "alerts", "Name": "Alerts", "MessageStreamType": "Transactional"} | handling("None")
        postmark.post("/message-streams", body)
        suppress_address(alice.workspace, address="ada@example.com", reason="unsubscribe")
        suppress_address(alice.workspace, address="bob@example.com", reason="bounce")
        assert [row[0] for row in dumped(postmark, "alerts")] == ["bob@example.com"]
        assert code(postmark.post("/email", mail(MessageStream="alerts"))) == 0

    def test_a_suppression_of_main_alone_is_that_of_outbound(self, postmark, alice):
        suppress_address(alice.workspace, address="ada@example.com", reason="manual", stream="main")
        assert len(dumped(postmark, "outbound")) == 1
        assert suppress(postmark, "outbound", action="/delete")["Status"] == "Deleted"
        assert not Suppression.objects.exists()

    def test_a_bounce_of_a_stream_is_activated_there(self, postmark, news):
        Stream.objects.update(own_bounces=True)
        postmark.post("/email", mail(MessageStream="news"))
        recipient = Recipient.objects.get()
        record_reports([ReportedEvent(recipient.id, EventKind.BOUNCED, is_recipient_fault=True)])
        assert Suppression.objects.get().stream == "news"
        (bounce,) = postmark.get("/bounces?messagestream=news").json()["Bounces"]
        assert (bounce["MessageStream"], bounce["Inactive"]) == ("news", True)
        assert postmark.get("/bounces?messagestream=outbound").json()["Bounces"] == []
        activated = postmark.call("PUT", f"/bounces/{bounce['ID']}/activate").json()["Bounce"]
        assert activated["Inactive"] is False
        assert not Suppression.objects.exists()
