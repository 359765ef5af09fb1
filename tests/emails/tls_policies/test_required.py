"""TLS that an email requires itself, and the TLS of a delivery in its event and in the metrics."""

from datetime import UTC, datetime, timedelta

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, SessionTls, TlsPolicyKind
from core.delivery.transports.smtp.tls import TlsMode
from emails.models import Email, QueueEntry, Recipient
from emails.sending import delivery_health
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message
from events.models import Event
from suppressions.models import Suppression
from tests.conftest import Api, field_codes, mail
from tests.core.delivery.relaying import awaited, relay
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.emails.builders import claim_entries, deliver_all, fold, make_ready, send
from tests.emails.tls_policies.receiver import AUTHORITY
from tests.rows import each

pytestmark = pytest.mark.django_db

OK = Reply(250, "2.0.0 Ok")
STS = SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=True)


def messages():
    make_ready()
    return [build_message(job) for job in load_jobs(claim_entries(), memory_bytes=MEMORY_BYTES)]


class TestEmail:
    def test_requires_tls_of_this_and_the_next_hosts(self, api: Api):
        body = api.get(f"/emails/{send(api, tls='required')}").json()
        assert body["tls"] == "required"
        (message,) = messages()
        assert (message.requires_tls, message.asks_for_requiretls) == (True, True)

    @each("tls", ["opportunistic", None])
    def test_leaves_it_to_the_domain_otherwise(self, api: Api, tls):
        email = Email.objects.get(id=api.post("/emails/send", {**mail(), "tls": tls}).json()["id"])
        assert email.tls == tls == api.get(f"/emails/{email.id}").json().get("tls")
        (message,) = messages()
        assert (message.requires_tls, message.asks_for_requiretls) == (False, False)

    def test_asks_only_the_next_host_if_its_domain_requires_tls(self, api: Api, alice):
        api.patch(f"/domains/{alice.workspace.domains.get().id}", {"tls": "required"})
        send(api)
        (message,) = messages()
        assert (message.requires_tls, message.asks_for_requiretls) == (True, False)

    def test_of_a_batch_requires_it_too(self, api: Api):
        api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>x</p>", "alias": "t"})
        recipients = [{"to": "a@example.com"}, {"to": "b@example.com"}]
        batch = {"from": "x@alice.example", "templateId": "t", "recipients": recipients, "tls": "required"}
        assert api.post("/emails/batch", batch).status_code == 202
        assert {*Email.objects.values_list("tls", flat=True)} == {"required"}

    @each("tls", ["none", "REQUIRED", True, 1, {}])
    def test_with_another_value_is_refused(self, api: Api, tls):
        assert "tls" in field_codes(api.post("/emails/send", mail(tls=tls)))


class TestRequiretls:
    @each(("is_asked", "before", "after", "expected"), [
        (True, (), ("REQUIRETLS",), True),
        (True, (), (), False),
        (False, (), ("REQUIRETLS",), False),
        # Offered in plaintext only: an attacker may have written it.
        (True, ("REQUIRETLS",), (), False),
    ])  # fmt: skip
    def test_is_used_where_the_host_offers_it_over_tls(self, is_asked, before, after, expected):
        @awaited
        async def work() -> None:
            tls = AUTHORITY.serving("127.0.0.1")
            async with ScriptedServer(tls=tls, extensions=before, secure_extensions=after) as server:
                transport = relay(server, tls=TlsMode.REQUIRED, context=AUTHORITY.trusting)
                message = outgoing_message(requires_tls=True, asks_for_requiretls=is_asked)
                outcome = await transport.deliver(message, lease=StubLease())
                transport.close()
                assert outcome.status is DeliveryStatus.SENT
                assert ("REQUIRETLS" in server.said("MAIL")[0]) is expected

        work()


class TestEvent:
    def test_of_a_delivery_has_its_tls_and_that_of_the_acceptance_has_not(self, api: Api):
        email_id = send(api)
        make_ready()
        deliver_all(DeliveryOutcome(DeliveryStatus.DELIVERED, OK, tls=STS))
        events = {one["eventType"]: one["payload"] for one in api.get(f"/emails/{email_id}/events").json()["data"]}
        assert events["delivered"]["tls"] == {"version": "TLSv1.3", "policy": "sts", "verified": True}
        assert "tls" not in events["sent"]
        (shown,) = [event.data for event in Event.objects.filter(kind="delivered")]
        assert shown["tls"]["policy"] == "sts"

    def test_of_a_relay_has_none(self, api: Api):
        send(api)
        make_ready()
        deliver_all(DeliveryOutcome(DeliveryStatus.SENT, OK))
        assert not any("tls" in event.payload for event in Event.objects.all())

    def test_of_a_failure_names_the_policy_and_suppresses_nobody(self, api: Api, settings):
        settings.SUPPRESS_ON = "every_bounce"
        send(api)
        QueueEntry.objects.update(since=datetime.now(UTC) - timedelta(days=2))
        make_ready()
        failed = SessionTls(None, TlsPolicyKind.STS, verified=False)
        text = "The host offers no TLS. The MTA-STS policy of example.com (enforce) requires TLS."
        deliver_all(DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, text), FailureReason.TLS, tls=failed))
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "tls")
        event = Event.objects.get(kind="failed")
        assert (event.payload["reason"], event.payload["message"]) == ("tls", text)
        assert not Suppression.objects.exists()


class TestCounts:
    @each(("outcome", "labels"), [
        (DeliveryOutcome(DeliveryStatus.DELIVERED, OK, tls=STS), ("sts", "verified")),
        (
            DeliveryOutcome(DeliveryStatus.DELIVERED, OK, tls=SessionTls(None, TlsPolicyKind.STS, verified=False)),
            ("sts", "unverified"),
        ),
        (
            DeliveryOutcome(
                DeliveryStatus.DEFERRED, Reply(0, ""), "tls", tls=SessionTls(None, TlsPolicyKind.DANE, verified=False)
            ),
            ("dane", "failed"),
        ),
        (DeliveryOutcome(DeliveryStatus.DELIVERED, OK, tls=SessionTls(None, TlsPolicyKind.NONE, verified=False)), None),
        (DeliveryOutcome(DeliveryStatus.SENT, OK), None),
    ])  # fmt: skip
    def test_are_by_policy_and_result(self, api: Api, outcome, labels):
        send(api)
        make_ready()
        deliver_all(outcome)
        fold()
        counts = {name: count for name, count in delivery_health.read_policy_counts() if count}
        assert counts == ({labels: 1} if labels else {})
