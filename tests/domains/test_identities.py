"""Signing identities: the key that signs, and the domain of the return path."""

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.lib.ids import to_uuid
from domains.models import DkimKey, Domain
from domains.services import sealed_dkim_key
from domains.signing_identities import IDENTITIES, load_identities
from tests.conftest import Account, make_domain
from tests.plans import plan_of

pytestmark = pytest.mark.django_db


def add_key(domain: Domain, selector: str, *, is_seen: bool) -> DkimKey:
    private = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    key = sealed_dkim_key(domain, selector=selector, private=private)
    key.seen_at = timezone.now() if is_seen else None
    key.save(force_insert=True)
    return key


def test_before_any_key_is_published_the_first_one_signs(alice: Account):
    domain = make_domain(alice.workspace, "a.example")
    add_key(domain, "pr2", is_seen=False)
    pair = alice.workspace.id, "a.example"
    assert load_identities({pair})[pair].key.selector == "pr1"


def test_the_newest_published_key_signs(alice: Account):
    domain = make_domain(alice.workspace, "a.example")
    domain.dkim_keys.update(seen_at=timezone.now())
    add_key(domain, "pr2", is_seen=True)
    add_key(domain, "pr3", is_seen=False)
    pair = alice.workspace.id, "a.example"
    key = load_identities({pair})[pair].key
    assert (key.domain, key.selector, key.private.key_size) == ("a.example", "pr2", 2048)


def test_the_return_path_uses_the_domain_once_its_cname_is_published(alice: Account, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.service.example"
    domain = make_domain(alice.workspace, "a.example")
    pair = alice.workspace.id, "a.example"
    assert load_identities({pair})[pair].return_path_domain == "bounce.service.example"
    Domain.objects.filter(id=domain.id).update(return_path_seen_at=timezone.now())
    assert load_identities({pair})[pair].return_path_domain == "bounce.a.example"


def test_a_batch_takes_one_query_and_separates_workspaces(alice: Account, bob: Account):
    for workspace in (alice.workspace, bob.workspace):
        add_key(Domain.objects.create(workspace=workspace, name="shared.example"), "own", is_seen=True)
    make_domain(bob.workspace, "bobs.example")
    pairs = {(alice.workspace.id, "shared.example"), (bob.workspace.id, "shared.example")}
    foreign = (alice.workspace.id, "bobs.example")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = load_identities({*pairs, foreign, (alice.workspace.id, "gone.example")})
    assert len(queries) == 1
    assert found.keys() == pairs
    first, second = (one.key.private.private_numbers() for one in found.values())
    assert first != second


@pytest.mark.parametrize("damage", ["gone.{}", "{}", "k1.AAAA{}", "k1.", "k1.é"])
def test_a_key_that_cannot_be_unsealed_does_not_affect_the_rest_of_the_batch(alice: Account, caplog, damage):
    broken = make_domain(alice.workspace, "broken.example")
    make_domain(alice.workspace, "whole.example")
    sealed = broken.dkim_keys.get().sealed_private_key.partition(".")[2]
    broken.dkim_keys.update(sealed_private_key=damage.format(sealed))
    pairs = {(alice.workspace.id, name) for name in ("broken.example", "whole.example")}
    assert {name: bool(found.key) for (_, name), found in load_identities(pairs).items()} == {
        "broken.example": False,
        "whole.example": True,
    }
    assert "cannot be unsealed" in caplog.text


def test_each_pair_is_found_by_index(alice: Account):
    make_domain(alice.workspace, "a.example")
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO domains_domain (id, workspace_id, name, status)
               SELECT gen_random_uuid(), workspace_id, n || '.example', 'pending'
               FROM domains_domain, generate_series(1, 20000) n"""
        )
        cursor.execute("ANALYZE domains_domain")
    names = [f"{number}.example" for number in range(100)]
    workspace = to_uuid(alice.workspace.id, prefix="ws_")
    plan = plan_of(IDENTITIES, [[workspace] * len(names), names])
    assert "Index Scan using one_domain_a_workspace" in plan
    assert "Seq Scan on domains_domain" not in plan


def test_unsealed_keys_are_cached(alice: Account):
    domain = make_domain(alice.workspace, "a.example")
    pair = alice.workspace.id, domain.name
    assert load_identities({pair})[pair].key.private is load_identities({pair})[pair].key.private
