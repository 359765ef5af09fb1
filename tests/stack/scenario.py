"""Two workspaces that use a running service from outside, and write down in a ledger what they asked and were told.

A caller here does what a good client does: it repeats a request that was not answered, with the same key.
"""

import http.client
import itertools
import json
import signal
import smtplib
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError as CeleryError

from tests.audit.auditor import audit, wire_id
from tests.audit.ledger import Copy, Endpoint, Ledger, Sent
from tests.audit.sink import mail_sink, webhook_sink
from tests.inbound.dsns import dsn
from tests.stack.stack import Stack, free_port, running_stack, wait_for
from tests.webhooks.receiver import Receiver

LEASE_SECONDS = 4
# What began before a suppression may end a lease later; the rest is for a busy machine.
GRACE_SECONDS = 2 * LEASE_SECONDS + 2
PATIENCE_SECONDS = 120
FAST = {
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "DELIVERY_RETRY_SECONDS": "1",
    "WEBHOOK_RETRY_SECONDS": ",".join(["1"] * 40),
    "WEB_CONCURRENCY": "2",
}
KINDS = ("sent", "delivered", "bounced", "failed", "opened", "clicked", "unsubscribed", "complained", "deferred")
EXPIRE = (
    "UPDATE emails_pending SET due_at = now() - interval '1 s' WHERE stage = 2 RETURNING 1",
    "UPDATE webhooks_pending SET due_at = now() - interval '1 s' WHERE stage = 2 RETURNING 1",
    "UPDATE inbound_mailreport SET due_at = now() - interval '1 s' WHERE processed_at IS NULL RETURNING 1",
)
PARAGRAPH = (
    '<p>MARK for {{name}}: <b>all is well</b> with <a href="https://x.example/MARK">what you have ordered</a></p>\n'
)
LEFT = """
SELECT (SELECT count(*) FROM emails_pending) + (SELECT count(*) FROM webhooks_pending)
     + (SELECT count(*) FROM inbound_mailreport WHERE processed_at IS NULL)
"""


@dataclass
class Tenant:
    """A workspace with its key, its domain, and the word that stands in all its mail."""

    id: str
    key: str
    domain: str
    mark: str
    template: str = ""
    # One of ten kilobytes.
    long_template: str = ""
    # Of its endpoint.
    secret: str = ""


