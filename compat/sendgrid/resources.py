"""Resources of SendGrid's API, from rows and stored results."""

from typing import Any

from compat.sendgrid.requests import TEMPLATE_PREFIX
from emails.accept.idempotency import StoredResponse
from lib.datetimes import format_datetime
from lib.ids import uuid_text
from suppressions.models import Suppression
from templates_app.models import Template
from workspaces.models import ApiKey

Resource = dict[str, Any]
SCOPES = {
    ApiKey.Scope.SENDING_ACCESS: ["mail.send", "templates.read"],
    ApiKey.Scope.READ_ONLY: ["suppression.read", "templates.read"],
    ApiKey.Scope.FULL_ACCESS: ["mail.send", "suppression.create", "suppression.delete", "suppression.read",
                               "templates.read"],
}  # fmt: skip
# The reason of the suppressions in each list.
LISTS = {
    "bounces": Suppression.Reason.BOUNCE,
    "spam_reports": Suppression.Reason.COMPLAINT,
    "unsubscribes": Suppression.Reason.UNSUBSCRIBE,
    "blocks": None,
    "invalid_emails": None,
}


def message_id(stored: StoredResponse) -> str:
    """Return the X-Message-Id: the id of the first email."""
    return uuid_text(stored.body["results"][0]["id"])


def suppression_resource(suppression: Suppression) -> Resource:
    return {
        "created": int(suppression.created_at.timestamp()),
        "email": suppression.email,
        "reason": suppression.reason,
        "status": "",
    }


def template_item(template: Template) -> Resource:
    version = {
        "id": uuid_text(template.version_id, prefix="tplv_"),
        "template_id": _template_id(template),
        "active": 1,
        "name": template.name,
        "subject": template.version.subject,
        "updated_at": format_datetime(template.updated_at),
        "editor": "code",
    }
    return {
        "id": _template_id(template),
        "name": template.name,
        "generation": "dynamic",
        "updated_at": format_datetime(template.updated_at),
        "versions": [version],
    }


def template_resource(template: Template) -> Resource:
    resource = template_item(template)
    content = {"html_content": template.version.html, "plain_content": template.version.text}
    return {**resource, "versions": [resource["versions"][0] | content]}


def _template_id(template: Template) -> str:
    return f"{TEMPLATE_PREFIX}{uuid_text(template.id, prefix='tpl_')}"
