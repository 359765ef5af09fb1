"""Fixtures: one running service for all clients, and for the official libraries in sdks/."""

import json
import os
from dataclasses import dataclass
from typing import Any

import pytest
from postrider_client import Postrider

from tests.clients.cli import LIBRARY, CommandLine
from tests.clients.node import need_node
from tests.clients.receiver import running_receiver
from tests.stack.stack import Stack, running_stack


@dataclass(frozen=True)
class Service:
    """The running service.

    spent_key: an API key of a workspace with an exhausted quota. test_key: a test key of the demo workspace.
    """

    stack: Stack
    spent_key: str
    management_key: str
    test_key: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(LIBRARY),
            "POSTRIDER_URL": self.stack.url,
            "POSTRIDER_API_KEY": self.stack.key,
            "SPENT_API_KEY": self.spent_key,
            "MANAGEMENT_KEY": self.management_key,
            "TEST_API_KEY": self.test_key,
        }

    def received(self, recipient: str) -> bytes | None:
        """Return the message in the inbox for this address, or None."""
        rows = self.stack.query("SELECT source FROM inbox_caughtmail WHERE recipient = %s", recipient)
        return bytes(rows[0][0]) if rows else None


@pytest.fixture(scope="package")
def service(tmp_path_factory: Any) -> Any:
    options = {
        "COMPAT_AT_ROOT": "resend,postmark,sendgrid",
        "TRACKING_HOST": "mail.service.example",
        "RECEIVING_DOMAIN": "in.demo.example",
        "RECEIVING_MX": "mx.demo.example",
    }
    with running_stack(tmp_path_factory.mktemp("clients"), **options) as stack:
        stack.start("inbox", "worker", "beat", "web")
        management_key = json.loads(stack.manage("create_management_key", "--name", "test"))["key"]
        demo = stack.call("GET", "/me").body["workspace"]["id"]
        with Postrider(management_key, base_url=stack.url) as manager:
            simulations = manager.workspaces.keys.create(demo, name="simulations", scope="sending_access", test=True)
            yield Service(stack, _spent_key(stack, manager), management_key, str(simulations.key))


def _spent_key(stack: Stack, manager: Postrider) -> str:
    workspace = manager.workspaces.create(name="Exhausted", plan="free")
    key = manager.workspaces.keys.create(workspace.id, name="test", scope="full_access").key
    with Postrider(key, base_url=stack.url) as exhausted:
        exhausted.domains.create("exhausted.example")
        exhausted.emails.send(from_="hello@exhausted.example", to="ada@example.com", subject="Hi", text="Hi")
    stack.query("UPDATE workspaces_usage SET used = 500 WHERE used = 1 RETURNING used")
    return str(key)


@pytest.fixture(scope="package")
def client(service: Service) -> Any:
    with Postrider(service.stack.key, base_url=service.stack.url) as client:
        yield client


@pytest.fixture(scope="package")
def manager(service: Service) -> Any:
    """Return a client with a management key."""
    with Postrider(service.management_key, base_url=service.stack.url) as manager:
        yield manager


@pytest.fixture(scope="package")
def test_client(service: Service) -> Any:
    """Return a client with a test key, which simulates received emails."""
    with Postrider(service.test_key, base_url=service.stack.url) as client:
        yield client


@pytest.fixture
def cli(service: Service, tmp_path: Any) -> CommandLine:
    """Return the command line with the service and its key in the environment."""
    return CommandLine({**service.environment, "XDG_CONFIG_HOME": str(tmp_path / "config")}, tmp_path)


@pytest.fixture
def bare_cli(cli: CommandLine) -> CommandLine:
    """Return the command line without a service in the environment."""
    names = ("POSTRIDER_URL", "POSTRIDER_API_KEY")
    environment = {name: value for name, value in cli.environment.items() if name not in names}
    return CommandLine(environment, cli.home)


@pytest.fixture
def receiver() -> Any:
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def node() -> Any:
    return need_node()
