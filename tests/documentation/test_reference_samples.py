"""Every sample of the API reference runs against a running service: each operation in each language."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from documentation.reference import ReferenceOperation, reference_pages
from lib.code_samples import RENDERERS
from tests.stack.stack import Stack, wait_for

pytestmark = pytest.mark.full

OPERATIONS = [operation for page in reference_pages() for operation in page.operations]
LANGUAGES = [language for _, language, _ in RENDERERS]
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
STREAMS = {"streamEvents"}
# They need a test key.
SIMULATING = {"simulateReceivedEmail"}


def tomorrow() -> str:
    return f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"


def created(stack: Stack, path: str, **body: Any) -> str:
    """Create a resource; return its id."""
    reply = stack.call("POST", path, body)
    assert reply.status in {200, 201, 202}, reply.body
    return str(reply.body["id"])


def new_email(stack: Stack) -> list[str]:
    return [str(stack.send(scheduledFor=tomorrow()).body["id"])]


def new_sent_file(stack: Stack) -> list[str]:
    files = [{"filename": "a.txt", "content": "QQ=="}]
    email = str(stack.send(scheduledFor=tomorrow(), attachments=files).body["id"])
    return [email, stack.call("GET", f"/emails/{email}/attachments").body["data"][0]["id"]]


def new_stream(stack: Stack) -> list[str]:
    delete_streams(stack)
    return [created(stack, "/streams", id=f"s{uuid4().hex[:12]}", name="News")]


def new_template(stack: Stack) -> list[str]:
    return [created(stack, "/templates", name="Welcome", subject="Hi", htmlContent="<p>Hi {{name}}</p>")]


def new_webhook(stack: Stack) -> list[str]:
    # A workspace has at most 20.
    delete_all(stack, "/webhooks")
    return [created(stack, "/webhooks", url="https://example.com/hooks", events=["delivered"])]


def new_delivery(stack: Stack) -> list[str]:
    (webhook,) = new_webhook(stack)
    stack.call("POST", f"/webhooks/{webhook}/test")
    found = wait_for(
        lambda: stack.call("GET", f"/webhooks/{webhook}/deliveries").body["data"], seconds=30, what="the delivery"
    )
    return [webhook, found[0]["id"]]


def new_domain(stack: Stack) -> list[str]:
    return [created(stack, "/domains", name=f"d{uuid4().hex}.example")]


def new_suppression(stack: Stack) -> list[str]:
    return [created(stack, "/suppressions", email=f"{uuid4().hex}@example.com")]


def new_workspace(stack: Stack) -> list[str]:
    return [created(stack, "/admin/workspaces", name="Shop", plan="pro")]


def new_key(stack: Stack) -> list[str]:
    (workspace,) = new_workspace(stack)
    return [workspace, created(stack, f"/admin/workspaces/{workspace}/api-keys", name="Site", scope="sending_access")]


def new_invitation(stack: Stack) -> list[str]:
    (workspace,) = new_workspace(stack)
    return [workspace, created(stack, f"/admin/workspaces/{workspace}/invitations", email="ada@example.com")]


def new_member(stack: Stack) -> list[str]:
    """Create a workspace with an owner and a member: the last owner could not be removed."""
    (workspace,), (owner, member) = new_workspace(stack), (f"u{uuid4().hex}@example.com" for _ in range(2))
    stack.manage("shell", "-c", ADD_MEMBERS.format(workspace=workspace, owner=owner, member=member))
    return [workspace, member]


ADD_MEMBERS = """
from workspaces.models import Membership, User
for email, role in (("{owner}", "owner"), ("{member}", "member")):
    Membership.objects.create(workspace_id="{workspace}", user=User.objects.create(email=email), role=role)
