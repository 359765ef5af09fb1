"""Labels and badge tones shared by several pages."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.workspaces.models import ApiKey, AuditEntry, Membership
from domains.models import Domain, DomainReport, ReceivingDomain, TrackingHost
from emails.models import Entrance, Recipient
from emails.states import EmailStatus
from receiving.states import ReceivedStatus
from suppressions.models import Suppression
from webhooks.models import WebhookDeliveryStatus

# Email status → variant of unfold's label.
EMAIL_TONES = {
    "scheduled": "info",
    "queued": "default",
    "sent": "info",
    "delivered": "success",
    "opened": "success",
    "clicked": "success",
    "bounced": "danger",
    "failed": "danger",
    "cancelled": "default",
}
# Status of a domain or one of its records → variant.
DOMAIN_TONES = {
    "verified": "success",
    "active": "success",
    "pending": "info",
    "failed": "danger",
    "temporary_failure": "warning",
}
# State of a DMARC report → variant; those that are not counted stand out.
REPORT_TONES = {
    "waiting": "info",
    "read": "success",
    "repeated": "neutral",
    "conflict": "warning",
    "foreign": "warning",
    "unreadable": "warning",
    "refused": "warning",
}
# Status of a received email → variant.
RECEIVED_TONES = {"stored": "info", "processed": "success", "blocked": "danger", "unreadable": "warning"}
# Webhook delivery status → variant.
DELIVERY_TONES = {"pending": "warning", "succeeded": "success", "exhausted": "danger", "discarded": "neutral"}
# Reason of a suppression → variant.
SUPPRESSION_TONES = {"bounce": "danger", "complaint": "danger", "unsubscribe": "neutral", "manual": "neutral"}

# Error of a webhook attempt → message.
WEBHOOK_ERRORS = {
    "status": _("The endpoint returned an error"),
    "redirect": _("The endpoint returned a redirect; redirects are not followed"),
    "timed_out": _("The endpoint did not respond in time"),
    "connection_failed": _("Could not connect"),
    "tls_failed": _("The TLS certificate or connection is invalid"),
    "dns_failed": _("The hostname could not be resolved"),
    "invalid_answer": _("The response is not valid HTTP"),
    "forbidden_target": _("Events cannot be sent to this address"),
    "worker_lost": _("A worker stopped during the request"),
    "lease_lost": _("A worker was interrupted"),
    "secret_unreadable": _("The signing secret cannot be read; rotate it"),
    "internal_error": _("Internal error"),
}

# Choices whose values or labels pages translate; bin/messages.py adds them to the catalogues.
TRANSLATED_VALUES = (
    EmailStatus,
    Recipient.RecipientType,
    Domain.DomainStatus,
    Domain.TlsPolicy,
    TrackingHost.HostStatus,
    ReceivingDomain.ReceivingStatus,
    DomainReport.ReadingState,
    ReceivedStatus,
    WebhookDeliveryStatus,
    Suppression.Reason,
    ApiKey.Scope,
    Membership.Role,
)
TRANSLATED_LABELS = (ApiKey.Scope, Membership.Role, AuditEntry.Action, Entrance)
# Other words that pages translate.
WORDS = (
    gettext_noop("temporary failure"),
    # events of the filter
    gettext_noop("complained"),
    gettext_noop("unsubscribed"),
    gettext_noop("deferred"),
    # in the details of the audit log
    gettext_noop("active"),
    gettext_noop("approval"),
    gettext_noop("alias"),
    gettext_noop("events"),
    gettext_noop("format"),
    gettext_noop("limited"),
    gettext_noop("refuse"),
    gettext_noop("capture"),
    gettext_noop("redirect"),
    gettext_noop("name"),
    gettext_noop("match"),
    gettext_noop("priority"),
    gettext_noop("action"),
    gettext_noop("domain"),
    gettext_noop("reply_to"),
    gettext_noop("sample_data"),
    gettext_noop("sender"),
    gettext_noop("strict_variables"),
    gettext_noop("subject"),
    gettext_noop("text"),
)
