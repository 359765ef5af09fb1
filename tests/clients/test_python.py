"""The Python library against the running service (docs/decisions/0048)."""

import csv
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import postrider_client
import pytest
from postrider_client import Attachment, BatchRecipient, Postrider
from postrider_client.retries import seconds_after

from tests.clients.faulty import HANG, LOSE, RETRY_CASES, Answer, problem, proxy
from tests.clients.messages import someone
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

FROM = "Demo <hello@demo.example>"


def new_email(**fields):
    return {"from_": FROM, "to": someone(), "subject": "Hello", "html": "<p>Hi</p>", **fields}


def in_an_hour():
    return datetime.now(UTC) + timedelta(hours=1)


def test_an_email_is_accepted_and_delivered_and_has_a_timeline(client):
    to = someone()
    fields = new_email(to=to, tags=["python"], metadata={"orderId": 7}, idempotency_key=str(uuid4()))
    accepted = client.emails.send(**fields)
    assert accepted.status == "queued"
    assert client.emails.send(**fields).id == accepted.id
    email = wait_for(lambda: delivered(client, accepted.id), seconds=20, what="the delivery")
    assert (email.to, email.from_, email.metadata, email.tags) == (to, FROM, {"orderId": 7}, ["python"])
    assert email.recipients[0].delivered_at == email.delivered_at > email.created_at
    events = client.emails.events(accepted.id)
    assert [event.event_type for event in events] == ["queued", "sent", "delivered"]
    assert events[0].payload["emailId"] == accepted.id
    with pytest.raises(postrider_client.EmailAlreadySent):
        client.emails.cancel(email.id)
    key = str(uuid4())
    again = client.emails.resend(email.id, idempotency_key=key)
    assert again.id != email.id
    assert client.emails.resend(email.id, idempotency_key=key).id == again.id


def delivered(client, email_id):
    email = client.emails.get(email_id)
    return email if email.delivered_at else None


def page_answer(*numbers, **members):
    items = [
        {"id": f"e{number}", "to": "a@example.com", "from": FROM, "subject": "Hi", "status": "sent",
         "createdAt": "2026-03-15T12:00:00.000Z", "sentAt": None}
        for number in numbers
    ]  # fmt: skip
    return Answer(200, {}, json.dumps({"data": items, "page": 1, "limit": 2, **members}).encode())


def test_a_list_continues_with_older_emails_where_its_pages_end(service):
    newer, older = "2026-03-15T12:00:00.000Z", "2026-03-14T12:00:00.000Z"
    answers = (
        page_answer(1, 2, total=10_001, totalIsExact=False),
        page_answer(3, total=3, page=2, totalIsExact=False, continueTo=newer),
        # An email of the same millisecond is in both lists; a list without matches continues, too.
        page_answer(2, 3, total=3, totalIsExact=False),
        page_answer(4, total=3, page=2, totalIsExact=False, continueTo=older),
        page_answer(total=0, totalIsExact=False, continueTo="2026-03-13T12:00:00.000Z"),
        page_answer(5, total=1),
    )
    first = answers[0]
    with (
        proxy(service.stack.url, first, *answers) as server,
        Postrider(service.stack.key, base_url=server.url) as client,
    ):
        page = client.emails.list(tag="a", limit=2).fetch()
        assert (page.total, page.total_is_exact, page.continue_to) == (10_001, False, None)
        assert [email.id for email in client.emails.list(tag="a", limit=2)] == ["e1", "e2", "e3", "e4", "e5"]
    queries = [parse_qs(urlsplit(path).query) for path in server.paths]
    assert [(query["page"], query.get("to")) for query in queries[2:]] == [
        (["2"], None), (["1"], [newer]), (["2"], [newer]), (["1"], [older]), (["1"], ["2026-03-13T12:00:00.000Z"]),
    ]  # fmt: skip


def test_files_are_given_as_bytes_as_dicts_from_a_path_or_not_at_all(client, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"hello")
    log = {"filename": "a.log", "content": b"hello", "content_type": "text/x-log"}
    files = [Attachment.from_path(tmp_path / "a.txt"), Attachment("b.bin", bytes(range(256)), content_id="logo"), log]
    accepted = client.emails.send(**new_email(attachments=files))
    kept = client.emails.get(accepted.id).attachments
    assert [(file.filename, file.content_type, file.size) for file in kept] == [
        ("a.txt", "text/plain", 5),
        ("b.bin", "application/octet-stream", 256),
        ("a.log", "text/x-log", 5),
    ]
    for none in (None, []):
        accepted = client.emails.send(**new_email(attachments=none))
        assert client.emails.get(accepted.id).attachments == []


