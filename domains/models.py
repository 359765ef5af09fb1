"""Sending domains and the DKIM keys that sign for them."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from lib.model_fields import IdField
from lib.sealed import seal, unseal
from workspaces.models import Workspace

SEAL_PURPOSE = "dkim-private-key"


class Domain(models.Model):
    """A name that a workspace may send from, once registered there.

    checks_begun numbers the checks; one is written down only where its number is above checks_recorded, so
    that a check that comes back late never undoes a newer one. findings is what the last one saw
    (domains.record_checks.results). missing_since and absences count checks in a row to which the DNS itself said that a
    required record is not there.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        VERIFIED = "verified"
        FAILED = "failed"
        TEMPORARY_FAILURE = "temporary_failure"

    id = IdField("dom_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="domains", db_index=False)
    name = models.CharField(max_length=253)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PENDING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    verified_at = models.DateTimeField(null=True, editable=False)
    last_checked_at = models.DateTimeField(null=True, editable=False)
    findings = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)
    missing_since = models.DateTimeField(null=True, editable=False)
    absences = models.PositiveSmallIntegerField(db_default=0, editable=False)
    return_path_seen_at = models.DateTimeField(null=True, editable=False)
    watched_since = models.DateTimeField(db_default=Now(), editable=False)
    check_due_at = models.DateTimeField(db_default=Now(), editable=False)
    checking_until = models.DateTimeField(null=True, editable=False)
    checks_begun = models.PositiveIntegerField(db_default=0, editable=False)
    checks_recorded = models.PositiveIntegerField(db_default=0, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_domain_a_workspace")]
        indexes = [models.Index(fields=["check_due_at"], name="domain_check_due")]
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name


# One bad day in the DNS does not stop anybody's mail.
MAY_SEND = frozenset({Domain.Status.VERIFIED, Domain.Status.TEMPORARY_FAILURE})


class DkimKey(models.Model):
    """A selector with its RSA key pair; the private half is sealed to this row.

    seen_at: since when its record is in the DNS. retired_at: since when a newer key signs in its place.
    """

    id = IdField("dkim_", primary_key=True)
    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="dkim_keys")
    selector = models.CharField(max_length=63)
    public_key = models.TextField(help_text="DER, base64: the p= of the DNS record")
    sealed_private_key = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    seen_at = models.DateTimeField(null=True, editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["domain", "selector"], name="one_key_a_selector")]

    def __str__(self) -> str:
        return f"{self.selector}._domainkey.{self.domain.name}"

    def with_private_key(self, pem: bytes) -> Self:
        """Seal the PEM into this row; the row is not saved."""
        self.sealed_private_key = seal(pem, purpose=SEAL_PURPOSE, row=self.id)
        return self

    def private_key(self) -> bytes:
        """Return the PEM. Raises InvalidTag when the sealed value was made for another row."""
        return unseal(self.sealed_private_key, purpose=SEAL_PURPOSE, row=self.id)
