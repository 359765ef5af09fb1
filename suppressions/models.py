"""Suppressions: addresses that a workspace never sends to."""

from typing import Any, Self

from django.db import models
from django.db.models.functions import Now

from lib.email_addresses import normalize_search
from lib.model_fields import IdField
from workspaces.models import Workspace


class SuppressionQuerySet(models.QuerySet["Suppression"]):
    def matching(self, *, reason: str = "", search: str = "") -> Self:
        """Filter by reason and by text contained in the address; an empty value does not filter."""
        rows = self.filter(reason=reason) if reason else self
        # `contains` escapes LIKE wildcards; the key is the address without case.
        return rows.filter(address_key__contains=normalize_search(search)) if search else rows


def suppression_reasons() -> list[tuple[str, Any]]:
    """Return the choices of Suppression.reason: a function, so that a new reason needs no migration."""
    return Suppression.Reason.choices


class Suppression(models.Model):
    """A suppressed address; it stays suppressed until this row is deleted."""

    class Reason(models.TextChoices):
        BOUNCE = "bounce"
        UNSUBSCRIBE = "unsubscribe"
        MANUAL = "manual"
        COMPLAINT = "complaint"

    id = IdField("sup_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="suppressions", db_index=False)
    email = models.CharField(max_length=254)
    address_key = models.CharField(max_length=254, editable=False, help_text="the normalized address")
    reason = models.CharField(max_length=16, choices=suppression_reasons)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SuppressionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "address_key"], name="one_suppression_an_address")]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="suppressions_newest_first")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.email
