"""Every API error (docs/specification.md, Errors) with a request that causes it; add new problems here."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.utils import timezone

from api.errors import Problem
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from domains.models import Domain, ReceivingDomain, TrackingHost
from emails.api.views import EmailViewSet
from emails.sending.outcomes import SendResult, record_results
from lib.ids import to_uuid
from receiving.models import Message, ReceivedEmail
from receiving.states import NOT_READ
from streams.models import Stream
from tests.conftest import Account, Api, mail, make_account, make_key
from tests.conventions.test_foreign_objects import call, received_by
from tests.emails.builders import claim_entries
from tests.rows import each
from workspaces.api import authentication
from workspaces.key_limits import read_limits
from workspaces.models import ApiKey, Usage, Workspace

SECRETS = ("hunter2", "10.1.2.3")
MEMBERS = {"type", "title", "status", "code", "detail", "requestId"}
ROWS: dict[tuple[int, str], tuple[set[str], Callable]] = {}


class Caller:
    """A client for the rows: Alice's key, with access to her workspace, the settings and monkeypatch."""

    def __init__(self, workspace: Workspace, monkeypatch: Any, settings: Any) -> None:
        self.workspace, self.monkeypatch, self.settings = workspace, monkeypatch, settings
        self.key = make_key(workspace)
        self.api = Api(self.key)

    def change_key(self, **fields: Any) -> None:
        ApiKey.objects.update(**fields)
        authentication.cache.clear()

    def change_workspace(self, **fields: Any) -> None:
        Workspace.objects.filter(id=self.workspace.id).update(**fields)
        authentication.cache.clear()

    def send(self, **fields: Any) -> Any:
        return self.api.post("/emails/send", mail(**fields))

    def manage(self, method: str, path: str, body: Any) -> Any:
        """Call the management API for the workspace, with a key of the owner."""
        api = Api(make_key(self.workspace, "workspace_admin"))
        return call(api, method, f"/admin/workspaces/{self.workspace.id}/{path}", body)

    def sent(self, **fields: Any) -> str:
        return self.send(**fields).json()["id"]

    def template(self, **fields: Any) -> Any:
        return self.api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi {{name}}</p>", **fields})

    def stream(self, **fields: Any) -> Any:
        return self.api.post("/streams", {"id": "news", "name": "News", **fields})

    def replace_valid(self, error: Exception) -> None:
        def explode(*args: Any, **kwargs: Any) -> None:
            raise error

        self.monkeypatch.setattr(EmailViewSet, "valid", explode)


def row(status: int, code: str, *members: str) -> Callable:
    """Register the request of a row, and the members of its response besides the common ones."""

    def register(request: Callable) -> Callable:
        ROWS[status, code] = (set(members), request)
        return request

    return register


@row(400, "invalid_json")
def _(caller: Caller):
    return caller.api.raw("POST", "/emails/send", b'{"to": 1, "to": 2}')


@row(400, "invalid_idempotency_key")
def _(caller: Caller):
    return caller.api.post("/emails/send", mail(), Idempotency_Key="")


@row(401, "missing_api_key")
def _(caller: Caller):
    return Api().get("/me")


@row(401, "invalid_api_key")
def _(caller: Caller):
    return Api("pr_nonsense").get("/me")


@row(401, "revoked_api_key")
def _(caller: Caller):
    caller.change_key(revoked_at=timezone.now())
    return caller.api.get("/me")


@row(401, "expired_api_key")
def _(caller: Caller):
    caller.change_key(expires_at=timezone.now() - timedelta(seconds=1))
    return caller.api.get("/me")


@row(403, "insufficient_scope", "requiredScope")
def _(caller: Caller):
    caller.change_key(scope="read_only")
    return caller.send()


@row(403, "network_not_allowed", "address", "allowedNetworks")
def _(caller: Caller):
    caller.change_key(restrictions={"networks": ["203.0.113.0/24"]})
    return caller.api.get("/me")


@row(403, "domain_not_allowed", "field", "domain", "allowedDomains")
def _(caller: Caller):
    caller.change_key(restrictions={"domains": ["shop.example"]})
    return caller.send()


@row(403, "template_not_allowed", "field", "allowedTemplates")
def _(caller: Caller):
    caller.change_key(restrictions={"templates": ["welcome"]})
    return caller.send()


@row(403, "stream_not_allowed", "field", "stream", "allowedStreams")
def _(caller: Caller):
    caller.change_key(restrictions={"streams": ["receipts"]})
    return caller.send(stream="main")


