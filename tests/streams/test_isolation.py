"""An unsubscribe or a complaint in one stream never changes what another may send; truth about an address does."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from core.lib.email_addresses import parse_address
from core.workspaces.api import authentication
from core.workspaces.key_limits import NO_LIMITS
from domains.services import sending_domain_cache
from emails.accept.checks import check_drafts
from emails.accept.drafts import Draft
from emails.feedback.reports import ReportedEvent, record_reports
from emails.feedback.unsubscribe import unsubscribe
from emails.links import UnsubscribeLink
from emails.models import Email, Recipient
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.sending_checks import check_jobs
from events.kinds import EventKind
from streams.models import MAIN, Stream
from streams.services import streams_cache
from suppressions.models import Suppression
from suppressions.services import find_suppressed, suppress_address
from tests.conftest import Api, mail, make_account, make_domain, make_key
from tests.emails.builders import claim_entries

ADDRESS = "Ada@example.com"
REASONS = ["unsubscribe", "complaint", "bounce", "manual", "manual in the stream"]


def properties() -> st.SearchStrategy[dict]:
    """The properties of a stream; None stands for `main`."""
    return st.fixed_dictionaries(
        {
            "kind": st.sampled_from(Stream.Kind.values),
            "scope": st.sampled_from(Stream.SuppressionScope.values),
            "own_bounces": st.booleans(),
            "ignores_unsubscribes": st.booleans(),
        }
    )


def blocked_by_contract(reason: str, source: dict | None, other: dict | None, *, is_same: bool) -> bool:
    """Return whether a suppression that an email of one stream causes blocks another, as the contract says.

    source, other: the properties of the streams; None for `main`.
    """
    scope = source["scope"] if source else "workspace"
    if reason == "manual":
        return True
    if reason == "manual in the stream":
        return is_same
    if reason == "bounce":
        return is_same or not (source and source["own_bounces"])
    if scope == "stream":
        return is_same
    ignores = other is not None and other["ignores_unsubscribes"]
    return not (reason == "unsubscribe" and ignores)


def cause(reason: str, email: Email, workspace) -> None:
    """Let a fact about the recipient of an email arrive in the way in which it arrives in production."""
    recipient = Recipient.objects.get(email=email)
    if reason == "unsubscribe":
        unsubscribe(UnsubscribeLink(workspace.id, recipient.id, recipient.address, email.stream))
    elif reason == "complaint":
        record_reports([ReportedEvent(recipient.id, EventKind.COMPLAINED)])
    elif reason == "bounce":
        details = {"code": 550, "enhancedCode": "5.1.1", "message": "No such user.", "reason": "unknown_user"}
        record_reports([ReportedEvent(recipient.id, EventKind.BOUNCED, details, is_recipient_fault=True)])
    else:
        stream = email.stream if reason == "manual in the stream" else ""
        suppress_address(workspace, address=recipient.address, reason="manual", stream=stream)


class TestIsolation(TestCase):
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        reason=st.sampled_from(REASONS),
        source=st.none() | properties(),
        other=st.none() | properties(),
        is_same=st.booleans(),
    )
    def test_a_wish_stays_in_its_stream_and_truth_does_not(self, reason, source, other, is_same):
        for cache in (authentication.cache, sending_domain_cache, streams_cache):
            cache.clear()
        account = make_account("alice")
        workspace = account.workspace
        make_domain(workspace, "alice.example")
        api = Api(make_key(workspace))
        other = source if is_same else other
        is_same = is_same or (source is None and other is None)
        names = [MAIN if values is None else name for name, values in (("a", source), ("b", other))]
        names = [names[0]] * 2 if is_same else names
        for name, values in {names[0]: source, names[1]: other}.items():
            if values:
                Stream.objects.create(workspace=workspace, slug=name, name=name, **values)
        sent = api.post("/emails/send", mail(to=ADDRESS, stream=names[0])).json()
        waiting = api.post("/emails/send", mail(to=ADDRESS, stream=names[1])).json()
        cause(reason, Email.objects.get(id=sent["id"]), workspace)
        expected = blocked_by_contract(reason, source, other, is_same=is_same)

        found = find_suppressed(workspace.id, [ADDRESS], stream=names[1])
        assert bool(found) is expected
        answers = {
            "send": api.post("/emails/send", mail(to=ADDRESS, stream=names[1])),
            "dry run": api.post("/emails/send", mail(to=ADDRESS, stream=names[1], dryRun=True)),
        }
        for what, answer in answers.items():
            refused = answer.status_code == 422 and answer.json()["code"] == "recipient_suppressed"
            assert refused is expected, (what, answer.content)
        assert (waiting["id"] in _refused_by_workers()) is expected


def _refused_by_workers() -> set[str]:
    """Return the ids of queued emails that a worker would not send."""
    jobs = load_jobs(claim_entries(10), memory_bytes=MEMORY_BYTES)
    return {job.email_id for job in jobs} - {job.email_id for job in check_jobs(jobs)}


@pytest.mark.django_db
def test_the_refusal_names_the_stream_and_the_suppression(api: Api, alice):
    Stream.objects.create(workspace=alice.workspace, slug="news", name="News", kind="bulk")
    row, _ = suppress_address(alice.workspace, address=ADDRESS, reason="unsubscribe", stream="news")
    entry = {"email": ADDRESS, "field": "to[0]", "reason": "unsubscribe", "suppressionId": row.id, "stream": "news"}
    assert api.post("/emails/send", mail(to=ADDRESS, stream="news")).json()["recipients"] == [entry]
    assert api.post("/emails/send", mail(to=ADDRESS)).status_code == 202


@pytest.mark.django_db
def test_deleting_one_suppression_keeps_the_others(api: Api, alice):
    api.post("/streams", {"id": "news", "name": "News", "kind": "bulk"})
    of_stream = api.post("/suppressions", {"email": ADDRESS, "stream": "news"}).json()
    of_workspace = api.post("/suppressions", {"email": ADDRESS}).json()
    assert (of_stream["stream"], "stream" in of_workspace) == ("news", False)
    assert [row["id"] for row in api.get("/suppressions", {"stream": "news"}).json()["data"]] == [of_stream["id"]]
    assert api.get("/suppressions", {"search": "ws\n"}).json()["total"] == 0
    assert api.get("/suppressions", {"search": "ADA@"}).json()["total"] == 2
    assert api.delete(f"/suppressions/{of_workspace['id']}").status_code == 200
    assert list(Suppression.objects.values_list("stream", flat=True)) == ["news"]
    assert api.post("/emails/send", mail(to=ADDRESS)).status_code == 202
    assert api.post("/emails/send", mail(to=ADDRESS, stream="news")).status_code == 422


@pytest.mark.django_db
def test_a_batch_rejects_the_recipients_of_its_stream(api: Api, alice):
    api.post("/streams", {"id": "news", "name": "News", "kind": "bulk"})
    api.post("/suppressions", {"email": ADDRESS, "stream": "news"})
    api.post("/templates", {"name": "t", "alias": "t", "subject": "s", "htmlContent": "<p>Hi"})
    body = {"from": "hi@alice.example", "templateId": "t", "recipients": [{"to": ADDRESS}, {"to": "bob@example.com"}]}
    assert api.post("/emails/batch", {**body, "stream": "news"}).json()["rejected"][0]["to"] == ADDRESS
    assert api.post("/emails/batch", body).json()["rejected"] == []


@pytest.mark.django_db
def test_a_stream_of_another_workspace_cannot_be_suppressed(api: Api, bob):
    Stream.objects.create(workspace=bob.workspace, slug="secret", name="Secret")
    response = api.post("/suppressions", {"email": ADDRESS, "stream": "secret"})
    assert (response.status_code, response.json()["code"]) == (422, "stream_not_found")


@pytest.mark.django_db
def test_an_unknown_stream_of_many_emails_is_looked_up_once(alice, django_assert_max_num_queries):
    make_domain(alice.workspace, "alice.example")
    sender, to = parse_address("hi@alice.example"), (parse_address("ada@example.com"),)
    drafts = [Draft(sender=sender, to=to, subject="Hi", text="Hi", stream="nothing") for _ in range(50)]
    with django_assert_max_num_queries(5):
        problems = check_drafts(alice.workspace, drafts, NO_LIMITS)
    assert {problem.code for problem in problems} == {"stream_not_found"}
