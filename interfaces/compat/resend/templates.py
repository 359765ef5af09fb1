"""Resend's API: templates. They have no drafts: a change is published at once."""

from typing import Any, ClassVar
from uuid import uuid5

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.datetimes import format_datetime
from core.lib.email_addresses import split_address_list
from core.lib.ids import from_any_spelling, to_uuid, uuid_text
from interfaces.compat.resend.resources import Resource
from interfaces.compat.resend.template_requests import read_changes, read_template, read_variables
from interfaces.compat.resend.views import ResendViewSet
from templates_app.content import version_content
from templates_app.models import Template, TemplateVersion
from templates_app.services import (
    create_template,
    delete_template,
    find_template,
    lock_template,
    update_template,
)
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

MAX_NAME_LENGTH = 100
COPY = " (copy)"


def template_item(template: Template) -> Resource:
    """Return a template in a list."""
    return {
        "id": uuid_text(template.id, prefix="tpl_"),
        "name": template.name,
        "alias": template.alias,
        "status": "published",
        "created_at": format_datetime(template.created_at),
        "updated_at": format_datetime(template.updated_at),
        "published_at": format_datetime(template.updated_at),
    }


def template_resource(template: Template) -> Resource:
    item, version = template_item(template), template.version
    times = {name: item[name] for name in ("created_at", "updated_at")}
    return {
        "object": "template",
        **item,
        "current_version_id": uuid_text(version.id, prefix="tplv_"),
        "has_unpublished_versions": False,
        "from": template.sender or None,
        "reply_to": split_address_list(template.reply_to) or None,
        "subject": version.subject or None,
        "html": version.html,
        "text": version.text or None,
        "variables": [
            {"id": _variable_id(version, key), "key": key, "type": "string", "fallback_value": default, **times}
            for key, default in read_variables(version).items()
        ],
    }


class ResendTemplateViewSet(ResendViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve"})
    body_bytes: ClassVar = dict.fromkeys(("create", "update"), MAX_TEMPLATE_BODY_BYTES)
    object_name, id_prefix = "template", "tpl_"
    item, delete_object = staticmethod(template_item), staticmethod(delete_template)

    def get_queryset(self) -> QuerySet[Template]:
        rows = super().get_queryset()
        return rows.defer("version__subject", "version__html", "version__text") if self.action == "list" else rows

    def find(self, text: str) -> Template:
        """Return the template with an id in either spelling, or an alias. Raises TemplateNotFound."""
        return find_template(self.workspace, from_any_spelling(text, prefix=self.id_prefix))

    def create(self, request: Request) -> Response:
        template = create_template(self.workspace, **read_template(self.body))
        return Response(self.reference(template), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(template_resource(self.find(pk)))

    def update(self, request: Request, pk: str) -> Response:
        with transaction.atomic():
            template = lock_template(self.find(pk))
            changes = read_changes(self.body, version=template.version)
            return Response(self.reference(update_template(template, changes=changes)))

    def publish(self, request: Request, pk: str) -> Response:
        return Response(self.reference(self.find(pk)))

    def duplicate(self, request: Request, pk: str) -> Response:
        return Response(self.reference(create_template(self.workspace, **_copy(self.find(pk)))))


def _variable_id(version: TemplateVersion, key: str) -> str:
    """Return the id of a variable, the same for as long as the content is."""
    return str(uuid5(to_uuid(version.id, prefix="tplv_"), key))


def _copy(template: Template) -> dict[str, Any]:
    """Return the arguments of create_template for a copy, which has no alias."""
    return {
        "name": template.name[: MAX_NAME_LENGTH - len(COPY)] + COPY,
        "content": version_content(template.version),
        "alias": None,
        "strict_variables": template.strict_variables,
        "sender": template.sender,
        "reply_to": template.reply_to,
    }