"""


def new_route(stack: Stack, **fields: Any) -> list[str]:
    # A workspace has at most 100, and with one of them, the shared address accepts no other label.
    delete_all(stack, "/inbound/routes")
    return [created(stack, "/inbound/routes", **{"name": "All", "domain": "shared", "match": "*", **fields})]


def new_alert(stack: Stack) -> list[str]:
    delete_all(stack, "/alerts")
    return [created(stack, "/alerts", metric="quota_used", threshold=90)]


def new_block(stack: Stack) -> list[str]:
    return [created(stack, "/inbound/blocks", sender=f"{uuid4().hex}.example")]


def as_tester(stack: Stack) -> Stack:
    """Return the stack with a test key of the workspace."""
    options = ("--workspace", stack.call("GET", "/me").body["workspace"]["id"], "--name", "simulations")
    answer = stack.manage("create_api_key", *options, "--scope", "sending_access", "--test")
    return replace(stack, key=json.loads(answer)["key"])


def inbound_address(stack: Stack) -> str:
    return str(stack.call("GET", "/inbound").body["address"])


def new_received(stack: Stack, **route: Any) -> list[str]:
    """Receive an email with a file; return its id."""
    new_route(stack, **route)
    received = created(as_tester(stack), "/inbound/emails", recipient=inbound_address(stack), raw=MESSAGE)
    is_read = lambda: stack.call("GET", f"/inbound/emails/{received}").body["status"] != "stored"  # noqa: E731
    wait_for(is_read, seconds=60, what="the reading")
    return [received]


def new_blocked(stack: Stack) -> list[str]:
    return new_received(stack, requireAuthenticated=True)


def new_unreadable(stack: Stack) -> list[str]:
    """Receive an email, as if its message could not be read; return its id."""
    (received,) = new_received(stack)
    stack.manage("shell", "-c", MAKE_UNREADABLE.format(received=received))
    return [received]


def new_received_file(stack: Stack) -> list[str]:
    (received,) = new_received(stack)
    return [received, stack.call("GET", f"/inbound/emails/{received}").body["attachments"][0]["id"]]


def new_forwardable(stack: Stack) -> list[str]:
    """Receive an email at a domain that can send, with a target that has agreed; return its id."""
    workspace = stack.call("GET", "/me").body["workspace"]["id"]
    stack.manage("shell", "-c", LET_FORWARD.format(workspace=workspace))
    new_route(stack, domain="demo.example")
    body = {"recipient": "support@demo.example", "envelopeFrom": "ada@example.com", "raw": MESSAGE}
    tester = as_tester(stack)
    replies: list[Any] = []
    # A domain is received within a second.
    is_stored = lambda: replies.append(tester.call("POST", "/inbound/emails", body)) or replies[-1].status == 202  # noqa: E731
    wait_for(is_stored, seconds=30, what="the domain is received")
    received = str(replies[-1].body["id"])
    is_read = lambda: stack.call("GET", f"/inbound/emails/{received}").body["status"] != "stored"  # noqa: E731
    wait_for(is_read, seconds=60, what="the reading")
    return [received]


LET_FORWARD = """
from django.utils import timezone
from domains.models import Domain, ReceivingDomain
from receiving.models import ForwardTarget
now, domain = timezone.now(), Domain.objects.get(name="demo.example", workspace_id="{workspace}")
values = dict(workspace_id="{workspace}", name=domain.name, status="active", proven_at=now)
ReceivingDomain.objects.get_or_create(domain=domain, defaults=values)
target = dict(workspace_id="{workspace}", address="grace@example.org")
ForwardTarget.objects.get_or_create(**target, defaults=dict(confirmed_at=now))
"""
MAKE_UNREADABLE = """
from receiving.models import Message, ReceivedEmail
from receiving.states import NOT_READ
ReceivedEmail.objects.filter(id="{received}").update(status="unreadable")
Message.objects.filter(emails="{received}").update(parse_errors=[NOT_READ])
"""
MESSAGE = "From: ada@example.com\r\nContent-Disposition: attachment; filename=a.txt\r\nSubject: Hi\r\n\r\nHello\r\n"
MANAGEMENT = "/v1/admin/"
# The ids for the parameters of a path, by its beginning. The longest beginning applies.
IDS: dict[str, Callable[[Stack], list[str]]] = {
    "/v1/emails/{": new_email,
    "/v1/emails/{id}/attachments/{": new_sent_file,
    "/v1/streams/{": new_stream,
    "/v1/templates/{": new_template,
    "/v1/alerts/{": new_alert,
    "/v1/webhooks/{": new_webhook,
    "/v1/webhooks/{webhook_id}/deliveries/{": new_delivery,
    "/v1/domains/{": new_domain,
    "/v1/suppressions/{": new_suppression,
    "/v1/inbound/routes/{": new_route,
    "/v1/inbound/blocks/{": new_block,
    "/v1/inbound/emails/{": new_received,
    "/v1/inbound/emails/{id}/bypass": new_blocked,
    "/v1/inbound/emails/{id}/forward": new_forwardable,
    "/v1/inbound/emails/{id}/reread": new_unreadable,
    "/v1/inbound/emails/{id}/attachments/{": new_received_file,
    "/v1/admin/workspaces/{": new_workspace,
    "/v1/admin/workspaces/{workspace_id}/api-keys/{": new_key,
    "/v1/admin/workspaces/{workspace_id}/invitations/{": new_invitation,
    "/v1/admin/workspaces/{workspace_id}/members/{": new_member,
}


def delete_all(stack: Stack, path: str, *, name: str = "") -> None:
    for one in stack.call("GET", f"{path}?limit=100").body["data"]:
        if name in (one.get("name", ""), one.get("alias", ""), ""):
            stack.call("DELETE", f"{path}/{one['id']}")


def delete_streams(stack: Stack) -> None:
    """Delete all streams, which the API only archives."""
    stack.query("DELETE FROM streams_stream RETURNING id")


def restore(stack: Stack, operation: str) -> None:
    """Bring the workspace into the state that the examples of new resources need: earlier samples have changed it."""
    delete_streams(stack)
    delete_all(stack, "/suppressions")
    delete_all(stack, "/webhooks")
    delete_all(stack, "/alerts")
    delete_all(stack, "/inbound/routes")
    delete_all(stack, "/templates", name="welcome")
    if operation != "createTemplate":
        created(stack, "/templates", name="W", alias="welcome", subject="Hi {{name}}", htmlContent="<p>{{name}}</p>")
    delete_all(stack, "/domains", name="demo.example")
    if operation != "createDomain":
        created(stack, "/domains", name="demo.example")


def ids_for(stack: Stack, path: str) -> list[str]:
    beginnings = [beginning for beginning in IDS if path.startswith(beginning)]
    if not beginnings:
        assert "{" not in path, f"Add to IDS how to create the resource of {path}."
        return []
    return IDS[max(beginnings, key=len)](stack)


def runnable(operation: ReferenceOperation, language: str, stack: Stack) -> str:
    """Return the sample for the running service: with its URL, existing ids and a time in the future."""
    (sample,) = [sample for sample in operation.samples if sample.language == language]
    url = settings.PUBLIC_URL + operation.path
    pattern = re.sub(r"\\\{\w+\\\}", r"""[^/"'\\s]+""", re.escape(url))
    assert re.search(f"{pattern}\\b", sample.text), sample.text
    ids = iter(ids_for(stack, operation.path))
    real = stack.url + re.sub(r"\{\w+\}", lambda _: next(ids), operation.path)
    text = TIMESTAMP.sub(tomorrow(), re.sub(f"""{pattern}(?=["'\\s]|$)""", real, sample.text))
    if operation.id == "redeliverReceivedEmail":
        return re.sub(r"wh_\w{22}", new_webhook(stack)[0], text)
    return text.replace("support+4711@in.demo.example", inbound_address(stack)) if operation.id in SIMULATING else text


