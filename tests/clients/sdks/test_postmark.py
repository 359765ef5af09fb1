"""Postmark's Node library and postmarker, unchanged, against the running service."""

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


def test_the_node_library(node_scripts, stack):
    run_node(node_scripts, "postmark.mjs", stack)
    assert_everything_arrived(stack, prefix="pm-")
    assert received(stack, f"pm-bulk-{RUN}@example.com")["Subject"] == "Hi Ada"
    assert received(stack, f"pm-tpl-{RUN}@example.com")["Subject"] == "Hi Ada"


def test_the_node_library_has_message_streams(node_scripts, stack):
    run_node(node_scripts, "postmark_streams.mjs", stack)
    subscriber, stream = f"pm-subscriber-{RUN}@example.com", f"pm-news-{RUN}"
    message = received(stack, subscriber)
    assert received(stack, f"pm-alert-{RUN}@example.com")["List-Unsubscribe"] is None
    assert unsubscribe_with_one_click(stack, message, stream=stream) == [(subscriber, "unsubscribe")]


def test_the_node_library_has_layouts_and_pushes_templates(node_scripts, stack, manager):
    other = manager.workspaces.create(name="Production", plan="free")
    key = manager.workspaces.keys.create(other.id, name="push", scope="full_access").key
    run_node(node_scripts, "postmark_templates.mjs", stack, OTHER_KEY=str(key))
    message = received(stack, f"pm-layout-{RUN}@example.com")
    assert message["Subject"] == "Order 7"
    html = message.get_body(("html",))
    assert html is not None
    assert "<i><p>Ada</p></i>" in html.get_content()


def test_the_node_library_reads_received_emails(node_scripts, stack, test_key):
    run_node(node_scripts, "postmark_inbound.mjs", stack, TEST_KEY=test_key)


def test_postmarker_at_the_root(python, stack):
    run_python(python, "postmarker_sdk.py", stack)
    assert received(stack, f"pmpy-{RUN}@example.com")["X-A"] == "1"
