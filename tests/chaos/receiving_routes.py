"""Routes of a chaos run in which email is received: one forwards, one takes nothing but answers to sent email."""

from collections.abc import Iterator
from typing import Any

from tests.stack.scenario import Scenario, Tenant

# The local parts of the routes, before a plus sign.
FORWARDED, ANSWERS = "team", "answers"
PAGE = 100
# Without the DNS records of a receiving domain, and without the confirmation of the target.
RECEIVE = """
INSERT INTO domains_receivingdomain (id, workspace_id, domain_id, name, status, proven_at)
SELECT gen_random_uuid(), workspace_id, id, name, 'active', now() FROM domains_domain WHERE name = %s
    ON CONFLICT (domain_id) DO UPDATE SET status = EXCLUDED.status, proven_at = EXCLUDED.proven_at RETURNING 1
"""
CONFIRM = """
INSERT INTO receiving_forwardtarget (id, workspace_id, address, confirmed_at)
SELECT gen_random_uuid(), workspace_id, %s, now() FROM domains_domain WHERE name = %s RETURNING 1
"""


def create_routes(scenario: Scenario) -> None:
    for tenant in scenario.tenants:
        target = f"{tenant.marker}@elsewhere.example"
        scenario.stack.query(RECEIVE, tenant.domain)
        scenario.stack.query(CONFIRM, target, tenant.domain)
        for name, options in ((FORWARDED, {"forwardTo": [target]}), (ANSWERS, {"repliesOnly": True})):
            body = {"name": name, "match": f"{name}+*", "domain": tenant.domain, **options}
            status, answer = scenario.call(tenant, "POST", "/inbound/routes", body)
            assert status == 201, answer


def read_emails(scenario: Scenario, tenant: Tenant) -> Iterator[dict[str, Any]]:
    """Yield the received emails of a workspace as its list shows them."""
    page = 0
    while True:
        page += 1
        _, answer = scenario.call(tenant, "GET", f"/inbound/emails?page={page}&limit={PAGE}")
        yield from answer["data"]
        if len(answer["data"]) < PAGE:
            return


def read_forwards(scenario: Scenario, tenant: Tenant) -> dict[str, list[dict[str, Any]]]:
    """Return the forwards of the emails that a route forwards, by id."""
    ids = [email["id"] for email in read_emails(scenario, tenant) if email["recipient"].startswith(f"{FORWARDED}+")]
    return {id_: scenario.call(tenant, "GET", f"/inbound/emails/{id_}")[1]["forwards"] for id_ in ids}


def record_forwards(scenario: Scenario) -> None:
    """Record the emails that forwards have accepted in the ledger, as if a caller had sent them."""
    recorded = {email.email_id for email in scenario.ledger.accepted}
    for tenant in scenario.tenants:
        for forwards in read_forwards(scenario, tenant).values():
            for forward in forwards:
                if forward["emailId"] and forward["emailId"] not in recorded:
                    scenario.ledger.record_accepted(forward["emailId"], workspace=tenant.id, addresses=(forward["to"],))
