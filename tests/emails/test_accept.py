"""`accept_emails`: any number of complete emails in one transaction, with a result for each."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.api.errors import InvalidFields
from core.lib.email_addresses import parse_address
from core.lib.ids import uuid_text
from core.workspaces.errors import QuotaExceeded
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Usage, Workspace
from domains.errors import DomainNotRegistered
from emails.accept.drafts import Draft
from emails.accept.idempotency import IdempotencyKey
from emails.accept.services import accept_emails
from emails.accept.suppressed import SuppressionPolicy
from emails.errors import IdempotencyKeyReuse
from emails.models import Content, Email
from events.models import Event
from suppressions.errors import RecipientSuppressed
from suppressions.services import suppress_addresses
from templates_app.content import TemplateContent
from templates_app.errors import TemplateNotFound
from templates_app.services import create_template, find_templates
from tests.conftest import make_domain
from tests.emails.builders import nothing_was_written

pytestmark = pytest.mark.django_db
POLICY = SuppressionPolicy


def draft(to: str = "ada@example.com", **fields) -> Draft:
    values = {"sender": parse_address("hi@alice.example"), "subject": "Hello", "text": "Hi", **fields}
    return Draft(to=tuple(parse_address(one) for one in to.split(",")), **values)


def accept(workspace: Workspace, *drafts, all_or_nothing: bool = False, key=None, **options) -> list[dict]:
    stored = accept_emails(
        workspace, drafts=drafts, all_or_nothing=all_or_nothing, key=key, limits=NO_LIMITS, **options
    )
    return stored.body["results"]


def key(text: str = "k", fingerprint: str = "f") -> IdempotencyKey:
    return IdempotencyKey(text=text, operation="batch", fingerprint=fingerprint, is_strict=True)


def test_each_email_keeps_its_own_fields(workspace):
    make_domain(workspace, "second.example")
    drafts = [
        draft("ada@example.com", subject="One", tags=("a",), headers={"X-A": "1"}, track_opens=False),
        draft("bob@example.com,eve@example.com", sender=parse_address("Bob <b@second.example>"), subject="Two",
              metadata={"n": 2}, reply_to=(parse_address('"B, B" <b@b.example>'), parse_address("c@c.example"))),
    ]  # fmt: skip
    one, two = (Email.objects.get(id=result["id"]) for result in accept(workspace, *drafts))
    wanted = "One", ["a"], {"X-A": "1"}, False, "hi@alice.example"
    assert (one.subject, one.tags, one.headers, one.track_opens, one.sender) == wanted
    assert (two.subject, two.tags, two.metadata, two.track_opens) == ("Two", [], {"n": 2}, True)
    assert (two.from_domain, two.reply_to) == ("second.example", '"B, B" <b@b.example>, c@c.example')
    assert [recipient.address for recipient in two.recipients.all()] == ["bob@example.com", "eve@example.com"]


def test_immediate_and_scheduled_emails_are_accepted_together(workspace):
    later = datetime.now(UTC) + timedelta(hours=1)
    results = accept(workspace, draft(), draft(scheduled_for=later), draft())
    assert [result["status"] for result in results] == ["queued", "scheduled", "queued"]
    assert Email.objects.get(id=results[1]["id"]).scheduled_for == later
    assert Usage.objects.get().used == Event.objects.count() == 3


def test_equal_contents_are_stored_once(workspace):
    later = datetime.now(UTC) + timedelta(hours=1)
    accept(workspace, draft(), draft("bob@example.com"), draft(scheduled_for=later), draft(text="Other"))
    assert Content.objects.count() == 2


def test_500_emails_take_as_many_statements_as_10(workspace):
    template = create_template(
        workspace, name="T", content=TemplateContent("Hi {{n}}", "<p>{{n}}</p>"), alias="t", strict_variables=False
    )
    references = ["t", template.id, uuid_text(template.id, prefix="tpl_")]
    counts = []
    for count in (10, 500):
        accept(workspace, draft())  # reads values that are cached for a while
        drafts = [
            draft(f"a{n}@example.com", template=references[n % 3], subject=None, text="", template_data={"n": n})
            for n in range(count)
        ]
        with CaptureQueriesContext(connection) as queries:
            results = accept(workspace, *drafts, key=key(f"k{count}"), suppressed=POLICY.REPORT)
        assert len({result["id"] for result in results}) == count
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 9


class TestProblems:
    def test_an_email_with_a_problem_leaves_the_others_accepted(self, workspace):
        foreign = draft(sender=parse_address("hi@elsewhere.example"))
        problem = InvalidFields([{"field": "to", "code": "invalid", "detail": "No."}])
        results = accept(workspace, draft(), foreign, problem, draft(template="none"), draft())
        codes = [result.get("problem", {}).get("code") for result in results]
        assert codes == [None, DomainNotRegistered.code, InvalidFields.code, TemplateNotFound.code, None]
        assert Email.objects.count() == Usage.objects.get().used == 2

    def test_with_all_or_nothing_the_first_problem_is_raised_with_its_index(self, workspace):
        foreign = draft(sender=parse_address("hi@elsewhere.example"))
        with pytest.raises(DomainNotRegistered) as caught:
            accept(workspace, draft(), foreign, draft(template="none"), all_or_nothing=True)
        assert caught.value.members["index"] == 1
        assert nothing_was_written()

    def test_a_quota_that_does_not_cover_all_emails_accepts_none(self, workspace):
        Workspace.objects.filter(id=workspace.id).update(plan="free")
        workspace.refresh_from_db()
        later = datetime.now(UTC) + timedelta(hours=1)
        drafts = [draft(f"a{n}@example.com", scheduled_for=later if n % 2 else None) for n in range(501)]
        with pytest.raises(QuotaExceeded):
            accept(workspace, *drafts)
        assert nothing_was_written()


class TestSuppressed:
    @pytest.fixture(autouse=True)
    def _suppressed(self, workspace):
        suppress_addresses(workspace, addresses=["gone@example.com", "left@example.com"], reason="bounce")

    def test_refuse_makes_an_email_with_a_suppressed_recipient_a_problem(self, workspace):
        results = accept(workspace, draft("ada@example.com,Gone@example.com"), draft())
        assert results[0]["problem"]["code"] == RecipientSuppressed.code
        assert [recipient["email"] for recipient in results[0]["problem"]["recipients"]] == ["Gone@example.com"]
        assert Email.objects.count() == 1

    def test_report_lists_suppressed_recipients_and_refuses_an_email_without_others(self, workspace):
        results = accept(
            workspace,
            draft("ada@example.com,gone@example.com"),
            draft("gone@example.com,left@example.com"),
            suppressed=POLICY.REPORT,
        )
        assert results[0]["suppressed"] == ["gone@example.com"]
        assert results[1]["problem"]["code"] == RecipientSuppressed.code
        assert Email.objects.get().to == ["ada@example.com", "gone@example.com"]

    def test_accept_looks_up_nothing(self, workspace):
        (result,) = accept(workspace, draft("gone@example.com"), suppressed=POLICY.ACCEPT)
        assert result.keys() == {"id", "status", "createdAt"}

    def test_with_all_or_nothing_one_suppressed_recipient_refuses_all(self, workspace):
        with pytest.raises(RecipientSuppressed):
            accept(workspace, draft(), draft("gone@example.com"), all_or_nothing=True)
        assert nothing_was_written()


class TestIdempotency:
    def test_a_repeated_key_returns_the_same_results(self, workspace):
        drafts = [draft(), draft(template="none")]
        first = accept(workspace, *drafts, key=key())
        assert accept(workspace, *drafts, key=key()) == first
        assert Email.objects.count() == 1

    def test_a_key_used_for_other_emails_is_refused(self, workspace):
        accept(workspace, draft(), key=key())
        with pytest.raises(IdempotencyKeyReuse):
            accept(workspace, draft(), key=key(fingerprint="other"))
        assert Email.objects.count() == 1


def test_an_email_without_a_template_builds_no_query_of_templates():
    class NoWorkspace:
        """Has no templates to ask for."""

    assert find_templates(NoWorkspace(), {None}, NO_LIMITS) == {None: None}
