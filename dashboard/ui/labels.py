"""Labels and badge tones shared by several pages."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

# Email status → variant of unfold's label.
EMAIL_TONES = {
    "scheduled": "warning",
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
DOMAIN_TONES = {"verified": "success", "pending": "warning", "failed": "danger", "temporary_failure": "danger"}
# Webhook delivery status → variant.
DELIVERY_TONES = {"pending": "warning", "succeeded": "success", "exhausted": "danger", "discarded": "neutral"}

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

# Values and labels of models that templates show with {% translate %}, listed here for makemessages.
MODEL_LABELS = frozenset(
    {
        # email and recipient statuses
        gettext_noop("scheduled"),
        gettext_noop("queued"),
        gettext_noop("sent"),
        gettext_noop("delivered"),
        gettext_noop("bounced"),
        gettext_noop("failed"),
        gettext_noop("opened"),
        gettext_noop("clicked"),
        gettext_noop("cancelled"),
        # events of the filter
        gettext_noop("complained"),
        gettext_noop("unsubscribed"),
        gettext_noop("deferred"),
        # fields of a recipient
        gettext_noop("to"),
        gettext_noop("cc"),
        gettext_noop("bcc"),
        # domain and record statuses
        gettext_noop("pending"),
        gettext_noop("verified"),
        gettext_noop("temporary failure"),
        # entrances of an email
        gettext_noop("API"),
        gettext_noop("SMTP"),
        gettext_noop("Dashboard"),
        gettext_noop("Compatibility"),
        # webhook delivery statuses
        gettext_noop("succeeded"),
        gettext_noop("exhausted"),
        gettext_noop("discarded"),
        # suppression reasons
        gettext_noop("bounce"),
        gettext_noop("unsubscribe"),
        gettext_noop("manual"),
        gettext_noop("complaint"),
        # API key scopes and member roles
        gettext_noop("Full access"),
        gettext_noop("Sending access"),
        gettext_noop("Read only"),
        gettext_noop("Workspace administration"),
        gettext_noop("Owner"),
        gettext_noop("Member"),
        # words in the details of the audit log
        gettext_noop("active"),
        gettext_noop("alias"),
        gettext_noop("events"),
        gettext_noop("format"),
        gettext_noop("full_access"),
        gettext_noop("limited"),
        gettext_noop("member"),
        gettext_noop("name"),
        gettext_noop("opportunistic"),
        gettext_noop("owner"),
        gettext_noop("read_only"),
        gettext_noop("required"),
        gettext_noop("sample_data"),
        gettext_noop("sending_access"),
        gettext_noop("strict_variables"),
        gettext_noop("subject"),
        gettext_noop("text"),
        gettext_noop("workspace_admin"),
        # the audit log
        gettext_noop("API key created"),
        gettext_noop("API key revoked"),
        gettext_noop("Domain added"),
        gettext_noop("Domain changed"),
        gettext_noop("Domain deleted"),
        gettext_noop("Domain key rotated"),
        gettext_noop("Domain verified"),
        gettext_noop("Template created"),
        gettext_noop("Template changed"),
        gettext_noop("Template deleted"),
        gettext_noop("Webhook created"),
        gettext_noop("Webhook changed"),
        gettext_noop("Webhook deleted"),
        gettext_noop("Webhook secret rotated"),
        gettext_noop("Suppression added"),
        gettext_noop("Suppression removed"),
        gettext_noop("Email viewed"),
        gettext_noop("Address erased"),
        gettext_noop("Member invited"),
        gettext_noop("Invitation revoked"),
        gettext_noop("Member joined"),
        gettext_noop("Member's role changed"),
        gettext_noop("Member removed"),
        gettext_noop("Member left"),
        gettext_noop("Signed in"),
        gettext_noop("Workspace created"),
        gettext_noop("Address confirmed"),
        gettext_noop("Workspace suspended"),
        gettext_noop("Suspension lifted"),
        gettext_noop("Owners warned"),
        gettext_noop("Plan changed"),
        gettext_noop("Workspace renamed"),
        gettext_noop("Workspace deleted"),
        gettext_noop("Workspace restored"),
    }
)
