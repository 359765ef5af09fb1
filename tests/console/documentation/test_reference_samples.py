"""Samples of the API reference, run against a running service.

`--full` runs each operation with curl and in another language, and operations that together have every feature of a
request in all languages but Go. `--long` runs the others.
"""

import json
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from console.documentation.code_samples import RENDERERS
from console.documentation.reference import ReferenceOperation, reference_pages
from tests.console.documentation.conftest import LANGUAGES as PROGRAMS
from tests.stack.stack import Stack, wait_for

pytestmark = pytest.mark.full

OPERATIONS = [operation for page in reference_pages() for operation in page.operations]
LANGUAGES = [language for _, language, _ in RENDERERS]
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Each of their samples takes seconds to compile.
COMPILED = {"go"}
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


def new_held(stack: Stack) -> list[str]:
    """Return the id of an email that waits for approval."""
    delete_streams(stack)
    created(stack, "/streams", id="approved", name="Approved", approval="required")
    return [str(stack.send(stream="approved").body["id"])]


def new_sent_file(stack: Stack) -> list[str]:
    files = [{"filename": "a.txt", "content": "QQ=="}]
    email = str(stack.send(scheduledFor=tomorrow(), attachments=files).body["id"])
    return [email, stack.call("GET", f"/emails/{email}/attachments").body["data"][0]["id"]]


def creates(path: str, *, alone: bool = False, **body: Any) -> Callable[[Stack], list[str]]:
    """Return a function that creates a resource and returns its id.

    body: `{unique}` stands for a new name. alone: whether it deletes the others first, since their number is limited.
    """

    def create(stack: Stack) -> list[str]:
        if alone:
            delete_all(stack, path)
        return [created(stack, path, **json.loads(json.dumps(body).replace("{unique}", uuid4().hex[:12])))]

    return create


def new_stream(stack: Stack) -> list[str]:
    delete_streams(stack)
    return creates("/streams", id="s{unique}", name="News")(stack)


new_webhook = creates("/webhooks", alone=True, url="https://example.com/hooks", events=["delivered"])
new_workspace = creates("/admin/workspaces", name="Shop", plan="pro")


def new_delivery(stack: Stack) -> list[str]:
    (webhook,) = new_webhook(stack)
    stack.call("POST", f"/webhooks/{webhook}/test")
    found = wait_for(
        lambda: stack.call("GET", f"/webhooks/{webhook}/deliveries").body["data"], seconds=30, what="the delivery"
    )
    return [webhook, found[0]["id"]]


def in_workspace(collection: str, **body: Any) -> Callable[[Stack], list[str]]:
    def create(stack: Stack) -> list[str]:
        (workspace,) = new_workspace(stack)
        return [workspace, created(stack, f"/admin/workspaces/{workspace}/{collection}", **body)]

    return create


def new_member(stack: Stack) -> list[str]:
    """Create a workspace with an owner and a member: the last owner could not be removed."""
    (workspace,), (owner, member) = new_workspace(stack), (f"u{uuid4().hex}@example.com" for _ in range(2))
    stack.manage("shell", "-c", ADD_MEMBERS.format(workspace=workspace, owner=owner, member=member))
    return [workspace, member]


ADD_MEMBERS = """
from core.workspaces.models import Membership, User
for email, role in (("{owner}", "owner"), ("{member}", "member")):
    Membership.objects.create(workspace_id="{workspace}", user=User.objects.create(email=email), role=role)
"""


def new_route(stack: Stack, **fields: Any) -> list[str]:
    # A workspace has at most 100, and with one of them, the shared address accepts no other label.
    delete_all(stack, "/inbound/routes")
    return [created(stack, "/inbound/routes", **{"name": "All", "domain": "shared", "match": "*", **fields})]


def as_tester(stack: Stack) -> Stack:
    return replace(stack, key=stack.environment["POSTRIDER_TEST_API_KEY"])


def inbound_address(stack: Stack) -> str:
    return str(stack.call("GET", "/inbound").body["address"])


def new_received(stack: Stack, **route: Any) -> list[str]:
    """Receive an email with a file; return its id."""
    new_route(stack, **route)
    return read(stack, created(as_tester(stack), "/inbound/emails", recipient=inbound_address(stack), raw=MESSAGE))


def read(stack: Stack, received: str) -> list[str]:
    """Return the id when the email has been read."""
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
    return read(stack, str(replies[-1].body["id"]))


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
MAKE_EXPORTS = "from console.privacy.exports import make_exports; list(make_exports())"


def new_export(stack: Stack) -> list[str]:
    """Return the id of an export whose file is complete."""
    ids = creates("/subject-exports", email="{unique}@example.com")(stack)
    stack.manage("shell", "-c", MAKE_EXPORTS)
    return ids


