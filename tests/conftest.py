"""Fixtures of all tests: two workspaces, an API client for each, and fresh caches."""

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.hashers import Argon2PasswordHasher, make_password
from django.db import connection
from django.test import Client, TransactionTestCase

from console.dashboard.static_files import StaticFilesMiddleware
from core.lib import redis_client
from core.lib.worker.write_buffer import WriteBuffer
from core.workspaces.models import User, Workspace
from core.workspaces.services import create_workspace, issue_api_key
from domains.models import Domain
from domains.services import KEY_BITS, sealed_dkim_key
from emails.pacing.database_thread import close_connection
from interfaces.tracking.hosts import tracking_hosts
from interfaces.tracking.suspensions import SuspensionList, suspended_workspaces
from tests.collected import collected_files
from tests.core.lib.nameserver import NameServer
from tests.empty_tables import empty_tables
from tests.rows import forget

IS_FULL_RUN = "POSTRIDER_TEST_FULL" in os.environ
IS_LONG_RUN = "POSTRIDER_TEST_LONG" in os.environ
QUICK_EXAMPLES = 25
# CI runs the same examples every time, developers get new ones; a busy machine must not fail an example.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("suite"), max_examples=QUICK_EXAMPLES)
hypothesis.settings.load_profile("suite" if IS_LONG_RUN else "quick")

# Directories whose tests start the launcher, other programs or the whole stack.
FULL_DIRECTORIES = (
    "tests/audit/",
    "tests/chaos/",
    "tests/clients/",
    "tests/tools/embedded/",
    "tests/stack/",
    "tests/standards/",
)
IMPLY_FULL = ("alone", "browser", "stack")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FULL_DIRECTORIES) or any(map(item.get_closest_marker, IMPLY_FULL)):
            item.add_marker(pytest.mark.full)


def examples(full: int) -> int:
    """Return the number of Hypothesis examples: all of them only with --long."""
    return full if IS_LONG_RUN else min(full, QUICK_EXAMPLES)


PASSWORD = "correct horse battery"


@dataclass
class Account:
    """A workspace with its owner."""

    workspace: Workspace
    owner: User


class Api:
    """Calls /v1 with an API key and returns the responses of Django's test client."""

    def __init__(self, key: str | None = None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.client.get(f"/v1{path}", query, headers={**self.headers, **headers})

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("POST", path, body, headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("PATCH", path, body, headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.client.delete(f"/v1{path}", headers={**self.headers, **headers})

    def raw(self, method: str, path: str, body: bytes, content_type: str = "application/json", **extra: Any) -> Any:
        return self.client.generic(method, f"/v1{path}", body, content_type, headers=self.headers, **extra)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        import json

        data = b"" if body is None else json.dumps(body).encode()
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, f"/v1{path}", data, "application/json", headers={**self.headers, **extra})


def make_account(name: str, *, plan: str = "enterprise") -> Account:
    owner = User.objects.create(email=f"{name}@{name}.example", password=_password_hash())
    return Account(create_workspace(name=name, plan=plan, owner=owner), owner)


@functools.cache
def _password_hash() -> str:
    return make_password(PASSWORD)


@functools.cache
def _private_key() -> rsa.RSAPrivateKey:
    # Generating a key pair for every test would take longer than the tests.
    return rsa.generate_private_key(public_exponent=65_537, key_size=KEY_BITS)


def make_domain(workspace: Workspace, name: str) -> Domain:
    domain = Domain.objects.create(workspace=workspace, name=name)
    sealed_dkim_key(domain, selector="pr1", private=_private_key()).save()
    return domain


def make_key(workspace: Workspace, scope: str = "full_access", **options: Any) -> str:
    _, secret = issue_api_key(workspace, name="test", scope=scope, **options)
    return secret.text


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Let a test wait within its transaction for as long as a busy machine takes."""
    connection.settings_dict["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=0"


@pytest.fixture(autouse=True)
def _close_database_thread(_django_db_marker: None) -> Iterator[None]:
    """End the SQL of network loops before the tables are emptied: the loop of a test ends before it is idle."""
    yield
    close_connection().result()


@pytest.fixture(scope="session")
def empty_dns() -> Iterator[NameServer]:
    with NameServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _fresh_caches(settings: Any, empty_dns: NameServer) -> None:
    # Tests exceed the rate limit; the tests of the limit set it themselves.
    settings.RATE_LIMIT = None
    # No DNS query leaves the machine: without a fake name server every name is NXDOMAIN.
    settings.DNS_SERVERS = [empty_dns.address]
    forget()


@pytest.fixture(autouse=True)
def _no_threads() -> Iterator[None]:
    """Start no thread that would not see the test's transaction. A test's `monkeypatch.undo()` does not change this.

    Hits and requests wait until a test flushes them. There are no suspended workspaces and tracking hosts until a test
    reads them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteBuffer, "_start", lambda _: None)
        patch.setattr(SuspensionList, "_refresh", lambda _: None)
        patch.setattr(suspended_workspaces, "_ids", frozenset())
        patch.setattr(tracking_hosts, "_hosts", {})
        yield


@pytest.fixture(scope="session", autouse=True)
def redis_timeout() -> Iterator[float]:
    """Wait for Redis on a busy machine, where the buckets of the process would give tokens as well.

    Returns the timeout of the service, in seconds.
    """
    timeout = redis_client.TIMEOUT_SECONDS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_client, "TIMEOUT_SECONDS", 10)
        yield timeout