@row(403, "stream_paused", "stream")
def _(caller: Caller):
    caller.stream()
    Stream.objects.update(paused_at=Now(), paused_reason="0.6 % complaints in 7 days.")
    return caller.send(stream="news")


@row(403, "workspace_suspended")
def _(caller: Caller):
    caller.change_workspace(suspended_at=timezone.now())
    return caller.send()


@row(403, "workspace_deleted", "deletesAt")
def _(caller: Caller):
    caller.change_workspace(deletes_at=timezone.now() + timedelta(days=7))
    return caller.api.get("/me")


@row(403, "plan_limit_reached", "resource", "limit")
def _(caller: Caller):
    caller.change_workspace(plan="free")
    return caller.api.post("/domains", {"name": "second.example"})


@row(404, "not_found")
def _(caller: Caller):
    return caller.api.get(f"/emails/{'0' * 22}")


@row(405, "method_not_allowed")
def _(caller: Caller):
    return caller.api.get("/emails/send")


@row(406, "not_acceptable")
def _(caller: Caller):
    return caller.api.get("/me", Accept="text/html")


@row(409, "email_already_sent")
def _(caller: Caller):
    email_id = caller.sent()
    claims = claim_entries(10)
    record_results(
        [SendResult(claim, DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "2.0.0 ok"))) for claim in claims]
    )
    return caller.api.delete(f"/emails/{email_id}")


@row(409, "email_not_cancellable")
def _(caller: Caller):
    return caller.api.delete(f"/emails/{caller.sent()}")


@row(409, "email_not_scheduled")
def _(caller: Caller):
    return caller.api.patch(f"/emails/{caller.sent()}", {"scheduledFor": None})


@row(409, "idempotency_key_reuse")
def _(caller: Caller):
    caller.api.post("/emails/send", mail(), Idempotency_Key="k")
    return caller.api.post("/emails/send", mail(subject="Other"), Idempotency_Key="k")


@row(409, "configuration_in_progress")
def _(caller: Caller):
    admin = Api(make_key(caller.workspace, "workspace_admin"))
    for token in ("a" * 22, "b" * 22):
        response = admin.post("/admin/configuration/lease", {"token": token})
    return response


@row(409, "idempotency_in_progress")
def _(caller: Caller):
    """Another connection locks the key for as long as this one waits."""
    insert = "INSERT INTO emails_acceptance (workspace_id, key, operation, fingerprint) VALUES (%s, 'k', 'send', '')"
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    options = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    try:
        with psycopg.connect(**{name: options[name] for name in names if options.get(name)}) as faster:
            faster.execute(insert, [to_uuid(caller.workspace.id, prefix="ws_")])
            return caller.send(idempotencyKey="k")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


@row(409, "already_member")
def _(caller: Caller):
    return caller.manage("POST", "invitations", {"email": "alice@alice.example"})


@row(409, "last_owner")
def _(caller: Caller):
    return caller.manage("DELETE", "members/alice@alice.example", None)


@row(409, "domain_already_exists")
def _(caller: Caller):
    return caller.api.post("/domains", {"name": "alice.example"})


@row(409, "tracking_host_taken", "host")
def _(caller: Caller):
    caller.settings.TRACKING_HOST = "mail.service.example"
    other = make_account("other").workspace
    TrackingHost.objects.create(workspace=other, name="links.alice.example", proven_at=timezone.now())
    domain = caller.workspace.domains.get()
    return caller.api.patch(f"/domains/{domain.id}", {"tracking": {"subdomain": "links"}})


@row(422, "tracking_unavailable")
def _(caller: Caller):
    caller.settings.TRACKING_HOST = "localhost"
    domain = caller.workspace.domains.get()
    return caller.api.patch(f"/domains/{domain.id}", {"tracking": {"subdomain": "links"}})


def receiving_domain(workspace: Workspace, name: str = "alice.example") -> None:
    domain = Domain.objects.get_or_create(workspace=workspace, name=name)[0]
    ReceivingDomain.objects.create(
        domain=domain, workspace=workspace, name=name, status="active", proven_at=timezone.now()
    )


@row(409, "receiving_domain_taken", "domain")
def _(caller: Caller):
    caller.settings.RECEIVING_MX = ["mx.service.example"]
    receiving_domain(make_account("other").workspace)
    return caller.api.patch(f"/domains/{caller.workspace.domains.get().id}", {"receiving": True})


@row(422, "receiving_unavailable")
def _(caller: Caller):
    caller.settings.EHLO_NAME = "localhost"
    return caller.api.patch(f"/domains/{caller.workspace.domains.get().id}", {"receiving": True})


