"""Keys of the management API, and the responses to requests with idempotency keys."""

import json
from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.lib.sealed import seal, unseal
from core.workspaces.api_key_secrets import KeySecret
from core.workspaces.models import SecretKey


class ManagementKey(SecretKey):
    """A key that manages workspaces: all of them, or those of one group."""

    prefix: ClassVar[str] = "pra_"
    # Only in the process that created the key.
    new_secret: KeySecret | None = None

    id = IdField("mkey_", primary_key=True)
    group = models.CharField(max_length=100, blank=True)


class ManagementResponse(models.Model):
    """A used idempotency key with its response, deleted after a day.

    The response is sealed: it may contain an API key, which no other table has.
    """

    SEAL_PURPOSE: ClassVar[str] = "management-response"

    caller = models.CharField(max_length=40, help_text="the id of the management key or API key of the request")
    key = models.CharField(max_length=255)
    operation = models.CharField(max_length=16)
    fingerprint = models.CharField(max_length=64)
    sealed_body = models.TextField(db_default="", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["caller", "key"], name="one_management_response_a_key")]
        indexes = [models.Index(fields=["created_at"], name="management_response_age")]

    def __str__(self) -> str:
        return self.key

    def seal_body(self, body: dict[str, Any]) -> None:
        """Store the response."""
        self.sealed_body = seal(json.dumps(body).encode(), purpose=self.SEAL_PURPOSE, row=str(self.pk))
        self.save(update_fields=["sealed_body"])

    def body(self) -> dict[str, Any]:
        """Return the stored response."""
        body: dict[str, Any] = json.loads(unseal(self.sealed_body, purpose=self.SEAL_PURPOSE, row=str(self.pk)))
        return body


class ConfigurationLease(models.Model):
    """The right of one run to change a configuration until it expires. It outlives no workspace by more than that."""

    subject = models.CharField(primary_key=True, max_length=40, help_text="the id of a workspace, or `workspaces`")
    token = models.CharField(max_length=100, help_text="chosen by the run")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.subject
