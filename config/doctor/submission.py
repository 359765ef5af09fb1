"""Checks of the submission server: its certificate, its listeners, and signing in without TLS."""

import asyncio
import smtplib
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from core.delivery.transports.smtp.mx import MxLookup, NoMxHost
from core.lib.network.address_guard import Address, Guard, TargetRefused
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.tls_certificate import Certificate

CONNECT_SECONDS = 10.0
# A certificate for 90 days is usually renewed 30 days before its end.
RENEWAL_DAYS = 14
EMBEDDED = "Not needed in embedded mode."
NOT_HERE = "SUBMISSION_TLS_CERT is not set on this machine."
RENEW = "Renew the certificate and write it to SUBMISSION_TLS_CERT; submission reads the files again by itself."


class AddressSmtp(smtplib.SMTP):
    """A client that connects to a checked address and verifies the certificate for the host name."""

    def __init__(self, host: str, address: Address, *, tls: ssl.SSLContext | None) -> None:
        self._address, self._tls = str(address), tls
        super().__init__(timeout=CONNECT_SECONDS)
        # STARTTLS verifies the certificate for this name.
        self._host = host

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection = socket.create_connection((self._address, port), timeout)
        return self._tls.wrap_socket(connection, server_hostname=self._host) if self._tls else connection


def check_submission_certificate(_: DoctorOptions) -> Diagnosis:
    if not settings.SUBMISSION_TLS_CERT:
        return skip(NOT_HERE)
    try:
        Certificate(settings.SUBMISSION_TLS_CERT, settings.SUBMISSION_TLS_KEY)
        certificate = x509.load_pem_x509_certificate(Path(settings.SUBMISSION_TLS_CERT).read_bytes())
    except (OSError, ValueError) as error:
        return failed(
            f"SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY cannot be used: {error}",
            remedy="Set both to PEM files of one certificate and its key, readable by the user of submission.",
        )
    return _judge_expiry("SUBMISSION_TLS_CERT", certificate.not_valid_after_utc)


def check_submission_plaintext(_: DoctorOptions) -> Diagnosis:
    if settings.EMBEDDED:
        return skip(EMBEDDED)
    if settings.SUBMISSION_ALLOW_PLAINTEXT:
        return warning(
            "Programs on this machine and behind TRUSTED_PROXIES may send API keys over SMTP without TLS.",
            remedy="Unset SUBMISSION_ALLOW_PLAINTEXT, unless these networks are private.",
        )
    return ok("API keys are accepted over SMTP with TLS only.")


def check_submission(_: DoctorOptions) -> Diagnosis:
    """Connect to the ports at the host of PUBLIC_URL. Some may be closed, as long as one is open."""
    if settings.EMBEDDED:
        return skip(EMBEDDED)
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    try:
        address = asyncio.run(MxLookup(Resolver(settings.DNS_SERVERS), Guard(allow_private=True)).addresses(host))[0]
    except (NoMxHost, TargetRefused, DnsError) as error:
        return skip(f"Not checked, because {host} has no usable address, which public_url reports: {error}")
    ports = [(port, False) for port in settings.SUBMISSION_PORTS]
    ports += [(port, True) for port in settings.SUBMISSION_TLS_PORTS]
    diagnoses = {
        port: diagnosis
        for port, has_tls in ports
        if (diagnosis := _diagnose_port(host, address, port, has_tls=has_tls))
    }
    if not diagnoses:
        return _closed(host, [port for port, _ in ports])
    worst = next((diagnosis for diagnosis in diagnoses.values() if diagnosis.remedy), None)
    return worst or ok(
        f"Submission answers at {host} on port {', '.join(map(str, diagnoses))}, with a valid certificate."
    )


def _closed(host: str, ports: list[int]) -> Diagnosis:
    message = f"No submission server answers at {host} on port {', '.join(map(str, ports))}."
    if not settings.SUBMISSION_TLS_CERT:
        return skip(message)
    return failed(message, remedy="Start manage.py submission, and open the ports in the firewall.")


def _diagnose_port(host: str, address: Address, port: int, *, has_tls: bool) -> Diagnosis | None:
    """Return the diagnosis of a port; None if it cannot be reached."""
    try:
        certificate = _read_certificate(host, address, port, has_tls=has_tls)
    except ssl.SSLError as error:
        return failed(f"The certificate of port {port} is not valid for {host}: {error}", remedy=RENEW)
    except smtplib.SMTPException as error:
        return failed(
            f"Port {port} of {host} cannot be used with TLS: {error}",
            remedy="Set SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY and restart submission.",
        )
    except OSError:
        return None
    expires_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    return _judge_expiry(f"The certificate of port {port}", expires_at)


def _read_certificate(host: str, address: Address, port: int, *, has_tls: bool) -> dict[str, Any]:
    """Return the verified certificate. Raises OSError, ssl.SSLError, smtplib.SMTPException."""
    context = ssl.create_default_context()
    with AddressSmtp(host, address, tls=context if has_tls else None) as client:
        client.connect(host, port)
        if not has_tls:
            client.starttls(context=context)
        assert isinstance(client.sock, ssl.SSLSocket)
        return dict(client.sock.getpeercert() or {})


def _judge_expiry(name: str, expires_at: datetime) -> Diagnosis:
    days = (expires_at - datetime.now(UTC)).days
    if days < 0:
        return failed(f"{name} expired on {expires_at:%Y-%m-%d}.", remedy=RENEW)
    if days < RENEWAL_DAYS:
        return warning(f"{name} expires on {expires_at:%Y-%m-%d}.", remedy=RENEW)
    return ok(f"{name} is valid until {expires_at:%Y-%m-%d}.")
