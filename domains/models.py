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
    tls_reporting: the texts at `_smtp._tls`, which ask for TLS reports; None before a check read them.
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
    tls_reporting = models.TextField(null=True, editable=False)  # noqa: DJ001

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(proven_at__isnull=False), name="one_workspace_receives_a_domain"
            )
        ]

    def __str__(self) -> str:
        return self.name


class DomainReport(models.Model):
    """An aggregate report about a domain that another organization sent: of DMARC, or of TLS (docs/decisions/0397).

    Stored as it arrived and read later: due_at, attempts and read_at are those of a queue (domains.reports.queue).
    Only reports in the state `read` are counted.

    domain: that of the token in the address; anyone may write to it. A domain with many reports is deleted at once, and
    they are afterwards (domains.reports.deletion).
    source: the bytes that arrived, for 30 days; None afterwards, and empty for a repeated report.
    size: the length of source on arrival, in bytes.
    sender, network: the envelope sender, and the /24 or /48 of the host that delivered it.
    reporter, reporter_domain: the organization's name, and the domain of its contact address, in lower case.
    organization: the key of the mail organization that the reporter is (domains.reports.organizations).
    begin_at, end_at: the time range of the report.
    policy: the policy as the reporter saw it, with the names of the report's format.
    digest: of the rows and the range, which tells a repeated report from one that contradicts it.
    error: why it is not counted.
    """

    class AggregateKind(models.TextChoices):
        DMARC = "dmarc"
        TLS = "tls"

    class ReadingState(models.TextChoices):
        """The result of reading: foreign reports are about other domains, refused ones exceed a limit."""

        WAITING = "waiting"
        READ = "read"
        REPEATED = "repeated"
        CONFLICT = "conflict"
        FOREIGN = "foreign"
        UNREADABLE = "unreadable"
        REFUSED = "refused"

    id = IdField("rpt_", primary_key=True)
    domain = models.ForeignKey(
        Domain, on_delete=models.DO_NOTHING, related_name="reports", db_index=False, db_constraint=False
    )
    kind = models.CharField(max_length=8, choices=AggregateKind.choices)
    state = models.CharField(max_length=16, choices=ReadingState.choices, db_default=ReadingState.WAITING.value)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    attempts = models.PositiveSmallIntegerField(db_default=0, editable=False)
    read_at = models.DateTimeField(null=True, editable=False)
    source = models.BinaryField(null=True)
    size = models.PositiveIntegerField(help_text="bytes")
    sender = models.CharField(max_length=320, blank=True)
    network = models.CharField(max_length=43, blank=True)
    reporter = models.CharField(max_length=255, blank=True, default="")
    reporter_domain = models.CharField(max_length=253, blank=True, default="")
    organization = models.CharField(max_length=253, blank=True, default="", db_default="")
    report_id = models.CharField(max_length=1024, blank=True, default="")
    begin_at = models.DateTimeField(null=True)
    end_at = models.DateTimeField(null=True)
    policy = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    digest = models.BinaryField(max_length=32, default=b"")
    error = models.CharField(max_length=255, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["domain", "kind", "reporter", "report_id"],
                condition=models.Q(state="read"),
                name="one_counted_report_an_id",
            )
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(read_at=None), name="domain_report_due"),
            models.Index(fields=["domain", "received_at"], name="domain_report_arrival"),
            models.Index(fields=["domain", "kind", "begin_at"], name="domain_report_range"),
            models.Index(fields=["received_at"], name="domain_report_received"),
            models.Index(fields=["received_at"], condition=models.Q(source__isnull=False), name="domain_report_source"),
        ]
        ordering = ["-received_at", "-id"]

    def __str__(self) -> str:
        return f"{self.reporter} {self.report_id}"