def test_check_returns_the_rendered_email(client):
    checked = client.emails.check(**new_email(text="Hi there"))
    assert (checked.subject, checked.html, checked.text, checked.warnings) == ("Hello", "<p>Hi</p>", "Hi there", [])


def test_all_invalid_fields_are_reported_at_once(client):
    with pytest.raises(postrider_client.ValidationError) as caught:
        client.emails.send(from_="nobody", to=[], subject="Hello")
    assert {error.field for error in caught.value.errors} == {"from", "to", "html"}
    assert str(caught.value).startswith("from: 'nobody' is not an email address")
    assert str(caught.value).endswith(" 2 more errors.")
    assert (caught.value.status, caught.value.code) == (422, "validation_error")
    assert caught.value.request_id.startswith("req_")


def test_a_scheduled_email_is_rescheduled_and_cancelled_and_cancelled_again(client):
    email = client.emails.send(**new_email(scheduled_for=in_an_hour()))
    later = in_an_hour().replace(microsecond=0) + timedelta(hours=1)
    assert client.emails.reschedule(email.id, later).scheduled_for == later
    assert client.emails.cancel(email.id).status == "cancelled"
    assert client.emails.cancel(email.id).status == "cancelled"
    with pytest.raises(postrider_client.Conflict):
        client.emails.reschedule(email.id, None)
    with pytest.raises(ValueError, match="time zone"):
        client.emails.send(**new_email(scheduled_for=datetime(2030, 1, 1)))  # noqa: DTZ001


def test_a_batch_returns_an_id_for_each_recipient_and_lists_rejected_recipients(client):
    suppressed = someone()
    client.suppressions.create(suppressed)
    template = client.templates.create(name="Hi", subject="Hi {{first_name}}", html_content="<p>{{first_name}}</p>")
    recipients = [
        BatchRecipient(someone(), template_data={"first_name": "Ada"}),
        BatchRecipient(suppressed),
        {"to": someone(), "template_data": {"first_name": "Grace"}, "metadata": {"order_id": 7}},
        {"to": someone(), "templateData": {"first_name": "Mary"}},
    ]
    batch = client.emails.batch(from_=FROM, template_id=template.id, recipients=recipients)
    assert (batch.queued, [one.to for one in batch.rejected]) == (3, [suppressed])
    emails = [client.emails.get(one) for one in batch.ids]
    assert [email.subject for email in emails] == ["Hi Ada", "Hi Grace", "Hi Mary"]
    assert [email.metadata for email in emails] == [None, {"order_id": 7}, None]


def test_a_list_is_one_page_or_all_pages(client):
    tag = f"list-{uuid4()}"
    for _ in range(5):
        client.emails.send(**new_email(tags=[tag], scheduled_for=in_an_hour()))
    page = client.emails.list(tag=tag, limit=2, page=2).fetch()
    assert (page.total, page.page, page.limit, len(page.data)) == (5, 2, 2, 2)
    ids = []
    for email in client.emails.list(tag=tag, limit=2):
        ids.append(email.id)
        if len(ids) == 1:  # a new email moves an item to the next page
            client.emails.send(**new_email(tags=[tag], scheduled_for=in_an_hour()))
    assert (len(ids), len(set(ids))) == (5, 5)
    assert client.emails.list(tag=tag, status=["queued", "sent"], from_=datetime.now(UTC)).fetch().data == []


def test_the_export_is_csv(client):
    tag = f"export-{uuid4()}"
    email = client.emails.send(**new_email(tags=[tag]))
    export = client.emails.export(tag=tag)
    assert [row[0] for row in csv.reader(export.csv.splitlines())] == ["id", email.id]
    assert export.truncated is False


def test_an_invalid_id_is_not_requested(client):
    with pytest.raises(postrider_client.NotFound):
        client.emails.get("a/../../me?x=1#y")
    for invalid in ("", ".", "..", None):
        with pytest.raises(postrider_client.PostriderError, match="not an id"):
            client.emails.cancel(invalid)