@dataclass
class Scene:
    stack: Stack
    ledger: Ledger
    receiver: Receiver
    tenants: list[Tenant] = field(default_factory=list)
    plans: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    # What runs.

    def run(self, name: str, plan: str = "") -> None:
        """Have a process run with this plan of faults, and a log of its own."""
        process = self.stack.processes.get(name)
        if process and process.poll() is None and self.plans.get(name) == plan:
            return
        if process:
            with suppress(ProcessLookupError):
                self.stack.kill(name)
        self.stack.start(name, FAULT_PLAN=plan)
        self.plans[name] = plan

    def struck(self, name: str, point: str, *, since: int) -> bool:
        return f'"point": "{point}"' in self.log(name)[since:]

    def log(self, name: str) -> str:
        path = Path(self.stack.logs) / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # What the callers do.

    def call(self, tenant: Tenant, method: str, path: str, body: Any = None, *, key: str = "") -> tuple[int, Any]:
        """Ask until there is an answer: what broke, or is being accepted, is asked again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            # An answer may be cut in the middle: a process was killed between its head and its body.
            with suppress(OSError, http.client.HTTPException):
                status, answer = self._ask(tenant, method, path, body, key)
                if status < 500 and answer.get("code") != "idempotency_in_progress":
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
            return error.code, json.loads(error.read() or b"{}")

    def address(self, domain: str = "example.com", local: str = "r") -> str:
        return f"{local}+{next(self.numbers)}@{domain}"

    def send(self, tenant: Tenant, *addresses: str, seconds: float | None = None) -> Sent | None:
        """Send an email to addresses, or schedule it; None where it was refused."""
        body = {
            "from": f"hello@{tenant.domain}",
            "to": list(addresses),
            "subject": f"About {tenant.mark}",
            "html": f'<p>{tenant.mark} <a href="https://x.example/{tenant.mark}">x</a></p>',
        }
        if seconds is not None:
            body["scheduledFor"] = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        return self._accept(tenant, "/emails/send", body, addresses)

    def batch(self, tenant: Tenant, *addresses: str, template: str = "") -> list[Sent]:
        body = {
            "from": f"hello@{tenant.domain}",
            "templateId": template or tenant.template,
            "recipients": [{"to": address, "templateData": {"name": address}} for address in addresses],
        }
        status, answer = self.call(tenant, "POST", "/emails/batch", body, key=f"key-{next(self.numbers)}")
        assert status in {202, 422}, answer
        return [
            self.ledger.accepted(one["id"], workspace=tenant.id, addresses=(one["to"],))
            for one in answer.get("emails", ())
        ]

    def resend(self, sent: Sent) -> Sent | None:
        tenant = next(tenant for tenant in self.tenants if tenant.id == sent.workspace)
        return self._accept(tenant, f"/emails/{sent.email_id}/resend", {}, sent.addresses)

    def _accept(self, tenant: Tenant, path: str, body: Any, addresses: tuple[str, ...]) -> Sent | None:
        status, answer = self.call(tenant, "POST", path, body, key=f"key-{next(self.numbers)}")
        if status != 202:
            # A schedule may have passed while a broken service was asked again and again.
            codes = {answer.get("code"), *(error["code"] for error in answer.get("errors", ()))}
            assert codes & {"recipient_suppressed", "in_past"}, (status, answer)
            return None
        return self.ledger.accepted(answer["id"], workspace=tenant.id, addresses=tuple(addresses))

    def cancel(self, sent: Sent) -> bool:
        tenant = next(tenant for tenant in self.tenants if tenant.id == sent.workspace)
        status, answer = self.call(tenant, "DELETE", f"/emails/{sent.email_id}")
        assert status in {200, 409}, (status, answer)
        if status == 200:
            self.ledger.cancelled(sent)
        return status == 200

    def suppress(self, tenant: Tenant, address: str) -> None:
        status, answer = self.call(tenant, "POST", "/suppressions", {"email": address})
        assert status in {200, 201}, answer
        self.ledger.blocked(tenant.id, address)

    def report_bounce(self, copy: Copy) -> None:
        """Bring a delivery report to the receiver until it says 250, as a mail host would."""
        report = dsn(copy.recipient)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            with suppress(OSError, smtplib.SMTPException):
                code, text = self._bring(report, copy.sender)
                assert code // 100 != 5, f"a report was turned away for good: {code} {text!r}"
                if code == 250:
                    self.ledger.reports.add(copy_id(copy))
                    return
            assert time.monotonic() < deadline, "no host can bring its report"
            time.sleep(0.1)

    def _bring(self, report: bytes, to: str) -> tuple[int, bytes]:
        with smtplib.SMTP("127.0.0.1", int(self.stack.environment["INBOUND_PORT"]), timeout=20) as client:
            client.ehlo("mx.example.com")
            client.mail("<>")
            code, text = client.rcpt(to)
            return (code, text) if code != 250 else client.data(report)

    def sweep(self, *tasks: str) -> None:
        """Ask for what beat would ask for in a while; lost with Redis, as beat's own word would be."""
        with Celery(broker=self.stack.environment["REDIS_URL"]) as app:
            for task in tasks:
                with suppress(CeleryError):
                    app.send_task(task, retry=False)

    # What it comes to.

    def expire_leases(self) -> None:
        """Let a dead process's lease pass: rows are moved into the past, never the clock."""
        for statement in EXPIRE:
            self.stack.query(statement)

    def settle(self, *, seconds: float = 120) -> None:
        def is_done() -> bool:
            with suppress(Exception):
                return self.stack.query(LEFT) == [(0,)]
            return False

        wait_for(is_done, seconds=seconds, what="the queues are empty")

    def findings(self) -> list[str]:
        """Audit, and have the counters counted again."""
        found = audit(self.stack.database, self.ledger, grace_seconds=GRACE_SECONDS)
        try:
            self.stack.manage("reconcile")
        except AssertionError as error:
            found.append(f"reconcile: {error}")
        return found


