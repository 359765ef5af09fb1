"""Every API error (docs/specification.md, Errors) with a request that causes it; add new problems here."""

import base64
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.utils import timezone

from core.api.errors import Problem, documented_problems
from core.lib.ids import to_uuid
from core.workspaces.api import authentication
from core.workspaces.api.throttling import owe_processor_time
from core.workspaces.key_limits import read_limits
from core.workspaces.models import ApiKey, Usage, Workspace
from core.workspaces.recipients.caps import Cap
from core.workspaces.recipients.rules import read_rules
from core.workspaces.services import change_rules
from domains.models import Domain, ReceivingDomain, TrackingHost
from emails.api.views import EmailViewSet
from receiving.models import Message, ReceivedEmail
from receiving.states import NOT_READ
from streams.models import Stream
from tests.conftest import Account, Api, mail, make_account, make_key
from tests.conventions.test_foreign_objects import call, received_by
from tests.core.api.test_openapi import schema_errors
from tests.emails.builders import SENT, deliver_all
from tests.rows import each

SENDER = "hi@alice.example"
SECRETS = ("hunter2", "10.1.2.3")
SIMULATED = {"recipient": "a@alice.example", "raw": "Subject: Hi\n\nHi"}
CLASSES = {code: problem.__name__ for code, problem in documented_problems().items()}
MEMBERS = {"type", "title", "status", "code", "detail", "requestId"}


class Caller:
    """A client for the rows: Alice's key, with access to her workspace, the settings and monkeypatch."""

    def __init__(self, workspace: Workspace, monkeypatch: Any, settings: Any) -> None:
        self.workspace, self.monkeypatch, self.settings = workspace, monkeypatch, settings
        self.api = Api(make_key(workspace))

    def with_key(self, **fields: Any) -> "Caller":
        """Change the key."""
        ApiKey.objects.update(**fields)
        authentication.cache.clear()
        return self

    def with_workspace(self, **fields: Any) -> "Caller":
        """Change the workspace."""
        Workspace.objects.filter(id=self.workspace.id).update(**fields)
        authentication.cache.clear()
        return self

    def with_setting(self, name: str, value: Any) -> "Caller":
        """Change a setting."""
        setattr(self.settings, name, value)
        return self

    def with_error(self, error: Exception) -> "Caller":
        """Let the views of emails raise an error."""

        def explode(*args: Any, **kwargs: Any) -> None:
            raise error

        self.monkeypatch.setattr(EmailViewSet, "valid", explode)
        return self

    def me(self) -> Any:
        return self.api.get("/me")

    def change_domain(self, **fields: Any) -> Any:
        return self.api.patch(f"/domains/{self.workspace.domains.get().id}", fields)

    def send(self, **fields: Any) -> Any:
        return self.api.post("/emails/send", mail(**fields))

    def manage(self, method: str, path: str, body: Any) -> Any:
        """Call the management API for the workspace, with a key of the owner."""
        api = Api(make_key(self.workspace, "workspace_admin"))
        return call(api, method, f"/admin/workspaces/{self.workspace.id}/{path}", body)

    def sent(self) -> str:
        return self.send().json()["id"]

    def send_raw(self, **extra: Any) -> Any:
        return self.api.raw("POST", "/emails/send", b"{}", **extra)

    def template(self, **fields: Any) -> Any:
        return self.api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi {{name}}</p>", **fields})

    def stream(self, **fields: Any) -> Any:
        return self.api.post("/streams", {"id": "news", "name": "News", **fields})


