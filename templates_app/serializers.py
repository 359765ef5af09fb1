"""Serializers of templates."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.utils.translation import gettext, gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    OPTIONAL,
    AllOptional,
    DeliverWithinField,
    EntriesField,
    FieldErrors,
    NameField,
    ObjectField,
    OptionField,
    PatternField,
    RowInput,
    RowSerializer,
    StrictSerializer,
    TextField,
    TextListField,
)
from templates_app.content import PARTS, RenderedContent, TemplateContent
from templates_app.language.locales import MAX_LENGTH as MAX_LOCALE_LENGTH
from templates_app.language.locales import normalize_locale
from templates_app.models import ALIAS, Template
from templates_app.sets import templates_using

MAX_BYTES = 1024 * 1024
MAX_LOCALES = 50
MAX_FALLBACK = 10
KIND = Template.TemplateKind
MAX_SUBJECT_LENGTH = 998
CONTENT_FIELDS = {column.name for column in fields(TemplateContent)}
LOCALE_TEXTS_SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in PARTS.values()}}


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


@extend_schema_field({"type": "string", "maxLength": MAX_LOCALE_LENGTH, "examples": ["de-AT"]})
class LocaleField(TextField):
    """A language tag of BCP 47; in its usual case afterwards."""

    default_error_messages = {"invalid_locale": gettext_lazy("This must be a language tag, such as de or de-AT.")}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return normalize_locale(text)
        except ValueError:
            self.fail("invalid_locale")


class LocaleTextsInput(StrictSerializer):
    """The texts of a template in one language."""

    subject = TextField(max_length=MAX_SUBJECT_LENGTH, required=False)
    htmlContent = ContentField(source="html", required=False, help_text="The HTML, in the template language.")
    textContent = ContentField(
        source="text", required=False, allow_blank=True, help_text="The plain text, in the template language."
    )


class LocalesField(serializers.DictField):
    """Texts by language: `{"de": {"subject": …}}`."""

    child = LocaleTextsInput()
    default_error_messages = {
        "not_a_dict": "This must be an object.",
        "too_many": gettext_lazy("At most {limit} languages are allowed."),
        "same_locale": gettext_lazy("Two of the languages are the same."),
    }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MAX_LOCALES:
            self.fail("too_many", limit=MAX_LOCALES)
        texts = super().to_internal_value(data)
        normal = {LocaleField().run_validation(locale): values for locale, values in texts.items()}
        return normal if len(normal) == len(texts) else self.fail("same_locale")


class TemplateInput(RowInput):
    requires_subject = True

    name = NameField()
    kind = OptionField(
        KIND.choices, required=False, help_text="`template`, `layout` or `partial`; it cannot be changed later."
    )
    subject = TextField(
        max_length=MAX_SUBJECT_LENGTH,
        required=False,
        help_text="The subject, in the template language. Required for a template; a layout or partial has none.",
    )
    htmlContent = ContentField(source="html", help_text="The HTML, in the template language.")
    textContent = ContentField(
        source="text",
        required=False,
        allow_blank=True,
        allow_null=True,
        help_text="The plain text, in the template language; empty without one.",
    )
    alias = AliasField(**OPTIONAL)
    layoutId = TextField(
        source="layout_id", **OPTIONAL, max_length=100, help_text="The id or the alias of the layout; null without one."
    )
    locale = LocaleField(
        **OPTIONAL, help_text="The language of `subject`, `htmlContent` and `textContent`; null if it is not known."
    )
    locales = LocalesField(
        **OPTIONAL,
        help_text="The texts of other languages by language tag. What a language lacks is as in the template itself. A "
        "change replaces all of them.",
    )
    fallback = EntriesField(
        child=LocaleField(),
        **OPTIONAL,
        max_length=MAX_FALLBACK,
        help_text="The languages to use, in this order, if the language of an email is none of `locales`.",
    )

    deliverWithin = DeliverWithinField(
        source="deliver_within",
        help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no expiry of "
        "its own is not sent any more; null as the stream has it.",
    )

    class Meta:
        model = Template
        fields = (
            "name", "kind", "subject", "htmlContent", "textContent", "alias", "strictVariables", "sensitive",
            "layoutId", "locale", "locales", "fallback", "deliverWithin",
        )  # fmt: skip

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        """Require a subject for a new template."""
        is_part = data.get("kind", KIND.TEMPLATE) != KIND.TEMPLATE
        if is_part or "subject" in data or self.partial or not self.requires_subject:
            return {}
        return {"subject": [serializers.ErrorDetail(gettext("This field is required."), code="required")]}

    def validate_textContent(self, text: str | None) -> str:  # noqa: N802
        return text or ""

    def validate_locale(self, locale: str | None) -> str:
        return locale or ""

    def validate_locales(self, locales: dict[str, Any] | None) -> dict[str, Any]:
        return locales or {}

    def validate_fallback(self, fallback: list[str] | None) -> tuple[str, ...]:
        return tuple(fallback or ())


class TemplateChanges(AllOptional, TemplateInput):
    """Changes of a template."""

    requires_subject = False

    def get_fields(self) -> dict[str, Any]:
        return {name: field for name, field in super().get_fields().items() if name != "kind"}


def new_template(values: dict[str, Any]) -> dict[str, Any]:
    """Return validated input as the arguments of services.create_template."""
    given = {name: values[name] for name in CONTENT_FIELDS & values.keys()}
    content = TemplateContent(**{"subject": "", **given, "text": values.get("text") or ""})
    strict, alias = values.get("strict_variables", False), values.get("alias")
    kind = values.get("kind", KIND.TEMPLATE)
    return {
        "name": values["name"],
        "kind": kind,
        "content": content,
        "alias": alias,
        "strict_variables": strict,
        "sensitive": values.get("sensitive", False),
        "deliver_within": values.get("deliver_within"),
    }


class PreviewInput(StrictSerializer):
    locals()["data"] = ObjectField(**OPTIONAL, help_text="The values of the template's variables.")
    locale = LocaleField(**OPTIONAL, help_text="The language to render.")


class PreviewSerializer(serializers.Serializer[RenderedContent]):
    subject = serializers.CharField()
    html = serializers.CharField(help_text="The HTML content.")
    text = serializers.CharField(help_text="The plain-text content.")
    missingVariables = TextListField(
        source="missing", help_text="The names of variables without a value and without a default."
    )
    locale = serializers.CharField(
        allow_null=True, help_text="The language of the rendered texts; null if it is not known."
    )


class TemplateUserSerializer(RowSerializer[Template]):
    """A template that a layout or partial is part of."""

    class Meta:
        model = Template
        fields = ("id", "name", "alias", "kind")


class TemplateItemSerializer(RowSerializer[Template]):
    """A template in a list, without its content."""

    subject = serializers.CharField(source="version.subject", help_text="Empty for a layout or partial.")

    class Meta:
        model = Template
        fields = (
            "id", "name", "kind", "subject", "alias", "strictVariables", "sensitive", "deliverWithin", "createdAt",
            "updatedAt",
        )  # fmt: skip


class TemplateSerializer(TemplateItemSerializer):
    htmlContent = serializers.CharField(source="version.html", help_text="The HTML, in the template language.")
    textContent = serializers.CharField(
        source="version.text", help_text="The plain text, in the template language; empty without one."
    )
    layoutId = serializers.CharField(
        source="version.layout_id", allow_null=True, help_text="The id of the layout; null without one."
    )
    locale = serializers.SerializerMethodField(
        "get_locale", help_text="The language of `subject`, `htmlContent` and `textContent`; null if it is not known."
    )
    locales = serializers.SerializerMethodField("get_locales", help_text="The texts of other languages.")
    fallback = TextListField(
        source="version.fallback",
        help_text="The languages to use if the language of an email is none of `locales`.",
    )
    usedBy = serializers.SerializerMethodField(
        "get_users", help_text="The templates, layouts and partials that a layout or partial is part of."
    )

    def get_locale(self, template: Template) -> str | None:
        return template.version.locale or None

    @extend_schema_field({"type": "object", "additionalProperties": LOCALE_TEXTS_SCHEMA})
    def get_locales(self, template: Template) -> dict[str, dict[str, str]]:
        return {
            locale: {PARTS[part]: text for part, text in texts.items()}
            for locale, texts in template.version.locales.items()
        }

    @extend_schema_field(TemplateUserSerializer(many=True))
    def get_users(self, template: Template) -> Any:
        return TemplateUserSerializer(templates_using(template), many=True).data
