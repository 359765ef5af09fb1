"""A private key never appears in an API response, a page, a log line or a database column."""

import base64
import functools
import json
import logging
import traceback
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client

from config.logs import JsonFormatter
from core.workspaces.models import User
from domains.models import DkimKey
from domains.signing_identities import load_identities
from tests.conftest import PASSWORD, Account, mail
from tests.domains.conftest import NAME, Owner

pytestmark = pytest.mark.django_db


@functools.cache
def key_fragments(pem: bytes) -> list[bytes]:
    """Return fragments that reveal a key: lines of each PEM form, and its numbers as bytes, hex and digits."""
    private = load_pem_private_key(pem, password=None)
    found = []
    for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
        der = private.private_bytes(Encoding.DER, form, NoEncryption())
        # The middle is after the modulus, which is public.
        middle = base64.b64encode(der).decode()[len(der) :][:60]
        text = private.private_bytes(Encoding.PEM, form, NoEncryption()).replace(b"\n", b"").decode()
        assert middle in text
        found += [middle.encode(), der[len(der) // 2 :][:40]]
    for number in (private.private_numbers().d, private.private_numbers().p, private.private_numbers().q):
        data = number.to_bytes((number.bit_length() + 7) // 8, "big")
        found += [data[:40], data[:40].hex().encode(), str(number)[:60].encode(), base64.b64encode(data[:39])]
    return [*found, b"PRIVATE KEY"]


def columns() -> Iterator[tuple[str, bytes]]:
    """Yield each row of each table in text form, with the table name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            yield from ((table, row.encode()) for (row,) in cursor.fetchall())


@pytest.fixture
def keys(owner: Owner) -> list[bytes]:
    """The private keys of a domain after a rotation."""
    owner.publish().verify()
    owner.body = owner.api.post(f"{owner.path}/rotate-dkim").json()
    owner.publish().verify()
    return [key.private_key() for key in DkimKey.objects.filter(domain__name=NAME)]


def contains_key(text: bytes, keys: list[bytes]) -> bool:
    return any(trace in text for key in keys for trace in key_fragments(key))


def test_the_search_finds_a_key(keys):
    assert len(keys) == 2
    assert all(contains_key(key.replace(b"\n", b""), keys) for key in keys)


def test_no_database_column_contains_a_key(keys, owner: Owner):
    owner.api.post("/emails/send", mail(**{"from": f"x@{NAME}"}))
    found = list(columns())
    assert {"domains_dkimkey", "domains_domain"} <= {table for table, _ in found}
    assert [table for table, row in found if contains_key(row, keys)] == []


def test_no_api_response_contains_a_key(keys, owner: Owner):
    answers = [
        owner.api.get("/domains"),
        owner.api.get(owner.path),
        owner.api.post(f"{owner.path}/verify"),
        owner.api.post(f"{owner.path}/rotate-dkim"),
        owner.api.post("/domains", {"name": "another.example"}),
        owner.api.delete(owner.path),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 201, 200]
    assert not any(contains_key(answer.content, keys) for answer in answers)


def test_no_page_contains_a_key(keys, owner: Owner, alice: Account):
    staff = User.objects.create_superuser("staff@staff.example", PASSWORD)
    visitor, admin = Client(), Client()
    visitor.force_login(alice.owner)
    admin.force_login(staff)
    pages = [
        visitor.get(f"/dashboard{owner.path}/"),
        visitor.get("/dashboard/domains/"),
        admin.get("/admin/domains/domain/"),
        admin.get(f"/admin/domains/domain/{quote(owner.body['id'])}/change/"),
    ]
    assert [page.status_code for page in pages] == [200] * 4
    assert not any(contains_key(page.content, keys) or b"sealed" in page.content for page in pages)


def test_no_log_line_contains_a_key_after_an_exception(keys, owner: Owner, alice: Account, monkeypatch, caplog):
    def fail(key: DkimKey, *_: object) -> None:
        pem = key.private_key()
        raise RuntimeError(f"with {len(pem)} bytes: {pem.decode()}")

    formatter = JsonFormatter()
    caplog.set_level(logging.DEBUG)
    load_identities({(alice.workspace.id, NAME)})
    monkeypatch.setattr("domains.records._rotation_note", fail)
    response = owner.api.get(owner.path)
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert not contains_key(response.content, keys)
    assert any(record.exc_info for record in caplog.records)
    lines = [formatter.format(record) for record in caplog.records]
    assert not any(contains_key(line.replace("\\n", "").encode(), keys) for line in lines)
    assert all(json.loads(line) for line in lines)


def test_reprs_and_tracebacks_contain_no_key(keys, alice: Account):
    (identity,) = load_identities({(alice.workspace.id, NAME)}).values()
    key = DkimKey.objects.filter(domain__name=NAME).first()
    try:
        raise ValueError(identity, key)
    except ValueError as error:
        text = "".join(traceback.format_exception(error))
    assert not contains_key(f"{text} {identity!r} {key!r} {key}".encode(), keys)
