"""Templates, their versions and sets. An email keeps the template version and the set it was accepted with."""

import re
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.workspaces.models import Workspace
from templates_app.language.locales import MAX_LENGTH as MAX_LOCALE_LENGTH

ALIAS = re.compile(r"(?!tpl_)[A-Za-z][A-Za-z0-9._-]*")


class TemplateVersion(models.Model):
    """The content of a template at one time. Immutable: emails refer to it permanently."""

    id = IdField("tplv_", primary_key=True)
    template = models.ForeignKey(
        "Template",
        on_delete=models.SET_NULL,
        null=True,
        related_name="versions",
        help_text="null after the template was deleted",
    )
    subject = models.TextField()
    html = models.TextField()
    text = models.TextField()
    locale = models.CharField(
        max_length=MAX_LOCALE_LENGTH,
        default="",
        db_default="",
        help_text="The language of the subject, HTML and text; empty if it is not known.",
    )
    # {"de": {"subject": …, "html": …, "text": …}}: what a language lacks is as above.
    locales = models.JSONField(default=dict, db_default={})
    fallback = ArrayField(models.TextField(), default=list, db_default=[])
    # No foreign key: a version outlives a layout that it used.
    layout_id = IdField("tpl_", null=True)  # type: ignore[misc]
    # The partials that the texts name, with the largest number of tags in one of them.
    partials = models.JSONField(default=dict, db_default={})
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, help_text="replaced, or its template deleted")

    def __str__(self) -> str:
        return self.subject


class TemplateSet(models.Model):
    """The versions of a layout and partials that a template version is rendered with. Immutable, as the version is.

    See docs/decisions/0331.

    names: as the templates name them, LAYOUT for the layout.
    versions: their versions, in the same order.
    """

    LAYOUT = "@layout"

    id = IdField("tpls_", primary_key=True)
    template = models.ForeignKey(
        "Template",
        on_delete=models.SET_NULL,
        null=True,
        db_constraint=False,
        related_name="sets",
        help_text="null after the template was deleted",
    )
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="+")
    names = ArrayField(models.TextField())
    versions = ArrayField(IdField("tplv_"))
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, help_text="replaced, or its template deleted")

    class Meta:
        indexes = [GinIndex(fields=["versions"], name="template_set_versions")]

    def __str__(self) -> str:
        return ", ".join(self.names)

    def load_parts(self) -> dict[str, TemplateVersion]:
        """Return the versions by name."""
        versions = TemplateVersion.objects.in_bulk(self.versions)
        return {name: versions[id_] for name, id_ in zip(self.names, self.versions, strict=True)}


class TemplateQuerySet(models.QuerySet["Template"]):
    def sendable(self) -> Self:
        """Return the templates, without layouts and partials."""
        return self.filter(kind=Template.TemplateKind.TEMPLATE)


class Template(models.Model):
    """A named template, layout or partial. Editing its content creates a new version."""

    class TemplateKind(models.TextChoices):
        TEMPLATE = "template"
        LAYOUT = "layout"
        PARTIAL = "partial"

    id = IdField("tpl_", primary_key=True)
    kind = models.CharField(
        max_length=8,
        choices=TemplateKind.choices,
        default=TemplateKind.TEMPLATE,
        db_default=TemplateKind.TEMPLATE,
        help_text="A template is sent; a layout is the frame of templates, a partial a piece that they insert.",
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="templates", db_index=False)
    name = models.CharField(max_length=100)
    alias = models.CharField(  # noqa: DJ001 - null is not unique, "" would be
        max_length=100,
        null=True,
        help_text="A name that works in place of the id; null without one. Unique in the workspace.",
    )
    strict_variables = models.BooleanField(
        default=False,
        help_text="Whether a missing variable refuses the email. Otherwise it is rendered as an empty string.",
    )
    sensitive = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether nobody can read the content of its emails, which is removed after the last outcome.",
    )
    deliver_within = models.IntegerField(
        null=True,
        blank=True,
        help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no expiry of "
        "its own is not sent any more; null as the stream has it.",
    )
    # JSON text, written by people and possibly invalid: only for the previews of the dashboard.
    sample_data = models.TextField(default="", db_default="")
    # Defaults of emails in a dialect, as addresses separated by commas (docs/decisions/0291).
    sender = models.TextField(default="", db_default="")
    reply_to = models.TextField(default="", db_default="")
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="+")
    set = models.ForeignKey(
        TemplateSet,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="null without a layout and partials",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False, help_text="The time of the last change.")

    objects = TemplateQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "alias"], name="one_alias_a_workspace")]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="template_newest")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name
