"""Small things that several pages say alike."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

# What a status means to the eye: the variants of unfold's labels.
TONES = {
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
# The same for a domain and each of its records.
DOMAIN_TONES = {"verified": "success", "pending": "warning", "failed": "danger", "temporary_failure": "danger"}
# The same for a delivery to a webhook.
DELIVERY_TONES = {"pending": "warning", "succeeded": "success", "exhausted": "danger", "discarded": "neutral"}

# What went wrong with an attempt at a webhook.
ERROR_WORDS = {
    "status": _("The endpoint answered with an error"),
    "redirect": _("The endpoint answered with a redirect, which is not followed"),
    "timed_out": _("No answer came in time"),
    "connection_failed": _("No connection came about"),
    "tls_failed": _("The certificate or the encryption is not in order"),
    "dns_failed": _("The name of the endpoint leads nowhere"),
    "invalid_answer": _("The answer cannot be understood"),
    "forbidden_target": _("Events are not posted to this address"),
    "worker_lost": _("A worker of this service ended while it posted"),
    "lease_lost": _("A worker of this service was interrupted"),
    "secret_unreadable": _("The signing secret cannot be read; rotate it"),
    "internal_error": _("An error of this service"),
}

# Words of other rooms that a page shows by {% translate %}. They stand here for makemessages to find.
ELSEWHERE = frozenset(
    {
        # what becomes of emails and recipients
        gettext_noop("scheduled"),
        gettext_noop("queued"),
        gettext_noop("sent"),
        gettext_noop("delivered"),
        gettext_noop("bounced"),
        gettext_noop("failed"),
        gettext_noop("opened"),
        gettext_noop("clicked"),
        gettext_noop("cancelled"),
        gettext_noop("to"),
        gettext_noop("cc"),
        gettext_noop("bcc"),
        # of domains and their records
        gettext_noop("pending"),
        gettext_noop("verified"),
        gettext_noop("temporary failure"),
        # of deliveries
        gettext_noop("succeeded"),
        gettext_noop("exhausted"),
        gettext_noop("discarded"),
        # why an address is suppressed
        gettext_noop("bounce"),
        gettext_noop("unsubscribe"),
        gettext_noop("manual"),
        gettext_noop("complaint"),
        # what a key or a person may do
        gettext_noop("Full access"),
        gettext_noop("Sending access"),
        gettext_noop("Read only"),
        gettext_noop("Owner"),
        gettext_noop("Member"),
        # the audit log
        gettext_noop("API key created"),
        gettext_noop("API key revoked"),
        gettext_noop("Domain added"),
        gettext_noop("Domain deleted"),
        gettext_noop("Domain key rotated"),
        gettext_noop("Domain verified"),
        gettext_noop("Webhook created"),
        gettext_noop("Webhook changed"),
        gettext_noop("Webhook deleted"),
        gettext_noop("Webhook secret rotated"),
        gettext_noop("Suppression added"),
        gettext_noop("Suppression removed"),
        gettext_noop("Email looked at"),
        gettext_noop("Address erased"),
        gettext_noop("Member invited"),
        gettext_noop("Invitation withdrawn"),
        gettext_noop("Member joined"),
        gettext_noop("Member's role changed"),
        gettext_noop("Member removed"),
        gettext_noop("Member left"),
        gettext_noop("Workspace created"),
        gettext_noop("Address confirmed"),
        gettext_noop("Workspace suspended"),
        gettext_noop("Suspension lifted"),
        gettext_noop("Owners warned"),
        gettext_noop("Plan changed"),
    }
)
