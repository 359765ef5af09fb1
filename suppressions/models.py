"""Suppressions: addresses that a workspace, or one of its streams, never sends to."""

from typing import Any, Self

from django.db import models
from django.db.models import OuterRef, Q, Value
from django.db.models.functions import Concat, Lower, Now

from core.lib.email_addresses import normalize_address, normalize_search
from core.lib.model_fields import IdField
from core.workspaces.models import Workspace


class SuppressionQuerySet(models.QuerySet["Suppression"]):
    def matching(self, *, reason: str = "", search: str = "") -> Self:
        """Filter by reason and by text contained in the address; an empty value does not filter."""
        rows = self.filter(reason=reason) if reason else self
        # `contains` escapes LIKE wildcards; the key is the address without case, and the stream in a second line.
        address = SplitPart("address_key", Value("\n"), Value(1))
        return rows.alias(address=address).filter(address__contains=normalize_search(search)) if search else rows


class SplitPart(models.Func):
    function = "split_part"
    output_field = models.TextField()


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
    # A stream's row has the stream in a second line: unique with the constraint of earlier versions.
    address_key = models.CharField(max_length=300, editable=False, help_text="the normalized address")
    stream = models.CharField(
        max_length=40,
        blank=True,
        default="",
        db_default="",
        help_text="The only stream that is blocked; absent if all are.",
    )
    reason = models.CharField(max_length=16, choices=suppression_reasons, help_text="The reason of the suppression.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SuppressionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "address_key"], name="one_suppression_an_address")]
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="suppressions_newest_first"),
            models.Index(
                fields=["workspace", "stream", "-created_at", "-id"],
                condition=~Q(stream=""),
                name="suppressions_of_streams",
            ),
        ]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.email


def suppression_key(address: str, *, stream: str = "") -> str:
    """Return the address_key of an address: in all streams, or in one."""
    key = normalize_address(address)
    return f"{key}\n{stream}" if stream else key


def suppression_keys_sql(address: OuterRef, *, stream: OuterRef) -> list[Any]:
    """Return the expressions of both keys that block a stream: of suppression_key, for columns of an outer query."""
    return [Lower(address), Concat(Lower(address), Value("\n"), stream)]