MAKE_REPORT = """
from django.utils import timezone
from domains.models import Domain, DomainReport
now, domain = timezone.now(), Domain.objects.get(id="{domain}")
values = dict(kind="dmarc", state="read", read_at=now, begin_at=now, end_at=now, size=0, report_id="{domain}")
print(DomainReport.objects.create(domain=domain, reporter="google.com", **values).id)
"""


def new_report(stack: Stack) -> list[str]:
    """Return the ids of a domain and of a DMARC report about it."""
    (domain,) = creates("/domains", name="d{unique}.example")(stack)
    return [domain, stack.manage("shell", "-c", MAKE_REPORT.format(domain=domain)).splitlines()[-1]]


MANAGEMENT = "/v1/admin/"
DECIDING = {"approveEmail", "rejectEmail"}
# The ids for the parameters of a path, by its beginning. The longest beginning applies.
IDS: dict[str, Callable[[Stack], list[str]]] = {
    "/v1/emails/{": new_email,
    "/v1/emails/{id}/attachments/{": new_sent_file,
    "/v1/emails/{id}/approve": new_held,
    "/v1/emails/{id}/reject": new_held,
    "/v1/streams/{": new_stream,
    "/v1/templates/{": creates("/templates", name="Welcome", subject="Hi", htmlContent="<p>Hi {{name}}</p>"),
    "/v1/alerts/{": creates("/alerts", alone=True, metric="quota_used", threshold=90),
    "/v1/webhooks/{": new_webhook,
    "/v1/webhooks/{webhook_id}/deliveries/{": new_delivery,
    "/v1/domains/{": creates("/domains", name="d{unique}.example"),
    "/v1/domains/{domain_id}/dmarc/reports/{": new_report,
    "/v1/suppressions/{": creates("/suppressions", email="{unique}@example.com"),
    "/v1/erasures/{": creates("/erasures", email="{unique}@example.com"),
    "/v1/subject-exports/{": creates("/subject-exports", email="{unique}@example.com"),
    "/v1/subject-exports/{id}/download": new_export,
    "/v1/inbound/routes/{": new_route,
    "/v1/inbound/blocks/{": creates("/inbound/blocks", sender="{unique}.example"),
    "/v1/inbound/emails/{": new_received,
    "/v1/inbound/emails/{id}/bypass": new_blocked,
    "/v1/inbound/emails/{id}/forward": new_forwardable,
    "/v1/inbound/emails/{id}/reread": new_unreadable,
    "/v1/inbound/emails/{id}/attachments/{": new_received_file,
    "/v1/admin/workspaces/{": new_workspace,
    "/v1/admin/workspaces/{workspace_id}/api-keys/{": in_workspace("api-keys", name="Site", scope="sending_access"),
    "/v1/admin/workspaces/{workspace_id}/invitations/{": in_workspace("invitations", email="ada@example.com"),
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


def sample_of(operation: ReferenceOperation, language: str) -> str:
    return next(sample.text for sample in operation.samples if sample.language == language)


def runnable(operation: ReferenceOperation, language: str, stack: Stack) -> str:
    """Return the sample for the running service: with its URL, existing ids and a time in the future."""
    sample = sample_of(operation, language)
    url = settings.PUBLIC_URL + operation.path
    pattern = re.sub(r"\\\{\w+\\\}", r"""[^/"'\\s]+""", re.escape(url))
    assert re.search(f"{pattern}\\b", sample), sample
    ids = iter(ids_for(stack, operation.path))
    real = stack.url + re.sub(r"\{\w+\}", lambda _: next(ids), operation.path)
    text = TIMESTAMP.sub(tomorrow(), re.sub(f"""{pattern}(?=["'\\s]|$)""", real, sample))
    if operation.id == "redeliverReceivedEmail":
        return re.sub(r"wh_\w{22}", new_webhook(stack)[0], text)
    return text.replace("support+4711@in.demo.example", inbound_address(stack)) if operation.id in SIMULATING else text


def features(operation: ReferenceOperation) -> set[str]:
    """Return the properties of a request for which samples have other code."""
    found = {operation.method, f"key {operation.has_key}"}
    return found | set(kinds(json.loads(operation.example))) if operation.example else found


def kinds(value: Any, parent: str = "body") -> Iterator[str]:
    """Yield the kinds of values in a body, such as `dict in list`, and the characters that a language may escape."""
    kind = type(value).__name__ if value or value is False else f"empty {type(value).__name__}"
    yield f"{kind} in {parent}"
    if isinstance(value, str):
        yield from set("'\"\\$#{\n") & set(value)
    for name in value if isinstance(value, dict) else ():
        yield "name" if name.isidentifier() else "name in quotes"
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from kinds(member, kind)


def representatives() -> set[str]:
    """Return the ids of a few operations that together have every feature."""
    chosen, seen = set(), set()
    for operation in sorted(OPERATIONS, key=lambda one: len(features(one)), reverse=True):
        if features(operation) - seen:
            chosen.add(operation.id)
            seen |= features(operation)
    return chosen


def rows() -> Iterator[Any]:
    """Yield an operation and a language; those that only `--long` runs are marked."""
    everywhere, interpreted = representatives(), [one for one in LANGUAGES[1:] if one not in COMPILED]
    for operation in (one for one in OPERATIONS if one.id not in STREAMS):
        chosen = {"sh", interpreted[zlib.crc32(operation.id.encode()) % len(interpreted)]}
        for language in LANGUAGES:
            is_chosen = language in chosen or (operation.id in everywhere and language not in COMPILED)
            marks = [] if is_chosen else pytest.mark.long
            yield pytest.param(operation, language, id=f"{operation.id}-{language}", marks=marks)


@pytest.mark.parametrize(("operation", "language"), list(rows()))
def test_a_sample_returns_a_success(operation, language, runner, tmp_path):
    if operation.path.startswith(MANAGEMENT):
        runner = runner.with_key("POSTRIDER_MANAGEMENT_KEY")
    elif operation.method == "POST" and "{" not in operation.path:
        restore(runner.stack, operation.id)
    sample = runnable(operation, language, runner.stack)
    if operation.id in DECIDING:
        runner = runner.with_key("POSTRIDER_APPROVALS_KEY")
    if operation.id in SIMULATING:
        runner = runner.with_key("POSTRIDER_TEST_API_KEY")
    output = runner.run(language, sample, home=tmp_path)
    assert output.strip()
    # The type is the first member of an error. The OpenAPI document names all types.
    is_error = "/docs/errors#" in output[:200]
    assert not is_error, output


# Programs that print the name of each file, until one has an error in its syntax.
SYNTAX_CHECKS = {
    "sh": 'for file; do echo "$file"; bash -n "$file"; done',
    "javascript": """for (const file of process.argv.slice(2)) {
  console.log(file);
  new (require("vm").SourceTextModule)(require("fs").readFileSync(file, "utf8"));
}""",
    "python": "import sys\nfor file in sys.argv[1:]: print(file); compile(open(file).read(), file, 'exec')",
    "php": """<?php foreach (array_slice($argv, 1) as $file) {
  echo "$file\n";
  token_get_all(file_get_contents($file), TOKEN_PARSE);
}""",
    "ruby": "ARGV.each { |file| puts file; RubyVM::InstructionSequence.compile(File.read(file)) }",
    # Also the format is that of gofmt.
    "go": """package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
)

func main() {
	for _, name := range os.Args[1:] {
		fmt.Println(name)
		source, _ := os.ReadFile(name)
		formatted, err := format.Source(source)
		if err != nil || !bytes.Equal(bytes.TrimSpace(formatted), source) {
			os.Exit(1)
		}
	}
}""",
}
MODULES = {"NODE_OPTIONS": "--experimental-vm-modules --no-warnings"}


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=[pytest.mark.long] * (one in COMPILED)) for one in LANGUAGES]
)
def test_the_syntax_of_every_sample_is_correct(language, tmp_path):
    samples = {operation.id: sample_of(operation, language) for operation in OPERATIONS} | {"wrong": "<?php if ("}
    check = tmp_path / ("check.go" if language == "go" else "check.cjs")
    for name, text in {**samples, check.name: SYNTAX_CHECKS[language]}.items():
        (tmp_path / name).write_text(text)
    command = [*PROGRAMS[language].arguments(check), *samples]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **MODULES}, capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.splitlines() if line in samples]
    assert (found, done.returncode != 0) == ([*samples], True), done.stderr


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.id in STREAMS], ids=lambda one: one.id)
def test_the_samples_of_a_stream_show_new_events(operation, runner, tmp_path):
    # `go run` would leave its program running.
    languages = [language for language in LANGUAGES if language not in COMPILED]
    processes, outputs = [], [tmp_path / f"{language}.txt" for language in languages]
    try:
        for language, output in zip(languages, outputs, strict=True):
            command = runner.command(language, runnable(operation, language, runner.stack), home=tmp_path)
            environment = runner.environment(tmp_path)
            with output.open("wb") as file:
                processes.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=file))
        wait_for(lambda: show_an_event(runner.stack, outputs), seconds=120, what="an event in each language")
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def show_an_event(stack: Stack, outputs: list[Path]) -> bool:
    """Send an email, until each of the streams that are being opened shows an event."""
    stack.send(to="delivered@simulator.example")
    return all("emailId" in output.read_text() for output in outputs)