# Requests that are one expression, by status, code, and the members of the response besides the common ones.
REQUESTS: dict[tuple[Any, ...], Callable[[Caller], Any]] = {
    (400, "invalid_json"): lambda caller: caller.api.raw("POST", "/emails/send", b'{"to": 1, "to": 2}'),
    (400, "invalid_idempotency_key"): lambda caller: caller.api.post("/emails/send", mail(), Idempotency_Key=""),
    (401, "missing_api_key"): lambda _: Api().get("/me"),
    (401, "invalid_api_key"): lambda _: Api("pr_nonsense").get("/me"),
    (401, "revoked_api_key"): lambda caller: caller.with_key(revoked_at=timezone.now()).me(),
    (401, "expired_api_key"): lambda caller: caller.with_key(expires_at=timezone.now() - timedelta(seconds=1)).me(),
    (403, "insufficient_scope", "requiredScope"): lambda caller: caller.with_key(scope="read_only").send(),
    (403, "network_not_allowed", "address", "allowedNetworks"): (
        lambda caller: caller.with_key(restrictions={"networks": ["203.0.113.0/24"]}).me()
    ),
    (403, "domain_not_allowed", "field", "domain", "allowedDomains"): (
        lambda caller: caller.with_key(restrictions={"domains": ["shop.example"]}).send()
    ),
    (403, "template_not_allowed", "field", "allowedTemplates"): (
        lambda caller: caller.with_key(restrictions={"templates": ["welcome"]}).send()
    ),
    (403, "stream_not_allowed", "field", "stream", "allowedStreams"): (
        lambda caller: caller.with_key(restrictions={"streams": ["receipts"]}).send(stream="main")
    ),
    (403, "workspace_suspended"): lambda caller: caller.with_workspace(suspended_at=timezone.now()).send(),
    (403, "workspace_deleted", "deletesAt"): (
        lambda caller: caller.with_workspace(deletes_at=timezone.now() + timedelta(days=7)).me()
    ),
    (403, "plan_limit_reached", "resource", "limit"): (
        lambda caller: caller.with_workspace(plan="free").api.post("/domains", {"name": "second.example"})
    ),
    (403, "test_key_required"): lambda caller: caller.api.post("/inbound/emails", SIMULATED),
    (404, "not_found"): lambda caller: caller.api.get(f"/emails/{'0' * 22}"),
    (405, "method_not_allowed"): lambda caller: caller.api.get("/emails/send"),
    (406, "not_acceptable"): lambda caller: caller.api.get("/me", Accept="text/html"),
    (409, "email_not_cancellable"): lambda caller: caller.api.delete(f"/emails/{caller.sent()}"),
    (409, "email_not_scheduled"): lambda caller: caller.api.patch(f"/emails/{caller.sent()}", {"scheduledFor": None}),
    (409, "content_not_kept"): (
        lambda caller: caller.api.post(f"/emails/{caller.send(sensitive=True).json()['id']}/resend")
    ),
    (409, "export_not_ready"): lambda caller: caller.api.get(
        f"/subject-exports/{caller.api.post('/subject-exports', {'email': 'a@example.com'}).json()['id']}/download"
    ),
    (409, "already_member"): lambda caller: caller.manage("POST", "invitations", {"email": "alice@alice.example"}),
    (409, "last_owner"): lambda caller: caller.manage("DELETE", "members/alice@alice.example", None),
    (409, "domain_already_exists"): lambda caller: caller.api.post("/domains", {"name": "alice.example"}),
    (409, "not_unreadable", "emailStatus"): (
        lambda caller: caller.api.post(f"/inbound/emails/{received_by(caller.workspace).id}/reread")
    ),
    (411, "length_required"): lambda caller: caller.send_raw(HTTP_TRANSFER_ENCODING="chunked", CONTENT_LENGTH=""),
    (413, "payload_too_large"): lambda caller: caller.send_raw(CONTENT_LENGTH=str(20 * 1024 * 1024 + 1)),
    (415, "unsupported_media_type"): (
        lambda caller: caller.api.raw("POST", "/emails/send", b"to=ada", "application/x-www-form-urlencoded")
    ),
    (422, "tracking_unavailable"): (
        lambda caller: caller.with_setting("TRACKING_HOST", "localhost").change_domain(tracking={"subdomain": "links"})
    ),
    (422, "receiving_unavailable"): (
        lambda caller: caller.with_setting("RECEIVING_MX", []).change_domain(receiving=True)
    ),
    (422, "receiving_not_active", "field", "domain"): (
        lambda caller: caller.with_setting("RECEIVING_DOMAIN", "").send(replyTracking=True)
    ),
    (422, "reply_tracking_conflict", "field"): (
        lambda caller: caller.send(replyTracking=True, replyTo="support@alice.example")
    ),
    (422, "received_email_not_found", "field"): lambda caller: caller.send(inReplyToId=f"inb_{'0' * 22}"),
    (422, "validation_error", "errors"): lambda caller: caller.send(to="nobody"),
    (422, "too_many_recipients", "field", "limit"): (
        lambda caller: caller.send(to=[f"a{number}@example.com" for number in range(51)])
    ),
    (422, "too_many_attachments", "limit"): (
        lambda caller: caller.send(attachments=[{"filename": "a.txt", "content": "QQ=="}] * 11)
    ),
    (422, "domain_not_registered", "domain"): lambda caller: caller.send(**{"from": "x@other.example"}),
    (422, "domain_not_verified", "domain", "missingRecords"): (
        lambda caller: caller.with_setting("SENDING_DOMAIN_POLICY", "verified").send()
    ),
    (422, "stream_not_found", "field", "stream"): lambda caller: caller.send(stream="nothing"),
    (422, "transport_route_not_allowed", "field", "allowedRoutes"): lambda caller: caller.stream(transportRoute="fast"),
    (422, "invalid_stream", "field"): lambda caller: caller.stream(kind="bulk", unsubscribe="none"),
    (422, "template_not_found"): lambda caller: caller.send(templateId="nothing"),
    (422, "template_syntax_error", "field", "line", "column"): (
        lambda caller: caller.template(htmlContent="<p>\n{{#if x}}")
    ),
    (422, "missing_template_variables", "variables"): (
        lambda caller: caller.send(html=None, templateId=caller.template(strictVariables=True).json()["id"])
    ),
    (500, "internal_error"): lambda caller: caller.with_error(RuntimeError(SECRETS[0])).send(),
    (503, "service_unavailable"): lambda caller: caller.with_error(OperationalError(SECRETS[1])).send(),
}
ROWS: dict[tuple[int, str], tuple[set[str], Callable[[Caller], Any]]] = {
    (status, code): ({*members}, request) for (status, code, *members), request in REQUESTS.items()
}