class DmarcRow(models.Model):
    """Messages with the same results from one address, of a counted report.

    domain, day: of the report; the UTC day on which its range begins.
    source_ip: None if the report has an invalid one.
    disposition, dkim, spf: policy_evaluated, which applies alignment.
    dkim_results: `{"domain": …, "selector": …, "result": …}`, as the reporter checked the signatures.
    spf_results: `{"domain": …, "scope": …, "result": …}`.
    reasons: `{"type": …, "comment": …}` of a disposition that differs from the policy.
    whose: whose mail it is (domains.reports.classification), set in the transaction that stores the row.
    """

    report = models.ForeignKey(DomainReport, on_delete=models.CASCADE, related_name="dmarc_rows")
    domain = models.ForeignKey(
        Domain, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    source_ip = models.GenericIPAddressField(null=True)
    count = models.PositiveBigIntegerField()
    disposition = models.CharField(max_length=16, blank=True)
    dkim = models.CharField(max_length=16, blank=True)
    spf = models.CharField(max_length=16, blank=True)
    header_from = models.CharField(max_length=1024, blank=True)
    envelope_from = models.CharField(max_length=1024, blank=True)
    envelope_to = models.CharField(max_length=1024, blank=True)
    dkim_results = models.JSONField(default=list)
    spf_results = models.JSONField(default=list)
    reasons = models.JSONField(default=list)
    whose = models.CharField(max_length=16, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(fields=["domain", "day"], name="dmarc_row_day"),
        ]

    def __str__(self) -> str:
        return f"{self.source_ip}: {self.count}"

    @property
    def is_aligned(self) -> bool:
        """Whether the messages passed DMARC."""
        return "pass" in {self.dkim, self.spf}


class DmarcDay(models.Model):
    """The sums of a UTC day, which stay when the rows of its reports are deleted.

    messages, aligned: all messages of the organization's reports, and those that passed DMARC.
    """

    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="dmarc_days", db_index=False)
    day = models.DateField()
    organization = models.CharField(max_length=253)
    whose = models.CharField(max_length=16, blank=True)
    messages = models.PositiveBigIntegerField()
    aligned = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["domain", "day", "organization", "whose"], name="one_sum_a_dmarc_day")
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.messages}"


class TlsRow(models.Model):
    """Sessions with one result under one policy, of a counted TLS report (RFC 8460).

    The row without a result_type has the totals of the policy. Each other row has the failed sessions with its result,
    which the totals include.

    policy_type: `sts`, `tlsa` or `no-policy-found`.
    """

    report = models.ForeignKey(DomainReport, on_delete=models.CASCADE, related_name="tls_rows")
    domain = models.ForeignKey(
        Domain, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    policy_type = models.CharField(max_length=32)
    policy_domain = models.CharField(max_length=1024)
    mx_hosts = models.JSONField(default=list)
    result_type = models.CharField(max_length=64, blank=True)
    successful = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    sending_ip = models.GenericIPAddressField(null=True)
    receiving_ip = models.GenericIPAddressField(null=True)
    receiving_host = models.CharField(max_length=1024, blank=True)
    reason_code = models.CharField(max_length=1024, blank=True)

    class Meta:
        indexes = [models.Index(fields=["domain", "day"], name="tls_row_day")]

    def __str__(self) -> str:
        return f"{self.policy_type} {self.result_type or self.successful}"


class KnownSource(models.Model):
    """Another sender of a domain that its owner has named: an address, or a domain that signs or sends for it.

    Rows of reports that match one are those of a known source (domains.reports.classification).

    ip, name: one of them; a name stands for the names below it, too.
    """

    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="known_sources", db_index=False)
    ip = models.GenericIPAddressField(null=True)
    name = models.CharField(max_length=253, blank=True, default="")
    label = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["domain", "ip"], condition=models.Q(ip__isnull=False), name="one_label_an_address"
            ),
            models.UniqueConstraint(fields=["domain", "name"], condition=models.Q(ip=None), name="one_label_a_sender"),
            models.CheckConstraint(condition=models.Q(ip=None) ^ models.Q(name=""), name="address_or_sender"),
        ]
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.ip or self.name}: {self.label}"


class DomainNotice(models.Model):
    """The last notice about the reports of a domain, of one kind: at most one a week is sent (docs/decisions/0398).

    kind: of events.kinds, such as domain.spoofed.
    """

    domain = models.ForeignKey(Domain, on_delete=models.CASCADE, related_name="notices", db_index=False)
    kind = models.CharField(max_length=32)
    sent_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["domain", "kind"], name="one_notice_a_kind")]

    def __str__(self) -> str:
        return f"{self.kind} {self.sent_at}"
