"""Why an email did not arrive, in a sentence that says what it means and what helps."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from delivery.bounces.reasons import Reason

SENTENCES: dict[str, str | Promise] = {
    Reason.UNKNOWN_USER: _("There is no mailbox with this address. It is on the suppression list now."),
    Reason.INACTIVE: _("The mailbox is closed. It is on the suppression list now."),
    Reason.BAD_DOMAIN: _("The domain behind the @ does not take mail. Look for a slip of the keyboard."),
    Reason.BAD_ADDRESS: _("The receiving server does not take this for an address."),
    Reason.REJECTED: _("The receiving server refused the mail and did not say why."),
    Reason.MAILBOX_FULL: _("The mailbox is full."),
    Reason.BAD_DOMAIN_UNCONFIRMED: _("The domain behind the @ was not found; it is looked up again to be sure."),
    Reason.SMTPUTF8_REQUIRED: _("The address has letters that the receiving server cannot read."),
    Reason.GREYLISTED: _("The receiving server asks unknown senders to come back. That is usual."),
    Reason.RATE_LIMITED: _("The receiving server wants the mail more slowly."),
    Reason.TOO_MANY_RECIPIENTS: _("The receiving server takes fewer recipients at once."),
    Reason.HOST_TROUBLE: _("The receiving server has trouble of its own."),
    Reason.REPUTATION: _("The receiving server thinks badly of this service's address or of your domain."),
    Reason.BLOCKLISTED: _("The address that this service sends from is on a block list."),
    Reason.REVERSE_DNS: _("The address that this service sends from has no name in the DNS, or a wrong one."),
    Reason.AUTHENTICATION: _("SPF, DKIM or DMARC did not convince the receiving server. Look at the domain's records."),
    Reason.RELAY_DENIED: _("The receiving server does not take mail for this domain."),
    Reason.SPAM: _("The receiving server took the content for spam."),
    Reason.VIRUS: _("The receiving server found something harmful in the content or in a file."),
    Reason.POLICY: _("A rule of the receiving server forbids this mail."),
    Reason.TOO_LARGE: _("The mail is larger than the receiving server takes."),
    Reason.PROTOCOL: _("The two servers did not understand one another."),
    Reason.NETWORK: _("The receiving server could not be reached."),
    Reason.DNS: _("The DNS of the recipient's domain gave no answer."),
    Reason.TLS: _("No encrypted connection came about."),
    Reason.ROUTING_LOOP: _("The mail runs in a circle between servers."),
    Reason.TARGET_REFUSED: _("The domain sends its mail to an address to which this service does not connect."),
    Reason.EXPIRED: _("The attempts took too long; there is no further one."),
    Reason.LOGIN_REFUSED: _("The relay refused this service's login. Its operators have to look at it."),
    Reason.OUTCOME_UNKNOWN: _("The connection broke at the last moment. The mail may have arrived."),
    Reason.DESTINATION_FULL: _("Enough mail is on its way to that server; this one waits for its turn."),
    Reason.DESTINATION_SHUT: _("That server refused several mails in a row; this one waits until it is asked again."),
    Reason.PROVIDER_REFUSED: _("The sending provider refused the mail."),
    Reason.UNDETERMINED: _("The answer of the receiving server fits no known reason."),
    # Said by emails, not by a transport.
    "recipient_suppressed": _("The address came onto the suppression list before the mail was sent."),
    "domain_not_registered": _("The sending domain was deleted before the mail was sent."),
    "signing_key_unreadable": _(
        "The key of the sending domain cannot be opened. The service's operators have to look at it."
    ),
    "lease_lost": _("A worker was interrupted before it sent this; another one does."),
    "worker_lost": _("A worker ended while it sent this. The mail may have arrived."),
    "internal_error": _("An error of this service. Nothing is wrong with the mail."),
}


def sentence_for(reason: object) -> str:
    """Return the sentence; nothing for a reason that has none, as one of another version."""
    return str(SENTENCES[reason]) if isinstance(reason, str) and reason in SENTENCES else ""