@row(422, "receiving_not_active", "field", "domain")
def _(caller: Caller):
    caller.settings.RECEIVING_DOMAIN = ""
    return caller.send(replyTracking=True)


@row(422, "reply_tracking_conflict", "field")
def _(caller: Caller):
    return caller.send(replyTracking=True, replyTo="support@alice.example")


@row(422, "received_email_not_found", "field")
def _(caller: Caller):
    return caller.send(inReplyToId=f"inb_{'0' * 22}")


@row(409, "not_blocked", "emailStatus")
def _(caller: Caller):
    received = received_by(caller.workspace)
    ReceivedEmail.objects.update(status="processed")
    return caller.api.post(f"/inbound/emails/{received.id}/bypass")


@row(409, "not_published", "emailStatus")
def _(caller: Caller):
    received = received_by(caller.workspace)
    ReceivedEmail.objects.update(event_id=None)
    return caller.api.post(f"/inbound/emails/{received.id}/redeliver")


@row(409, "not_unreadable", "emailStatus")
def _(caller: Caller):
    return caller.api.post(f"/inbound/emails/{received_by(caller.workspace).id}/reread")


@row(409, "reread_too_soon")
def _(caller: Caller):
    received = received_by(caller.workspace)
    Message.objects.update(parse_errors=[NOT_READ], reread_at=Now(), read_at=Now())
    return caller.api.post(f"/inbound/emails/{received.id}/reread")


@row(409, "not_forwarded", "reason")
def _(caller: Caller):
    received = received_by(caller.workspace)
    Message.objects.update(automatic="list")
    return caller.api.post(f"/inbound/emails/{received.id}/forward", {"to": "grace@example.org"})


@row(403, "test_key_required")
def _(caller: Caller):
    return caller.api.post("/inbound/emails", {"recipient": "a@alice.example", "raw": "Subject: Hi\n\nHi"})


@row(422, "recipient_refused", "reply")
def _(caller: Caller):
    key = make_key(caller.workspace, "sending_access", limits=read_limits(is_test=True))
    return Api(key).post("/inbound/emails", {"recipient": "a@alice.example", "raw": "Subject: Hi\n\nHi"})


@row(409, "alias_taken")
def _(caller: Caller):
    caller.template(alias="welcome")
    return caller.template(alias="welcome")


@row(409, "stream_exists", "stream")
def _(caller: Caller):
    caller.stream()
    return caller.stream()


@row(409, "alert_exists", "alertId")
def _(caller: Caller):
    alert = {"metric": "bounce_rate", "threshold": 4}
    caller.api.post("/alerts", alert)
    return caller.api.post("/alerts", alert)


@row(411, "length_required")
def _(caller: Caller):
    return caller.api.raw("POST", "/emails/send", b"{}", HTTP_TRANSFER_ENCODING="chunked", CONTENT_LENGTH="")


@row(413, "payload_too_large")
def _(caller: Caller):
    return caller.api.raw("POST", "/emails/send", b"{}", CONTENT_LENGTH=str(20 * 1024 * 1024 + 1))


@row(413, "attachments_too_large", "limit")
def _(caller: Caller):
    content = base64.b64encode(bytes(10_485_761)).decode()
    return caller.send(attachments=[{"filename": "a.bin", "content": content}])


@row(415, "unsupported_media_type")
def _(caller: Caller):
    return caller.api.raw("POST", "/emails/send", b"to=ada", "application/x-www-form-urlencoded")


@row(422, "validation_error", "errors")
def _(caller: Caller):
    return caller.send(to="nobody")


@row(422, "too_many_recipients", "field", "limit")
def _(caller: Caller):
    return caller.send(to=[f"a{number}@example.com" for number in range(51)])


@row(422, "too_many_attachments", "limit")
def _(caller: Caller):
    return caller.send(attachments=[{"filename": "a.txt", "content": "QQ=="}] * 11)


@row(422, "domain_not_registered", "domain")
def _(caller: Caller):
    return caller.send(**{"from": "x@other.example"})


@row(422, "domain_not_verified", "domain", "missingRecords")
def _(caller: Caller):
    caller.settings.SENDING_DOMAIN_POLICY = "verified"
    return caller.send()


@row(422, "recipient_suppressed", "recipients")
def _(caller: Caller):
    caller.api.post("/suppressions", {"email": "ada@example.com"})
    return caller.send()


@row(422, "stream_not_found", "field", "stream")
def _(caller: Caller):
    return caller.send(stream="nothing")


