"""Session factory: opens sessions, and remembers hosts that were unreachable or failed the TLS handshake."""

import asyncio
from dataclasses import replace

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import TlsResult
from core.delivery.transports.expiring_set import ExpiringSet
from core.delivery.transports.smtp.errors import SmtpError
from core.delivery.transports.smtp.mail_host import RFC_5321, MailHost, Timeouts
from core.delivery.transports.smtp.session import Session
from core.delivery.transports.smtp.tls import TlsMode

PLAINTEXT_SECONDS = 3600.0
UNVERIFIED_SECONDS = 3600.0
UNREACHABLE_SECONDS = 60.0


class SessionFactory:
    """Opens sessions with the given timeouts."""

    def __init__(self, timeouts: Timeouts = RFC_5321) -> None:
        self._timeouts = timeouts
        self._plaintext_hosts = ExpiringSet(ttl_seconds=PLAINTEXT_SECONDS)
        self._unverified_hosts = ExpiringSet(ttl_seconds=UNVERIFIED_SECONDS)
        self._unreachable_hosts = ExpiringSet(ttl_seconds=UNREACHABLE_SECONDS)

    def is_down(self, name: str) -> bool:
        """Return whether opening a session to the host failed in the last 60 s."""
        return name in self._unreachable_hosts

    def deadline(self) -> float:
        """Return the deadline, in the loop's time, of an attempt that begins now."""
        return asyncio.get_running_loop().time() + self._timeouts.total

    async def open(self, host: MailHost, *, deadline: float) -> Session:
        """Return an open session. Raises SmtpError.

        If opportunistic TLS fails, the session is in plaintext, as with a host that offers no TLS. If a policy is only
        tested and fails, the session is as without the policy.
        """
        try:
            return await (self._test if host.tls is TlsMode.TESTING else self._open)(host, deadline)
        except SmtpError:
            self._unreachable_hosts.add(host.name)
            raise

    async def _test(self, host: MailHost, deadline: float) -> Session:
        if host.name not in self._unverified_hosts:
            try:
                return await self._open(replace(host, tls=TlsMode.REQUIRED), deadline)
            except SmtpError as error:
                if error.reason is not FailureReason.TLS:
                    raise
                self._unverified_hosts.add(host.name, note=_result(error))
        failure = TlsResult(self._unverified_hosts.note(host.name))
        return await self._open(replace(host, tls=TlsMode.OPPORTUNISTIC, context=None, failure=failure), deadline)

    async def _open(self, host: MailHost, deadline: float) -> Session:
        if host.tls is TlsMode.OPPORTUNISTIC and host.name in self._plaintext_hosts:
            return await self._open_plaintext(host, deadline, TlsResult(self._plaintext_hosts.note(host.name)))
        try:
            return await Session.open(host, deadline=deadline, timeouts=self._timeouts)
        except SmtpError as error:
            if error.reason is not FailureReason.TLS or host.tls is not TlsMode.OPPORTUNISTIC:
                raise
            failure = _result(error)
        session = await self._open_plaintext(host, deadline, failure)
        self._plaintext_hosts.add(host.name, note=failure)
        return session

    async def _open_plaintext(self, host: MailHost, deadline: float, failure: TlsResult) -> Session:
        """Open a session with a host that TLS failed with. failure: of TLS; that of a policy comes first."""
        plaintext = replace(host, tls=TlsMode.NONE, failure=host.failure or failure)
        return await Session.open(plaintext, deadline=deadline, timeouts=self._timeouts)


def _result(error: SmtpError) -> TlsResult:
    """Return the result of a session that TLS failed for; that of a host of the settings is in no report."""
    result = error.tls.result if error.tls else None
    return result or TlsResult.NO_HANDSHAKE
