"""TLS policy of a recipient domain: the mail hosts that it permits, and the TLS that each of them needs."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.delivery.bounces.replies import SessionTls, TlsPolicyKind, TlsResult
from core.delivery.transports.smtp.mail_host import TLS_REQUIRED
from core.delivery.transports.smtp.mx import MAX_HOSTS, MxHosts
from core.delivery.transports.smtp.tls import TlsMode
from core.delivery.transports.tls_policies.dane import DaneHost, DaneLookup
from core.delivery.transports.tls_policies.sts_lookups import StsPolicies, StsState
from core.delivery.transports.tls_policies.sts_policy import StsMode, StsPolicy
from core.lib.network.resolver import DnsError


class TlsPolicyFailed(Exception):
    """Raised when a policy permits none of the mail hosts; the text names the kind of policy."""

    def __init__(self, policy: "DomainTlsPolicy", kind: TlsPolicyKind, result: TlsResult, text: str) -> None:
        super().__init__(text)
        self.policy, self.kind, self.result = policy, kind, result


@dataclass(frozen=True)
class HostTls:
    """The TLS of sessions with one mail host.

    kind: the policy that decides.
    requirement: a sentence that names it and what it requires; otherwise that of the sender's requirement.
    dane: the records that the certificate must match.
    names: of the certificate, one of which counts if a trust anchor has signed it.
    failure: of a policy that does not prevent the sessions, for TLS reports.
    """

    mode: TlsMode
    kind: TlsPolicyKind = TlsPolicyKind.NONE
    requirement: str = TLS_REQUIRED
    dane: DaneHost | None = None
    names: tuple[str, ...] = ()
    failure: TlsResult | None = None


@dataclass(frozen=True)
class DomainTlsPolicy:
    """What a domain publishes. A host with DANE records follows them, any other one the MTA-STS policy (RFC 8461, 2).

    dane: the mail hosts with records.
    unknown: the mail hosts whose records cannot be looked up, with the error.
    asks_for_reports: the domain asks for TLS reports (RFC 8460).
    sts_failure: why a published MTA-STS policy is not known.
    """

    domain: str
    sts: StsPolicy | None = None
    dane: Mapping[str, DaneHost] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    asks_for_reports: bool = False
    sts_failure: TlsResult | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The part of the key of a destination: domains whose hosts are verified alike share connections."""
        is_named = any(host.has_trust_anchor for host in self.dane.values())
        return self.sts and self.sts.mode, tuple(sorted(self.dane)), self.domain if is_named else ""

    def permitted(self, hosts: MxHosts) -> MxHosts:
        """Return the mail hosts that may get messages. Raises TlsPolicyFailed if there is none."""
        rows = tuple(row for row in hosts.hosts if self._permits(row[1]))
        if rows:
            return MxHosts(rows, is_secure=hosts.is_secure)
        names = ", ".join(hosts.key)
        if self.unknown:
            host, error = next(iter(self.unknown.items()))
            text = f"The DANE records (TLSA) of {host} cannot be looked up: {error}"
            raise TlsPolicyFailed(self, TlsPolicyKind.DANE, TlsResult.DNSSEC_INVALID, text)
        text = f"No mail host of {self.domain} is in its MTA-STS policy (enforce): {names}."
        raise TlsPolicyFailed(self, TlsPolicyKind.STS, TlsResult.MX_MISMATCH, text)

    def for_report(self, tls: SessionTls | None) -> SessionTls | None:
        """Return the TLS of a session with the domain whose reports count it, or without a result for reports."""
        if tls is None:
            return None
        return replace(tls, domain=self.domain) if self.asks_for_reports else replace(tls, result=None)

    def host_tls(self, host: str, mode: TlsMode) -> HostTls:
        """Return the TLS of a permitted host. mode: that of the message without a policy."""
        if dane := self.dane.get(host):
            return self._dane_tls(dane, mode)
        if self.sts is None or self.sts.mode is StsMode.NONE:
            return HostTls(mode, failure=self.sts_failure)
        if self.sts.mode is StsMode.ENFORCE:
            text = f"The MTA-STS policy of {self.domain} (enforce) requires TLS with a valid certificate."
            return HostTls(TlsMode.REQUIRED, TlsPolicyKind.STS, text)
        if not self.sts.permits(host):
            return HostTls(mode, TlsPolicyKind.STS, failure=TlsResult.MX_MISMATCH)
        return HostTls(TlsMode.TESTING if mode is TlsMode.OPPORTUNISTIC else mode, TlsPolicyKind.STS)

    def _dane_tls(self, dane: DaneHost, mode: TlsMode) -> HostTls:
        text = f"The DANE records (TLSA) of {dane.base_domain} require TLS"
        if not dane.records:
            # A message that requires a valid certificate needs one from an authority then.
            used = mode if mode.is_mandatory else TlsMode.DANE
            return HostTls(used, TlsPolicyKind.DANE, f"{text}.", dane)
        names = tuple(dict.fromkeys((dane.base_domain, self.domain)))
        return HostTls(TlsMode.DANE, TlsPolicyKind.DANE, f"{text} with a certificate that matches them.", dane, names)

    def _permits(self, host: str) -> bool:
        if host in self.unknown:
            return False
        is_enforced = self.sts is not None and self.sts.mode is StsMode.ENFORCE
        return not is_enforced or host in self.dane or bool(self.sts and self.sts.permits(host))


class TlsPolicies:
    """Finds the policies of domains. dane: None without a validating resolver."""

    def __init__(self, sts: StsPolicies, dane: DaneLookup | None = None) -> None:
        self._sts, self._dane = sts, dane

    async def find(self, domain: str, hosts: MxHosts) -> DomainTlsPolicy:
        """Return the policy of a domain. Raises LeaseLost if the database does not answer.

        hosts: its mail hosts; DANE needs a signed answer about them.
        """
        dane, unknown = await self._find_dane(hosts)
        is_complete = all(host in dane for host in hosts.key)
        if is_complete and not self._sts.finds_reports:
            return DomainTlsPolicy(domain, None, dane, unknown)
        state = await self._sts.find(domain, tlsa=[line for host in dane.values() for line in host.texts()])
        found = StsState(report_to=state.report_to) if is_complete else state
        return DomainTlsPolicy(domain, found.policy, dane, unknown, bool(found.report_to), found.failure)

    async def _find_dane(self, hosts: MxHosts) -> tuple[dict[str, DaneHost], dict[str, str]]:
        if not self._dane or not hosts.is_secure:
            return {}, {}
        # The others are as if they were down: a hostile zone may list hundreds of hosts.
        names = [name for _, name in sorted(hosts.hosts)[:MAX_HOSTS]]
        unknown = dict.fromkeys(set(hosts.key).difference(names), "the domain has too many mail hosts")
        results = await asyncio.gather(*map(self._dane.find, names), return_exceptions=True)
        dane = dict[str, DaneHost]()
        for name, result in zip(names, results, strict=True):
            if isinstance(result, DaneHost):
                dane[name] = result
            elif isinstance(result, DnsError):
                unknown[name] = str(result)
            elif result is not None:
                raise result
        return dane, unknown
