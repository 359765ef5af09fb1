"""SendGrid's libraries, unchanged, against the running service."""

from uuid import uuid4

import pytest

from tests.clients.sdks.conftest import (
    RUN,
    assert_everything_arrived,
    received,
    run_node,
    run_python,
    unsubscribe_with_one_click,
)

pytestmark = pytest.mark.stack


def test_the_node_libraries(node_scripts, stack):
    template = {"name": "T", "alias": f"welcome-{RUN}", "subject": "Hi {{name}}", "htmlContent": "<p>{{name}}</p>"}
    assert stack.call("POST", "/templates", template).status == 201
    run_node(node_scripts, "sendgrid.cjs", stack)
    assert_everything_arrived(stack, prefix="sg-")
    assert received(stack, f"sg-tpl-{RUN}@example.com")["Subject"] == "Hi Ada"
    cancelled = 'SELECT status FROM emails_email WHERE %s = ANY ("to")'
    assert stack.query(cancelled, f"sg-batch-{RUN}@example.com") == [("cancelled",)]
    assert received(stack, f"sg-new-{RUN}@example.com")["Subject"] == "Hello Ada"
    assert received(stack, f"sg-sub-{RUN}@example.com")["Subject"] == "Hi Ada"
    # Each recipient of sendMultiple sees only one address.
    assert received(stack, f"sg-many1-{RUN}@example.com")["To"] == f"sg-many1-{RUN}@example.com"


def test_the_node_libraries_have_unsubscribe_groups(node_scripts, stack):
    run_node(node_scripts, "sendgrid_groups.cjs", stack)
    stream, recipient, left = f"group-{RUN}", f"sg-group-{RUN}@example.com", f"sg-left-{RUN}@example.com"
    message = received(stack, recipient)
    assert unsubscribe_with_one_click(stack, message, stream=stream) == [(recipient, "unsubscribe"), (left, "manual")]
    # The email outside of the group arrives, that of the group does not.
    assert received(stack, left)["List-Id"] is None
    outcomes = stack.query('SELECT stream, status FROM emails_email WHERE %s = ANY ("to")', left)
    assert dict(outcomes)[stream] == "failed"


@pytest.fixture
def hostname(stack) -> str:
    """Return a domain of the workspace."""
    name = f"parse-{uuid4().hex[:8]}.example"
    assert stack.call("POST", "/domains", {"name": name}).status == 201
    return name


def test_the_node_library_has_inbound_parse(node_scripts, stack, hostname):
    run_node(node_scripts, "sendgrid_parse.cjs", stack, HOSTNAME=hostname)


def test_the_python_library(python, stack, hostname):
    run_python(python, "sendgrid_sdk.py", stack, HOSTNAME=hostname)
    message = received(stack, f"sgpy-{RUN}@example.com")
    assert message["Cc"] == f"sgpycc-{RUN}@example.com"
    assert [part.get_content() for part in message.iter_attachments()] == ["Notes"]


def test_the_node_library_verifies_a_webhook(node_scripts, stack):
    run_node(node_scripts, "sendgrid_webhook.mjs", stack)
