"""The types of the Python library: a strictly checked program gets precise types from each resource."""

import re
import subprocess
import sys
from collections import Counter

from tests.clients.cli import LIBRARY

PROGRAM = """
from typing import Optional

from typing_extensions import assert_type

from postrider_client import Postrider
from postrider_client.answers import Accepted, BatchAccepted, Domain, Email, FeedEvent
from postrider_client.inbound_answers import ReceivedEmail, ReceivedItem, Route
from postrider_client.listing import Page
from postrider_client.workspace_answers import ManagedKey, ManagedWorkspace

client = Postrider("pr_x", base_url="https://mail.example.com")
assert_type(client.emails.send(from_="a@b.example", to="c@d.example", subject="s", text="t"), Accepted)
assert_type(client.emails.batch(from_="a@b.example", template_id="t", recipients=[]), BatchAccepted)
assert_type(client.emails.get("x"), Email)
for event in client.events.stream():
    assert_type(event, FeedEvent)
for event in client.events.list(types=["delivered"]):
    assert_type(event, FeedEvent)
for domain in client.domains.list():
    assert_type(domain, Domain)
for received in client.inbound.emails.list(status="processed"):
    assert_type(received, ReceivedItem)
assert_type(client.inbound.emails.get("x"), ReceivedEmail)
assert_type(client.inbound.emails.raw("x"), bytes)
assert_type(client.inbound.routes.match("x").route, Optional[Route])
page = client.workspaces.list(limit=1).fetch()
assert_type(page, Page[ManagedWorkspace])
assert_type(client.workspaces.delete("x").deletes_at is None, bool)
key = client.workspaces.keys.create("x", name="n", scope="read_only", idempotency_key="k")
assert_type(key, ManagedKey)
assert_type(key.key, Optional[str])
"""
# The asynchronous classes are generated as the synchronous ones are: one method of each kind.
ASYNC_PROGRAM = """
from contextlib import aclosing

from typing_extensions import assert_type

from postrider_client import AsyncPostrider
from postrider_client.answers import Accepted, Domain, FeedEvent
from postrider_client.listing import Page
from postrider_client.workspace_answers import ManagedWorkspace


async def use() -> None:
    async with AsyncPostrider("pr_x", base_url="https://mail.example.com") as client:
        assert_type(client, AsyncPostrider)
        email = await client.emails.send(from_="a@b.example", to="c@d.example", subject="s", text="t")
        assert_type(email, Accepted)
        async with aclosing(client.events.stream()) as events:
            async for event in events:
                assert_type(event, FeedEvent)
        async for event in client.events.list(types=["delivered"]):
            assert_type(event, FeedEvent)
        async for domain in client.domains.list():
            assert_type(domain, Domain)
        assert_type(await client.inbound.emails.raw("x"), bytes)
        assert_type(await client.workspaces.list(limit=1).fetch(), Page[ManagedWorkspace])
"""
WRONG = """
from postrider_client import Postrider

client = Postrider("pr_x", base_url="https://mail.example.com")
client.emails.get(7)
client.workspaces.create()
client.domains.create(nme="x.example")
"""
WRONG_ASYNC = """
from postrider_client import AsyncPostrider


async def use(client: AsyncPostrider) -> None:
    await client.emails.get(7)
    (await client.me()).nothing
    client.me().workspace
    for email in client.emails.list():
        pass
"""


def test_the_results_of_each_resource_have_precise_types_and_mistakes_are_found(tmp_path):
    # One run: the types of the libraries take longer than those of the programs.
    programs = {"right": PROGRAM, "right_async": ASYNC_PROGRAM, "wrong": WRONG, "wrong_async": WRONG_ASYNC}
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *(f"{name}.py" for name in programs)]
    environment = {"MYPYPATH": str(LIBRARY), "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    errors = Counter(re.findall(r"^(\w+)\.py:\d+: error:", run.stdout, re.MULTILINE))
    assert errors == {"wrong": 3, "wrong_async": 4}, run.stdout + run.stderr
    assert "Found 7 errors in 2 files (checked 4 source files)" in run.stdout
