"""The first example of each library's README works after a change of its base URL and key."""

import uuid

import pytest

from tests.clients.sdks.conftest import RUN, received, run_node, run_python

pytestmark = pytest.mark.stack


@pytest.mark.parametrize(
    "program",
    [
        "hello_resend.mjs",
        "hello_resend.py",
        "hello_postmark.mjs",
        "hello_postmarker.py",
        "hello_sendgrid.cjs",
        "hello_sendgrid.py",
    ],
)
def test_the_example_sends(node_scripts, python, stack, program):
    recipient = f"{program}-{RUN}@example.com".replace("_", "-")
    if program.endswith(".py"):
        printed = run_python(python, f"readme/{program}", stack, TO=recipient)
    else:
        printed = run_node(node_scripts, program, stack, TO=recipient)
    # SendGrid warns first about a key that does not begin with SG.
    assert uuid.UUID(printed.splitlines()[-1])
    message = received(stack, recipient)
    assert (message["Subject"], message["Reply-To"]) == ("hello world", "replies@demo.example")
    assert "<strong>it works!</strong>" in message.get_body(("html",)).get_content()