def row(status: int, code: str, *members: str) -> Callable:
    """Register the request of a row, and the members of its response besides the common ones."""

    def register(request: Callable) -> Callable:
        ROWS[status, code] = (set(members), request)
        return request

    return register


@row(403, "stream_paused", "stream")
def _(caller: Caller):
    caller.stream()
    Stream.objects.update(paused_at=Now(), paused_reason="0.6 % complaints in 7 days.")
    return caller.send(stream="news")


@row(403, "recipient_not_allowed", "recipients")
def _(caller: Caller):
    change_rules(caller.workspace, rules=read_rules(allow=["@example.org"]))
    authentication.cache.clear()
    return caller.send()


@row(429, "recipient_capped", "recipients", "retryAt")
def _(caller: Caller):
    change_rules(caller.workspace, rules=read_rules(caps=[Cap(count=1, seconds=3600)]))
    authentication.cache.clear()
    caller.send()
    return caller.send()


@row(409, "email_already_sent")
def _(caller: Caller):
    email_id = caller.sent()
    deliver_all(SENT)
    return caller.api.delete(f"/emails/{email_id}")


@row(409, "email_not_held", "decision")
def _(caller: Caller):
    sender = Api(make_key(caller.workspace, "sending_access", limits=read_limits(needs_approval=True)))
    approver = Api(make_key(caller.workspace, "approvals"))
    path = f"/emails/{sender.post('/emails/send', mail()).json()['id']}"
    approver.post(f"{path}/approve")
    return approver.post(f"{path}/reject")


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


@row(409, "tracking_host_taken", "host")
def _(caller: Caller):
    caller.settings.TRACKING_HOST = "mail.service.example"
    other = make_account("other").workspace
    TrackingHost.objects.create(workspace=other, name="links.alice.example", proven_at=timezone.now())
    return caller.change_domain(tracking={"subdomain": "links"})


def receiving_domain(workspace: Workspace, name: str = "alice.example") -> None:
    domain = Domain.objects.get_or_create(workspace=workspace, name=name)[0]
    ReceivingDomain.objects.create(
        domain=domain, workspace=workspace, name=name, status="active", proven_at=timezone.now()
    )


@row(409, "receiving_domain_taken", "domain")
def _(caller: Caller):
    caller.settings.RECEIVING_MX = ["mx.service.example"]
    receiving_domain(make_account("other").workspace)
    return caller.change_domain(receiving=True)


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


@row(422, "recipient_refused", "reply")
def _(caller: Caller):
    key = make_key(caller.workspace, "sending_access", limits=read_limits(is_test=True))
    return Api(key).post("/inbound/emails", SIMULATED)


@row(409, "alias_taken")
def _(caller: Caller):
    caller.template(alias="welcome")
    return caller.template(alias="welcome")