def test_templates_are_created_previewed_updated_listed_and_deleted(client):
    alias = f"a{uuid4()}"
    created = client.templates.create(name="W", subject="Hi {{name}}", html_content="<p>{{name}}</p>", alias=alias)
    assert client.templates.preview(created.id, {"name": "Ada"}).subject == "Hi Ada"
    assert client.templates.preview(created.id).missing_variables == ["name"]
    changed = client.templates.update(created.id, name="Hello", alias=None)
    assert (changed.name, changed.alias) == ("Hello", None)
    assert client.templates.get(created.id).html_content == "<p>{{name}}</p>"
    assert created.id in [template.id for template in client.templates.list()]
    assert client.templates.delete(created.id).deleted
    with pytest.raises(postrider_client.NotFound):
        client.templates.get(created.id)
    with pytest.raises(postrider_client.TemplateSyntaxError) as caught:
        client.templates.create(name="B", subject="Hi", html_content="<p>\n  {{#if x}}")
    assert caught.value.place[0] == "htmlContent"


def test_suppressions_are_created_found_kept_when_created_again_and_deleted(client):
    email = someone()
    created = client.suppressions.create(email)
    assert client.suppressions.create(email) == created
    assert client.suppressions.get(created.id) == created
    assert client.suppressions.create_many([email, someone()])[0] == created
    assert client.suppressions.list(search=email, reason="manual").fetch().data == [created]
    assert client.suppressions.delete(created.id).deleted


def test_a_stream_is_created_used_changed_archived_and_unarchived(client):
    stream_id = f"s-{uuid4().hex[:8]}"
    created = client.streams.create(id=stream_id, name="News", kind="bulk", track_opens=False)
    assert (created.public, created.priority, created.track_opens, created.archived_at) == (True, "low", False, None)
    with pytest.raises(postrider_client.StreamExists):
        client.streams.create(id=stream_id, name="News")
    with pytest.raises(postrider_client.InvalidStream):
        client.streams.update(stream_id, unsubscribe="none")
    assert next(stream.id for stream in client.streams.list(limit=1)) == "main"
    assert client.streams.update(stream_id, name="Monthly", own_bounces=True).own_bounces
    assert client.streams.get(stream_id).name == "Monthly"
    sent = client.emails.send(**new_email(stream=stream_id))
    assert client.emails.get(sent.id).stream == stream_id
    assert [email.stream for email in client.emails.list(stream=stream_id)] == [stream_id]
    assert [row["id"] for row in csv.DictReader(client.emails.export(stream=stream_id).csv.splitlines())] == [sent.id]
    assert (created.counts, client.streams.get(stream_id).counts.total) == (None, 1)
    assert client.analytics.get(stream=stream_id).total == client.analytics.daily(1, stream=stream_id)[0].total == 1
    assert client.streams.archive(stream_id).archived_at
    # The processes of the service notice it within a second.
    wait_for(lambda: is_archived(client, stream_id), seconds=20, what="the refusal")
    assert client.streams.unarchive(stream_id).archived_at is None
    with pytest.raises(postrider_client.StreamNotFound):
        client.emails.send(**new_email(stream="unknown"))


def is_archived(client, stream_id):
    try:
        client.emails.send(**new_email(stream=stream_id))
    except postrider_client.StreamArchived:
        return True
    return False


def test_an_address_is_suppressed_in_one_stream_only(client):
    stream_id, to = f"s-{uuid4().hex[:8]}", someone()
    client.streams.create(id=stream_id, name="News", kind="bulk")
    created = client.suppressions.create(to, stream=stream_id)
    assert client.suppressions.create_many([to], stream=stream_id) == [created]
    assert client.suppressions.list(stream=stream_id).fetch().data == [created]
    with pytest.raises(postrider_client.RecipientSuppressed) as caught:
        client.emails.send(**new_email(to=to, stream=stream_id))
    (recipient,) = caught.value.recipients
    assert (recipient.email, recipient.reason, recipient.stream) == (to, "manual", stream_id)
    assert recipient.suppression_id == created.id
    assert client.emails.get(client.emails.send(**new_email(to=to)).id).stream is None
    template = client.templates.create(name="Hi", subject="Hi", html_content="<p>Hi</p>")
    recipients = [BatchRecipient(to), BatchRecipient(someone())]
    batch = client.emails.batch(from_=FROM, template_id=template.id, recipients=recipients, stream=stream_id)
    assert (batch.queued, [one.to for one in batch.rejected]) == (1, [to])


def test_a_key_is_limited_to_streams(client, manager, service):
    workspace, limits = client.me().workspace.id, {"streams": ["receipts"]}
    key = manager.workspaces.keys.create(workspace, name="k", scope="sending_access", limits=limits)
    assert (key.limits.streams, client.me().key.limits.streams) == (["receipts"], None)
    with (
        Postrider(key.key, base_url=service.stack.url) as limited,
        pytest.raises(postrider_client.StreamNotAllowed) as caught,
    ):
        limited.emails.send(**new_email(stream="main"))
    assert caught.value.allowed_streams == ["receipts"]


