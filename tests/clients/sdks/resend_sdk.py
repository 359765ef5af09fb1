"""Resend's Python library against the compatibility endpoint. Environment: URL, KEY, RUN."""

import os
import uuid
from datetime import UTC, datetime, timedelta

import resend
from resend.exceptions import InvalidApiKeyError, MissingRequiredFieldsError, ResendError, ValidationError

RUN = os.environ["RUN"]
resend.api_url = f"{os.environ['URL']}/compat/resend"
resend.api_key = os.environ["KEY"]


def mail(**fields):
    return {
        "from": "Demo <hello@demo.example>",
        "to": f"py-{RUN}@example.com",
        "subject": "Hi",
        "html": "<p>Hi</p>",
        **fields,
    }


def raises(error_type, call):
    try:
        call()
    except error_type as error:
        return error
    raise AssertionError(f"{error_type.__name__} was not raised")


sent = resend.Emails.send(
    mail(
        cc=["c@example.com"],
        reply_to=["a@demo.example", "b@demo.example"],
        tags=[{"name": "run", "value": RUN}],
        attachments=[{"filename": "a.txt", "content": list(b"Notes")}],
    ),
    {"idempotency_key": f"py-{RUN}"},
)
assert str(uuid.UUID(sent["id"])) == sent["id"]
email = resend.Emails.get(email_id=sent["id"])
assert (email["subject"], email["html"], email["cc"]) == ("Hi", "<p>Hi</p>", ["c@example.com"]), email
assert len(resend.Batch.send([mail(to=f"batch-{RUN}@example.com")] * 2)["data"]) == 2
scheduled = resend.Emails.send(mail(scheduled_at="in 1 hour"))
tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
assert resend.Emails.update({"id": scheduled["id"], "scheduled_at": tomorrow})["id"] == scheduled["id"]
assert resend.Emails.cancel(email_id=scheduled["id"])["id"] == scheduled["id"]
assert resend.Emails.list({"limit": 2})["has_more"]

raises(MissingRequiredFieldsError, lambda: resend.Emails.send(mail(subject="")))
raises(ValidationError, lambda: resend.Emails.send(mail(to="nobody")))
assert raises(ResendError, lambda: resend.Emails.get(email_id=str(uuid.uuid4()))).code == 404

domain = resend.Domains.create({"name": f"py-{RUN}.example", "tls": "enforced"})
assert [record["record"] for record in domain["records"]] == ["DKIM", "SPF", "SPF"], domain
assert resend.Domains.get(domain_id=domain["id"])["name"] == f"py-{RUN}.example"
assert resend.Domains.update({"id": domain["id"], "tls": "opportunistic"})["id"] == domain["id"]
assert resend.Domains.verify(domain_id=domain["id"])["object"] == "domain"
assert domain["id"] in [one["id"] for one in resend.Domains.list()["data"]]
assert resend.Domains.remove(domain_id=domain["id"])["deleted"]
assert raises(ResendError, lambda: resend.Domains.get(domain_id=domain["id"])).code == 404

tracking = {"tracking_subdomain": "links", "open_tracking": False}
tracked = resend.Domains.create({"name": f"py-tracked-{RUN}.example", **tracking})
assert (tracked["tracking_subdomain"], tracked["open_tracking"], tracked["click_tracking"]) == ("links", False, True)
assert [record["value"] for record in tracked["records"] if record["record"] == "Tracking"] == ["mail.service.example"]
resend.Domains.update({"id": tracked["id"], "tracking_subdomain": "click"})
assert resend.Domains.get(domain_id=tracked["id"])["tracking_subdomain"] == "click"
assert resend.Domains.remove(domain_id=tracked["id"])["deleted"]

variables = [{"key": "NAME", "type": "string", "fallback_value": "you"}]
template = resend.Templates.create({"name": "Hi", "subject": "Hi {{{NAME}}}", "html": "Hi", "variables": variables})
assert resend.Templates.get(template["id"])["subject"] == 'Hi {{{NAME|"you"}}}'
assert resend.Templates.update({"id": template["id"], "subject": "Hello"})["id"] == template["id"]
assert resend.Templates.publish(template["id"])["object"] == "template"
copy = resend.Templates.duplicate(template["id"])
assert copy["id"] in [one["id"] for one in resend.Templates.list()["data"]]
assert resend.Templates.remove(copy["id"])["deleted"]
raises(ValidationError, lambda: resend.Templates.create({"name": "Hi", "html": "{{#if"}))

topic = resend.Topics.create({"name": f"Python {RUN}", "default_subscription": "opt_in"})
assert resend.Topics.get(topic["id"])["default_subscription"] == "opt_in"
assert topic["id"] in [one["id"] for one in resend.Topics.list()["data"]]
assert resend.Topics.update(topic["id"], {"name": f"Py {RUN}"})["id"] == topic["id"]
sent = resend.Emails.send(mail(to=f"py-topic-{RUN}@example.com", topic_id=topic["id"]))
assert resend.Emails.get(sent["id"])["topic_id"] == topic["id"]
assert resend.Topics.remove(topic["id"])["deleted"]
raises(ValidationError, lambda: resend.Topics.create({"name": "A", "default_subscription": "opt_out"}))

email = f"py-gone-{RUN}@example.com"
added = resend.Suppressions.add({"email": email})
assert resend.Suppressions.get(email)["id"] == added["id"]
assert email in [one["email"] for one in resend.Suppressions.list({"origin": "manual"})["data"]]
assert resend.Suppressions.remove(added["id"])["deleted"]
assert len(resend.Suppressions.Batch.add({"emails": [email]})["data"]) == 1
assert len(resend.Suppressions.Batch.remove({"emails": [email]})["data"]) == 1

webhook = resend.Webhooks.create({"endpoint": "https://example.com/hook", "events": ["email.sent", "email.bounced"]})
assert webhook["signing_secret"].startswith("whsec_")
assert resend.Webhooks.get(webhook["id"])["events"] == ["email.sent", "email.bounced"]
assert resend.Webhooks.update({"webhook_id": webhook["id"], "status": "disabled"})["id"] == webhook["id"]
assert webhook["id"] in [one["id"] for one in resend.Webhooks.list()["data"]]
assert resend.Webhooks.rotate_signing_secret(webhook["id"])["signing_secret"] != webhook["signing_secret"]
assert resend.Webhooks.list_events(webhook["id"])["data"] == []
assert resend.Webhooks.remove(webhook["id"])["deleted"]

assert raises(ResendError, resend.Broadcasts.list).code == 501

resend.api_key = "re_123"
raises(InvalidApiKeyError, lambda: resend.Emails.send(mail()))
