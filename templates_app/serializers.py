"""Serializers of templates."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.fields import ObjectField, StrictBooleanField, StrictSerializer, TextField, UtcDateTimeField
from templates_app.models import ALIAS, Template
from templates_app.services import RenderedContent, TemplateContent

MAX_BYTES = 1024 * 1024
MAX_SUBJECT_LENGTH = 998


@extend_schema_field({"type": "string", "maxLength": MAX_BYTES})
class ContentField(TextField):
    """The HTML or text of a template: at most 1 MiB in UTF-8."""

    default_error_messages = {"too_long": "This is larger than 1 MiB in UTF-8."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
            self.fail("too_long")
        return text


class AliasField(serializers.RegexField):
    """A name that can be used in place of a template id."""

    default_error_messages = {
        "invalid": "An alias consists of A-Z, a-z, 0-9, dots, dashes and underscores, and begins with A-Z or a-z."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{ALIAS.pattern}\Z", max_length=100, trim_whitespace=False, **options)


class TemplateInput(StrictSerializer):
    name = TextField(max_length=100)
    subject = TextField(max_length=MAX_SUBJECT_LENGTH)
    htmlContent = ContentField(source="html")  # noqa: N815
    textContent = ContentField(source="text", required=False, allow_blank=True, allow_null=True)  # noqa: N815
    alias = AliasField(required=False, allow_null=True)
    strictVariables = StrictBooleanField(source="strict_variables", required=False)  # noqa: N815

    def validate_textContent(self, text: str | None) -> str:  # noqa: N802
        return text or ""


def new_template(values: dict[str, Any]) -> dict[str, Any]:
    """Return validated input as the arguments of services.create_template."""
    content = TemplateContent(subject=values["subject"], html=values["html"], text=values.get("text") or "")
    strict, alias = values.get("strict_variables", False), values.get("alias")
    return {"name": values["name"], "content": content, "alias": alias, "strict_variables": strict}


class PreviewInput(StrictSerializer):
    locals()["data"] = ObjectField(required=False, allow_null=True)


class PreviewSerializer(serializers.Serializer[RenderedContent]):
    subject = serializers.CharField()
    html = serializers.CharField()
    text = serializers.CharField()
    missingVariables = serializers.ListField(source="missing", child=serializers.CharField())  # noqa: N815


class TemplateItemSerializer(serializers.ModelSerializer[Template]):
    """A template in a list, without its content."""

    subject = serializers.CharField(source="version.subject")
    strictVariables = serializers.BooleanField(source="strict_variables")  # noqa: N815
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    updatedAt = UtcDateTimeField(source="updated_at")  # noqa: N815

    class Meta:
        model = Template
        fields = ("id", "name", "subject", "alias", "strictVariables", "createdAt", "updatedAt")


class TemplateSerializer(TemplateItemSerializer):
    htmlContent = serializers.CharField(source="version.html")  # noqa: N815
    textContent = serializers.CharField(source="version.text")  # noqa: N815

    class Meta:
        model = Template
        fields = (*TemplateItemSerializer.Meta.fields, "htmlContent", "textContent")
