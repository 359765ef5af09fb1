"""Scenario with two workspaces that use a running service over HTTP and record their requests in a ledger.

Callers behave like correct clients: they repeat an unanswered request with the same idempotency key.
"""

import http.client
import itertools
import json
import math
import signal
import smtplib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError as CeleryError

from tests.audit.auditor import audit, wire_id
from tests.audit.ledger import AcceptedEmail, Ledger, ReceivedMessage, RegisteredEndpoint
from tests.audit.sink import mail_sink, webhook_sink
from tests.chaos.unreliable_relay import UnreliableRelay, unreliable_relay
from tests.interfaces.inbound.dsns import dsn
from tests.stack.entries import expire_leases
from tests.stack.stack import REPOSITORY, Stack, free_port, running_stack, wait_for
from tests.webhooks.receiver import Receiver

LEASE_SECONDS = 4
# A delivery that began before a suppression may end a lease later; the rest is for a busy machine.
GRACE_SECONDS = 2 * LEASE_SECONDS + 2
CALL_TIMEOUT_SECONDS = 120
FAST_RETRIES = {
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "DELIVERY_RETRY_SECONDS": "1",
    "WEBHOOK_RETRY_SECONDS": ",".join(["1"] * 40),
    "WEB_CONCURRENCY": "2",
}
EVENT_KINDS = (
    "sent", "delivered", "bounced", "failed", "opened", "clicked", "unsubscribed", "complained", "deferred", "received",
    "replied",
)  # fmt: skip
EXPIRE_REPORTS = "UPDATE inbound_mailreport SET due_at = now() - interval '1 s' WHERE processed_at IS NULL RETURNING 1"
EXPIRE_MESSAGES = "UPDATE receiving_message SET due_at = now() - interval '1 s' WHERE read_at IS NULL RETURNING 1"
EXPIRE_FORWARDS = "UPDATE receiving_receivedemail SET forward_due_at = now() WHERE forward_due_at > now() RETURNING 1"
PARAGRAPH = '<p>MARK for {{name}}: <b>thank you</b> for <a href="https://x.example/MARK">your recent order</a></p>\n'
# The codes of refusals that a client repeats (docs/decisions/0048): its key is in use, or a web process just started.
REPEATED = ("idempotency_in_progress", "rate_limit_exceeded", "too_many_concurrent_requests", "processor_time_exceeded")
QUEUE_DEPTH = """
SELECT (SELECT count(*) FROM emails_pending) + (SELECT count(*) FROM webhooks_pending)
     + (SELECT count(*) FROM inbound_mailreport WHERE processed_at IS NULL)
     + (SELECT count(*) FROM receiving_message WHERE read_at IS NULL)
     + (SELECT count(*) FROM receiving_receivedemail WHERE forward_due_at IS NOT NULL)
     + (SELECT count(*) FROM emails_event WHERE number > (SELECT last FROM events_feedprogress WHERE source = 'log'))
     + (SELECT h.position - c.position FROM events_feedhead h, webhooks_feedcursor c)
"""


@dataclass
class Tenant:
    """A workspace with its key, its domain, and the marker that occurs in all its emails."""

    id: str
    key: str
    domain: str
    marker: str
    template: str = ""
    # A template of ten kilobytes.
    long_template: str = ""
    # The signing secret of its webhook endpoint.
    secret: str = ""
    # Its shared address, at which it receives email.
    address: str = ""


