"""Serializers of templates."""

from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    OPTIONAL,
    AllOptional,
    NameField,
    ObjectField,
    PatternField,
    RowInput,
    RowSerializer,
    StrictSerializer,
    TextField,
    TextListField,
)
from templates_app.models import ALIAS, Template
from templates_app.services import RenderedContent, TemplateContent

MAX_BYTES = 1024 * 1024
MAX_SUBJECT_LENGTH = 998


@extend_schema_field({"type": "string", "maxLength": MAX_BYTES})
class ContentField(TextField):
    """The HTML or text of a template: at most 1 MiB in UTF-8."""

    default_error_messages = {"too_long": gettext_lazy("This is larger than 1 MiB in UTF-8.")}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
            self.fail("too_long")
        return text


class AliasField(PatternField):
    """A name that can be used in place of a template id."""

    default_error_messages = {
        "invalid": gettext_lazy(
            "An alias consists of A-Z, a-z, 0-9, dots, dashes and underscores, and begins with A-Z or a-z."
        )
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{ALIAS.pattern}\Z", max_length=100, **options)


class TemplateInput(RowInput):
    name = NameField()
    subject = TextField(max_length=MAX_SUBJECT_LENGTH)
    htmlContent = ContentField(source="html", help_text="The HTML, in the template language.")
    textContent = ContentField(
        source="text",
        required=False,
        allow_blank=True,
        allow_null=True,
        help_text="The plain text, in the template language; empty without one.",
    )
    alias = AliasField(**OPTIONAL)

    class Meta:
        model = Template
        fields = ("name", "subject", "htmlContent", "textContent", "alias", "strictVariables")

    def validate_textContent(self, text: str | None) -> str:  # noqa: N802
        return text or ""


class TemplateChanges(AllOptional, TemplateInput):
    """Changes of a template."""


def new_template(values: dict[str, Any]) -> dict[str, Any]:
    """Return validated input as the arguments of services.create_template."""
    content = TemplateContent(subject=values["subject"], html=values["html"], text=values.get("text") or "")
    strict, alias = values.get("strict_variables", False), values.get("alias")
    return {"name": values["name"], "content": content, "alias": alias, "strict_variables": strict}


class PreviewInput(StrictSerializer):
    locals()["data"] = ObjectField(**OPTIONAL, help_text="The values of the template's variables.")


class PreviewSerializer(serializers.Serializer[RenderedContent]):
    subject = serializers.CharField()
    html = serializers.CharField(help_text="The HTML content.")
    text = serializers.CharField(help_text="The plain-text content.")
    missingVariables = TextListField(
        source="missing", help_text="The names of variables without a value and without a default."
    )


class TemplateItemSerializer(RowSerializer[Template]):
    """A template in a list, without its content."""

    subject = serializers.CharField(source="version.subject")

    class Meta:
        model = Template
        fields = ("id", "name", "subject", "alias", "strictVariables", "createdAt", "updatedAt")


class TemplateSerializer(TemplateItemSerializer):
    htmlContent = serializers.CharField(source="version.html", help_text="The HTML, in the template language.")
    textContent = serializers.CharField(
        source="version.text", help_text="The plain text, in the template language; empty without one."
    )
