"""Every HTTP entrance that accepts an email, as calls with a key, a sending domain and a template."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from core.workspaces.models import Workspace
from templates_app.content import TemplateContent
from templates_app.models import Template
from templates_app.services import create_template
from tests.conftest import Api
from tests.conftest import mail as native_mail
from tests.interfaces.compat.conftest import Dialect

# By entrance: a call with a key, the domain of the sender, an alias of a template or None, and the recipient.
Entrance = Callable[[str, str, str | None, str], Any]
TO = "ada@example.com"


def make_template(workspace: Workspace, alias: str) -> Template:
    content = TemplateContent("Hello", "<p>Hello</p>")
    return create_template(workspace, name=alias, content=content, alias=alias, strict_variables=False)


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()


def _native(domain: str, template: str | None, to: str, **fields: Any) -> dict[str, Any]:
    content = {"html": None, "subject": None, "templateId": template} if template else {}
    return native_mail(**{"from": f"hi@{domain}", "to": to, **content, **fields})


def _send(key, domain, template, to, **fields):
    return Api(key).post("/emails/send", _native(domain, template, to, **fields))


def _batch(key, domain, template, to):
    body = {"from": f"hi@{domain}", "templateId": template, "recipients": [{"to": to}]}
    return Api(key).post("/emails/batch", body)


def _resend_mail(domain, template, to):
    content = {"template": {"id": template}} if template else {"html": "<p>Hi</p>"}
    return {"from": f"hi@{domain}", "to": [to], "subject": "Hi", **content}


def _resend(key, domain, template, to):
    return Dialect("resend", key).post("/emails", _resend_mail(domain, template, to))


def _resend_batch(key, domain, template, to):
    return Dialect("resend", key).post("/emails/batch", [_resend_mail(domain, template, to)])


def _postmark_mail(domain, template, to):
    content = {"TemplateAlias": template, "TemplateModel": {}} if template else {"Subject": "Hi", "HtmlBody": "<p>Hi"}
    return {"From": f"hi@{domain}", "To": to, **content}


def _postmark(key, domain, template, to):
    path = "/email/withTemplate" if template else "/email"
    return Dialect("postmark", key).post(path, _postmark_mail(domain, template, to))


def _postmark_bulk(key, domain, template, to):
    body = {**_postmark_mail(domain, template, to), "Messages": [{"To": to}]}
    return Dialect("postmark", key).post("/email/bulk", body)


def _sendgrid(key, domain, template, to):
    content = {"template_id": f"d-{template}"} if template else {"content": [{"type": "text/plain", "value": "Hi"}]}
    to_address = [{"to": [{"email": to}]}]
    body = {"personalizations": to_address, "from": {"email": f"hi@{domain}"}, "subject": "Hi", **content}
    return Dialect("sendgrid", key).post("/v3/mail/send", body)


ENTRANCES: dict[str, Entrance] = {
    "send": _send,
    "dry run": lambda *call: _send(*call, dryRun=True),
    "scheduled": lambda *call: _send(*call, scheduledFor=in_an_hour()),
    "batch": _batch,
    "resend": _resend,
    "resend batch": _resend_batch,
    "postmark": _postmark,
    "postmark bulk": _postmark_bulk,
    "sendgrid": _sendgrid,
}
# Calls that need a template.
TEMPLATED = {"batch"}


def sendgrid_batch(key: str, domain: str) -> str:
    """Schedule an email in a batch of SendGrid's API and return the id of the batch."""
    api = Dialect("sendgrid", key)
    batch_id: str = api.post("/v3/mail/batch").json()["batch_id"]
    assert api.post("/v3/mail/send", sendgrid_mail(domain, batch_id=batch_id)).status_code == 202
    return batch_id


def sendgrid_mail(domain: str, *, batch_id: str) -> dict[str, Any]:
    """Return a scheduled email of SendGrid's API."""
    return {
        "personalizations": [{"to": [{"email": TO}]}],
        "from": {"email": f"hi@{domain}"},
        "subject": "Hi",
        "content": [{"type": "text/plain", "value": "Hi"}],
        "batch_id": batch_id,
        "send_at": int(time.time()) + 3600,
    }
