"""SendGrid's API: templates. A template has one version, its content, with the id of the template.

See docs/decisions/0121.
"""

from typing import Any, ClassVar

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from interfaces.compat.drafts import rename_fields, with_html
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid import requests, resources
from interfaces.compat.sendgrid.template_language import translate, without_tag_lines
from interfaces.compat.sendgrid.views import SendGridViewSet
from templates_app.content import TemplateContent
from templates_app.errors import TemplateNotFound
from templates_app.models import Template
from templates_app.serializers import TemplateInput
from templates_app.services import create_template, delete_template, find_template, update_template
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

# https://www.twilio.com/docs/sendgrid/api-reference/transactional-templates-versions
VERSION_FIELDS = {"subject": "subject", "html_content": "htmlContent", "plain_content": "textContent"}
# The content of a template without a version.
NO_CONTENT = TemplateContent("", "", "")


class SendGridTemplateViewSet(SendGridViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve", "retrieve_version"})
    body_bytes: ClassVar = dict.fromkeys(("create_version", "update_version"), MAX_TEMPLATE_BODY_BYTES)

    def list(self, request: Request) -> Response:
        rows = self.get_queryset().defer("version__html", "version__text")
        items = [resources.template_item(row) for row in rows]
        metadata = {"self": request.build_absolute_uri(), "count": len(items)}
        return Response({"templates": items, "result": items, "_metadata": metadata})

    def create(self, request: Request) -> Response:
        values = TemplateInput(partial=True).run_validation({"name": self.body.get("name")})
        template = create_template(
            self.workspace, name=values["name"], content=NO_CONTENT, alias=None, strict_variables=False
        )
        return Response(resources.template_resource(template), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, reference: str) -> Response:
        return Response(resources.template_resource(self._find()))

    def partial_update(self, request: Request, reference: str) -> Response:
        changes = TemplateInput(partial=True).run_validation({"name": self.body.get("name")})
        return Response(resources.template_resource(update_template(self._find(), changes=changes)))

    def destroy(self, request: Request, reference: str) -> Response:
        delete_template(self._find())
        return Response(status=status.HTTP_204_NO_CONTENT)

    def create_version(self, request: Request, reference: str) -> Response:
        if not self.body.get("subject"):
            raise invalid_field("subject", "This field is required.", code="required")
        return self._write_version(status.HTTP_201_CREATED)

    def retrieve_version(self, request: Request, reference: str, version: str) -> Response:
        return Response(resources.version_resource(self._find_version()))

    def update_version(self, request: Request, reference: str, version: str) -> Response:
        self._find_version()
        return self._write_version(status.HTTP_200_OK)

    def destroy_version(self, request: Request, reference: str, version: str) -> Response:
        update_template(self._find_version(), changes=vars(NO_CONTENT))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def activate(self, request: Request, reference: str, version: str) -> Response:
        return self.retrieve_version(request, reference, version)

    def _write_version(self, code: int) -> Response:
        """Replace the content of the template. Raises ValidationError."""
        if self.body.get("active") in (0, False):
            raise invalid_field("active", "A template has one version, which is active.")
        given = {name: translate(self.body.get(name), field=name) for name in VERSION_FIELDS}
        given["plain_content"] = without_tag_lines(given["plain_content"])
        native = with_html(rename_fields(given, VERSION_FIELDS))
        changes: dict[str, Any] = TemplateInput(partial=True).run_validation(native)
        return Response(resources.version_resource(update_template(self._find(), changes=changes)), status=code)

    def _find(self) -> Template:
        """Return the template in the path. Raises NotFound."""
        try:
            return find_template(self.workspace, requests.template_reference(self.kwargs["reference"]) or "")
        except TemplateNotFound as error:
            raise NotFound(error.detail) from error

    def _find_version(self) -> Template:
        """Return the template in the path, whose version the path names. Raises NotFound."""
        template = self._find()
        if self.kwargs["version"] != resources.version_id(template) or resources.is_empty(template):
            raise NotFound("This template has no such version.")
        return template
