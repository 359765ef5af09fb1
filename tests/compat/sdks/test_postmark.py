"""Postmark's Node library and postmarker, unchanged, against the running service."""

import pytest

from tests.compat.sdks.conftest import RUN, received, run_node, run_python, suppressed_in, unsubscribe_with_one_click

pytestmark = pytest.mark.stack


def test_the_node_library(node_scripts, stack):
    run_node(node_scripts, "postmark.mjs", stack)
    for name in ("ada", "carol", "dan"):
        message = received(stack, f"pm-{name}-{RUN}@example.com")
        assert message["Subject"] == "Everything \u2013 \u2713"
        assert message["Reply-To"] == "one@demo.example, two@demo.example"
        assert (message["X-Entity-Ref-ID"], message["Bcc"]) == (RUN, None)
        files = {part.get_filename(): part for part in message.walk() if part.get_filename()}
        assert files["notes.txt"].get_content() == "Notes"
        assert files["logo.png"]["Content-ID"] == "<logo>"
        assert "Hello in text" in message.get_body(("plain",)).get_content()
    assert received(stack, f"pm-bulk-{RUN}@example.com")["Subject"] == "Hi Ada"
    assert received(stack, f"pm-tpl-{RUN}@example.com")["Subject"] == "Hi Ada"


def test_the_node_library_has_message_streams(node_scripts, stack):
    run_node(node_scripts, "postmark_streams.mjs", stack)
    subscriber, stream = f"pm-subscriber-{RUN}@example.com", f"pm-news-{RUN}"
    message = received(stack, subscriber)
    assert message["List-Id"].strip(" <>").startswith(f"{stream}.")
    assert received(stack, f"pm-alert-{RUN}@example.com")["List-Unsubscribe"] is None
    unsubscribe_with_one_click(stack, message)
    assert suppressed_in(stack, stream) == [(subscriber, "unsubscribe")]


def test_the_node_library_reads_received_emails(node_scripts, stack, test_key):
    run_node(node_scripts, "postmark_inbound.mjs", stack, TEST_KEY=test_key)


def test_postmarker_at_the_root(python, stack):
    run_python(python, "postmarker_sdk.py", stack)
    assert received(stack, f"pmpy-{RUN}@example.com")["X-A"] == "1"