@pytest.fixture(scope="session", autouse=True)
def _fast_password_hashes() -> Iterator[None]:
    """Let Argon2 use the least time and memory: a hash of its usual cost takes longer than most tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name, least in (("time_cost", 1), ("memory_cost", 8), ("parallelism", 1)):
            patch.setattr(Argon2PasswordHasher, name, least)
        yield


@pytest.fixture(scope="session", autouse=True)
def _listed_static_files(django_test_environment: None) -> Iterator[None]:
    """List the static files of the packages once: WhiteNoise does so for each test client that sends a request."""
    files = StaticFilesMiddleware().files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesMiddleware, "add_files_from_finders", lambda self: self.files.update(files))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quickly_emptied_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        yield


@pytest.fixture
def collected(settings: Any) -> None:
    """Serve collected static files, as on a production server."""
    settings.STATIC_ROOT = str(collected_files())
    # The storage reads the setting again.
    settings.STORAGES = {**settings.STORAGES}


@pytest.fixture
def alice(db: None) -> Account:
    return make_account("alice")


@pytest.fixture
def bob(db: None) -> Account:
    return make_account("bob")


@pytest.fixture
def api(alice: Account) -> Api:
    """An API client with Alice's full-access key and the registered domain alice.example."""
    make_domain(alice.workspace, "alice.example")
    return Api(make_key(alice.workspace))


@pytest.fixture
def bobs_api(bob: Account) -> Api:
    make_domain(bob.workspace, "bob.example")
    return Api(make_key(bob.workspace))


def mail(**fields: Any) -> dict[str, Any]:
    """Return a valid body for sending; keywords replace or add fields, None removes one."""
    body = {
        "from": "Alice <hi@alice.example>",
        "to": "ada@example.com",
        "subject": "Hello",
        "html": "<p>Hi</p>",
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def later(**ahead: float) -> str:
    """Return a time ahead as requests have it, by default in an hour."""
    return (datetime.now(UTC) + timedelta(**(ahead or {"hours": 1}))).isoformat()


def code_of(response: Any) -> tuple[int, str]:
    """Return the status and the code of an error."""
    return response.status_code, response.json()["code"]


def field_codes(response: Any) -> dict[str, str]:
    """Return the code of each field of a validation error."""
    assert code_of(response) == (422, "validation_error"), response.content
    return {error["field"]: error["code"] for error in response.json()["errors"]}
