"""Why a hand-over did not succeed: the words of the API, the webhooks and the dashboard."""

from enum import StrEnum


class Reason(StrEnum):
    """One word for each class of trouble; what is kept after `bounced` is in RECIPIENT_FAULTS."""

    # The recipient's address.
    UNKNOWN_USER = "unknown_user"
    INACTIVE = "inactive"
    BAD_DOMAIN = "bad_domain"
    BAD_ADDRESS = "bad_address"
    REJECTED = "rejected"  # a bare 550 or 554 that says nothing more
    # The recipient's mailbox, for now.
    MAILBOX_FULL = "mailbox_full"
    BAD_DOMAIN_UNCONFIRMED = "bad_domain_unconfirmed"  # NXDOMAIN, to be asked again
    SMTPUTF8_REQUIRED = "smtputf8_required"
    # The host wants us to come back, or to come slower.
    GREYLISTED = "greylisted"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_RECIPIENTS = "too_many_recipients"
    HOST_TROUBLE = "host_trouble"
    # What the host thinks of us.
    REPUTATION = "reputation"
    BLOCKLISTED = "blocklisted"
    REVERSE_DNS = "reverse_dns"
    AUTHENTICATION = "authentication"
    RELAY_DENIED = "relay_denied"
    # What the host thinks of the message.
    SPAM = "spam"
    VIRUS = "virus"
    POLICY = "policy"
    TOO_LARGE = "too_large"
    PROTOCOL = "protocol"
    # The way there.
    NETWORK = "network"
    DNS = "dns"
    TLS = "tls"
    ROUTING_LOOP = "routing_loop"
    TARGET_REFUSED = "target_refused"  # an MX host that leads back inside
    EXPIRED = "expired"
    LOGIN_REFUSED = "login_refused"
    OUTCOME_UNKNOWN = "outcome_unknown"  # the reply to the final dot, or to a provider's call, was lost
    # Nothing was tried.
    DESTINATION_FULL = "destination_full"
    DESTINATION_SHUT = "destination_shut"
    # What a provider's API says.
    PROVIDER_REFUSED = "provider_refused"
    UNDETERMINED = "undetermined"


RECIPIENT_FAULTS = frozenset(
    {Reason.UNKNOWN_USER, Reason.INACTIVE, Reason.BAD_DOMAIN, Reason.BAD_ADDRESS, Reason.REJECTED}
)
