"""Small things that several pages say alike."""

from django.utils.translation import gettext_lazy as _

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
