"""Keys of the management API."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from lib.model_fields import IdField


class ManagementKey(models.Model):
    """A key that manages workspaces: all of them, or those of one group. Its secret is stored as a keyed hash."""

    prefix: ClassVar[str] = "pra_"

    id = IdField("mkey_", primary_key=True)
    name = models.CharField(max_length=100)
    group = models.CharField(max_length=100, blank=True, help_text="the group of workspaces; empty for all workspaces")
    secret_hash = models.CharField(max_length=100, editable=False)
    last_four = models.CharField(max_length=4, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"{self.name} (…{self.last_four})"

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None
