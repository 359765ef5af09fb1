"""Approval in the Python library, on the command line, in files of `postrider apply` and for assistants."""

import pytest
from postrider_client import EmailNotHeld, Postrider

from tests.clients.cli import CommandLine
from tests.clients.messages import someone
from tests.clients.test_cli_apply import Shop, shop  # noqa: F401 - a fixture
from tests.clients.test_cli_mcp import call, make_server
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

FROM = "hello@demo.example"


def key_of(manager: Postrider, client: Postrider, **options: str) -> str:
    workspace_id = client.me().workspace.id
    return str(manager.workspaces.keys.create(workspace_id, name="approval", **options).key)


@pytest.fixture
def sender(service, manager, client):
    """Return a client with a key whose emails wait."""
    key = key_of(manager, client, scope="sending_access", approval="required")
    with Postrider(key, base_url=service.stack.url) as sender:
        yield sender


@pytest.fixture
def approver_key(manager, client) -> str:
    return key_of(manager, client, scope="approvals")


@pytest.fixture
def approving(cli: CommandLine, approver_key) -> CommandLine:
    """Return the command line with a key of the scope approvals."""
    return CommandLine({**cli.environment, "POSTRIDER_API_KEY": approver_key}, cli.home)


def test_the_library_approves_and_rejects(service, sender, approver_key):
    to = someone()
    accepted = sender.emails.send(from_=FROM, to=to, subject="Hi", text="Hi")
    assert (accepted.status, accepted.held.reason) == ("queued", "approval")
    assert sender.me().key.approval == "required"
    with Postrider(approver_key, base_url=service.stack.url) as approver:
        assert accepted.id in {email.id for email in approver.emails.list(held="approval")}
        decided = approver.emails.approve(accepted.id)
        assert (decided.decision.decision, decided.decision.by.kind) == ("approved", "key")
        with pytest.raises(EmailNotHeld) as caught:
            approver.emails.reject(accepted.id, reason="No")
        assert caught.value.decision["decision"] == "approved"
        wait_for(lambda: service.received(to), seconds=30, what="the approved email")
        other = sender.emails.send(from_=FROM, to=someone(), subject="Hi", text="Hi")
        rejected = approver.emails.reject(other.id, reason="No")
        assert (rejected.status, rejected.decision.reason) == ("cancelled", "No")


def test_commands(approving, sender):
    ids = [sender.emails.send(from_=FROM, to=someone(), subject="Hi", text="Good day").id for _ in range(3)]
    assert {email["id"] for email in approving.run("approvals", "list").json} >= set(ids)
    assert "Good day" in approving.screen("approvals", "show", ids[0]).text
    assert approving.run("approvals", "approve", ids[0]).json["decision"]["decision"] == "approved"
    again = approving.run("approvals", "approve", ids[0])
    assert (again.code, "approved this email" in again.errors) == (5, True), again.errors
    rejected = approving.run("approvals", "reject", ids[1], "--reason", "Wrong price").json
    assert (rejected["status"], rejected["decision"]["reason"]) == ("cancelled", "Wrong price")
    assert approving.run("approvals", "reject", ids[2]).json["status"] == "cancelled"
    assert approving.run("send", "--from", FROM, "--to", someone(), "--subject", "Hi", "--text", "Hi").code == 3


def test_assistants_send_emails_that_wait(cli, sender, client):
    refused = cli.run("mcp", "--allow-send")
    assert (refused.code, "approval: required" in refused.errors) == (1, True), refused.errors
    sent = call(
        make_server(sender, allow_send=True),
        "send_email",
        {"from_address": FROM, "to": [someone()], "subject": "Hi", "text": "Hello"},
    )
    assert sent["held"]["reason"] == "approval"
    assert "Nothing was sent yet" in sent["notice"]
    assert client.emails.get(sent["id"]).held


FILE = """
streams:
  - id: risky
    name: Risky
    approval: required
apiKeys:
  - name: Assistant
    scope: sending_only
    approval: required
"""


def test_streams_and_keys_follow_the_file(shop: Shop):  # noqa: F811
    assert shop.plan(text=FILE) == [("create", "stream", "risky"), ("create", "API key", "Assistant (sending_only)")]
    assert shop.apply("--yes").code == 0
    assert shop.client.streams.get("risky").approval == "required"
    assert shop.plan() == []
    initial = shop.initial()
    assert initial["streams"][0]["approval"] == initial["apiKeys"][0]["approval"] == "required"
    without = FILE.replace("    name: Risky\n    approval: required", "    name: Risky\n    approval: null")
    assert shop.plan(text=without) == [("update", "stream", "risky")]
    assert shop.apply("--yes").code == 0
    assert shop.client.streams.get("risky").approval is None