def test_a_domain_is_listed_verified_which_fails_without_dns_records_and_deleted(client):
    domain = client.domains.create(f"v{uuid4().hex}.invalid")
    assert domain.status == "pending"
    assert client.domains.get(domain.id) == domain
    assert domain.id in [one.id for one in client.domains.list(limit=2)]
    checked = client.domains.verify(domain.id)
    assert checked.status != "verified"
    assert checked.last_checked_at is not None
    # The first key is not in the DNS yet, so it is not replaced.
    assert client.domains.rotate_dkim(domain.id).records == checked.records
    assert client.domains.delete(domain.id).deleted


def test_analytics_and_the_queue_count_sent_emails(client):
    before = client.analytics.get()
    email = client.emails.send(**new_email())
    wait_for(lambda: delivered(client, email.id), seconds=20, what="the delivery")
    now = datetime.now(UTC)
    stats = client.queue.stats()
    assert min(stats.waiting, stats.active, stats.delayed, stats.failed, stats.paused) >= 0
    assert stats.completed > 0
    after = client.analytics.get(from_=now - timedelta(days=1), to=now)
    assert after.total > before.total
    assert after.breakdown.delivered > before.breakdown.delivered
    assert 0 < after.rates.delivery_rate <= 1
    days = client.analytics.daily(3)
    assert [day.date for day in days][-1] == f"{now:%Y-%m-%d}"
    assert len(client.analytics.daily()) == 14


def test_latencies_have_percentiles_by_group(client):
    email = client.emails.send(**new_email())
    wait_for(lambda: delivered(client, email.id), seconds=20, what="the delivery")
    report = client.analytics.latency(by="stream", from_=datetime.now(UTC) - timedelta(days=1))
    assert report.outcome.count == sum(group.outcome.count for group in report.groups) > 0
    assert 0 < report.first_attempt.p50 <= report.first_attempt.p99
    assert 0 < report.outcome.within10_minutes <= 1
    assert "main" in {group.id for group in report.groups}
    assert client.analytics.latency(from_="2026-01-01", to="2026-01-01").outcome.p50 is None


def test_causes_of_bounces_have_reasons_and_hosts(client):
    email = client.emails.send(**new_email(to="bounced@simulator.example"))
    wait_for(lambda: client.emails.get(email.id).status == "bounced", seconds=60, what="the bounce")
    causes = client.analytics.bounces(from_=datetime.now(UTC) - timedelta(days=1), to=datetime.now(UTC))
    reason = next(one for one in causes.reasons if one.reason == "unknown_user")
    assert (causes.event, causes.counted_from, causes.other_hosts) == ("bounced", causes.from_, 0)
    assert 0 < reason.share <= 1
    assert (reason.sample.code, reason.sample.enhanced_code) == (550, "5.1.1")
    assert reason.docs_url.endswith("/docs/guides/bounce-causes#invalid-addresses")
    assert "simulator.example" in {host.name for host in causes.hosts}
    assert client.analytics.bounces(event="failed", to="2026-01-01").reasons == []


def test_me_returns_workspace_key_and_quota_and_needs_a_valid_key(client, service):
    me = client.me()
    assert me.workspace.id.startswith("ws_")
    assert me.key.scope == "full_access"
    assert me.quota.resets_at > datetime.now(UTC)
    with (
        Postrider("pr_not_a_key", base_url=service.stack.url) as unauthenticated,
        pytest.raises(postrider_client.AuthenticationError) as caught,
    ):
        unauthenticated.me()
    assert caught.value.code == "invalid_api_key"
    assert service.stack.key not in repr(client) + repr(client._transport) + str(client.emails)


def test_an_exceeded_quota_is_reported_with_its_reset_time_and_not_retried(service):
    with proxy(service.stack.url) as faulty, Postrider(service.spent_key, base_url=faulty.url) as exhausted:
        with pytest.raises(postrider_client.QuotaExceeded) as caught:
            exhausted.emails.send(**new_email(from_="hello@exhausted.example"))
        assert (caught.value.limit, caught.value.used, caught.value.requested) == (500, 500, 1)
        assert caught.value.resets_at > datetime.now(UTC)
        assert len(faulty.seen) == 1