@row(422, "stream_archived", "field", "stream")
def _(caller: Caller):
    caller.stream()
    caller.api.post("/streams/news/archive")
    return caller.send(stream="news")


@row(422, "transport_route_not_allowed", "field", "allowedRoutes")
def _(caller: Caller):
    return caller.api.post("/streams", {"id": "news", "name": "News", "transportRoute": "fast"})


@row(422, "invalid_stream", "field")
def _(caller: Caller):
    return caller.stream(kind="bulk", unsubscribe="none")


@row(422, "template_not_found")
def _(caller: Caller):
    return caller.send(templateId="nothing")


@row(422, "template_syntax_error", "field", "line", "column")
def _(caller: Caller):
    return caller.template(htmlContent="<p>\n{{#if x}}")


@row(422, "missing_template_variables", "variables")
def _(caller: Caller):
    return caller.send(html=None, templateId=caller.template(strictVariables=True).json()["id"])


@row(422, "template_output_too_large", "field")
def _(caller: Caller):
    template_id = caller.template(htmlContent="{{{name}}}" * 3).json()["id"]
    return caller.send(html=None, templateId=template_id, templateData={"name": "x" * 1024 * 1024})


@row(429, "rate_limit_exceeded")
def _(caller: Caller):
    caller.settings.RATE_LIMIT = (1, 1)
    return [caller.api.get("/me") for _ in range(3)][-1]


@row(429, "quota_exceeded", "limit", "used", "requested", "resetsAt")
def _(caller: Caller):
    caller.change_workspace(plan="free")
    month = datetime.now(UTC).date().replace(day=1)
    Usage.objects.create(workspace=caller.workspace, month=month, used=500)
    return caller.send()


@row(500, "internal_error")
def _(caller: Caller):
    caller.replace_valid(RuntimeError(SECRETS[0]))
    return caller.send()


@row(503, "service_unavailable")
def _(caller: Caller):
    caller.replace_valid(OperationalError(SECRETS[1]))
    return caller.send()


@row(503, "overloaded")
def _(caller: Caller):
    caller.api.client.defaults["gunicorn.socket"] = SimpleNamespace(waited_seconds=1.5)
    return caller.send()


# Headers of certain rows only.
HEADERS = {
    "WWW-Authenticate": {row for row in ROWS if row[0] == 401},
    "Allow": {(405, "method_not_allowed")},
    "Retry-After": {
        (409, "configuration_in_progress"),
        (409, "idempotency_in_progress"),
        (409, "reread_too_soon"),
        (429, "rate_limit_exceeded"),
        (503, "overloaded"),
        (503, "service_unavailable"),
    },
}
# These need committed data: a connection in the test's transaction does not see the lock of another one.
TRANSACTIONAL = {(409, "idempotency_in_progress")}


def problem_classes(problem: type[Problem]) -> set[type[Problem]]:
    return {problem}.union(*(problem_classes(subclass) for subclass in problem.__subclasses__()))


def test_every_problem_is_in_the_table():
    # The class without a code is the base class of errors about API keys.
    codes = {(problem.status, problem.code) for problem in problem_classes(Problem) if hasattr(problem, "code")}
    assert codes == ROWS.keys()


def test_no_code_has_two_statuses():
    codes = [code for _, code in ROWS]
    assert len(codes) == len(set(codes))


@pytest.mark.django_db
@each(("status", "code"), ROWS.keys() - TRANSACTIONAL)
def test_a_request_is_refused_with_the_error_of_its_row(api: Api, alice: Account, monkeypatch, settings, status, code):
    check_row(Caller(alice.workspace, monkeypatch, settings), status, code)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("status", "code"), TRANSACTIONAL)
def test_a_request_that_waits_for_another_one_is_refused(api: Api, alice: Account, monkeypatch, settings, status, code):
    check_row(Caller(alice.workspace, monkeypatch, settings), status, code)


def check_row(caller: Caller, status: int, code: str) -> None:
    members, request = ROWS[status, code]
    response = request(caller)
    body = response.json()
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert response["Content-Type"] == "application/problem+json"
    assert body.keys() == MEMBERS | members
    assert body["type"].endswith(f"/docs/errors#{code}")
    assert body["requestId"] == response["X-Request-Id"]
    assert body["title"]
    assert body["detail"]
    assert not any(secret in body["detail"] for secret in SECRETS)
    expected = {name for name, rows in HEADERS.items() if (status, code) in rows}
    given = {name for name in HEADERS if name in response}
    # DRF sends Allow with every response of a view.
    assert expected <= given <= expected | {"Allow"}
    assert int(response.get("Retry-After", 1)) >= 1
