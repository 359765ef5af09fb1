"""Fixtures of the domain tests: a name server with editable zones, and an owner who publishes records there."""

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from core.lib.worker.processor import QueueProcessor
from domains import services
from domains.check_queue import verify
from domains.check_queue.processor import DomainCheckQueueWork
from domains.models import DkimKey, Domain
from domains.record_checks import dns_cache
from domains.services import KEY_BITS
from tests.conftest import Account, Api, make_key
from tests.core.lib.nameserver import NameServer
from tests.threads import own_connection

NAME = "mail.example.com"


def quoted(text: str) -> str:
    """Return a TXT record in zone file syntax: strings of at most 255 bytes."""
    escaped = [text[start : start + 255] for start in range(0, len(text), 255)] or [""]
    return " ".join('"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"' for part in escaped)


def check_due_domains() -> None:
    """Check the due domains as a worker process does."""
    QueueProcessor(DomainCheckQueueWork()).run()


def in_thread(act: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=own_connection(act))
    thread.start()
    return thread


@contextmanager
def running_worker() -> Iterator[None]:
    """Check due domains in a thread; for tests that commit."""
    stopped = threading.Event()

    def work() -> None:
        while not stopped.wait(0.01):
            check_due_domains()

    thread = in_thread(work)
    try:
        yield
    finally:
        stopped.set()
        thread.join()


class Zone:
    """The DNS zone of a domain's owner; setting a record keeps the other types at its name."""

    def __init__(self, server: NameServer) -> None:
        self.server = server

    def set(self, fqdn: str, kind: str, *values: str) -> None:
        rows = [quoted(value) for value in values] if kind == "TXT" else list(values)
        kept = self.server.zones.get(fqdn.lower())
        self.server.put(fqdn, {**(kept if isinstance(kept, dict) else {}), kind: rows})

    def publish(self, record: dict[str, Any]) -> None:
        value = record["value"]
        self.set(record["fqdn"], record["type"], f"{value}." if record["type"] == "CNAME" else value)


class Owner:
    """A user who registers a domain and controls its DNS."""

    def __init__(self, api: Api, zone: Zone, name: str) -> None:
        self.api, self.zone, self.name = api, zone, name
        self.body = api.post("/domains", {"name": name}).json()
        self.path = f"/domains/{self.body['id']}"

    def publish(self, *kinds: str) -> "Owner":
        """Publish the records of the given kinds; all records if none is given."""
        for record in self.body["records"]:
            if not kinds or record["record"] in kinds:
                self.zone.publish(record)
        return self

    def verify(self) -> dict[str, Any]:
        """Request a check, let a worker perform it, and return the domain."""
        response = self.api.post(f"{self.path}/verify")
        assert response.status_code == 200, response.content
        check_due_domains()
        self.body = self.api.get(self.path).json()
        return self.body

    def record(self, kind: str, position: int = 0) -> dict[str, Any]:
        return [one for one in self.body["records"] if one["record"] == kind][position]

    def verify_record(self, kind: str) -> dict[str, Any]:
        """Verify the domain and return one record with its check."""
        self.verify()
        return self.record(kind)


@pytest.fixture(autouse=True)
def _no_wait_for_the_worker(monkeypatch: Any) -> None:
    # A worker in another thread would not see the test's transaction.
    monkeypatch.setattr(verify, "MAX_WAIT_SECONDS", 0.0)


@pytest.fixture
def worker(monkeypatch: Any) -> Iterator[None]:
    """A worker, and requests that wait for it."""
    monkeypatch.setattr(verify, "MAX_WAIT_SECONDS", 5.0)
    with running_worker():
        yield


@pytest.fixture
def dns(settings: Any) -> Iterator[NameServer]:
    settings.SPF_MECHANISMS = "include:_spf.service.example"
    settings.RETURN_PATH_DOMAIN = "bounce.service.example"
    zones = {
        "example.com": {"A": ["192.0.2.1"]},
        "_spf.service.example": {"TXT": ['"v=spf1 ip4:192.0.2.0/24 -all"']},
        "bounce.service.example": {"MX": ["10 mx.service.example."]},
    }
    with NameServer(zones) as server:
        settings.DNS_SERVERS = [server.address]
        yield server


@pytest.fixture
def zone(dns: NameServer) -> Zone:
    return Zone(dns)


@pytest.fixture
def _short_dns_timeouts(monkeypatch: Any) -> None:
    """Shorten the timeouts for a name server that does not reply."""
    monkeypatch.setattr(dns_cache, "ANSWER_SECONDS", 0.8)
    monkeypatch.setattr(dns_cache, "HINT_SECONDS", 0.9)


@functools.cache
def _pairs() -> Iterator[rsa.RSAPrivateKey]:
    # Shared, because generating keys would take longer than the tests; enough for the rotations of one test.
    return itertools.cycle([rsa.generate_private_key(public_exponent=65_537, key_size=KEY_BITS) for _ in range(6)])


@pytest.fixture
def owner(alice: Account, zone: Zone, monkeypatch: Any) -> Owner:
    """Alice, with mail.example.com registered and no records published."""

    def ready_made(domain: Domain, *, selector: str) -> DkimKey:
        return services.sealed_dkim_key(domain, selector=selector, private=next(_pairs()))

    monkeypatch.setattr(services, "new_dkim_key", ready_made)
    return Owner(Api(make_key(alice.workspace)), zone, NAME)