@pytest.fixture(scope="module")
def manager(runner):
    """Return a runner with a key of the management API."""
    key = json.loads(runner.stack.manage("create_management_key", "--name", "platform"))["key"]
    return replace(runner, stack=replace(runner.stack, key=key))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.id not in STREAMS], ids=lambda one: one.id)
def test_a_sample_returns_a_success(operation, language, runner, manager, tmp_path):
    if operation.path.startswith(MANAGEMENT):
        runner = manager
    elif operation.method == "POST" and "{" not in operation.path:
        restore(runner.stack, operation.id)
    sample = runnable(operation, language, runner.stack)
    if operation.id in SIMULATING:
        runner = replace(runner, stack=as_tester(runner.stack))
    output = runner.run(language, sample, home=tmp_path)
    assert output.strip()
    # The type is the first member of an error. The OpenAPI document names all types.
    is_error = "/docs/errors#" in output[:200]
    assert not is_error, output


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.id in STREAMS], ids=lambda one: one.id)
def test_a_sample_of_a_stream_shows_new_events(operation, language, runner, tmp_path):
    command = runner.command(language, runnable(operation, language, runner.stack), home=tmp_path)
    output = tmp_path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=runner.environment(tmp_path), stdout=file, stderr=file, start_new_session=True
        )
    try:
        wait_for(lambda: shows_an_event(runner.stack, output), seconds=120, what=f"an event in {output.read_text()}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def shows_an_event(stack: Stack, output: Any) -> bool:
    """Send an email, until the stream that is being opened shows one of its events."""
    stack.send(to="delivered@simulator.test")
    return "emailId" in output.read_text()
