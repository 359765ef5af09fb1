"""The samples of the sections about receiving in docs/migrate/ run against the running service."""

import re
import shutil
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt

from tests.clients.node import run
from tests.clients.sdks.conftest import environment
from tests.stack.stack import REPOSITORY, Stack

pytestmark = pytest.mark.stack

PAGES = REPOSITORY / "docs" / "migrate"


def samples(page: str) -> str:
    """Return the commands of the section of a page, in order."""
    text = (PAGES / f"{page}.md").read_text("utf-8")
    (section,) = re.findall(r"^## Receiving.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    fences = [token for token in MarkdownIt("commonmark").parse(section) if token.type == "fence"]
    assert fences
    assert {token.info for token in fences} == {"sh"}
    return "".join(token.content for token in fences)


@pytest.fixture(autouse=True)
def _without_routes(stack: Stack) -> Iterator[None]:
    """Let the shared address receive everything, before and after the samples."""
    delete_routes(stack)
    yield
    delete_routes(stack)


def delete_routes(stack: Stack) -> None:
    for route in stack.call("GET", "/inbound/routes?limit=100").body["data"]:
        stack.call("DELETE", f"/inbound/routes/{route['id']}")


@pytest.mark.parametrize("page", ["resend", "postmark", "sendgrid", "steps"])
def test_the_samples_run(stack, tmp_path, page):
    if not shutil.which("jq"):
        pytest.skip("jq is not on the PATH")
    source = samples(page).replace("https://mail.example.com", stack.url)
    printed = run(
        "bash", "-euo", "pipefail", "-c", source, cwd=tmp_path, env=environment(stack, POSTRIDER_API_KEY=stack.key)
    )
    assert "errors" not in printed
    routes = stack.call("GET", "/inbound/routes").body["data"]
    assert routes
    assert {route["action"] for route in routes} == {"deliver"}