def test_a_client_without_a_key_or_with_an_invalid_base_url_is_rejected(monkeypatch):
    monkeypatch.delenv("POSTRIDER_API_KEY", raising=False)
    monkeypatch.delenv("POSTRIDER_URL", raising=False)
    for arguments, message in (
        ({"base_url": "http://127.0.0.1"}, "api_key is missing.* POSTRIDER_API_KEY"),
        ({"api_key": "pr_x"}, "base_url is missing.* POSTRIDER_URL"),
        ({"api_key": "pr_x", "base_url": "mail.example.com"}, "https"),
    ):
        with pytest.raises(postrider_client.PostriderError, match=message):
            Postrider(**arguments)


def test_the_base_url_may_end_in_a_slash_or_in_v1(service):
    for end in ("/", "/v1", "/v1/"):
        with Postrider(service.stack.key, base_url=service.stack.url + end) as client:
            assert client.me().workspace.id, end


def test_an_email_whose_response_is_lost_is_sent_once(service, client):
    tag = f"lost-{uuid4()}"
    faults = (LOSE, problem(503, "service_unavailable"))
    with proxy(service.stack.url, *faults) as faulty, Postrider(service.stack.key, base_url=faulty.url) as retrying:
        accepted = retrying.emails.send(**new_email(tags=[tag]))
    assert [email.id for email in client.emails.list(tag=tag)] == [accepted.id]
    assert len(faulty.seen) == 3
    assert len({headers["Idempotency-Key"] for headers in faulty.seen}) == 1


def test_a_batch_and_a_resend_whose_responses_are_lost_happen_once(service, client):
    tag = f"lost-{uuid4()}"
    template = client.templates.create(name="Hi", subject="Hi", html_content="<p>Hi</p>")
    recipients = [BatchRecipient(someone()), BatchRecipient(someone())]
    with proxy(service.stack.url, LOSE) as faulty, Postrider(service.stack.key, base_url=faulty.url) as retrying:
        batch = retrying.emails.batch(from_=FROM, template_id=template.id, recipients=recipients, tags=[tag])
        faulty.faults.append(LOSE)
        retrying.emails.resend(batch.ids[0])
    assert client.emails.list(tag=tag).fetch().total == 3


def test_errors_are_retried_or_raised(service):
    def outcome_of(name):
        """Return the number of requests and the name of the error."""
        fault, error = RETRY_CASES[name][0], None
        with proxy(service.stack.url, fault) as faulty, Postrider(service.stack.key, base_url=faulty.url) as retrying:
            try:
                assert retrying.me().workspace.id
            except postrider_client.PostriderError as raised:
                error = type(raised).__name__
        return len(faulty.seen), error

    with ThreadPoolExecutor(len(RETRY_CASES)) as pool:
        outcomes = dict(zip(RETRY_CASES, pool.map(outcome_of, RETRY_CASES), strict=True))
    assert outcomes == {name: (requests, error) for name, (_, requests, error) in RETRY_CASES.items()}


def test_a_request_that_is_not_idempotent_is_not_retried_after_a_lost_response(service):
    with proxy(service.stack.url, LOSE) as faulty, Postrider(service.stack.key, base_url=faulty.url) as retrying:
        with pytest.raises(postrider_client.ConnectionFailed):
            retrying.templates.create(name="Once", subject="Hi", html_content="<p>Hi</p>")
        assert len(faulty.seen) == 1


def test_a_silent_server_times_out(service):
    with proxy(service.stack.url, HANG, HANG) as faulty:
        retrying = Postrider(service.stack.key, base_url=faulty.url, timeout_seconds=0.2, max_retries=1)
        with retrying, pytest.raises(postrider_client.TimedOut):
            retrying.me()
        assert len(faulty.seen) == 2


def test_an_unreachable_server_is_a_failed_connection():
    client = Postrider("pr_x", base_url="http://127.0.0.1:1", max_retries=0)
    with client, pytest.raises(postrider_client.ConnectionFailed, match="refused"):
        client.me()


def test_waits_grow_and_differ():
    error = postrider_client.ConnectionFailed("gone")
    for attempt, longest in ((1, 0.5), (2, 1), (3, 2), (9, 8)):
        waits = {seconds_after(attempt, error=error) for _ in range(20)}
        assert len(waits) > 1
        assert longest / 2 <= min(waits) <= max(waits) <= longest


def test_a_forked_process_opens_new_connections(client):
    client.me()
    before = client._transport._connections()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        is_new = client._transport._connections() is not before
        os.write(writing, b"y" if is_new and client.me().workspace.id else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"y"
    os.close(reading)
    os.close(writing)
    assert client._transport._connections() is before
