"""Sending domains, the DKIM keys that sign for them, the host names of their links, and receiving."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from core.lib.model_fields import IdField
from core.lib.sealed import seal, unseal
from core.workspaces.models import Workspace

SEAL_PURPOSE = "dkim-private-key"


class Domain(models.Model):
    """A domain registered in a workspace, which can send from it once it is verified.

    checks_begun numbers the checks. A check is recorded only if its number is above checks_recorded, so that a late
    result never replaces a newer one. findings is the last result (domains.record_checks.results) in English, and
    finding_codes has the codes and values of its messages. missing_since and absences count consecutive checks that
    found a required record missing or invalid.
    """

    class DomainStatus(models.TextChoices):
        PENDING = "pending"
        VERIFIED = "verified"
        FAILED = "failed"
        TEMPORARY_FAILURE = "temporary_failure"

    class TlsPolicy(models.TextChoices):
        """TLS of outgoing connections; required: also if DELIVERY_TLS is opportunistic."""

        OPPORTUNISTIC = "opportunistic"
        REQUIRED = "required"

    id = IdField("dom_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="domains", db_index=False)
    name = models.CharField(max_length=253)
    status = models.CharField(
        max_length=20,
        choices=DomainStatus.choices,
        default=DomainStatus.PENDING,
        help_text="`verified` once DKIM and SPF are found; `temporary_failure` if DNS did not answer.",
    )
    tls = models.CharField(
        max_length=16,
        choices=TlsPolicy.choices,
        db_default=TlsPolicy.OPPORTUNISTIC.value,
        help_text="`required`: emails of the domain leave only over TLS with a valid certificate. `opportunistic`: TLS "
        "is used where a host offers it.",
    )
    open_tracking = models.BooleanField(
        db_default=True,
        help_text="Whether opens are tracked with a pixel, if the stream has it so; the option of an email takes "
        "precedence.",
    )
    click_tracking = models.BooleanField(
        db_default=True,
        help_text="Whether clicks are tracked by rewriting links, if the stream has it so; the option of an email "
        "takes precedence.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    verified_at = models.DateTimeField(
        null=True, editable=False, help_text="The time of the verification; null before it."
    )
    last_checked_at = models.DateTimeField(
        null=True, editable=False, help_text="The time of the last check; null before the first."
    )
    findings = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)
    finding_codes = models.JSONField(null=True, editable=False)
    # The zone of its records and the key of its provider (domains.dns_providers), as a check found them.
    zone_name = models.CharField(max_length=253, db_default="", editable=False)
    dns_provider = models.CharField(max_length=32, db_default="", editable=False)
    # The end of the link that shows its records without signing in, which is part of the link (domains.shared_records).
    records_shared_until = models.DateTimeField(null=True, editable=False)
    # The mechanisms that pass by its SPF record; null before the first check that read it.
    spf_passing = models.TextField(null=True, editable=False)  # noqa: DJ001
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

    @property
    def links_host(self) -> "TrackingHost | None":
        """The host of its links, if it has chosen one."""
        return getattr(self, "tracking_host", None)

    @property
    def receiving(self) -> "ReceivingDomain | None":
        """The receiving of email for the domain, if it is enabled."""
        return getattr(self, "receiving_domain", None)


# A temporary failure of DNS does not stop sending.
SENDING_STATUSES = frozenset({Domain.DomainStatus.VERIFIED, Domain.DomainStatus.TEMPORARY_FAILURE})


class DkimKey(models.Model):
    """A selector with its RSA key pair; the private key is sealed to this row.

    seen_at: the time since which the record is published.
    retired_at: the time since which a newer key signs instead.
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
        """Seal a private key in PEM into this row, without saving the row."""
        self.sealed_private_key = seal(pem, purpose=SEAL_PURPOSE, row=self.id)
        return self

    def private_key(self) -> bytes:
        """Return the private key in PEM. Raises InvalidTag if it was sealed for another row."""
        return unseal(self.sealed_private_key, purpose=SEAL_PURPOSE, row=self.id)


class TrackingHost(models.Model):
    """The host name of the links in a domain's emails (docs/decisions/0205).

    status: new emails use the host while it is active.
    seen_at: the time since which DNS leads to TRACKING_HOST, which permits a certificate.
    proven_at: when it became active for the first time, which gives it to the workspace.
    retired_at: the time since which the domain is deleted or has another host or none; the links in emails that were
    sent work for some time.
    findings and finding_codes: the last check, as those of Domain.
    """

    class HostStatus(models.TextChoices):
        PENDING = "pending"
        ACTIVE = "active"
        FAILED = "failed"

    id = IdField("th_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tracking_hosts")
    domain = models.OneToOneField(Domain, on_delete=models.SET_NULL, null=True, related_name="tracking_host")
    name = models.CharField(max_length=253)
    status = models.CharField(max_length=16, choices=HostStatus.choices, db_default=HostStatus.PENDING.value)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    seen_at = models.DateTimeField(null=True, editable=False)
    proven_at = models.DateTimeField(null=True, editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)
    findings = models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False)
    finding_codes = models.JSONField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(proven_at__isnull=False, retired_at__isnull=True),
                name="one_workspace_a_tracking_host",
            )
        ]

    def __str__(self) -> str:
        return self.name


class ReceivingDomain(models.Model):
    """A domain whose email a workspace receives, or wants to (docs/decisions/0226).

    status: email is accepted while it is active.
    proven_at: the time since which it is active; the name belongs to the workspace meanwhile.
    missing_since and absences: consecutive checks that refuted it.
    findings and finding_codes: the last check, as those of Domain.
    """

    class ReceivingStatus(models.TextChoices):
        PENDING = "pending"
        ACTIVE = "active"
        FAILED = "failed"

    id = IdField("rd_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="receiving_domains")
    domain = models.OneToOneField(Domain, on_delete=models.CASCADE, related_name="receiving_domain")
    name = models.CharField(max_length=253)
    status = models.CharField(max_length=16, choices=ReceivingStatus.choices, db_default=ReceivingStatus.PENDING.value)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    proven_at = models.DateTimeField(null=True, editable=False)
    missing_since = models.DateTimeField(null=True, editable=False)
    absences = models.PositiveSmallIntegerField(db_default=0, editable=False)
    findings = models.JSONField(db_default=models.Value({}, models.JSONField()), editable=False)
    finding_codes = models.JSONField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(proven_at__isnull=False), name="one_workspace_receives_a_domain"
            )
        ]

    def __str__(self) -> str:
        return self.name