@row(409, "template_in_use", "templates")
def _(caller: Caller):
    partial = {"kind": "partial", "name": "Footer", "alias": "footer", "htmlContent": "Bye"}
    caller.api.post("/templates", partial)
    caller.template(htmlContent="{{> footer}}")
    return caller.api.delete("/templates/footer")


@row(422, "template_not_sendable", "field")
def _(caller: Caller):
    caller.api.post("/templates", {"kind": "layout", "name": "Brand", "alias": "brand", "htmlContent": "{{{content}}}"})
    return caller.send(html=None, templateId="brand")


@row(409, "stream_exists", "stream")
def _(caller: Caller):
    caller.stream()
    return caller.stream()


@row(409, "alert_exists", "alertId")
def _(caller: Caller):
    alert = {"metric": "bounce_rate", "threshold": 4}
    caller.api.post("/alerts", alert)
    return caller.api.post("/alerts", alert)


@row(413, "attachments_too_large", "limit")
def _(caller: Caller):
    content = base64.b64encode(bytes(10_485_761)).decode()
    return caller.send(attachments=[{"filename": "a.bin", "content": content}])


@row(422, "recipient_suppressed", "recipients")
def _(caller: Caller):
    caller.api.post("/suppressions", {"email": "ada@example.com"})
    return caller.send()


@row(422, "stream_archived", "field", "stream")
def _(caller: Caller):
    caller.stream()
    caller.api.post("/streams/news/archive")
    return caller.send(stream="news")


@row(422, "template_output_too_large", "field")
def _(caller: Caller):
    template_id = caller.template(htmlContent="{{{name}}}" * 3).json()["id"]
    return caller.send(html=None, templateId=template_id, templateData={"name": "x" * 1024 * 1024})


@row(429, "rate_limit_exceeded")
def _(caller: Caller):
    # Earlier rows have used enough processor time to owe tokens of the workspace.
    caller.monkeypatch.setattr("core.workspaces.api.throttling._bucket_of", lambda _: "unused")
    caller.settings.RATE_LIMIT = (1, 1)
    return [caller.api.get("/me") for _ in range(3)][-1]


@row(429, "quota_exceeded", "limit", "used", "requested", "resetsAt")
def _(caller: Caller):
    caller.with_workspace(plan="free")
    month = datetime.now(UTC).date().replace(day=1)
    Usage.objects.create(workspace=caller.workspace, month=month, used=500)
    return caller.send()


@row(429, "too_many_concurrent_requests")
def _(caller: Caller):
    client = SimpleNamespace(waited_seconds=1.5, waits_for_share=True)
    caller.api.client.defaults["gunicorn.socket"] = client
    return caller.send()


@row(429, "processor_time_exceeded")
def _(caller: Caller):
    caller.settings.RATE_LIMIT = (1, 10)
    for _ in range(2):
        owe_processor_time(caller.workspace, 0.1)
    return caller.api.get("/me")


@row(499, "client_closed_request")
def _(caller: Caller):
    caller.template(alias="t")
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        caller.api.client.defaults["gunicorn.socket"] = ours
        recipients = [{"to": f"r{number}@example.com"} for number in range(2)]
        return caller.api.post("/emails/batch", {"from": SENDER, "templateId": "t", "recipients": recipients})


@row(503, "overloaded")
def _(caller: Caller):
    caller.api.client.defaults["gunicorn.socket"] = SimpleNamespace(waited_seconds=1.5)
    return caller.send()


# Headers of certain rows only.
HEADERS = {
    "WWW-Authenticate": {row for row in ROWS if row[0] == 401},
    "Allow": {(405, "method_not_allowed")},
    "Retry-After": {
        (429, "recipient_capped"),
        (409, "configuration_in_progress"),
        (409, "idempotency_in_progress"),
        (409, "reread_too_soon"),
        (429, "processor_time_exceeded"),
        (429, "rate_limit_exceeded"),
        (429, "too_many_concurrent_requests"),
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
    if code in CLASSES:
        assert schema_errors({"$ref": f"#/components/schemas/{CLASSES[code]}Problem"}, body) == []
    assert body["title"]
    assert body["detail"]
    assert not any(secret in body["detail"] for secret in SECRETS)
    expected = {name for name, rows in HEADERS.items() if (status, code) in rows}
    given = {name for name in HEADERS if name in response}
    # DRF sends Allow with every response of a view.
    assert expected <= given <= expected | {"Allow"}
    assert int(response.get("Retry-After", 1)) >= 1
