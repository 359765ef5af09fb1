"""Signatures of a verified domain, verified by dkimpy and OpenDKIM against the name server."""

import base64
import subprocess
from pathlib import Path
from typing import Any

import dkim
import dns.resolver
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from core.delivery.message.dkim import SigningKey, sign
from domains.models import DkimKey
from domains.signing_identities import load_identities
from tests.conftest import Account
from tests.core.lib.nameserver import NameServer
from tests.domains.conftest import NAME, Owner
from tests.standards.tools import program

pytestmark = pytest.mark.django_db

MESSAGE = (
    b"From: Alice <hi@mail.example.com>\r\nTo: ada@example.org\r\nSubject: Hello\r\n"
    b"Message-ID: <1@mail.example.com>\r\n"
    b"Date: Sat, 21 Nov 2026 06:20:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nHello,\r\nAda.\r\n"
)
DKIM_OF_OTHERS = (
    "v=DKIM1; k=rsa; p="
    + base64.b64encode(
        rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        .public_key()
        .public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).decode()
)
PACKAGES = {"opendkim": "opendkim", "opendkim-testkey": "opendkim-tools"}
UNBOUND = """server:
  module-config: "iterator"
  do-not-query-localhost: no
  do-ip6: no
  use-syslog: no
forward-zone:
  name: "."
  forward-addr: {}@{}
"""


@pytest.fixture
def signed(owner: Owner, alice: Account) -> bytes:
    assert owner.publish().verify()["status"] == "verified"
    return sign(MESSAGE, key=signing_key_of(alice))


def signing_key_of(account: Account) -> SigningKey:
    pair = account.workspace.id, NAME
    return load_identities({pair})[pair].key


def verifies(message: bytes, server: NameServer) -> bool:
    """Verify with dkimpy, using the name server."""
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = [server.address[0]], server.address[1]

    def texts(name: bytes | str, timeout: int = 5) -> bytes:
        text = name if isinstance(name, str) else name.decode()
        return b"".join(resolver.resolve(text.rstrip("."), "TXT")[0].strings)

    return bool(dkim.verify(message, dnsfunc=texts))


def opendkim(command: str, *arguments: str, folder: Path, server: NameServer) -> "subprocess.CompletedProcess[str]":
    """Run a tool of OpenDKIM, whose resolver (libunbound) uses the name server."""
    path = program(command, package=PACKAGES[command])
    (folder / "unbound.conf").write_text(UNBOUND.format(*server.address))
    conf = folder / "opendkim.conf"
    conf.write_text(f"Mode v\nSyslog no\nResolverConfiguration {folder}/unbound.conf\n")
    return subprocess.run([path, "-x", str(conf), *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_dkimpy_verifies_a_signature(signed: bytes, dns: NameServer):
    assert verifies(signed, dns)
    assert not verifies(signed.replace(b"Subject: Hello", b"Subject: Help"), dns)


@pytest.mark.full
def test_opendkim_verifies_a_signature(signed: bytes, dns: NameServer, tmp_path: Path, owner: Owner):
    mail = tmp_path / "mail.eml"
    mail.write_bytes(signed)
    run = opendkim("opendkim", "-t", str(mail), "-vv", folder=tmp_path, server=dns)
    selector = owner.record("DKIM")["name"].removesuffix("._domainkey")
    assert f"verification (s={selector}, d={NAME}, 2048-bit key) succeeded" in run.stdout, run.stderr
    assert "dkim=pass" in run.stdout


@pytest.mark.full
def test_opendkim_matches_the_private_key_with_the_record(owner: Owner, dns: NameServer, tmp_path: Path):
    owner.publish()
    key = DkimKey.objects.get(domain__name=NAME)
    private = tmp_path / "key.pem"
    private.touch(mode=0o600)
    private.write_bytes(key.private_key())
    arguments = ("-d", NAME, "-s", key.selector, "-k", str(private), "-vvv")
    run = opendkim("opendkim-testkey", *arguments, folder=tmp_path, server=dns)
    assert run.returncode == 0, run.stderr
    assert "key loaded" in run.stderr
    owner.zone.set(f"{key}", "TXT", DKIM_OF_OTHERS)
    run = opendkim("opendkim-testkey", *arguments, folder=tmp_path, server=dns)
    assert run.returncode != 0


def test_messages_in_transit_verify_during_a_rotation(signed: bytes, owner: Owner, alice: Account, dns: NameServer):
    owner.body = owner.api.post(f"{owner.path}/rotate-dkim").json()
    owner.publish().verify()
    newer = sign(MESSAGE, key=signing_key_of(alice))
    assert _selector(newer) != _selector(signed)
    assert verifies(signed, dns)
    assert verifies(newer, dns)


def _selector(message: bytes) -> Any:
    return message.partition(b" s=")[2].partition(b";")[0]
