"""Scopes: every operation under /v1 against docs/specification.md, Authentication.

`sending_only`: send, batch, /v1/me. `sending_access`: send, batch, resend, cancel, reschedule; GET of emails (list,
detail, events, export), templates and their preview, domains, simulated received emails,
/v1/me. `read_only`: every GET, and preview.
`approvals`: approve and reject, GET of emails (list, detail, events, attachments), /v1/me. `full_access` and
`workspace_admin`: all but to approve and reject.
"""

import pytest

from tests.conftest import Account, Api, code_of, make_key
from tests.conventions.test_foreign_objects import call, calls_of_v1
from tests.key_kinds import DECIDING, SENDING, allowed_scopes
from tests.rows import each

pytestmark = pytest.mark.django_db

# The smallest first; approvals are apart from the others.
SCOPES = ("sending_only", "sending_access", "read_only", "full_access", "workspace_admin", "approvals")
# No API key required.
PUBLIC = {("GET", "/openapi.json")}
# Restricted to full_access; add each new path that changes data here or to SENDING (tests/key_kinds.py).
FULL = {
    ("POST", "/domains"),
    ("PATCH", "/domains/{}"),
    ("DELETE", "/domains/{}"),
    ("POST", "/domains/{}/verify"),
    ("POST", "/domains/{}/rotate-dkim"),
    ("PATCH", "/domains/{}/dmarc/sources"),
    ("POST", "/streams"),
    ("PATCH", "/streams/{}"),
    ("POST", "/streams/{}/archive"),
    ("POST", "/streams/{}/unarchive"),
    ("POST", "/templates"),
    ("PATCH", "/templates/{}"),
    ("DELETE", "/templates/{}"),
    ("POST", "/erasures"),
    ("POST", "/subject-exports"),
    ("GET", "/subject-exports/{}/download"),
    ("POST", "/suppressions"),
    ("DELETE", "/suppressions/{}"),
    ("POST", "/alerts"),
    ("PATCH", "/alerts/{}"),
    ("DELETE", "/alerts/{}"),
    ("POST", "/webhooks"),
    ("PATCH", "/webhooks/{}"),
    ("DELETE", "/webhooks/{}"),
    ("POST", "/webhooks/{}/test"),
    ("POST", "/webhooks/{}/rotate-secret"),
    ("POST", "/webhooks/{}/deliveries/{}/replay"),
    ("POST", "/inbound/routes"),
    ("PATCH", "/inbound/routes/{}"),
    ("DELETE", "/inbound/routes/{}"),
    ("POST", "/inbound/routes/match"),
    ("POST", "/inbound/blocks"),
    ("DELETE", "/inbound/blocks/{}"),
    ("DELETE", "/inbound/emails/{}"),
    ("POST", "/inbound/emails/{}/bypass"),
    ("POST", "/inbound/emails/{}/forward"),
    ("POST", "/inbound/emails/{}/redeliver"),
    ("POST", "/inbound/emails/{}/reread"),
}
CALLS = sorted(calls_of_v1() - PUBLIC)


def any_id(path: str) -> str:
    return path.replace("{}", "0" * 22)


def test_every_changing_operation_is_in_the_tables():
    changing = {(method, path) for method, path in CALLS if method != "GET"}
    assert changing == {(method, path) for method, path in SENDING | FULL | DECIDING if method != "GET"}


def test_the_tables_contain_only_existing_operations():
    assert set(CALLS) >= SENDING | FULL | DECIDING
    assert calls_of_v1() >= PUBLIC


@pytest.fixture
def apis(alice: Account) -> dict[str, Api]:
    return {scope: Api(make_key(alice.workspace, scope)) for scope in SCOPES}


@each("scope", SCOPES)
@each(("method", "path"), CALLS)
def test_a_scope_allows_exactly_the_specified_operations(apis, method, path, scope):
    response, allowed = call(apis[scope], method, any_id(path), {}), allowed_scopes(method, path)
    if scope in allowed:
        assert response.status_code not in {401, 403, 405, 500}
        return
    assert code_of(response) == (403, "insufficient_scope")
    assert response.json()["requiredScope"] == min(allowed, key=SCOPES.index)


@each("path", sorted(path for method, path in CALLS if method == "GET"))
def test_head_requires_the_same_scope_as_get(apis, path):
    for scope, api in apis.items():
        head, get = api.raw("HEAD", any_id(path), b""), api.get(any_id(path))
        assert head.status_code == get.status_code, scope


@each(("method", "path"), CALLS)
def test_without_a_key_every_operation_is_401(db, method, path):
    response = call(Api(), method, any_id(path), {})
    assert (response.status_code, response.json()["code"]) == (401, "missing_api_key")
    assert response["WWW-Authenticate"].startswith("Bearer")


@each(("method", "path"), sorted(PUBLIC))
def test_public_operations_need_no_key(db, method, path):
    assert call(Api(), method, path, None).status_code == 200


def test_a_scope_is_checked_before_the_body_is_read(alice: Account):
    response = Api(make_key(alice.workspace, "read_only")).raw("POST", "/emails/send", b"{")
    assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")
