"""A receiver on loopback for tests of TLS policies: its zone, its policy host and one or two mail hosts with TLS."""

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trustme

from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.direct import DirectTransport
from core.delivery.transports.smtp.mx import MxLookup
from core.delivery.transports.tls_policies.dane import DaneLookup
from core.delivery.transports.tls_policies.policies import TlsPolicies
from core.delivery.transports.tls_policies.sts_lookups import StsLookup, StsPolicies
from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from emails.models import MtaStsPolicy
from emails.pacing.database_thread import run_in_database_thread
from emails.tls_policies.store import DatabaseStsStore
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.policy_host import PolicyHost
from tests.core.delivery.relaying import SHORT
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.core.lib.nameserver import NameServer

RECORD = "v=STSv1; id=1;"
GUARD = Guard(allow_private=True)


@dataclass
class Authority:
    ca: trustme.CA = field(default_factory=trustme.CA)

    def serving(self, *names: str, **options: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names, **options).configure_cert(context)
        return context

    @property
    def trusting(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


AUTHORITY = Authority()


@dataclass
class Receiver:
    """The servers of example.com. dns: its zone, with _mta-sts and one mail host, mx0, unless a test changes them."""

    dns: NameServer
    host: ScriptedServer
    policy_host: PolicyHost
    is_validating: bool = False
    finds_reports: bool = False

    def transport(self) -> DirectTransport:
        """Return a transport of a new process: nothing is in its memory."""
        resolver = Resolver([self.dns.address], is_validating=self.is_validating)
        sts = StsPolicies(self.sts_lookup(resolver), DatabaseStsStore())
        return DirectTransport(
            MxLookup(resolver, GUARD),
            ehlo_name="me.example.net",
            port=self.host.port,
            timeouts=SHORT,
            context=AUTHORITY.trusting,
            receivers=built_in_receivers(),
            paces=LocalPairs(time.monotonic).shares(),
            policies=TlsPolicies(sts, DaneLookup(resolver) if self.is_validating else None),
        )

    def sts_lookup(self, resolver: Resolver | None = None) -> StsLookup:
        resolver = resolver or Resolver([self.dns.address])
        return StsLookup(
            resolver,
            UrlRules(guard=GUARD),
            tls=AUTHORITY.trusting,
            port=self.policy_host.port,
            finds_reports=self.finds_reports,
        )

    async def deliver(self, **fields: Any) -> DeliveryOutcome:
        """Deliver one message with a new transport."""
        transport = self.transport()
        try:
            return await send(transport, **fields)
        finally:
            transport.close()


async def send(transport: DirectTransport, domain: str = "example.com", **fields: Any) -> DeliveryOutcome:
    return await transport.deliver(outgoing_message(recipient=f"ada@{domain}", **fields), lease=StubLease())


def zone(**records: Any) -> dict[str, Any]:
    return {
        "example.com": {"MX": ["10 mx0.example.com."]},
        "mx0.example.com": {"A": ["127.0.0.1"]},
        "mta-sts.example.com": {"A": ["127.0.0.1"]},
        "_mta-sts.example.com": {"TXT": [f'"{RECORD}"']},
        **records,
    }


@asynccontextmanager
async def running_receiver(
    body: bytes = b"", *, tls: ssl.SSLContext | None = None, is_plaintext: bool = False, **options: Any
) -> AsyncIterator[Receiver]:
    """Run the servers of example.com.

    body: of the policy.
    tls: of the mail host, by default with a valid certificate.
    is_plaintext: the mail host offers no TLS.
    """
    await run_in_database_thread(MtaStsPolicy.objects.all().delete)
    context = None if is_plaintext else tls or AUTHORITY.serving("mx0.example.com")
    with NameServer(zone()) as dns:
        async with (
            ScriptedServer(tls=context, **options) as host,
            PolicyHost(AUTHORITY.serving("mta-sts.example.com"), body) as policy_host,
        ):
            yield Receiver(dns, host, policy_host)