@dataclass
class Scenario:
    stack: Stack
    ledger: Ledger
    receiver: Receiver
    tenants: list[Tenant] = field(default_factory=list)
    plans: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    # Responses with status 500, which no fault may cause.
    internal_errors: list[str] = field(default_factory=list)
    relays: list[UnreliableRelay] = field(default_factory=list)
    # Recipients of emails that may have been accepted without an answer, with their workspaces.
    unanswered: dict[str, Tenant] = field(default_factory=dict)
    # The domains of recipients, in turn.
    domains: tuple[str, ...] = ("example.com",)

    def run(self, name: str, plan: str = "") -> None:
        """Start a process with this failpoint plan, again if it has visited its points; keep one without a plan."""
        process = self.stack.processes.get(name)
        if process and process.poll() is None and not plan and not self.plans.get(name):
            return
        if process:
            with suppress(ProcessLookupError):
                self.stack.kill(name)
        self.stack.start(name, FAULT_PLAN=plan)
        self.plans[name] = plan

    def has_hit(self, name: str, point: str, *, since: int) -> bool:
        return f'"point": "{point}"' in self.log(name)[since:]

    def log(self, name: str) -> str:
        path = Path(self.stack.logs) / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def call(self, tenant: Tenant, method: str, path: str, body: Any = None, *, key: str = "") -> tuple[int, Any]:
        """Send a request until it is answered; repeat it after a connection error, a 5xx, or one of REPEATED."""
        deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
        while True:
            # An answer is incomplete when a process was killed between its head and its body.
            with suppress(OSError, http.client.HTTPException):
                status, answer = self._ask(tenant, method, path, body, key)
                if status == HTTPStatus.INTERNAL_SERVER_ERROR:
                    self.internal_errors.append(f"{method} {path} returned 500, request {answer.get('requestId')}")
                if status < 500 and answer.get("code") not in REPEATED:
                    return status, answer
            assert time.monotonic() < deadline, f"no answer to {method} {path}"
            time.sleep(0.1)

    def _ask(self, tenant: Tenant, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {tenant.key}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        request = urllib.request.Request(f"{self.stack.url}/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")

    def address(self, domain: str = "", local: str = "r") -> str:
        number = next(self.numbers)
        return f"{local}+{number}@{domain or self.domains[number % len(self.domains)]}"

    def send(
        self, tenant: Tenant, *addresses: str, seconds: float | None = None, expires_in: float | None = None
    ) -> AcceptedEmail | None:
        """Send or schedule an email; return None if it was refused. expires_in: seconds from now."""
        body = {
            "from": f"hello@{tenant.domain}",
            "to": list(addresses),
            "subject": f"About {tenant.marker}",
            "html": f'<p>{tenant.marker} <a href="https://x.example/{tenant.marker}">x</a></p>',
        }
        if seconds is not None:
            body["scheduledFor"] = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        if expires_in is not None:
            body["expiresAt"] = (datetime.now(UTC) + timedelta(seconds=expires_in)).isoformat()
        return self.accept(tenant, "/emails/send", body, addresses)

    def batch(self, tenant: Tenant, *addresses: str, template: str = "") -> list[AcceptedEmail]:
        body = {
            "from": f"hello@{tenant.domain}",
            "templateId": template or tenant.template,
            "recipients": [{"to": address, "templateData": {"name": address}} for address in addresses],
        }
        status, answer = self.call(tenant, "POST", "/emails/batch", body, key=f"key-{next(self.numbers)}")
        assert status in {202, 422}, answer
        return [
            self.ledger.record_accepted(one["id"], workspace=tenant.id, addresses=(one["to"],))
            for one in answer.get("emails", ())
        ]

    def resend(self, sent: AcceptedEmail) -> AcceptedEmail | None:
        tenant = next(tenant for tenant in self.tenants if tenant.id == sent.workspace)
        return self.accept(tenant, f"/emails/{sent.email_id}/resend", {}, sent.addresses)

    def accept(self, tenant: Tenant, path: str, body: Any, addresses: tuple[str, ...]) -> AcceptedEmail | None:
        """Send an email with a new key; return None if it was refused."""
        status, answer = self.call(tenant, "POST", path, body, key=f"key-{next(self.numbers)}")
        if status != 202:
            # A scheduled time may have passed while the request was repeated.
            codes = {answer.get("code"), *(error["code"] for error in answer.get("errors", ()))}
            assert codes & {"recipient_suppressed", "in_past", "before_schedule"}, (status, answer)
            return None
        return self.ledger.record_accepted(answer["id"], workspace=tenant.id, addresses=tuple(addresses))

    def cancel(self, sent: AcceptedEmail) -> bool:
        tenant = next(tenant for tenant in self.tenants if tenant.id == sent.workspace)
        status, answer = self.call(tenant, "DELETE", f"/emails/{sent.email_id}")
        assert status in {200, 409}, (status, answer)
        if status == 200:
            self.ledger.record_cancelled(sent)
        return status == 200

    def suppress(self, tenant: Tenant, address: str) -> None:
        status, answer = self.call(tenant, "POST", "/suppressions", {"email": address})
        assert status in {200, 201}, answer
        self.ledger.record_suppressed(tenant.id, address)

    def report_bounce(self, message: ReceivedMessage) -> None:
        """Send a bounce to the inbound server until it answers 250, as a mail host would."""
        report = dsn(message.recipient)
        self._until_accepted(lambda: self._submit(report, message.sender), "the report")
        self.ledger.reports.add(message_id_of(message))

    def receive(self, tenant: Tenant, *, to: str = "") -> None:
        """Send an email to a workspace until the inbound server answers 250, as a mail host would.

        to: its shared address by default.
        """
        to = to or tenant.address
        message_id = f"<{next(self.numbers)}@example.com>"
        source = f"From: ada@example.com\r\nSubject: {tenant.marker}\r\nMessage-ID: {message_id}\r\n\r\nHello\r\n"
        self._until_accepted(lambda: self._submit(source.encode(), to), "the email")
        self.ledger.record_received(source.encode(), message_id=message_id, recipients={to: tenant.id})

    def _until_accepted(self, submit: Callable[[], tuple[int, bytes]], what: str) -> str:
        """Submit over SMTP until the answer is 250; return its text."""
        deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
        while True:
            with suppress(OSError, smtplib.SMTPException):
                code, text = submit()
                assert code // 100 != 5, f"{what} was permanently refused: {code} {text!r}"
                if code == 250:
                    return text.decode()
            assert time.monotonic() < deadline, f"{what} was never accepted"
            time.sleep(0.1)

    def _submit(self, report: bytes, to: str) -> tuple[int, bytes]:
        with smtplib.SMTP("127.0.0.1", int(self.stack.environment["INBOUND_PORT"]), timeout=20) as client:
            client.ehlo("mx.example.com")
            code, text = client.mail("<>")
            if code == 250:
                code, text = client.rcpt(to)
            return (code, text) if code != 250 else client.data(report)

    def submit(self, tenant: Tenant, *addresses: str) -> AcceptedEmail:
        """Send an email over SMTP; repeat it with its key until it is accepted, as a correct client would."""
        source = _message(tenant, f"Idempotency-Key: key-{next(self.numbers)}\r\n")
        text = self._until_accepted(lambda: self._submit_email(tenant, source, addresses), "the message")
        return self.ledger.record_accepted(text.split()[3], workspace=tenant.id, addresses=addresses)

    def submit_once(self, tenant: Tenant, address: str) -> None:
        """Send an email over SMTP without a key, which a correct client does not repeat."""
        self.unanswered[address] = tenant
        with suppress(OSError, smtplib.SMTPException):
            self._submit_email(tenant, _message(tenant), (address,))

    def record_unanswered(self) -> None:
        """Record the emails of `submit_once` that were accepted."""
        sql = "SELECT email_id, address FROM emails_recipient WHERE address = ANY (%s)"
        for email_id, address in self.stack.query(sql, [*self.unanswered]):
            tenant = self.unanswered.pop(address)
            self.ledger.record_accepted(wire_id(email_id), workspace=tenant.id, addresses=(address,))

    def _submit_email(self, tenant: Tenant, source: bytes, addresses: tuple[str, ...]) -> tuple[int, bytes]:
        with smtplib.SMTP("127.0.0.1", int(self.stack.environment["SUBMISSION_PORTS"]), timeout=20) as client:
            client.login("x", tenant.key)
            code, text = client.mail(f"hello@{tenant.domain}")
            for address in addresses:
                if code == 250:
                    code, text = client.rcpt(address)
            return (code, text) if code != 250 else client.data(source)

    def enqueue_tasks(self, *tasks: str) -> None:
        """Enqueue periodic tasks immediately; lost without Redis, like tasks from beat."""
        with Celery(broker=self.stack.environment["REDIS_URL"]) as app:
            for task in tasks:
                with suppress(CeleryError):
                    app.send_task(task, retry=False)

    def expire_leases(self) -> None:
        """Expire all leases, those of received reports included."""
        expire_leases(self.stack)
        for statement in (EXPIRE_REPORTS, EXPIRE_MESSAGES, EXPIRE_FORWARDS):
            self.stack.query(statement)

    def wait_until_idle(self, *, seconds: float = 120) -> None:
        """Wait until the queues are empty. seconds: the longest time without progress."""
        smallest, shrunk_at = math.inf, time.monotonic()
        while depth := self._queue_depth():
            if depth < smallest:
                smallest, shrunk_at = depth, time.monotonic()
            assert time.monotonic() - shrunk_at < seconds, f"{depth} queue entries without progress for {seconds} s"
            time.sleep(0.1)

    def _queue_depth(self) -> float:
        with suppress(Exception):
            return float(self.stack.query(QUEUE_DEPTH)[0][0])
        return math.inf

    def find_violations(self) -> list[str]:
        """Run the auditor and `manage.py reconcile`."""
        violations = audit(self.stack.database, self.ledger, grace_seconds=GRACE_SECONDS)
        try:
            self.stack.manage("reconcile")
        except AssertionError as error:
            violations.append(f"reconcile: {error}")
        return [*violations, *self.internal_errors]


def _message(tenant: Tenant, fields: str = "") -> bytes:
    head = f"From: hello@{tenant.domain}\r\nSubject: About {tenant.marker}\r\n{fields}"
    return f"{head}\r\n{tenant.marker}\r\n".encode()


def message_id_of(message: ReceivedMessage) -> str:
    head = message.source.partition(b"\r\n\r\n")[0].decode("latin-1").lower()
    start = head.index("message-id:")
    return message.source[start:].decode("latin-1").partition("<")[2].partition("@")[0]


@contextmanager
def running_scenario(
    logs: Path,
    *,
    repository: Path = REPOSITORY,
    has_two_transports: bool = False,
    pooler: str = "",
    ledger: Ledger | None = None,
    **variables: str,
) -> Iterator[Scenario]:
    """Yield a scenario with web, worker and the inbound server of reports, and two workspaces with an endpoint each.

    has_two_transports: own and relay, each behind a proxy that breaks connections. pooler: as for `running_stack`.
    ledger: by default a new one.
    """
    ledger = ledger or Ledger()
    with ExitStack() as stack:
        relays: list[UnreliableRelay] = []
        if has_two_transports:
            relays = [stack.enter_context(_transport(ledger, name)) for name in ("own", "relay")]
            relay = {"TRANSPORTS_FILE": str(_write_transports(logs, relays))}
        else:
            port = stack.enter_context(mail_sink(ledger))
            relay = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        receiver = stack.enter_context(webhook_sink(ledger))
        inbound = {"INBOUND_PORT": str(free_port())}
        settings = {**FAST_RETRIES, **relay, **inbound, **variables}
        running = stack.enter_context(running_stack(logs, repository=repository, pooler=pooler, **settings))
        scenario = Scenario(running, ledger, receiver, relays=relays)
        for name in ("web", "worker", "inbound", "submission"):
            scenario.run(name)
        scenario.tenants = [_demo_tenant(scenario), _other_tenant(scenario)]
        for tenant in scenario.tenants:
            _set_up_tenant(scenario, tenant)
        yield scenario


@contextmanager
def _transport(ledger: Ledger, name: str) -> Iterator[UnreliableRelay]:
    with mail_sink(ledger, transport=name) as port, unreliable_relay(name, port) as relay:
        yield relay


def _write_transports(logs: Path, relays: list[UnreliableRelay]) -> Path:
    """Write the file of the transports, preferred in this order; return its path."""
    path = logs / "transports.yaml"
    urls = {relay.name: f"smtp://127.0.0.1:{relay.port}?tls=none" for relay in relays}
    transports = {name: {"kind": "smtp", "url": url} for name, url in urls.items()}
    path.write_text(json.dumps({"transports": transports, "routes": {"default": {"use": [*urls]}}}))
    return path


def _demo_tenant(scenario: Scenario) -> Tenant:
    return Tenant(_workspace_id(scenario, "demo.example"), scenario.stack.key, "demo.example", "aardvark")


def _other_tenant(scenario: Scenario) -> Tenant:
    made = scenario.stack.manage(
        "create_workspace", "--name", "Other", "--email", "o@other.example", "--password", "long enough words",
        "--plan", "enterprise",
    )  # fmt: skip
    id_ = json.loads(made)["workspaceId"]
    key = json.loads(
        scenario.stack.manage("create_api_key", "--workspace", id_, "--name", "k", "--scope", "full_access")
    )
    return Tenant(id_, key["key"], "other.example", "zebrafish")


def _workspace_id(scenario: Scenario, domain: str) -> str:
    ((id_,),) = scenario.stack.query("SELECT workspace_id FROM domains_domain WHERE name = %s", domain)
    return wire_id(id_, "ws_")


def _set_up_tenant(scenario: Scenario, tenant: Tenant) -> None:
    scenario.ledger.markers[tenant.id] = tenant.marker
    scenario.call(tenant, "POST", "/domains", {"name": tenant.domain})
    tenant.template = _create_template(scenario, tenant, name="short", paragraphs=1)
    tenant.long_template = _create_template(scenario, tenant, name="long", paragraphs=10_000 // len(PARAGRAPH))
    path = f"/hook-{tenant.marker}"
    tenant.address = scenario.call(tenant, "GET", "/inbound")[1]["address"]
    status, answer = scenario.call(
        tenant, "POST", "/webhooks", {"url": scenario.receiver.url(path), "events": list(EVENT_KINDS)}
    )
    assert status == 201, answer
    tenant.secret = answer["secret"]
    scenario.ledger.endpoints.append(RegisteredEndpoint(tenant.id, path, frozenset(EVENT_KINDS)))


def _create_template(scenario: Scenario, tenant: Tenant, *, name: str, paragraphs: int) -> str:
    html = PARAGRAPH.replace("MARK", tenant.marker) * paragraphs
    body = {"name": name, "subject": f"{tenant.marker} for {{{{name}}}}", "htmlContent": html}
    _, template = scenario.call(tenant, "POST", "/templates", body)
    return str(template["id"])


def recover_after_failpoint(scenario: Scenario, name: str, point: str, *, since: int, is_deadly: bool) -> Future[None]:
    """Wait in the background until a process hits a failpoint; restart it without a plan if that was deadly.

    A process must recover without help from a fault that it survives. Raises AssertionError if it never hits the point.
    since: the length of the process's log before it was started.
    """

    def watch() -> None:
        wait_for(
            lambda: scenario.has_hit(name, point, since=since), seconds=CALL_TIMEOUT_SECONDS, what=f"{name} at {point}"
        )
        if is_deadly:
            # gunicorn itself survives and would start children that die at the same failpoint.
            with suppress(ProcessLookupError):
                scenario.stack.signal(name, signal.SIGKILL)
            scenario.stack.processes[name].wait()
            scenario.run(name)
        scenario.expire_leases()

    pool = ThreadPoolExecutor(1, thread_name_prefix="recover")
    future = pool.submit(watch)
    pool.shutdown(wait=False)
    return future
