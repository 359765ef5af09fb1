"""Requests to the API, for the owners of the workspace (docs/decisions/0265)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from core.lib.model_fields import IdField
from core.workspaces.models import ApiKey, Workspace


class ApiRequest(models.Model):
    """One request with a key of the workspace, and its response. Without bodies, addresses and query values.

    Written by core.request_log.recording in batches. The foreign keys have no constraints, whose checks would cost as
    much as the row: entries of a deleted workspace expire.
    """

    # The response's X-Request-Id.
    id = IdField("req_", primary_key=True)
    workspace = models.ForeignKey(Workspace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    key = models.ForeignKey(ApiKey, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    created_at = models.DateTimeField()
    method = models.CharField(max_length=10)
    # Includes the names of query parameters.
    path = models.CharField(max_length=200)
    status = models.PositiveSmallIntegerField()
    milliseconds = models.PositiveIntegerField()
    # The code of the problem; empty for a response without one.
    code = models.CharField(max_length=50)
    # The email that the request accepted, read or changed.
    email_id = IdField(null=True)  # type: ignore[misc]

    class Meta:
        verbose_name = "API request"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "id"], name="request_workspace"),
            models.Index(fields=["email_id"], condition=Q(email_id__isnull=False), name="request_email"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_error(self) -> bool:
        return self.status >= 400
