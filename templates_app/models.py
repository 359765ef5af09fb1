"""Templates and their versions. An email keeps the template version it was accepted with."""

import re

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.workspaces.models import Workspace

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
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, help_text="replaced, or its template deleted")

    def __str__(self) -> str:
        return self.subject


class Template(models.Model):
    """A named template. Editing its content creates a new version."""

    id = IdField("tpl_", primary_key=True)
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
    # JSON text, written by people and possibly invalid: only for the previews of the dashboard.
    sample_data = models.TextField(default="", db_default="")
    # Defaults of emails in a dialect, as addresses separated by commas (docs/decisions/0291).
    sender = models.TextField(default="", db_default="")
    reply_to = models.TextField(default="", db_default="")
    version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False, help_text="The time of the last change.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "alias"], name="one_alias_a_workspace")]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="template_newest")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name
