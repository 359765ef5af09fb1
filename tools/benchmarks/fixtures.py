"""Fixtures of a busy workspace besides its emails, for the dashboard pages."""

import psycopg

from core.lib.ids import from_uuid
from tests.stack.stack import Stack
from tools.benchmarks.sizes import size

HTML = "<h1>Thank you</h1>" + "<p>Your order has left our house and is on its way.</p>" * 200

# Each takes %(workspace)s; the numbers are a workspace's limits, or typical after years.
STATEMENTS = (
    """INSERT INTO suppressions_suppression (id, workspace_id, email, address_key, reason, created_at)
       SELECT gen_random_uuid(), %(workspace)s, 'gone' || n || '@example.com', 'gone' || n || '@example.com',
              (ARRAY['bounce', 'unsubscribe', 'manual', 'complaint'])[1 + n %% 4], now() - n * interval '1 minute'
         FROM generate_series(1, 100000 / %(divisor)s) n""",
    """INSERT INTO workspaces_auditentry (workspace_id, act, about, actor_kind, actor, address, created_at)
       SELECT %(workspace)s, 'key_created', 'Shop ' || n, 'person', 'owner@demo.example', '192.0.2.1',
              now() - (100000 - n) * interval '1 minute' FROM generate_series(1, 100000 / %(divisor)s) n""",
    """INSERT INTO inbox_caughtmail (id, workspace_id, envelope_from, recipient, sender, subject, source, received_at)
       SELECT gen_random_uuid(), %(workspace)s, '', 'ada@example.com', 'hello@demo.example', 'Your receipt',
              %(source)s, now() - n * interval '1 minute' FROM generate_series(1, 20000 / %(divisor)s) n""",
    """WITH person AS (
         INSERT INTO workspaces_user (password, is_superuser, email, is_staff, is_active, created_at)
         SELECT '!', false, 'person' || n || '@demo.example', false, true, now() FROM generate_series(1, 50) n
         RETURNING id)
       INSERT INTO workspaces_membership (role, created_at, user_id, workspace_id)
       SELECT 'member', now(), id, %(workspace)s FROM person""",
    """INSERT INTO workspaces_apikey (id, name, scope, secret_hash, last_four, created_at, workspace_id)
       SELECT gen_random_uuid(), 'Shop ' || n, 'sending_access', 'none', 'abcd', now() - n * interval '1 hour',
              %(workspace)s FROM generate_series(1, 98) n""",
    """INSERT INTO workspaces_usage (month, used, workspace_id)
       SELECT (date_trunc('month', now()) - n * interval '1 month')::date, n * 90000, %(workspace)s
         FROM generate_series(1, 24) n""",
    """INSERT INTO request_log_apirequest (id, workspace_id, key_id, created_at, method, path, status, milliseconds,
                                           code, email_id)
       SELECT gen_random_uuid(), %(workspace)s, (SELECT id FROM workspaces_apikey LIMIT 1),
              now() - n * interval '0.5 seconds', 'POST', '/v1/emails/send',
              CASE WHEN n %% 20 = 0 THEN 422 ELSE 202 END, 5, '', NULL
         FROM generate_series(1, 100000 / %(divisor)s) n""",
    """WITH version AS (
         INSERT INTO templates_app_templateversion (id, subject, html, text, created_at)
         SELECT gen_random_uuid(), 'Your order {{order}}', %(html)s, '', now() FROM generate_series(1, 999)
         RETURNING id)
       INSERT INTO templates_app_template
              (id, name, strict_variables, created_at, updated_at, workspace_id, version_id)
       SELECT gen_random_uuid(), 'Receipt', false, now() - interval '1 hour', now(), %(workspace)s, id FROM version""",
)
DELIVERIES = """
WITH event AS (
  INSERT INTO webhooks_webhookevent (id, workspace_id, body, created_at)
  SELECT gen_random_uuid(), %(workspace)s, '{"id": "evt_x", "type": "email.delivered"}', now() - n * interval '1 second'
    FROM generate_series(1, 300000 / %(divisor)s) n RETURNING id, created_at)
INSERT INTO webhooks_webhookdelivery (id, kind, is_test, status, attempt_count, attempts, status_code, error,
                                      created_at, succeeded_at, workspace_id, webhook_id, event_id)
SELECT gen_random_uuid(), 'delivered', false, 'succeeded', 1, %(attempts)s, 200, '', created_at, created_at,
       %(workspace)s, %(webhook)s, id FROM event
"""
ATTEMPTS = '[{"at": "2026-11-21T06:20:00.000Z", "durationMs": 213, "statusCode": 200, "error": null, "answer": "ok"}]'
EVENTS = """
INSERT INTO emails_event (id, kind, payload, created_at, email_id, recipient_id)
SELECT gen_random_uuid(), 'opened', '{"to": "ada@example.com", "userAgent": "Mozilla/5.0"}', now(), e.id, NULL
  FROM emails_email e, generate_series(1, 400) WHERE e.id = (SELECT email_id FROM emails_recipient LIMIT 1)
"""


def create_fixtures(stack: Stack) -> dict[str, str]:
    """Create the fixtures in the demo workspace; return the ids of the objects whose pages are measured."""
    email = stack.send(to=[f"user{n}@example.com" for n in range(50)], html=HTML).body["id"]
    template = stack.call("POST", "/templates", {"name": "Receipt", "subject": "Hi {{name}}", "htmlContent": HTML})
    domains = [stack.call("POST", "/domains", {"name": f"mail{n}.example.org"}).body["id"] for n in range(10)]
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["delivered"]}
    webhook = stack.call("POST", "/webhooks", hook).body["id"]
    delivery = stack.call("POST", f"/webhooks/{webhook}/test").body["id"]
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace, webhook_id) = connection.execute("SELECT workspace_id, id FROM webhooks_webhook").fetchone()  # type: ignore[misc]
        values = {
            "divisor": size(1, smoke=100),
            "workspace": workspace,
            "webhook": webhook_id,
            "html": HTML,
            "source": b"x" * 9000,
            "attempts": ATTEMPTS,
        }
        for statement in (*STATEMENTS, DELIVERIES):
            connection.execute(statement, values)
        connection.execute(EVENTS)
        connection.execute("VACUUM ANALYZE")
    return {
        "workspace": from_uuid(workspace, prefix="ws_"),
        "address": "user0@example.com",
        "email": email,
        "template": template.body["id"],
        "domain": domains[0],
        "webhook": webhook,
        "delivery": delivery,
    }
