"""Resend's libraries, unchanged, against the running service."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from tests.clients.sdks.conftest import (
    RUN,
    assert_everything_arrived,
    received,
    run_node,
    run_python,
    unsubscribe_with_one_click,
)
from tests.standards.tools import npm_modules

pytestmark = pytest.mark.stack

MCP_SERVER = "resend-mcp@2.6.0"


def test_the_node_library(node_scripts, stack):
    run_node(node_scripts, "resend.mjs", stack)
    assert_everything_arrived(stack, prefix="")


def test_the_node_library_manages_domains_templates_and_suppressions(node_scripts, stack):
    run_node(node_scripts, "resend_resources.mjs", stack)
    message = received(stack, f"template-{RUN}@example.com")
    assert message["Subject"] == "Your item"
    assert "<p>item for 7</p>" in message.get_body(("html",)).get_content()


def test_the_node_library_has_topics(node_scripts, stack):
    run_node(node_scripts, "resend_topics.mjs", stack)
    stream, recipient = f"topic-{RUN}", f"rs-topic-{RUN}@example.com"
    message = received(stack, recipient)
    assert unsubscribe_with_one_click(stack, message, stream=stream) == [(recipient, "unsubscribe")]


def test_the_node_library_manages_api_keys(node_scripts, stack, manager):
    workspace = stack.call("GET", "/me").body["workspace"]["id"]
    key = manager.workspaces.keys.create(workspace, name="test", scope="workspace_admin").key
    run_node(node_scripts, "resend_api_keys.mjs", stack, KEY=key)


def test_the_node_library_and_svix_verify_a_webhook(node_scripts, stack):
    run_node(node_scripts, "resend_webhooks.mjs", stack)


def test_the_node_library_reads_and_forwards_received_emails(node_scripts, stack, test_key):
    run_node(node_scripts, "resend_receiving.mjs", stack, TEST_KEY=test_key)
    assert received(stack, f"rs-fwd-{RUN}@example.com")["Subject"] == f"Received {RUN}"


def test_the_python_library(python, stack):
    run_python(python, "resend_sdk.py", stack)
    message = received(stack, f"py-{RUN}@example.com")
    assert message["Reply-To"] == "a@demo.example, b@demo.example"


def test_the_mcp_server_sends(node_scripts, stack):
    run_node(node_scripts, "resend_mcp.mjs", stack, [str(npm_modules(MCP_SERVER) / "resend-mcp/dist/index.js")])
    message = received(stack, f"mcp-{RUN}@example.com")
    assert message["Subject"] == "From MCP"
    assert message.get_content().startswith("It works")


def test_a_chunked_body_is_accepted(stack):
    """Resend's library for Go sends its bodies without a length."""
    recipient = f"chunked-{RUN}@example.com"
    body = json.dumps({"from": "hello@demo.example", "to": recipient, "subject": "Hello", "text": "Hello"}).encode()
    headers = {"authorization": f"Bearer {stack.key}", "content-type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(stack.url).netloc, timeout=30)
    # The second request shows that the first body was read to its end.
    for _ in range(2):
        connection.request("POST", "/compat/resend/emails", iter([body[:9], body[9:]]), headers, encode_chunked=True)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert json.loads(response.read()).keys() == {"id"}
    connection.close()
    assert received(stack, recipient)["Subject"] == "Hello"