def copy_id(copy: Copy) -> str:
    head = copy.source.partition(b"\r\n\r\n")[0].decode("latin-1").lower()
    start = head.index("message-id:")
    return copy.source[start:].decode("latin-1").partition("<")[2].partition("@")[0]


@contextmanager
def running_scene(logs: Path, **variables: str) -> Iterator[Scene]:
    """Yield a scene whose web, worker and receiver of reports run, with two workspaces and an endpoint of each."""
    ledger = Ledger()
    with ExitStack() as stack:
        port = stack.enter_context(mail_sink(ledger))
        receiver = stack.enter_context(webhook_sink(ledger))
        relay = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        inbound = {"INBOUND_PORT": str(free_port())}
        running = stack.enter_context(running_stack(logs, **{**FAST, **relay, **inbound, **variables}))
        scene = Scene(running, ledger, receiver)
        for name in ("web", "worker", "inbound"):
            scene.run(name)
        scene.tenants = [_demo(scene), _other(scene)]
        for tenant in scene.tenants:
            _settle_in(scene, tenant)
        wait_for(lambda: _listens(int(inbound["INBOUND_PORT"])), seconds=30, what="the receiver of reports")
        yield scene


def _demo(scene: Scene) -> Tenant:
    return Tenant(_workspace_of(scene, "demo.example"), scene.stack.key, "demo.example", "aardvark")


def _other(scene: Scene) -> Tenant:
    made = scene.stack.manage(
        "create_workspace", "--name", "Other", "--email", "o@other.example", "--password", "long enough words",
        "--plan", "enterprise",
    )  # fmt: skip
    id_ = json.loads(made)["workspaceId"]
    key = json.loads(scene.stack.manage("create_api_key", "--workspace", id_, "--name", "k", "--scope", "full_access"))
    return Tenant(id_, key["key"], "other.example", "zebrafish")


def _workspace_of(scene: Scene, domain: str) -> str:
    ((id_,),) = scene.stack.query("SELECT workspace_id FROM domains_domain WHERE name = %s", domain)
    return wire_id(id_, "ws_")


def _settle_in(scene: Scene, tenant: Tenant) -> None:
    scene.ledger.marks[tenant.id] = tenant.mark
    scene.call(tenant, "POST", "/domains", {"name": tenant.domain})
    tenant.template = _template(scene, tenant, name="short", paragraphs=1)
    tenant.long_template = _template(scene, tenant, name="long", paragraphs=10_000 // len(PARAGRAPH))
    path = f"/hook-{tenant.mark}"
    status, answer = scene.call(tenant, "POST", "/webhooks", {"url": scene.receiver.url(path), "events": list(KINDS)})
    assert status == 201, answer
    tenant.secret = answer["secret"]
    scene.ledger.endpoints.append(Endpoint(tenant.id, path, frozenset(KINDS)))


def _template(scene: Scene, tenant: Tenant, *, name: str, paragraphs: int) -> str:
    html = PARAGRAPH.replace("MARK", tenant.mark) * paragraphs
    body = {"name": name, "subject": f"{tenant.mark} for {{{{name}}}}", "htmlContent": html}
    _, template = scene.call(tenant, "POST", "/templates", body)
    return str(template["id"])


def _listens(port: int) -> bool:
    with suppress(OSError), smtplib.SMTP("127.0.0.1", port, timeout=2):
        return True
    return False


def mend(scene: Scene, name: str, point: str, *, is_deadly: bool) -> Future[None]:
    """Wait in the background until a process struck a point; run it again without a plan where that was its end.

    What a process survives it must get over by itself. Raises AssertionError when nothing ever comes to the point.
    """
    since = len(scene.log(name))

    def watch() -> None:
        wait_for(lambda: scene.struck(name, point, since=since), seconds=PATIENCE_SECONDS, what=f"{name} at {point}")
        if is_deadly:
            # gunicorn itself goes on and would start children that die in the same place.
            with suppress(ProcessLookupError):
                scene.stack.signal(name, signal.SIGKILL)
            scene.stack.processes[name].wait()
            scene.run(name)
        scene.expire_leases()

    pool = ThreadPoolExecutor(1, thread_name_prefix="mend")
    future = pool.submit(watch)
    pool.shutdown(wait=False)
    return future
